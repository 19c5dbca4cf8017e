"""Business days: Australian holidays by state, and the days on which interbank settlement is open.

Direct entry, BPAY and cheques settle through the Reserve Bank's RITS, which closes on weekends and on the holidays that
New South Wales and Victoria share (https://www.rba.gov.au/payments-and-infrastructure/rits/business-hours.html). The
New Payments Platform settles every day of the year. What a person or a branch does follows the state's own holidays.

The holidays come from the `holidays` library and are computed once per process, for 1990 to 2060. Outside these years
only weekends count as closed. Every function here looks up one table, with a row for each calendar and day.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from functools import cache

import numpy as np
import polars as pl

FIRST_DAY, LAST_DAY = date(1960, 1, 1), date(2120, 12, 31)
HOLIDAYS_KNOWN = range(1990, 2061)
STATES = ("ACT", "NSW", "NT", "QLD", "SA", "TAS", "VIC", "WA")
SETTLEMENT = "settlement"
CALENDARS = (SETTLEMENT, *STATES)
Calendar = pl.Enum(CALENDARS)

# The third digit of a BSB is the state of the branch. The ACT shares 2 with NSW, and the NT shares 5 with SA.
_STATE_DIGITS = {"2": "NSW", "3": "VIC", "4": "QLD", "5": "SA", "6": "WA", "7": "TAS"}
_SETTLING_STATES = ("NSW", "VIC")
_EPOCH = date(1970, 1, 1).toordinal()
_DAYS = LAST_DAY.toordinal() - FIRST_DAY.toordinal() + 1


def look_up_calendar(bsb: pl.Expr) -> pl.Expr:
    """Return the calendar (Calendar) of the branch's state; SETTLEMENT where the BSB is missing or invalid."""
    digits = bsb.str.replace_all(r"\D", "")
    state = digits.str.slice(2, 1).replace_strict(_STATE_DIGITS, default=SETTLEMENT)
    return pl.when(digits.str.len_chars() == 6).then(state).otherwise(pl.lit(SETTLEMENT)).cast(Calendar)


def is_open(day: pl.Expr, calendar: pl.Expr) -> pl.Expr:
    """Return whether `day` (Date) is a business day of its calendar. Days must lie between FIRST_DAY and LAST_DAY."""
    return _look_up("is_open", day, calendar)


def next_open(day: pl.Expr, calendar: pl.Expr) -> pl.Expr:
    """Return the day itself if it is a business day, else the next one that is."""
    return _look_up("next_open", day, calendar)


def last_open(day: pl.Expr, calendar: pl.Expr) -> pl.Expr:
    """Return the day itself if it is a business day, else the last one that was."""
    return _look_up("last_open", day, calendar)


def business_day_number(day: pl.Expr, calendar: pl.Expr) -> pl.Expr:
    """Count the business days of the calendar from FIRST_DAY to `day`, both included (Int32)."""
    return _look_up("number", day, calendar)


def _look_up(column: str, day: pl.Expr, calendar: pl.Expr) -> pl.Expr:
    since_first = day.cast(pl.Int32) - (FIRST_DAY.toordinal() - _EPOCH)
    of_calendar = calendar.cast(Calendar).to_physical().cast(pl.Int32) * _DAYS
    return _gather(business_days()[column], since_first.clip(0, _DAYS - 1) + of_calendar)


def _gather(values: pl.Series, place: pl.Expr) -> pl.Expr:
    """Return the values at these places; a place outside the range gets the first or the last value."""
    return pl.lit(values).gather(place.clip(0, len(values) - 1))


@cache
def business_days() -> pl.DataFrame:
    """List every day of every calendar: `is_open`, `next_open` and `last_open` (Date), `number` (of business days).

    There are no columns for the calendar and the day: a row's place says both, see `_look_up`.
    """
    return pl.concat(map(_describe_days, CALENDARS))


def _describe_days(calendar: str) -> pl.DataFrame:
    """Return the rows of one calendar, whose first and last days are open."""
    days = np.arange(np.datetime64(FIRST_DAY), np.datetime64(LAST_DAY) + 1)
    is_open = np.is_busday(days, holidays=closed_weekdays()[calendar])
    number = np.cumsum(is_open, dtype=np.int32)
    open_days = days[is_open]
    columns = {
        "is_open": is_open,
        "next_open": open_days[number - is_open],
        "last_open": open_days[number - 1],
        "number": number,
    }
    return pl.DataFrame(columns)


@cache
def closed_weekdays() -> Mapping[str, Sequence[date]]:
    """List each calendar's holidays from Monday to Friday, in order."""
    import holidays  # noqa: PLC0415  # importing it is slow: it prepares the calendars of many countries

    by_state = {state: set(holidays.country_holidays("AU", subdiv=state, years=HOLIDAYS_KNOWN)) for state in STATES}
    shared = set.intersection(*(by_state[state] for state in _SETTLING_STATES))
    by_calendar = {SETTLEMENT: shared, **by_state}
    return {calendar: sorted(day for day in days if day.weekday() < 5) for calendar, days in by_calendar.items()}
