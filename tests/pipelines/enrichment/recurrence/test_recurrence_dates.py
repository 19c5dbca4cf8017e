"""Business days and runs of due dates, computed on arrays, agree with the calendars and with plain Python."""

from collections.abc import Callable
from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.enrichment import calendars
from pipelines.enrichment.calendars import CALENDARS, FIRST_DAY, LAST_DAY, Calendar
from pipelines.enrichment.recurrence import dates
from pipelines.enrichment.recurrence.dates import Integers
from pipelines.enrichment.recurrence.runs import Runs, ranges, starts_run

EPOCH = date(1970, 1, 1)
CALENDAR_DAYS = st.dates(FIRST_DAY + timedelta(days=40), LAST_DAY - timedelta(days=40))


def numbers(*days: date) -> Integers:
    return np.array([(day - EPOCH).days for day in days], np.int32)


def days_of(found: Integers) -> list[date]:
    return [EPOCH + timedelta(days=int(number)) for number in found]


@pytest.mark.parametrize("rule", ["is_open", "next_open", "last_open"])
@given(days=st.lists(st.dates(FIRST_DAY, LAST_DAY), min_size=1), calendar=st.sampled_from(CALENDARS))
def test_arrays_agree_with_the_calendars(rule: str, days: list[date], calendar: str) -> None:
    compute_days: Callable[[Integers, int], Integers] = getattr(dates, rule)
    found = compute_days(numbers(*days), CALENDARS.index(calendar))
    expected = pl.DataFrame({"day": days}).select(getattr(calendars, rule)(pl.col("day"), pl.lit(calendar, Calendar)))
    assert found.tolist() == expected.to_series().to_physical().to_list()


@given(CALENDAR_DAYS)
def test_a_business_day_is_found_by_its_number(day: date) -> None:
    month = numbers(*(day + timedelta(days=n) for n in range(30)))
    opened = month[dates.is_open(month)]
    number = dates.business_day_number(opened)
    assert np.diff(number).tolist() == [1] * (len(opened) - 1)
    assert dates.settlement_day(number).tolist() == opened.tolist()


@given(day=CALENDAR_DAYS, wanted=st.integers(1, 31))
def test_missing_day_of_a_short_month_is_its_last_day(day: date, wanted: int) -> None:
    following = (day.replace(day=1) + timedelta(days=32)).replace(day=1)
    last = (following - timedelta(days=1)).day
    found = dates.month_day(dates.month_number(numbers(day)), wanted)
    assert days_of(found) == [day.replace(day=min(wanted, last))]


def test_payment_on_monday_may_be_for_the_weekend_and_one_on_saturday_only_for_itself() -> None:
    days = numbers(date(2025, 6, 16), date(2025, 6, 14))
    assert days_of(dates.look_up_calendar_day(dates.first_due(), days, 0)) == [date(2025, 6, 14)] * 2
    assert dates.look_up_calendar_day(dates.due_count(), days, 0).tolist() == [3, 1]


def test_payment_on_any_day_may_be_for_that_day() -> None:
    inner = slice(1, -1)
    first, count, day = dates.first_due()[:, inner], dates.due_count()[:, inner], dates.every_day()[inner]
    assert ((first <= day) & (day < first + count)).all()
    assert (dates.exposure()[inner] >= 1).all()


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(-9, 9)), max_size=40))
def test_runs_agree_with_plain_python(pairs: list[tuple[int, int]]) -> None:
    keys, values = np.array([key for key, _ in pairs], int), np.array([value for _, value in pairs], int)
    pieces: list[list[int]] = []
    for place, (key, value) in enumerate(pairs):
        if place == 0 or key != pairs[place - 1][0]:
            pieces.append([])
        pieces[-1].append(value)
    runs = Runs.starting(starts_run(keys))
    assert runs.lengths.tolist() == [len(piece) for piece in pieces]
    for total, by_hand in ((runs.sum, sum), (runs.min, min), (runs.max, max)):
        assert total(values).tolist() == [by_hand(piece) for piece in pieces]
    assert values[runs.places(np.arange(len(runs)))].tolist() == values.tolist()


def test_ranges_follow_each_other() -> None:
    assert ranges(np.array([5, 1, 9]), np.array([2, 0, 3])).tolist() == [5, 6, 9, 10, 11]
