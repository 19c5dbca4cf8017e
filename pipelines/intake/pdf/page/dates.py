"""Dates as statements print them, and the years that they leave out.

A year comes from the date itself, from a row with a year alone, or from the period that the statement names. Where
nothing of the statement says it, the file's own age is taken, and the dates are doubtful.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import lru_cache

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|"
    r"oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_WEEKDAY = r"(?:(?:mon|tue|tues|wed|wednes|thu|thur|thurs|fri|sat|satur|sun)(?:day)?\.?,?\s*)?"
_YEAR = r"(?P<year>(?:19|20)[0-9]{2}|'?[0-9]{2})"
_END = r"(?![0-9A-Za-z/]|[.:][0-9])"
_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"{_WEEKDAY}(?P<year>(?:19|20)[0-9]{{2}})(?P<sep>[-/.])(?P<number>[0-9]{{1,2}})(?P=sep)(?P<day>[0-9]{{1,2}}){_END}",
        rf"{_WEEKDAY}(?P<day>[0-9]{{1,2}})(?P<sep>[-/.])(?P<number>[0-9]{{1,2}})(?:(?P=sep){_YEAR})?{_END}",
        rf"{_WEEKDAY}(?P<day>[0-9]{{1,2}})(?:st|nd|rd|th)?[-/.,\s]?\s?{_MONTH}(?:[-/.,\s]*{_YEAR})?{_END}",
        rf"{_WEEKDAY}{_MONTH}[-/\s]?(?P<day>[0-9]{{1,2}})(?:st|nd|rd|th)?(?:[-/,\s]+{_YEAR})?{_END}",
        rf"(?P<year>20[0-9]{{2}})(?P<number>[01][0-9])(?P<day>[0-3][0-9]){_END}",
    )
)
_YEAR_ALONE = re.compile(r"(?:19[89]|20[0-4])[0-9]")
_NEAR = timedelta(days=45)  # a card's purchases may be older than the statement's period
_FAR = timedelta(days=120)
_YEAR_LONG = timedelta(days=366)


@dataclass(frozen=True, slots=True)
class Printed:
    """A date as printed."""

    day: int
    month: int
    year: int | None
    order: str = ""  # of two numbers: "day" or "month" first, where only that is possible; "either"; "" of another form

    def on(self, year: int) -> date | None:
        try:
            return date(year, self.month, self.day)
        except ValueError:
            return None

    @property
    def full(self) -> date | None:
        return None if self.year is None else self.on(self.year)


@dataclass(frozen=True, slots=True)
class Resolved:
    """Dates in the order printed; `doubts`: why one or more may be wrong."""

    dates: tuple[date | None, ...]
    doubts: tuple[str, ...] = ()


@lru_cache(maxsize=8_192)
def leading(text: str) -> tuple[Printed, int] | None:
    """The date that a text begins with, and how many characters it takes."""
    if not text[:1].isalnum():
        return None
    for form in _FORMS:
        match = form.match(text)
        if match is not None and (found := _printed(match)) is not None:
            return found, match.end()
    return None


def _printed(match: re.Match[str]) -> Printed | None:
    groups = match.groupdict()
    named = groups.get("month")
    month = _MONTHS.index(named[:3].lower()) + 1 if named else int(groups["number"])
    day, year = int(groups["day"]), _year(groups.get("year"))
    if named or "sep" not in groups or (groups["year"] and match.start("year") < match.start("day")):
        return Printed(day, month, year) if 1 <= month <= 12 and 1 <= day <= 31 else None
    return _of_numbers(day, month, year, groups["sep"])


def _of_numbers(first: int, second: int, year: int | None, separator: str) -> Printed | None:
    """Day and month, or month and day where the second number can be no month."""
    if 1 <= second <= 12 and 1 <= first <= 31:
        return Printed(first, second, year, "either" if first <= 12 else "day")
    is_month_first = 1 <= first <= 12 and 13 <= second <= 31 and separator != "."
    return Printed(second, first, year, "month") if is_month_first else None


def _year(text: str | None) -> int | None:
    """Two digits are of this century; a child's account of 1999 is not."""
    if not text:
        return None
    digits = text.lstrip("'")
    return int(digits) if len(digits) == 4 else 2000 + int(digits)


def year_alone(text: str) -> int | None:
    return int(text) if _YEAR_ALONE.fullmatch(text) else None


def resolved(
    printed: Sequence[Printed | None],
    years: Sequence[int | None],
    period: tuple[date | None, date | None],
    made: date | None,
) -> Resolved:
    """The dates of rows.

    Args:
        printed: as each row prints it; None for a row of the same day as the row before it.
        years: the year row above each, if any.
        period: from and to, as the statement says.
        made: the day on which the file was made.
    """
    ordered, order_doubts = _in_one_order(printed)
    carried = list(_carried(ordered))
    bounds = period if any(period) else _spanned(carried)
    doubts = set(order_doubts)
    if not any(bounds) and made is not None and any(each and each.year is None for each in carried):
        bounds = (None, made)
        doubts.add("The statement names no year: it was taken from the day on which the file was made.")
    dates = [_dated(each, year, bounds) for each, year in zip(carried, years, strict=True)]
    start, end = bounds
    if start and end and end - start >= _YEAR_LONG:
        dates = list(_one_after_another(carried, dates, start))
        if any(each and each.year is None and year is None for each, year in zip(carried, years, strict=True)):
            doubts.add("The statement covers more than a year and its dates name none.")
    if any(each is None for each in dates):
        doubts.add("A row has no date that could be read.")
    if any(_is_far(each, bounds) for each in dates):
        doubts.add("A date lies far outside of the period that the statement names.")
    return Resolved(tuple(dates), tuple(sorted(doubts)))


def _in_one_order(printed: Sequence[Printed | None]) -> tuple[Sequence[Printed | None], Sequence[str]]:
    """Dates of two numbers, all with the month first where one of them allows nothing else."""
    orders = {each.order for each in printed if each}
    if "month" not in orders:
        return printed, ()
    if "day" in orders:
        return [None if each and each.order == "month" else each for each in printed], (
            "Some dates can only be read with the month first, others only with the day first.",
        )
    turned = [
        replace(each, day=each.month, month=each.day) if each and each.order == "either" else each for each in printed
    ]
    return turned, ("Dates are read with the month first: one of them allows nothing else.",)


def _carried(printed: Sequence[Printed | None]) -> Iterator[Printed | None]:
    last = None
    for each in printed:
        last = each or last
        yield last


def _spanned(printed: Sequence[Printed | None]) -> tuple[date | None, date | None]:
    """From the first to the last date that names its year."""
    known = [full for each in printed if each and (full := each.full)]
    return (min(known), max(known)) if known else (None, None)


def _dated(printed: Printed | None, year: int | None, bounds: tuple[date | None, date | None]) -> date | None:
    if printed is None:
        return None
    if printed.year is not None:
        return printed.full
    if year is not None:
        return printed.on(year)
    return _nearest(printed, *bounds)


def _nearest(printed: Printed, start: date | None, end: date | None) -> date | None:
    """The date in the period, or nearest to it. Of a period with one end known, the year on its side of it."""
    known = start or end
    if known is None:
        return None
    first, last = start or _back(end), end or _on(start)
    candidates = (printed.on(year) for year in range(first.year - 1, last.year + 2))
    return min((each for each in candidates if each), key=lambda each: _outside(each, first, last), default=None)


def _back(end: date | None) -> date:
    return (end or date.max) - timedelta(days=360)


def _on(start: date | None) -> date:
    return (start or date.min) + timedelta(days=360)


def _outside(day: date, first: date, last: date) -> timedelta:
    return max(first - day, day - last, timedelta(0))


def _one_after_another(
    printed: Sequence[Printed | None], dates: Sequence[date | None], start: date
) -> Iterator[date | None]:
    """Years of a period in which a day can fall twice: each row follows the one before it."""
    last = start - _NEAR
    for each, day in zip(printed, dates, strict=True):
        found = day
        if each is not None and each.year is None and day is not None:
            following = (each.on(year) for year in range(last.year, last.year + 3))
            found = next((one for one in following if one and one >= last - timedelta(days=7)), day)
        last = found or last
        yield found


def _is_far(day: date | None, bounds: tuple[date | None, date | None]) -> bool:
    start, end = bounds
    return day is not None and bool((start and start - day > _FAR) or (end and day - end > _FAR))
