"""The table of one account: headings, the columns below them, and the rows in the columns.

    lines → regions, each below a heading (printed, or inferred from figures in line) → cells by column → blocks of
    lines between balances, sums and titles → rows

Behind the closing balance nothing is a row until the next heading.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from pipelines.intake.pdf.layout.columns import Cells, Columns, usual_left
from pipelines.intake.pdf.layout.layouts import Layout
from pipelines.intake.pdf.layout.wrapped import cells_with_whole_amounts
from pipelines.intake.pdf.page.amounts import Money
from pipelines.intake.pdf.page.dates import leading
from pipelines.intake.pdf.page.page import Line
from pipelines.intake.pdf.table.regions import Region, fitted_regions, regions_of
from pipelines.intake.pdf.table.rows import (
    Mark,
    RawRow,
    Title,
    amounts_stand_last,
    is_furniture,
    mark_kind,
    rows_of,
    title_of,
)

_BESIDE = 4.0  # points: how far left of other texts a line of one may begin
_CLOSE = 1.3  # of the usual step between lines: still the same text
_APART = 4.0  # steps: what stands further below is no row of the day above
_FURTHEST = 2.3  # of the size


@dataclass(frozen=True)
class Table:
    """Rows and the balances between them, in the order printed.

    `is_inferred`: no heading was found. `regions`: the columns and the pages on which they hold, for drawing.
    """

    rows: tuple[RawRow, ...]
    marks: tuple[Mark, ...]
    is_inferred: bool
    regions: tuple[tuple[Columns, int, int], ...]


def read_table(lines: Sequence[Line], layout: Layout | None) -> Table:
    """The rows of one account's lines."""
    found = list(fitted_regions(regions_of(lines, layout)))
    stream = _with_years(list(_stream(found)))
    rows, marks = _read(stream, layout)
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
    """A line in the stream; `begins`: it is the first below a heading."""

    cells: Cells
    columns: Columns
    begins: bool


def _stream(regions: Sequence[tuple[Columns, Region]]) -> Iterator[_Piece]:
    for columns, region in regions:
        begins = True
        for cells in cells_with_whole_amounts(region.lines, columns):
            yield _Piece(_with_heading_day(cells, columns), columns, begins)
            begins = False


def _with_heading_day(cells: Cells, columns: Columns) -> Cells:
    """A line that is a date and nothing else is the date of the rows below, unless it stands where texts do."""
    if cells.date or cells.flows or not cells.words or not columns.may_hold_date(cells.words[0]):
        return cells
    text = cells.line.text if not cells.balance else cells.text
    found = leading(text)
    return replace(cells, date=found[0], words=()) if found and found[1] == len(text) else cells


def _with_years(stream: Sequence[_Piece]) -> list[_Piece]:
    """Without lines that hold a year alone, their years given to the dates below (or above, where the year of every
    date is wrapped)."""
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


def _read(stream: Sequence[_Piece], layout: Layout | None) -> tuple[list[RawRow], list[Mark]]:
    """Rows and marks of lines in order."""
    retained = [piece for piece in stream if not _is_noise(piece, layout)]
    left = usual_left([piece.cells for piece in retained])
    step = _usual_step(retained)
    titles = layout.section_signs if layout else {}
    retained = list(_belonging(retained, left, step, titles))
    is_last = amounts_stand_last([piece.cells for piece in retained])
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
        said = _said(cells, titles, left if by_title else None)
        if said is None:
            block.append(cells)
            continue
        open_row = _open_row(block) if said in ("carried", "brought", "total") else []
        rows.extend(rows_of(block[: len(block) - len(open_row)], is_last, step, title))
        block = open_row
        if said == "title":
            title = title_of(cells.text, titles)
        elif said != "total":
            marks.append(Mark(_balance_of(cells, said), cells.line.page, len(rows), said))
            closed = said == "closing" and bool(rows) and _balance_of(cells, said) is not None
    rows.extend(rows_of(block, is_last, step, title))
    return rows, marks


def _open_row(block: Sequence[Cells]) -> list[Cells]:
    """The lines of a row whose amount is still to come, on the next page."""
    last = next((index for index in range(len(block) - 1, -1, -1) if block[index].date), None)
    if last is None or any(cells.flows for cells in block[last:]) or not block[last].words:
        return []
    return list(block[last:])


def _said(cells: Cells, titles: Mapping[str, int], left: float | None) -> str | None:
    """What a line says that is part of no row. A title stands left of the texts of rows, at `left`."""
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


def _balance_of(cells: Cells, said: str) -> Money | None:
    """The balance of a mark: in its column, or the only amount of a line that has none there. What is carried in a
    column of amounts may be a sum."""
    if cells.balance is not None:
        return cells.balance
    if said in ("carried", "brought") or len(cells.flows) != 1 or cells.strays:
        return None
    return next(iter(cells.flows.values()))


def _is_noise(piece: _Piece, layout: Layout | None) -> bool:
    text = piece.cells.line.text
    if is_furniture(text):
        return True
    ignored = layout is not None and layout.ignores(text)
    return ignored and not (piece.cells.date and piece.cells.flows)


def _usual_step(pieces: Sequence[_Piece]) -> float:
    """From a line to the next one of the same text: the smallest step that is not rare."""
    steps = Counter(
        round(2 * (after.cells.line.box.top - one.cells.line.box.top)) / 2
        for one, after in pairwise(pieces)
        if one.cells.line.page == after.cells.line.page and after.cells.line.box.top > one.cells.line.box.top
    )
    total = sum(steps.values())
    usual = sorted(step for step, number in steps.items() if number >= max(1, 0.05 * total))
    return usual[0] if usual else 12.0


def _belonging(
    pieces: Sequence[_Piece], left: float | None, step: float, titles: Mapping[str, int]
) -> Iterator[_Piece]:
    """Without runs of text that belong to no row: adverts, footers, heads of pages."""
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
        yield from _of_rows(pieces[index:stop], above, below, left, step, titles)
        index = stop


def _is_aside(pieces: Sequence[_Piece], index: int, left: float | None, step: float) -> bool:
    """A line with an amount, without a date, that stands apart from rows: of a summary below the table."""
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


def _of_rows(
    run: Sequence[_Piece],
    above: _Piece | None,
    below: _Piece | None,
    left: float | None,
    step: float,
    titles: Mapping[str, int],
) -> Iterator[_Piece]:
    """The lines of a run that continue the row above or begin the row below, and titles and marks among them."""
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
        said = _said(piece.cells, titles, left)
        if place in taken or piece.begins or said is not None:
            yield piece if place in taken or said is not None else replace(piece, cells=_emptied(piece.cells))


def _emptied(cells: Cells) -> Cells:
    return replace(cells, words=())


def _continues(above: _Piece, piece: _Piece, left: float | None, step: float) -> bool:
    one, other = above.cells.line, piece.cells.line
    if one.page != other.page or not _is_aligned(piece, left):
        return False
    size = other.words[0].size
    return other.box.top - one.box.top <= min(max(_CLOSE * step, 1.45 * size), _FURTHEST * size)


def _is_aligned(piece: _Piece, left: float | None) -> bool:
    """A text where texts of rows stand, and not over the figures."""
    words = piece.cells.words
    if not words:
        return True
    starts = left is None or words[0].left >= left - _BESIDE
    return starts and words[0].left < piece.columns.left_of_figures and words[-1].left < piece.columns.left_of_figures
