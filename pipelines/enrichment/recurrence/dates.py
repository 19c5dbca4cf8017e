"""Dates as arrays of day numbers (days since 1 January 1970), with look-up tables for facts about each day.

The search for series needs the same few facts for millions of days: is it open, which business day comes next, which
month is it. Each fact is an array with one place per day (and one row per calendar, where states differ), so it takes
one look-up. The arrays cover more days than transactions may have, because due dates can lie before or after them.
"""

from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pipelines.enrichment.calendars import CALENDARS, FIRST_DAY, LAST_DAY, business_days

Integers: TypeAlias = NDArray[np.integer[Any]]
Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]

SETTLEMENT_CODE = 0  # place of the settlement calendar in CALENDARS
LAST = 31
"""Day of the month that means its last day, whatever its length."""

_BEYOND_DAYS = 800  # two slots of the longest schedule
FIRST_NUMBER = int(np.datetime64(FIRST_DAY, "D").astype(np.int32)) - _BEYOND_DAYS
LAST_NUMBER = int(np.datetime64(LAST_DAY, "D").astype(np.int32)) + _BEYOND_DAYS
_DAYS = LAST_NUMBER - FIRST_NUMBER + 1
_AROUND = ((0, 0), (_BEYOND_DAYS, _BEYOND_DAYS))
MONDAY = 4  # 5 January 1970


def every_day() -> Integers:
    """Return all days that the tables cover."""
    return np.arange(FIRST_NUMBER, LAST_NUMBER + 1, dtype=np.int32)


def look_up_day(answers: NDArray[Any], day: Integers) -> NDArray[Any]:
    """Look up days in a table that has the order of `every_day`."""
    return answers[day - FIRST_NUMBER]


def look_up_calendar_day(answers: NDArray[Any], day: Integers, calendar: Integers | int) -> NDArray[Any]:
    """Look up days in a table that has one row per calendar."""
    answer: NDArray[Any] = answers.ravel()[day + (np.multiply(calendar, _DAYS) - FIRST_NUMBER)]
    return answer


def is_open(day: Integers, calendar: Integers | int = SETTLEMENT_CODE) -> Flags:
    return look_up_calendar_day(_open_days(), day, calendar)


def next_open(day: Integers, calendar: Integers | int = SETTLEMENT_CODE) -> Integers:
    """Return the day itself if it is a business day, else the next one that is."""
    return look_up_calendar_day(_rolled_days("next_open"), day, calendar)


def last_open(day: Integers, calendar: Integers | int = SETTLEMENT_CODE) -> Integers:
    """Return the day itself if it is a business day, else the last one that was."""
    return look_up_calendar_day(_rolled_days("last_open"), day, calendar)


def business_day_number(day: Integers) -> Integers:
    """Return the number of the last business day of settlement up to the day, counted from a fixed day."""
    return look_up_calendar_day(_business_day_numbers(), day, SETTLEMENT_CODE)


def settlement_day(number: Integers) -> Integers:
    """Return the business day of settlement with that `business_day_number`."""
    return _settlement_days().take(number - 1, mode="clip")


def month_number(day: Integers) -> Integers:
    """Return the number of months since January 1970."""
    return look_up_day(_months(), day)


def month_start(month: Integers) -> Integers:
    """Return the first day of the month."""
    first: Integers = _month_starts()[month - int(_months()[0])]
    return first


def month_day(month: Integers, day_of_month: Integers | int) -> Integers:
    """Return a day of a month, or the last day if the month is shorter."""
    wanted, last = month_start(month) + (day_of_month - 1), month_start(month + 1) - 1
    day: Integers = np.minimum(wanted, last)
    return day


def day_of_month(day: Integers) -> Integers:
    return day - month_start(month_number(day)) + 1


def days_in_month(day: Integers) -> Integers:
    month = month_number(day)
    return month_start(month + 1) - month_start(month)


def weekday(day: Integers) -> Integers:
    """Return the weekday, from 0 for Monday."""
    return (day - MONDAY) % 7


@cache
def first_due() -> Integers:
    """Return the earliest due date that a payment may have been for, per calendar and day.

    It is the first of the closed days right before an open day, because the payment may have been moved off them.
    Otherwise it is the day itself.
    """
    day, calendar = _every_calendar_day()
    return np.where(is_open(day, calendar), last_open(_clip_to_known(day - 1), calendar) + 1, day)


@cache
def due_count() -> Integers:
    """Return how many due dates a payment may have been for: from `first_due` to the last closed day after its day."""
    day, calendar = _every_calendar_day()
    end = np.where(is_open(day, calendar), next_open(_clip_to_known(day + 1), calendar), day + 1)
    return end - first_due()


@cache
def count_on_time_dates() -> Integers:
    """Return how many dates count as on time for a due date, per calendar and day.

    These are the due date itself and, if that is a closed day, the business days of settlement and of the state before
    and after it.
    """
    day, calendar = _every_calendar_day()
    differ = np.ones_like(day, order="C")  # `day` is a broadcast view; with its layout, each look-up would copy it all
    for roll in (next_open, last_open):
        settles, opens = roll(day), roll(day, calendar)
        differ += (settles != day).astype(np.int32) + ((opens != day) & (opens != settles))
    return differ


@cache
def exposure() -> Integers:
    """Return the days since the previous business day of settlement: the days whose payments a day may carry."""
    day = every_day()
    return day - last_open(_clip_to_known(day - 1))


def _clip_to_known(day: Integers) -> Integers:
    return np.clip(day, FIRST_NUMBER, LAST_NUMBER)


def _every_calendar_day() -> tuple[Integers, Integers]:
    calendars = np.arange(len(CALENDARS), dtype=np.int32)[:, None]
    return np.broadcast_to(every_day(), (len(CALENDARS), _DAYS)), calendars


@cache
def _open_days() -> Flags:
    """Return whether each day of each calendar is open. Days outside the known range count as open."""
    return np.pad(_column_by_calendar("is_open"), _AROUND, constant_values=True)


@cache
def _rolled_days(column: str) -> Integers:
    """Return `next_open` or `last_open` of each day of each calendar."""
    days = np.tile(every_day(), (len(CALENDARS), 1))
    days[:, _BEYOND_DAYS:-_BEYOND_DAYS] = _column_by_calendar(column)
    return days


@cache
def _business_day_numbers() -> Integers:
    return np.pad(_column_by_calendar("number"), _AROUND, mode="edge")


@cache
def _settlement_days() -> Integers:
    known = every_day()[_BEYOND_DAYS:-_BEYOND_DAYS]
    opened: Integers = known[_column_by_calendar("is_open")[SETTLEMENT_CODE]]
    return opened


@cache
def _months() -> Integers:
    """Return the month of every day."""
    months: Integers = every_day().astype("datetime64[D]").astype("datetime64[M]").astype(np.int32)
    return months


@cache
def _month_starts() -> Integers:
    """Return the first days of all months and of the month after the last."""
    first, last = _months()[[0, -1]]
    months = np.arange(first, last + 2).astype("datetime64[M]")
    starts: Integers = months.astype("datetime64[D]").astype(np.int32)
    return starts


def _column_by_calendar(column: str) -> NDArray[Any]:
    """Return a column of `business_days` with one row per calendar."""
    return business_days()[column].to_physical().to_numpy().reshape(len(CALENDARS), -1)
