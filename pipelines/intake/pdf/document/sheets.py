"""Detect two pages on one sheet, side by side or one above the other, as printed to save paper.

A sheet is split in the middle if nothing crosses it and each side looks like a page of its own. Columns of one page
don't, because they share one number and one head. In doubt, the sheet is one page.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from pipelines.intake.pdf.layout.headings import Vocabulary, heading_at
from pipelines.intake.pdf.page.account_numbers import find_labelled
from pipelines.intake.pdf.page.dates import leading_date
from pipelines.intake.pdf.page.labels import has_amount, is_row
from pipelines.intake.pdf.page.page import Line
from pipelines.intake.pdf.page.page_numbers import PageNumber, printed_number
from pipelines.intake.pdf.page.periods import period_of

# Our judgement: pages have margins, and a sheet with two pages side by side is wide.
_WIDE = 1.1  # least ratio of the longer side to the shorter of a sheet with two pages
_FREE = 0.01  # of the sheet, on either side of its middle
_NEAR = 0.06  # of the sheet: how far apart two page numbers may be in height, or the second and its page's top
_MIN_LINES = 3  # of a page


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a sheet's second page begins: right of or below the middle, in points of the level text."""

    left: float
    top: float

    def is_second(self, left: Any, top: Any) -> Any:
        """Return whether a point, or each of arrays of points, is on the second page."""
        return (left >= self.left) & (top >= self.top)


def cut_of(lines: Sequence[Line], across: float, down: float) -> Cut | None:
    """Return where a sheet with two pages is split; None if it is one page.

    Args:
        lines: of the sheet, level.
        across: its width, in points.
        down: its height, in points.
    """
    if down > _WIDE * across:
        return _cut_across(lines, down)
    return _cut_down(lines, across) if across > _WIDE * down else None


def _cut_across(lines: Sequence[Line], down: float) -> Cut | None:
    """Split pages above each other, if no line is in the middle."""
    middle, free = down / 2, down * _FREE
    if any(line.box.top < middle + free and line.box.bottom > middle - free for line in lines):
        return None
    cut = Cut(0.0, middle)
    first, second = _split(lines, cut)
    return cut if _are_stacked(first, second, middle, down * _NEAR) else None


def _cut_down(lines: Sequence[Line], across: float) -> Cut | None:
    """Split pages side by side, if no word is in the middle."""
    middle, free = across / 2, across * _FREE
    if any(word.left < middle + free and word.right > middle - free for line in lines for word in line.words):
        return None
    cut = Cut(middle, 0.0)
    first, second = _split(lines, cut)
    return cut if _are_beside(first, second) and not _is_torn(first, second) else None


def _split(lines: Sequence[Line], cut: Cut) -> tuple[list[Line], list[Line]]:
    sides: tuple[list[Line], list[Line]] = ([], [])
    for line in lines:
        for is_second, words in groupby(line.words, lambda word: cut.is_second(word.left, word.top)):
            sides[is_second].append(Line(line.page, tuple(words)))
    return sides


def _are_beside(first: Sequence[Line], second: Sequence[Line]) -> bool:
    """Return whether each side has its own page number or a table's heading."""
    if min(len(first), len(second)) < _MIN_LINES:
        return False
    one, two = printed_number(first), printed_number(second)
    is_likely = (one or _heading_in(first) is not None) and (two or _heading_in(second) is not None)
    return _differ(one, two) or (_may_follow(one, two) and bool(is_likely))


def _are_stacked(first: Sequence[Line], second: Sequence[Line], middle: float, near: float) -> bool:
    """Return whether each half has a page number at the same height, or a head. A number at the foot and two tables,
    one below the other, prove nothing: a single page may have them.
    """
    if min(len(first), len(second)) < _MIN_LINES:
        return False
    one, two = printed_number(first), printed_number(second)
    if one and two and abs(one.top + middle - two.top) <= near:
        return True
    if one and two and not _differ(one, two):
        return False
    begins = _has_head(second) or (two is not None and two.top <= middle + near and any(map(is_row, second)))
    return _may_follow(one, two) and begins and (one is not None or _has_head(first))


def _differ(one: PageNumber | None, two: PageNumber | None) -> bool:
    """Return whether two page numbers differ and are in the same form."""
    return (
        one is not None and two is not None and one.number != two.number and (one.total is None) == (two.total is None)
    )


def _may_follow(one: PageNumber | None, two: PageNumber | None) -> bool:
    """Return whether the second half may be a page of its own. A single number 1 may be that of the whole sheet."""
    return one is not None or two is None or two.number > 1


def _heading_in(lines: Sequence[Line]) -> int | None:
    vocabulary = Vocabulary.of(None)
    return next((place for place in range(len(lines)) if heading_at(lines, place, vocabulary)), None)


def _has_head(lines: Sequence[Line]) -> bool:
    """Return whether an account or a period is stated above a table's heading."""
    heading = _heading_in(lines)
    above = lines[:heading] if heading is not None else ()
    return any(any(find_labelled(line.text)) for line in above) or any(period_of(above))


def _is_torn(first: Sequence[Line], second: Sequence[Line]) -> bool:
    """Return whether a table crosses the middle: dates on one side, their amounts on the other."""
    has_rows = any(map(is_row, (*first, *second)))
    return not has_rows and any(_dates(first)) and any(has_amount(line.text) for line in second)


def _dates(lines: Sequence[Line]) -> Iterator[Line]:
    return (line for line in lines if leading_date(line.text))
