"""Find amounts that look different from the rest of their column: a pasted digit rarely has the column's font.

Only rows are examined, because totals and balances around them are often larger or bold. A row that is bold as a whole
is intended to be.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipelines.intake.pdf.page.page import Line, Page, Word
from pipelines.intake.pdf.page.result import Box

_AMOUNT = re.compile(r"[0-9]\.[0-9]{2}(?![0-9])")
# Our judgement.
_ENOUGH_AMOUNTS = 6  # in a column of a page, to determine its usual font
_FEW = 0.2  # of a column's amounts: if more differ, the page is designed that way
_SAME_EDGE = 3.0  # points
_OTHER_SIZE = 0.4  # points


@dataclass(frozen=True)
class _Figure:
    """An amount, and whether other words of its row have the same font, as in a bold row."""

    word: Word
    is_shared: bool


def odd_amounts(page: Page, rows: Sequence[Box]) -> Sequence[str]:
    """Return the font of each amount in the rows (as shown) that differs from its column's."""
    if page.read_by_ocr:
        return ()
    lines = [line for line in page.lines if _is_in(page.to_sheet(line.box), rows)]
    figures = sorted((figure for line in lines for figure in _figures(line)), key=lambda figure: figure.word.right)
    return [_font_name(figure.word.font) for column in _columns(figures) for figure in _odd_figures(column)]


def _is_in(place: Box, rows: Sequence[Box]) -> bool:
    across, down = (place.left + place.right) / 2, (place.top + place.bottom) / 2
    return any(row.left <= across <= row.right and row.top <= down <= row.bottom for row in rows)


def _figures(line: Line) -> Iterator[_Figure]:
    amounts = [word for word in line.words if _AMOUNT.search(word.text)]
    others = {word.font for word in line.words if word not in amounts}
    return (_Figure(word, word.font in others) for word in amounts)


def _columns(figures: Sequence[_Figure]) -> Iterator[Sequence[_Figure]]:
    """Group figures into columns by their right edges, from left to right."""
    column: list[_Figure] = []
    for figure in figures:
        if column and figure.word.right - column[-1].word.right > _SAME_EDGE:
            yield column
            column = []
        column.append(figure)
    yield column


def _odd_figures(column: Sequence[_Figure]) -> Sequence[_Figure]:
    if len(column) < _ENOUGH_AMOUNTS:
        return ()
    font = Counter(figure.word.font for figure in column).most_common(1)[0][0]
    size = sorted(figure.word.size for figure in column)[len(column) // 2]
    odd = [figure for figure in column if _differs(figure, font, size)]
    return odd if len(odd) <= _FEW * len(column) else ()


def _differs(figure: _Figure, font: str, size: float) -> bool:
    other_font = figure.word.font != font and not figure.is_shared
    return other_font or abs(figure.word.size - size) > _OTHER_SIZE


def _font_name(font: str) -> str:
    return re.sub(r"^[A-Z]{6}\+", "", font) or "an unnamed font"
