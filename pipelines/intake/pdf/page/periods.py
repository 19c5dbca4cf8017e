"""Find the period that a statement covers."""

import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from itertools import chain

from pipelines.intake.pdf.page.dates import Printed, leading_date
from pipelines.intake.pdf.page.labels import Labelled, cells, find_label, has_amount, is_row, text_of
from pipelines.intake.pdf.page.page import Line, Word

Period = tuple[date | None, date | None]

_LONGEST = timedelta(days=40 * 366)  # for a loan since it was opened; our judgement
_BETWEEN = re.compile(r"\s*(?:to:?|until|till|through|thru|and|[-–—−‑])\s*", re.IGNORECASE)
_DANGLING = re.compile(r"[0-9]\s*(?:to:?|until|[-–—−‑])$", re.IGNORECASE)
_SAME_LEFT = 4.0  # points
_LONGEST_DATE = 32  # characters: Wednesday, 10th September 2025
_MAY_BEGIN = re.compile(r"(?<![0-9A-Za-z])(?=[0-9A-Za-z])")
_NAMED = re.compile(
    r"\b(?:statement|period|from|between|transactions?|dates?|account (?:activity|history)|covering)\b", re.IGNORECASE
)
_OF_SOMETHING_ELSE = re.compile(
    r"\b(?:financial year|last (?:financial )?year|year to date|interest (?:earned|paid|charged)|promotion|offer|rate)",
    re.IGNORECASE,
)
_STARTS = re.compile(
    r"\b(?:(?:statement|period|listing)? ?(?:start ?date|starts?|begins?|date from|from date)|"
    r"(?:statement|period|transactions?) from)\b[: ]*",
    re.IGNORECASE,
)
_ENDS = re.compile(
    r"\b(?:statement|period|listing)? ?(?:end ?date|ends?|date to|to date|closing date|statement date|"
    r"date of statement|(?<=statement )to|(?<=period )to|(?<=transactions )to)\b[: ]*",
    re.IGNORECASE,
)
_FROM, _TO = (re.compile(rf"^{word}[: ]+", re.IGNORECASE) for word in ("from", "to"))


def period_of(lines: Sequence[Line]) -> Period:
    """Return from and to: two joined dates, preferably with a word like `period`; else two dates with a label each."""
    unnamed = None
    for period, is_named in _joined_dates(lines):
        if is_named:
            return period
        unnamed = unnamed or period
    starts, ends = _day_with_label(lines, _STARTS), _day_with_label(lines, _ENDS)
    if not starts:
        pair = _day_in_cell(lines, _FROM), _day_in_cell(lines, _TO)
        starts, ends = pair if all(pair) else (None, ends)
    if starts and ends:
        return (starts, ends) if starts <= ends else unnamed or (None, None)
    return unnamed or (starts, ends)


def _joined_dates(lines: Sequence[Line]) -> Iterator[tuple[tuple[date, date], bool]]:
    """Yield two dates with `to` or a hyphen between them, and whether a word says that they are a period."""
    for position, line in enumerate(lines):
        if is_row(line):
            continue
        for text in dict.fromkeys((line.text, *map(text_of, cells(line.words)), *_wrapped_texts(lines, position))):
            period = None if _OF_SOMETHING_ELSE.search(text) else _period_in(text)
            if period:
                above = lines[position - 1].text if position and lines[position - 1].page == line.page else ""
                yield period, bool(_NAMED.search(text) or (_NAMED.search(above) and not has_amount(above)))
                break


def _wrapped_texts(lines: Sequence[Line], position: int) -> Iterator[str]:
    """Yield the cells that end with `to` or a hyphen, each joined with the cell below it."""
    below = lines[position + 1 : position + 2]
    if not below or below[0].page != lines[position].page:
        return
    for cell in cells(lines[position].words):
        if _DANGLING.search(text_of(cell)):
            beneath = (lower for lower in cells(below[0].words) if abs(lower[0].left - cell[0].left) <= _SAME_LEFT)
            yield from (f"{text_of(cell)} {text_of(lower)}" for lower in beneath)


def _period_in(text: str) -> tuple[date, date] | None:
    """Return two dates, one directly before `to` or a hyphen and one directly after it."""
    for between in _BETWEEN.finditer(text):
        second = leading_date(text[between.end() :])
        first = _trailing_date(text[: between.start()]) if second else None
        if first and second and (period := _period(first, second[0])):
            return period
    return None


def _trailing_date(text: str) -> Printed | None:
    """Return the longest date that a text ends with."""
    tails = (text[begins.start() :] for begins in _MAY_BEGIN.finditer(text, max(len(text) - _LONGEST_DATE, 0)))
    return next((found[0] for tail in tails if (found := leading_date(tail)) and found[1] == len(tail)), None)


def _period(first: Printed, second: Printed) -> tuple[date, date] | None:
    """Return the period between two dates. The first may omit its year."""
    end = second.full
    if end is None:
        return None
    candidates = [first.full] if first.year else [first.on(end.year), first.on(end.year - 1)]
    return next(((day, end) for day in candidates if day and timedelta(0) <= end - day <= _LONGEST), None)


def _day_with_label(lines: Sequence[Line], label: re.Pattern[str]) -> date | None:
    return next((day for found in find_label(lines, label) for day in _days(found)), None)


def _day_in_cell(lines: Sequence[Line], label: re.Pattern[str]) -> date | None:
    """Return the day of a cell that begins with the label, such as `from 1 Sep 2024` above `to 30 Sep 2024`."""
    texts = (_from_cell_on(line.words, cell[0]) for line in lines for cell in cells(line.words))
    found = (leading_date(text[match.end() :]) for text in texts if (match := label.match(text)))
    return next((day for date in found if date and (day := date[0].full)), None)


def _from_cell_on(words: Sequence[Word], first: Word) -> str:
    return text_of([word for word in words if word.left >= first.left])


def _days(found: Labelled) -> Iterator[date]:
    for text in chain((found.text_after,), map(text_of, found.below)):
        if (printed := leading_date(text)) and printed[0].full:
            yield printed[0].full
