"""Join amounts that wrap because they are too long for their column: `1,` above `234.50`, or CR below its amount."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pipelines.intake.minus_signs import MINUSES
from pipelines.intake.pdf.layout.columns import Cells, Columns, Figures, split_line
from pipelines.intake.pdf.page.amounts import Money, money
from pipelines.intake.pdf.page.page import Line, Word

_EDGE = 3.0  # points between right edges of one column


def cells_with_whole_amounts(lines: Sequence[Line], columns: Columns) -> Iterator[Cells]:
    """Yield lines as cells, with amounts that wrap onto the next line joined."""
    pending: Cells | None = None
    for line in lines:
        cells = split_line(line, columns)
        if pending is not None:
            pending, cells = _join_lines(pending, cells, columns) or (pending, cells)
            yield pending
        pending = None if cells.is_empty else cells
    if pending is not None:
        yield pending


_BEGINNING = re.compile(rf"[{MINUSES}(+]?(?:A?\$)?[0-9]{{1,3}}(?:,[0-9]{{3}})*[,.]?")


def _join_lines(above: Cells, below: Cells, columns: Columns) -> tuple[Cells, Cells] | None:
    """Return both lines, with the amounts whole that begin on the upper and end on the lower: `1,` above `234.50`,
    `1,234.` above `50`. Return None if the lines are on different pages.
    """
    if above.line.page != below.line.page:
        return None
    for figures in columns.figures:
        above, below = _join_mark(above, below, figures)
        begun = next((word for word in reversed(above.words) if _begins_amount(word, figures)), None)
        if begun is None or figures.role in above.amounts:
            continue
        ended = next((word for word in below.line.words if _is_in(word, figures)), None)
        joined = money(begun.text + _digits_of(ended.text)) if ended is not None else None
        if ended is not None and joined is not None:
            above, below = _join_amount(above, below, begun, ended, figures.role, joined)
    return above, below


def _join_mark(above: Cells, below: Cells, figures: Figures) -> tuple[Cells, Cells]:
    """Mark an amount with a CR or DR that is alone below it."""
    amount = above.amounts.get(figures.role)
    mark = next((word for word in below.words if word.text in ("CR", "DR", "Cr", "Dr") and _is_in(word, figures)), None)
    if amount is None or amount.mark or mark is None or figures.role in below.amounts:
        return above, below
    words = tuple(word for word in below.words if word is not mark)
    marked = replace(amount, mark=mark.text.upper())
    return replace(above, amounts={**above.amounts, figures.role: marked}), replace(below, words=words)


def _begins_amount(word: Word, figures: Figures) -> bool:
    """Return whether a word is in the column and is an amount that is cut off at a comma or a point."""
    cut = word.text.endswith((",", "."))
    return cut and bool(_BEGINNING.fullmatch(word.text)) and _is_in(word, figures)


def _digits_of(text: str) -> str:
    return text.lstrip("$")


def _join_amount(above: Cells, below: Cells, begun: Word, ended: Word, role: str, joined: Money) -> tuple[Cells, Cells]:
    """Put the whole amount on the upper line, with the mark of its lower part."""
    part = below.amounts.get(role)
    mark = part.mark if part is not None and part.mark and not joined.mark else joined.mark
    return (
        replace(
            above,
            words=tuple(word for word in above.words if word is not begun),
            amounts={**above.amounts, role: replace(joined, mark=mark)},
        ),
        replace(
            below,
            words=tuple(word for word in below.words if word is not ended),
            amounts={other: amount for other, amount in below.amounts.items() if other != role},
        ),
    )


def _is_in(word: Word, figures: Figures) -> bool:
    """Return whether a word ends at the edge of the column's figures, or is under its heading."""
    ends = abs(word.right - figures.edge) <= 2 * _EDGE
    return ends or (word.left >= figures.left - _EDGE and word.right <= figures.edge + 6 * _EDGE)
