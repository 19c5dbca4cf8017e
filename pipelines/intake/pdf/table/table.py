"""Read the table of one account: headings, the columns below them, and the rows in the columns.

    lines → regions, each below a heading (printed, or inferred from aligned figures) → cells by column → blocks of
    lines between balances, totals and titles → rows

After the closing balance, nothing is a row until the next heading.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from pipelines.intake.pdf.layout.columns import Cells, Columns, usual_left
from pipelines.intake.pdf.layout.layouts import Layout
from pipelines.intake.pdf.layout.wrapped import cells_with_whole_amounts
from pipelines.intake.pdf.page.amounts import Money
from pipelines.intake.pdf.page.dates import leading_date
from pipelines.intake.pdf.page.page import Line
from pipelines.intake.pdf.table.regions import Region, find_regions, fit_regions
from pipelines.intake.pdf.table.rows import (
    Mark,
    RawRow,
    Title,
    are_amounts_last,
    is_furniture,
    mark_kind,
    rows_of_block,
    title_of,
)

# Our judgement.
_BESIDE = 4.0  # points: how far left of the other texts a line of text may begin
_CLOSE = 1.3  # of the usual step: a line this close continues the text above
_APART = 4.0  # steps: a line further below is not a row of the day above
_FURTHEST = 2.3  # of the text's size: a line further below never continues it


@dataclass(frozen=True)
class Table:
    """Rows and the balances between them, in the order printed.

    `is_inferred`: no heading was found. `regions`: columns with their first and last page, for drawing.
    """

    rows: tuple[RawRow, ...]
    marks: tuple[Mark, ...]
    is_inferred: bool
    regions: tuple[tuple[Columns, int, int], ...]


def read_table(lines: Sequence[Line], layout: Layout | None) -> Table:
    """Read the rows of one account's lines."""
    found = list(fit_regions(find_regions(lines, layout)))
    stream = _add_years(list(_stream(found)))
    rows, marks = _read_stream(stream, layout)
    return Table(
        rows=tuple(rows),
        marks=tuple(marks),
        is_inferred=any(columns.heading.is_inferred for columns, _ in found),
        regions=tuple(
            (columns, region.lines[0].page, region.lines[-1].page) for columns, region in found if region.lines
        ),
    )


@dataclass(frozen=True)
class _Piece:
    """A line in the stream; `begins`: whether it is the first below a heading."""

    cells: Cells
    columns: Columns
    begins: bool


def _stream(regions: Sequence[tuple[Columns, Region]]) -> Iterator[_Piece]:
    for columns, region in regions:
        begins = True
        for cells in cells_with_whole_amounts(region.lines, columns):
            yield _Piece(_read_heading_day(cells, columns), columns, begins)
            begins = False


def _read_heading_day(cells: Cells, columns: Columns) -> Cells:
    """Read a line that is only a date as the date of the rows below, unless it is in the column of texts."""
    if cells.date or cells.flows or not cells.words or not columns.may_hold_date(cells.words[0]):
        return cells
    text = cells.line.text if not cells.balance else cells.text
    found = leading_date(text)
    return replace(cells, date=found[0], words=()) if found and found[1] == len(text) else cells


def _add_years(stream: Sequence[_Piece]) -> list[_Piece]:
    """Remove lines that are only a year, and add their years to the dates below; or to the dates above, if nearly every
    date has such a line.
    """
    alone = sum(1 for piece in stream if piece.cells.year)
    bare = sum(1 for piece in stream if piece.cells.date and piece.cells.date.year is None)
    if not alone:
        return list(stream)
    return _years_of_wrapped(stream) if alone > 2 and alone >= 0.8 * bare else _years_from_above(stream)


def _years_from_above(stream: Sequence[_Piece]) -> list[_Piece]:
    year, found = None, list[_Piece]()
    for piece in stream:
        if piece.cells.year:
            year = piece.cells.year
        else:
            found.append(replace(piece, cells=replace(piece.cells, row_year=year)))
    return found


def _years_of_wrapped(stream: Sequence[_Piece]) -> list[_Piece]:
    found: list[_Piece] = []
    for piece in stream:
        if piece.cells.year:
            place = next((index for index in range(len(found) - 1, -1, -1) if found[index].cells.date), None)
            if place is not None:
                found[place] = replace(found[place], cells=replace(found[place].cells, row_year=piece.cells.year))
        else:
            found.append(piece)
    return found


def _read_stream(stream: Sequence[_Piece], layout: Layout | None) -> tuple[list[RawRow], list[Mark]]:
    """Return the rows and balances of lines in order."""
    retained = [piece for piece in stream if not _is_noise(piece, layout)]
    left = usual_left([piece.cells for piece in retained])
    step = _usual_step(retained)
    titles = layout.section_signs if layout else {}
    retained = list(_lines_of_rows(retained, left, step, titles))
    is_last = are_amounts_last([piece.cells for piece in retained])
    rows: list[RawRow] = []
    marks: list[Mark] = []
    block: list[Cells] = []
    title: Title | None = None
    closed = False
    by_title = not any({"debit", "credit"} & piece.columns.heading.roles for piece in retained)
    for piece in retained:
        cells = piece.cells
        if closed and not piece.begins:
            continue
        closed = False
        kind = _kind_of_line(cells, titles, left if by_title else None)
        if kind is None:
            block.append(cells)
            continue
        open_row = _open_row(block) if kind in ("carried", "brought", "total") else []
        rows.extend(rows_of_block(block[: len(block) - len(open_row)], is_last, step, title))
        block = open_row
        if kind == "title":
            title = title_of(cells.text, titles)
        elif kind != "total":
            marks.append(Mark(_balance_of(cells, kind), cells.line.page, len(rows), kind))
            closed = kind == "closing" and bool(rows) and _balance_of(cells, kind) is not None
    rows.extend(rows_of_block(block, is_last, step, title))
    return rows, marks


def _open_row(block: Sequence[Cells]) -> list[Cells]:
    """Return the lines of a row whose amount is on the next page."""
    last = next((index for index in range(len(block) - 1, -1, -1) if block[index].date), None)
    if last is None or any(cells.flows for cells in block[last:]) or not block[last].words:
        return []
    return list(block[last:])


def _kind_of_line(cells: Cells, titles: Mapping[str, int], left: float | None) -> str | None:
    """Return the kind of a line that belongs to no row, else None. A title begins left of the rows' texts (`left`)."""
    text = cells.text
    if not cells.amounts and not cells.date:
        if left is not None and cells.words and cells.words[0].left < left - _BESIDE and title_of(text, titles):
            return "title"
        kind = mark_kind(text)
        return "total" if kind in ("carried", "brought", "total") or (kind and not cells.strays) else None
    kind = mark_kind(text)
    if kind is None:
        return "stated" if cells.balance and not cells.flows and not text and cells.date else None
    if kind == "total" and (cells.date and not _is_sum(cells)):
        return None
    return kind


def _is_sum(cells: Cells) -> bool:
    return len(cells.flows) > 1 or not cells.flows


def _balance_of(cells: Cells, kind: str) -> Money | None:
    """Return the balance of a line: the one in its column, else its only amount. But an amount carried between pages in
    another column may be a total, so it doesn't count.
    """
    if cells.balance is not None:
        return cells.balance
    if kind in ("carried", "brought") or len(cells.flows) != 1 or cells.strays:
        return None
    return next(iter(cells.flows.values()))


def _is_noise(piece: _Piece, layout: Layout | None) -> bool:
    text = piece.cells.line.text
    if is_furniture(text):
        return True
    ignored = layout is not None and layout.ignores(text)
    return ignored and not (piece.cells.date and piece.cells.flows)


def _usual_step(pieces: Sequence[_Piece]) -> float:
    """Return the distance between lines of a text, in points: the smallest that is not rare."""
    steps = Counter(
        round(2 * (after.cells.line.box.top - one.cells.line.box.top)) / 2
        for one, after in pairwise(pieces)
        if one.cells.line.page == after.cells.line.page and after.cells.line.box.top > one.cells.line.box.top
    )
    total = sum(steps.values())
    usual = sorted(step for step, number in steps.items() if number >= max(1, 0.05 * total))
    return usual[0] if usual else 12.0


def _lines_of_rows(
    pieces: Sequence[_Piece], left: float | None, step: float, titles: Mapping[str, int]
) -> Iterator[_Piece]:
    """Yield the lines, except texts that belong to no row: adverts, footers, heads of pages."""
    index = 0
    while index < len(pieces):
        stop = index
        while stop < len(pieces) and _is_text(pieces[stop]) and not (stop > index and pieces[stop].begins):
            stop += 1
        if stop == index:
            if not _is_aside(pieces, index, left, step):
                yield pieces[index]
            index += 1
            continue
        above = pieces[index - 1] if index else None
        below = pieces[stop] if stop < len(pieces) else None
        yield from _continuing_lines(pieces[index:stop], above, below, left, step, titles)
        index = stop


def _is_aside(pieces: Sequence[_Piece], index: int, left: float | None, step: float) -> bool:
    """Return whether a line with an amount and no date is apart from rows: part of a summary below the table."""
    cells = pieces[index].cells
    if cells.date or left is None or not cells.words or mark_kind(cells.text):
        return False
    if cells.words[0].left < left - 3 * _BESIDE:
        return True
    above = pieces[index - 1].cells.line if index and not pieces[index].begins else None
    gap = cells.line.box.top - above.box.top if above is not None and above.page == cells.line.page else 0.0
    return gap > max(_APART * step, 4 * cells.words[0].size)


def _is_text(piece: _Piece) -> bool:
    cells = piece.cells
    return not (cells.date or cells.amounts)


def _continuing_lines(
    run: Sequence[_Piece],
    above: _Piece | None,
    below: _Piece | None,
    left: float | None,
    step: float,
    titles: Mapping[str, int],
) -> Iterator[_Piece]:
    """Yield the lines of a run that continue the row above or begin the row below, and titles and
    balances among them.
    """
    taken: set[int] = set()
    last = above
    for place, piece in enumerate(run):
        if last is None or not _continues(last, piece, left, step):
            break
        taken.add(place)
        last = piece
    following = below if below is not None and not below.cells.date and below.cells.flows else None
    for place in range(len(run) - 1, -1, -1):
        if following is None or place in taken or not _continues(run[place], following, left, step):
            break
        if not _is_aligned(run[place], left):
            break
        taken.add(place)
        following = run[place]
    for place, piece in enumerate(run):
        kind = _kind_of_line(piece.cells, titles, left)
        if place in taken or piece.begins or kind is not None:
            yield piece if place in taken or kind is not None else replace(piece, cells=_without_words(piece.cells))


def _without_words(cells: Cells) -> Cells:
    return replace(cells, words=())


def _continues(above: _Piece, piece: _Piece, left: float | None, step: float) -> bool:
    one, other = above.cells.line, piece.cells.line
    if one.page != other.page or not _is_aligned(piece, left):
        return False
    size = other.words[0].size
    return other.box.top - one.box.top <= min(max(_CLOSE * step, 1.45 * size), _FURTHEST * size)


def _is_aligned(piece: _Piece, left: float | None) -> bool:
    """Return whether a text is in the column of texts, and not in that of the figures."""
    words = piece.cells.words
    if not words:
        return True
    starts = left is None or words[0].left >= left - _BESIDE
    return starts and words[0].left < piece.columns.left_of_figures and words[-1].left < piece.columns.left_of_figures
