"""Parse dates as statements print them, and infer the years that they omit.

A year comes from the date itself, from a row with only a year, or from the statement's period. If the statement has no
year at all, it is inferred from the file's date of creation, and the dates are doubtful.
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
# Our judgement.
_NEAR = timedelta(days=45)  # a card's purchases may be this much older than the statement's period
_FAR = timedelta(days=120)  # a date further outside the period was probably misread
_YEAR_LONG = timedelta(days=366)


@dataclass(frozen=True, slots=True)
class Printed:
    """A date as printed."""

    day: int
    month: int
    year: int | None
    order: str = ""  # of two numbers: "day" or "month" if only it can be first, else "either"; "" in other forms

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
    """Dates in the order printed; `doubts`: why some may be wrong."""

    dates: tuple[date | None, ...]
    doubts: tuple[str, ...] = ()


@lru_cache(maxsize=8_192)
def leading_date(text: str) -> tuple[Printed, int] | None:
    """Return the date that a text begins with, and its length in characters."""
    if not text[:1].isalnum():
        return None
    for form in _FORMS:
        match = form.match(text)
        if match is not None and (found := _parse_match(match)) is not None:
            return found, match.end()
    return None


def _parse_match(match: re.Match[str]) -> Printed | None:
    groups = match.groupdict()
    month_name = groups.get("month")
    month = _MONTHS.index(month_name[:3].lower()) + 1 if month_name else int(groups["number"])
    day, year = int(groups["day"]), _year(groups.get("year"))
    if month_name or "sep" not in groups or (groups["year"] and match.start("year") < match.start("day")):
        return Printed(day, month, year) if 1 <= month <= 12 and 1 <= day <= 31 else None
    return _order_numbers(day, month, year, groups["sep"])


def _order_numbers(first: int, second: int, year: int | None, separator: str) -> Printed | None:
    """Return day and month, or month and day if the second number can't be a month."""
    if 1 <= second <= 12 and 1 <= first <= 31:
        return Printed(first, second, year, "either" if first <= 12 else "day")
    is_month_first = 1 <= first <= 12 and 13 <= second <= 31 and separator != "."
    return Printed(second, first, year, "month") if is_month_first else None


def _year(text: str | None) -> int | None:
    """Return a year; two digits are of this century."""
    if not text:
        return None
    digits = text.lstrip("'")
    return int(digits) if len(digits) == 4 else 2000 + int(digits)


def year_alone(text: str) -> int | None:
    return int(text) if _YEAR_ALONE.fullmatch(text) else None


def resolve(
    printed: Sequence[Printed | None],
    years: Sequence[int | None],
    period: tuple[date | None, date | None],
    created_on: date | None,
) -> Resolved:
    """Find the dates of rows.

    Args:
        printed: as each row prints it; None for a row of the same day as the row before it.
        years: of the year row above each, if any.
        period: from and to, as stated.
        created_on: the day on which the file was created.
    """
    ordered, order_doubts = _in_one_order(printed)
    carried = list(_carry_forward(ordered))
    bounds = period if any(period) else _range_of_full_dates(carried)
    doubts = set(order_doubts)
    if not any(bounds) and created_on is not None and any(day and day.year is None for day in carried):
        bounds = (None, created_on)
        doubts.add("The statement names no year: it was inferred from the day on which the file was created.")
    dates = [_add_year(day, year, bounds) for day, year in zip(carried, years, strict=True)]
    start, end = bounds
    if start and end and end - start >= _YEAR_LONG:
        dates = list(_in_sequence(carried, dates, start))
        if any(day and day.year is None and year is None for day, year in zip(carried, years, strict=True)):
            doubts.add("The statement covers more than a year and its dates have no years.")
    if any(day is None for day in dates):
        doubts.add("A row has no date that could be read.")
    if any(_is_far(day, bounds) for day in dates):
        doubts.add("A date is far outside the statement's period.")
    return Resolved(tuple(dates), tuple(sorted(doubts)))


def _in_one_order(printed: Sequence[Printed | None]) -> tuple[Sequence[Printed | None], Sequence[str]]:
    """Read all dates of two numbers with the month first if one of them can't be read otherwise."""
    orders = {day.order for day in printed if day}
    if "month" not in orders:
        return printed, ()
    if "day" in orders:
        return [None if day and day.order == "month" else day for day in printed], (
            "Some dates can only be read with the month first, others only with the day first.",
        )
    swapped = [replace(day, day=day.month, month=day.day) if day and day.order == "either" else day for day in printed]
    return swapped, ("Dates were read with the month first: one of them can't be read otherwise.",)


def _carry_forward(printed: Sequence[Printed | None]) -> Iterator[Printed | None]:
    last = None
    for day in printed:
        last = day or last
        yield last


def _range_of_full_dates(printed: Sequence[Printed | None]) -> tuple[date | None, date | None]:
    """Return the earliest and latest date that names its year."""
    known = [full for day in printed if day and (full := day.full)]
    return (min(known), max(known)) if known else (None, None)


def _add_year(printed: Printed | None, year: int | None, bounds: tuple[date | None, date | None]) -> date | None:
    if printed is None:
        return None
    if printed.year is not None:
        return printed.full
    if year is not None:
        return printed.on(year)
    return _nearest(printed, *bounds)


def _nearest(printed: Printed, start: date | None, end: date | None) -> date | None:
    """Return the date in the period or nearest to it. If only one end of the period is known, it is taken to be 360
    days long: less than a year, so that no day occurs in it twice.
    """
    known = start or end
    if known is None:
        return None
    first, last = start or _year_before(end), end or _year_after(start)
    candidates = (printed.on(year) for year in range(first.year - 1, last.year + 2))
    return min((day for day in candidates if day), key=lambda day: _distance(day, first, last), default=None)


def _year_before(end: date | None) -> date:
    return (end or date.max) - timedelta(days=360)


def _year_after(start: date | None) -> date:
    return (start or date.min) + timedelta(days=360)


def _distance(day: date, first: date, last: date) -> timedelta:
    return max(first - day, day - last, timedelta(0))


def _in_sequence(printed: Sequence[Printed | None], dates: Sequence[date | None], start: date) -> Iterator[date | None]:
    """Yield dates in a period of more than a year, in which a day may occur twice: a row's year follows from the row
    before it.
    """
    last = start - _NEAR
    for shown, day in zip(printed, dates, strict=True):
        found = day
        if shown is not None and shown.year is None and day is not None:
            following = (shown.on(year) for year in range(last.year, last.year + 3))
            found = next((date for date in following if date and date >= last - timedelta(days=7)), day)
        last = found or last
        yield found


def _is_far(day: date | None, bounds: tuple[date | None, date | None]) -> bool:
    start, end = bounds
    return day is not None and bool((start and start - day > _FAR) or (end and day - end > _FAR))
