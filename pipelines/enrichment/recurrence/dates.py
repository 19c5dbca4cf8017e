"""Dates as arrays: day numbers counted from 1 January 1970, and what is known of every day, by look-up.

The search for series asks the same few things of millions of days: is it open, which day comes next, which month is
it. Each answer stands in an array with a place a day (and a row a calendar, where states differ), so that asking is one
look-up. The arrays reach a little beyond the days that transactions may have, for due dates lie around them.
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
"""Day of the month that stands for its last day, whatever its length."""

_BEYOND_DAYS = 800  # two slots of the longest schedule
FIRST_NUMBER = int(np.datetime64(FIRST_DAY, "D").astype(np.int32)) - _BEYOND_DAYS
LAST_NUMBER = int(np.datetime64(LAST_DAY, "D").astype(np.int32)) + _BEYOND_DAYS
_DAYS = LAST_NUMBER - FIRST_NUMBER + 1
_AROUND = ((0, 0), (_BEYOND_DAYS, _BEYOND_DAYS))
MONDAY = 4  # 5 January 1970


def every_day() -> Integers:
    """All days that can be asked about."""
    return np.arange(FIRST_NUMBER, LAST_NUMBER + 1, dtype=np.int32)


def look_up_day(answers: NDArray[Any], day: Integers) -> NDArray[Any]:
    """Answers in the order of `every_day`, looked up."""
    return answers[day - FIRST_NUMBER]


def look_up_calendar_day(answers: NDArray[Any], day: Integers, calendar: Integers | int) -> NDArray[Any]:
    """Answers in rows of calendars, looked up."""
    answer: NDArray[Any] = answers.ravel()[day + (np.multiply(calendar, _DAYS) - FIRST_NUMBER)]
    return answer


def is_open(day: Integers, calendar: Integers | int = SETTLEMENT_CODE) -> Flags:
    return look_up_calendar_day(_open_days(), day, calendar)


def next_open(day: Integers, calendar: Integers | int = SETTLEMENT_CODE) -> Integers:
    """The day itself when it is a business day, else the next."""
    return look_up_calendar_day(_rolled_days("next_open"), day, calendar)


def last_open(day: Integers, calendar: Integers | int = SETTLEMENT_CODE) -> Integers:
    """The day itself when it is a business day, else the one before."""
    return look_up_calendar_day(_rolled_days("last_open"), day, calendar)


def business_day_number(day: Integers) -> Integers:
    """How many business days of settlement lie up to the day, itself included, counted from a fixed one."""
    return look_up_calendar_day(_business_day_numbers(), day, SETTLEMENT_CODE)


def settlement_day(number: Integers) -> Integers:
    """The business day of settlement with that `business_day_number`."""
    return _settlement_days().take(number - 1, mode="clip")


def month_number(day: Integers) -> Integers:
    """Months since January 1970."""
    return look_up_day(_months(), day)


def month_start(month: Integers) -> Integers:
    """First day of the month."""
    first: Integers = _month_starts()[month - int(_months()[0])]
    return first


def month_day(month: Integers, day_of_month: Integers | int) -> Integers:
    """A day of a month, or its last when the month is shorter."""
    wanted, last = month_start(month) + (day_of_month - 1), month_start(month + 1) - 1
    day: Integers = np.minimum(wanted, last)
    return day


def day_of_month(day: Integers) -> Integers:
    return day - month_start(month_number(day)) + 1


def days_in_month(day: Integers) -> Integers:
    month = month_number(day)
    return month_start(month + 1) - month_start(month)


def weekday(day: Integers) -> Integers:
    """From 0 for Monday."""
    return (day - MONDAY) % 7


@cache
def first_due() -> Integers:
    """The earliest due date that a payment on each day of each calendar can stand for: the first of the closed days
    just before it, for a payment may have been moved off them.
    """
    day, calendar = _every_calendar_day()
    return np.where(is_open(day, calendar), last_open(_clip_to_known(day - 1), calendar) + 1, day)


@cache
def due_count() -> Integers:
    """How many days from `first_due` on a payment can stand for: to the last of the closed days just after it."""
    day, calendar = _every_calendar_day()
    end = np.where(is_open(day, calendar), next_open(_clip_to_known(day + 1), calendar), day + 1)
    return end - first_due()


@cache
def count_on_time_dates() -> Integers:
    """How many dates are on time for a due date of each calendar: itself, and the business days of settlement and of
    the state on either side.
    """
    day, calendar = _every_calendar_day()
    differ = np.ones_like(day, order="C")  # as the days are given, each look-up would copy it all
    for roll in (next_open, last_open):
        settles, opens = roll(day), roll(day, calendar)
        differ += (settles != day).astype(np.int32) + ((opens != day) & (opens != settles))
    return differ


@cache
def exposure() -> Integers:
    """Days from the business day of settlement before each day to the day: those whose payments it may carry."""
    day = every_day()
    return day - last_open(_clip_to_known(day - 1))


def _clip_to_known(day: Integers) -> Integers:
    return np.clip(day, FIRST_NUMBER, LAST_NUMBER)


def _every_calendar_day() -> tuple[Integers, Integers]:
    calendars = np.arange(len(CALENDARS), dtype=np.int32)[:, None]
    return np.broadcast_to(every_day(), (len(CALENDARS), _DAYS)), calendars


@cache
def _open_days() -> Flags:
    """Whether each day of each calendar is open, as every day beyond those known is taken to be."""
    return np.pad(_column_by_calendar("is_open"), _AROUND, constant_values=True)


@cache
def _rolled_days(column: str) -> Integers:
    """`next_open` or `last_open` of each day of each calendar."""
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
    """The month of every day."""
    months: Integers = every_day().astype("datetime64[D]").astype("datetime64[M]").astype(np.int32)
    return months


@cache
def _month_starts() -> Integers:
    """First days of all months, and of one beyond the last."""
    first, last = _months()[[0, -1]]
    months = np.arange(first, last + 2).astype("datetime64[M]")
    starts: Integers = months.astype("datetime64[D]").astype(np.int32)
    return starts


def _column_by_calendar(column: str) -> NDArray[Any]:
    """A column of `business_days`, a row a calendar."""
    return business_days()[column].to_physical().to_numpy().reshape(len(CALENDARS), -1)
