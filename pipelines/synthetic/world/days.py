"""When banks post: business days, pay days, days of the month and the tax office's quarterly dates.

Days are ordinals (`date.toordinal`), because the generator adds and compares millions of them. Only holidays that all
states share stop direct entry; holidays of a state don't stop settlement between banks.
"""

import calendar
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import cache

DAYS_PER_MONTH = 30.4  # on average
MONDAY, TUESDAY, WEDNESDAY, THURSDAY, FRIDAY = range(5)


@dataclass(frozen=True)
class Window:
    """The days a business is seen: first and last, both included."""

    first: int
    last: int

    def __contains__(self, day: int) -> bool:
        return self.first <= day <= self.last

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.first, self.last + 1))

    def months(self) -> Iterator[tuple[int, int]]:
        """Yield every (year, month) of the window."""
        first, last = date.fromordinal(self.first), date.fromordinal(self.last)
        for index in range(first.year * 12 + first.month - 1, last.year * 12 + last.month):
            yield index // 12, index % 12 + 1

    def monthly(self, day_of_month: int, every: int = 1, phase: int = 0) -> Iterator[int]:
        """Yield a day of each month (or every 3rd, 12th …), moved to the next business day."""
        for year, month in self.months():
            if (month + phase) % every == 0:
                day = next_business_day(month_day(year, month, day_of_month))
                if day in self:
                    yield day

    def weekdays(self, weekday: int) -> range:
        """Return a weekday of each week, holidays included."""
        return range(self.first + (weekday - (self.first - 1)) % 7, self.last + 1, 7)

    def weekly(self, weekday: int, weeks: int = 1) -> Iterator[int]:
        """Yield a weekday of each week (or every 2nd, 4th), moved to the next business day."""
        for nominal in self.weekdays(weekday)[::weeks]:
            day = next_business_day(nominal)
            if day in self:
                yield day

    def month_ends(self) -> Iterator[int]:
        """Yield the last days of the months, when banks post interest and fees."""
        for year, month in self.months():
            day = month_day(year, month, 31)
            if day in self:
                yield day

    def bas_due(self) -> Iterator[int]:
        """Yield due dates of quarterly activity statements: 28 October, 28 February, 28 April, 28 July."""
        for year, month in self.months():
            if month in (2, 4, 7, 10):
                day = next_business_day(month_day(year, month, 28))
                if day in self:
                    yield day


def window(months: int, until: date) -> Window:
    """Return the `months` months (at least one) that end on `until`, that day included.

    From a month's last day, whole calendar months: three months until 30 April begin on 1 February.
    """
    if months < 1:
        raise ValueError(f"a window covers at least one month, not {months}")
    index = until.year * 12 + until.month - 1 - months
    ends_a_month = until.toordinal() == month_day(until.year, until.month, 31)
    before = month_day(index // 12, index % 12 + 1, 31 if ends_a_month else until.day)
    return Window(before + 1, until.toordinal())


@cache
def same_day_of_month(day: int, months: int) -> int:
    """Return the same day some months later, or the last day of a month that is too short."""
    when = date.fromordinal(day)
    index = when.year * 12 + when.month - 1 + months
    return month_day(index // 12, index % 12 + 1, when.day)


def month_day(year: int, month: int, day: int) -> int:
    """Return a day of a month, or the month's last day if it is shorter."""
    return date(year, month, min(day, calendar.monthrange(year, month)[1])).toordinal()


@cache
def weekday(day: int) -> int:
    return (day - 1) % 7


@cache
def month_of(day: int) -> int:
    return date.fromordinal(day).month


@cache
def month_key(day: int) -> tuple[int, int]:
    """Return the year and the month."""
    when = date.fromordinal(day)
    return when.year, when.month


@cache
def is_business_day(day: int) -> bool:
    return weekday(day) < 5 and day not in bank_holidays(date.fromordinal(day).year)


@cache
def next_business_day(day: int) -> int:
    """Return the day itself if banks settle on it, else the first later one on which they do."""
    return day if is_business_day(day) else next_business_day(day + 1)


@cache
def bank_holidays(year: int) -> frozenset[int]:
    """Return national holidays. Those on a weekend are observed on the next working day, except Anzac Day."""
    easter = easter_sunday(year)
    anzac = date(year, 4, 25).toordinal()
    return frozenset(
        {
            _observed_weekday(date(year, 1, 1), days_from_sunday=1),
            _observed_weekday(date(year, 1, 26), days_from_sunday=1),
            easter - 2,
            easter + 1,
            anzac,
            _observed_weekday(date(year, 12, 25), days_from_sunday=2),
            _observed_weekday(date(year, 12, 26), days_from_sunday=2),
        }
    )


def _observed_weekday(holiday: date, days_from_sunday: int) -> int:
    """Return the weekday on which a holiday is observed.

    `days_from_sunday`: by how many days it moves from a Sunday: Christmas and Boxing Day by two, because the other one
    is observed on Monday.
    """
    return holiday.toordinal() + {5: 2, 6: days_from_sunday}.get(holiday.weekday(), 0)


def easter_sunday(year: int) -> int:
    """Return Easter by the anonymous Gregorian computus (Nature, 1876; Meeus, Astronomical Algorithms, ch. 8)."""
    golden, century, rest = year % 19, year // 100, year % 100
    correction = (century - (century + 8) // 25 + 1) // 3
    moon = (19 * golden + century - century // 4 - correction + 15) % 30
    sunday = (32 + 2 * (century % 4) + 2 * (rest // 4) - moon - rest % 4) % 7
    shift = (golden + 11 * moon + 22 * sunday) // 451
    month, day = divmod(moon + sunday - 7 * shift + 114, 31)
    return date(year, month, day + 1).toordinal()
