"""Compute when recurring payments are due: every schedule as arithmetic on due dates.

A **due date** is the agreed date, before weekends and holidays move it. A schedule numbers its due dates by **slots**
(weeks, months, quarters, years) and is fixed by its **anchor**: a weekday, a day of the month, or a weekday and its
place in the month. Slot and anchor give the due date; a due date gives the anchor. An anchor is packed into one
integer, so that the anchors of a million series are an array.

Dates are day numbers (see `dates`). All functions take and return arrays.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from pipelines.enrichment.recurrence.dates import (
    LAST,
    MONDAY,
    Integers,
    business_day_number,
    day_of_month,
    days_in_month,
    every_day,
    month_day,
    month_number,
    month_start,
    next_open,
    settlement_day,
    weekday,
)

DAILY = "business_daily"
TWICE_MONTHLY = "twice_monthly"
NO_ANCHOR = -1

_BAS_DAY = 28
_BAS_MONTHS = (1, 3, 6, 9)  # February, April, July and October, from 0 for January
_BAS_LATE_QUARTER = 0  # from 0: it is due in its second month, the other quarters in their first
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_NTH = ("first", "second", "third", "fourth")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


@dataclass(frozen=True)
class Schedule:
    """One way in which payments recur.

    `days`: usual days between payments; `tolerance_days`: how far a payment may be from its due date (or from the
    business day before or after it); `least`: payments needed as evidence; `over_after`: payments missed in a row after
    which the series has ended; `anchors`: the number of possible anchors. These numbers are our judgement.

    `anchor_of` takes a due date (and returns NO_ANCHOR if it can't be one), `slot_near` a date and an anchor (right to
    within one slot), `due` a slot and an anchor, `words` an anchor.
    """

    name: str
    period: str
    days: float
    tolerance_days: int
    least: int
    over_after: int
    anchors: int
    anchor_of: Callable[[Integers], Integers]
    slot_near: Callable[[Integers, Integers], Integers]
    due: Callable[[Integers, Integers], Integers]
    words: Callable[[int], str]


def _cycle(name: str, weeks: int, tolerance_days: int, least: int, over_after: int) -> Schedule:
    """Return the schedule of every `weeks` weeks. The anchor is the place in the cycle, from Monday 5 January 1970."""
    days = 7 * weeks
    return Schedule(
        name=name,
        period=name,
        days=days,
        tolerance_days=tolerance_days,
        least=least,
        over_after=over_after,
        anchors=days,
        anchor_of=lambda due: (due - MONDAY) % days,
        slot_near=lambda day, anchor: (day - MONDAY - anchor) // days,
        due=lambda slot, anchor: slot * days + anchor + MONDAY,
        words=lambda anchor: _WEEKDAYS[anchor % 7],
    )


def _agreed_day(due: Integers) -> Integers:
    """Return the day of the month, or LAST for a month's last day."""
    day = day_of_month(due)
    return np.where(day == days_in_month(due), LAST, day)


def _day_words(day: int) -> str:
    return "last day of the month" if day == LAST else f"day {day} of the month"


def _every_months(name: str, months: int, tolerance_days: int, least: int, over_after: int) -> Schedule:
    """Return the schedule of a day in every 1, 3 or 12 months. The anchor is 32 × (month modulo `months`) + day."""

    def words(anchor: int) -> str:
        month, day = divmod(anchor, 32)
        named = ", ".join(_MONTHS[month::months])
        return _day_words(day) if months == 1 else f"{_day_words(day)} in {named}"

    return Schedule(
        name=name,
        period=name,
        days=365.25 / 12 * months,
        tolerance_days=tolerance_days,
        least=least,
        over_after=over_after,
        anchors=LAST * months,
        anchor_of=lambda due: month_number(due) % months * 32 + _agreed_day(due),
        slot_near=lambda day, anchor: (month_number(day) - anchor // 32) // months,
        due=lambda slot, anchor: month_day(slot * months + anchor // 32, anchor % 32),
        words=words,
    )


def _nth_weekday() -> Schedule:
    """Return the schedule of the first to fourth weekday of the month. The anchor is 4 × weekday + place, from 0."""

    def anchor_of(due: Integers) -> Integers:
        place = (day_of_month(due) - 1) // 7
        return np.where(place < len(_NTH), weekday(due) * 4 + place, NO_ANCHOR)

    def due(slot: Integers, anchor: Integers) -> Integers:
        first = month_start(slot)
        return first + (anchor // 4 - weekday(first)) % 7 + anchor % 4 * 7

    return _weekday_schedule(
        "monthly_weekday", 28, anchor_of, due, lambda anchor: (_NTH[anchor % 4], _WEEKDAYS[anchor // 4])
    )


def _last_weekday() -> Schedule:
    """Return the schedule of the last Monday, Tuesday … of the month. The anchor is the weekday from 0."""

    def anchor_of(due: Integers) -> Integers:
        in_last_week = day_of_month(due) + 7 > days_in_month(due)
        return np.where(in_last_week, weekday(due), NO_ANCHOR)

    def due(slot: Integers, anchor: Integers) -> Integers:
        last_week = month_start(slot + 1) - 7
        return last_week + (anchor - weekday(last_week)) % 7

    return _weekday_schedule("monthly_last_weekday", 7, anchor_of, due, lambda anchor: ("last", _WEEKDAYS[anchor]))


def _weekday_schedule(
    name: str,
    anchors: int,
    anchor_of: Callable[[Integers], Integers],
    due: Callable[[Integers, Integers], Integers],
    named: Callable[[int], tuple[str, str]],
) -> Schedule:
    return Schedule(
        name=name,
        period="monthly",
        days=365.25 / 12,
        tolerance_days=1,
        least=3,
        over_after=2,
        anchors=anchors,
        anchor_of=anchor_of,
        slot_near=lambda day, _anchor: month_number(day),
        due=due,
        words=lambda anchor: "{} {} of the month".format(*named(anchor)),
    )


def _twice_monthly() -> Schedule:
    """Return the schedule of two days in every month. The anchor is 32 × first day + second.

    A single due date gives only one of the two days. `anchors` combines the two most frequent ones.
    """

    def slot_near(day: Integers, anchor: Integers) -> Integers:
        return month_number(day) * 2 + (day_of_month(day) >= anchor % 32)

    def due(slot: Integers, anchor: Integers) -> Integers:
        return month_day(slot // 2, np.where(slot % 2 == 0, anchor // 32, anchor % 32))

    return Schedule(
        name=TWICE_MONTHLY,
        period=TWICE_MONTHLY,
        days=365.25 / 24,
        tolerance_days=2,
        least=4,
        over_after=3,
        anchors=LAST * (LAST - 1) // 2,
        anchor_of=_agreed_day,
        slot_near=slot_near,
        due=due,
        words=lambda anchor: f"{_day_words(anchor // 32)} and {_day_words(anchor % 32)}",
    )


def _activity_statements() -> Schedule:
    """Return the schedule of quarterly business activity statements: 28 February, 28 April, 28 July and 28 October.

    Source: Australian Taxation Office, due dates for lodging and paying BAS.
    """

    def anchor_of(due: Integers) -> Integers:
        is_due = (day_of_month(due) == _BAS_DAY) & np.isin(month_number(due) % 12, _BAS_MONTHS)
        return np.where(is_due, 0, NO_ANCHOR)

    def due(slot: Integers, _anchor: Integers) -> Integers:
        return month_day(slot * 3 + (slot % 4 == _BAS_LATE_QUARTER), _BAS_DAY)

    return Schedule(
        name="activity_statements",
        period="quarterly",
        days=365.25 / 4,
        tolerance_days=5,
        least=3,
        over_after=1,
        anchors=1,
        anchor_of=anchor_of,
        slot_near=lambda day, _anchor: month_number(day) // 3,
        due=due,
        words=lambda _anchor: "BAS due dates: 28 October, 28 February, 28 April, 28 July",
    )


def _every_business_day() -> Schedule:
    """Return the schedule of all business days of settlement. A payment on a closed day belongs to the next."""
    return Schedule(
        name=DAILY,
        period=DAILY,
        days=1.4,
        tolerance_days=3,
        least=8,
        over_after=5,
        anchors=1,
        anchor_of=np.zeros_like,
        slot_near=lambda day, _anchor: business_day_number(next_open(day)),
        due=lambda slot, _anchor: settlement_day(slot),
        words=lambda _anchor: "every business day",
    )


SCHEDULES = (
    _every_business_day(),
    _cycle("weekly", weeks=1, tolerance_days=1, least=4, over_after=3),
    _cycle("fortnightly", weeks=2, tolerance_days=2, least=3, over_after=2),
    _cycle("four_weekly", weeks=4, tolerance_days=2, least=3, over_after=2),
    _twice_monthly(),
    _every_months("monthly", months=1, tolerance_days=3, least=3, over_after=2),
    _nth_weekday(),
    _last_weekday(),
    _every_months("quarterly", months=3, tolerance_days=5, least=3, over_after=1),
    _activity_statements(),
    _every_months("yearly", months=12, tolerance_days=7, least=2, over_after=1),
)


@cache
def anchors_by_day(number: int) -> Integers:
    """Return the anchor of each day, taken as a due date of a schedule. `number`: its place in SCHEDULES."""
    return SCHEDULES[number].anchor_of(every_day()).astype(np.int32)


def list_due_dates(schedule: Integers, slot: Integers, anchor: Integers) -> Integers:
    """Return due dates by slot and anchor, each by its own schedule."""
    due = np.empty_like(slot)
    for one, where in _split_by_schedule(schedule):
        due[where] = one.due(slot[where], anchor[where])
    return due


def find_nearest_due(schedule: Integers, day: Integers, anchor: Integers) -> tuple[Integers, Integers]:
    """Return the slots with the due dates nearest to these days, and the due dates, each by its own schedule."""
    slot, due = np.empty_like(day), np.empty_like(day)
    for one, where in _split_by_schedule(schedule):
        slot[where], due[where] = _find_nearest(one, day[where], anchor[where])
    return slot, due


def _split_by_schedule(schedule: Integers) -> Iterator[tuple[Schedule, Integers]]:
    """Yield each schedule that occurs, with its places."""
    for number in np.flatnonzero(np.bincount(schedule)):
        yield SCHEDULES[number], np.flatnonzero(schedule == number)


def _find_nearest(schedule: Schedule, day: Integers, anchor: Integers) -> tuple[Integers, Integers]:
    slot = schedule.slot_near(day, anchor)
    due = schedule.due(slot, anchor)
    beside = slot + np.sign(day - due)
    beside_due = schedule.due(beside, anchor)
    closer = np.abs(day - beside_due) < np.abs(day - due)
    return np.where(closer, beside, slot), np.where(closer, beside_due, due)
