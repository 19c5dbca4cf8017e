"""The days that a statement says it covers."""

import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from itertools import chain

from pipelines.intake.pdf.page.dates import Printed, leading
from pipelines.intake.pdf.page.labels import Labelled, cells, has_amount, is_row, labelled, text_of
from pipelines.intake.pdf.page.page import Line, Word

Period = tuple[date | None, date | None]

_LONGEST = timedelta(days=40 * 366)  # of a loan from its beginning
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
    """From and to: two dates joined, best where a word like `period` stands at them; else a label for each."""
    unnamed = None
    for period, is_named in _joined(lines):
        if is_named:
            return period
        unnamed = unnamed or period
    starts, ends = _labelled_day(lines, _STARTS), _labelled_day(lines, _ENDS)
    if not starts:
        pair = _day_of_cell(lines, _FROM), _day_of_cell(lines, _TO)
        starts, ends = pair if all(pair) else (None, ends)
    if starts and ends:
        return (starts, ends) if starts <= ends else unnamed or (None, None)
    return unnamed or (starts, ends)


def _joined(lines: Sequence[Line]) -> Iterator[tuple[tuple[date, date], bool]]:
    """Two dates with `to` or a hyphen between them, and whether a word says what they are."""
    for position, line in enumerate(lines):
        if is_row(line):
            continue
        for text in dict.fromkeys((line.text, *map(text_of, cells(line.words)), *_wrapped(lines, position))):
            period = None if _OF_SOMETHING_ELSE.search(text) else _pair(text)
            if period:
                above = lines[position - 1].text if position and lines[position - 1].page == line.page else ""
                yield period, bool(_NAMED.search(text) or (_NAMED.search(above) and not has_amount(above)))
                break


def _wrapped(lines: Sequence[Line], position: int) -> Iterator[str]:
    """Cells that end with `to` or a hyphen, each with what stands below it."""
    below = lines[position + 1 : position + 2]
    if not below or below[0].page != lines[position].page:
        return
    for cell in cells(lines[position].words):
        if _DANGLING.search(text_of(cell)):
            beneath = (each for each in cells(below[0].words) if abs(each[0].left - cell[0].left) <= _SAME_LEFT)
            yield from (f"{text_of(cell)} {text_of(each)}" for each in beneath)


def _pair(text: str) -> tuple[date, date] | None:
    """A date that ends where `to` or a hyphen stands, and one that begins behind it."""
    for between in _BETWEEN.finditer(text):
        second = leading(text[between.end() :])
        first = _ending(text[: between.start()]) if second else None
        if first and second and (period := _period(first, second[0])):
            return period
    return None


def _ending(text: str) -> Printed | None:
    """The date that a text ends with, the longest."""
    tails = (text[begins.start() :] for begins in _MAY_BEGIN.finditer(text, max(len(text) - _LONGEST_DATE, 0)))
    return next((found[0] for tail in tails if (found := leading(tail)) and found[1] == len(tail)), None)


def _period(first: Printed, second: Printed) -> tuple[date, date] | None:
    """The first date may leave its year to the second."""
    end = second.full
    if end is None:
        return None
    candidates = [first.full] if first.year else [first.on(end.year), first.on(end.year - 1)]
    return next(((day, end) for day in candidates if day and timedelta(0) <= end - day <= _LONGEST), None)


def _labelled_day(lines: Sequence[Line], label: re.Pattern[str]) -> date | None:
    return next((day for found in labelled(lines, label) for day in _days(found)), None)


def _day_of_cell(lines: Sequence[Line], label: re.Pattern[str]) -> date | None:
    """`from 1 Sep 2024` above `to 30 Sep 2024`, each where a cell begins."""
    texts = (_from_cell_on(line.words, cell[0]) for line in lines for cell in cells(line.words))
    found = (leading(text[match.end() :]) for text in texts if (match := label.match(text)))
    return next((day for each in found if each and (day := each[0].full)), None)


def _from_cell_on(words: Sequence[Word], first: Word) -> str:
    return text_of([word for word in words if word.left >= first.left])


def _days(found: Labelled) -> Iterator[date]:
    for text in chain((found.behind,), map(text_of, found.below)):
        if (printed := leading(text)) and printed[0].full:
            yield printed[0].full
