"""Business days of each state's calendar, which a BSB names."""

from datetime import date, timedelta

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.enrichment import calendars
from pipelines.enrichment.calendars import CALENDARS, FIRST_DAY, LAST_DAY, SETTLEMENT, Calendar

GOOD_FRIDAY = date(2026, 4, 3)
CUP_DAY = date(2026, 11, 3)  # a holiday in Victoria alone
SYDNEY_LABOUR_DAY = date(2026, 10, 5)
CALENDAR_DAYS = st.dates(FIRST_DAY + timedelta(days=40), LAST_DAY - timedelta(days=40))


def look_up(rule: str, day: date, calendar: str = SETTLEMENT) -> object:
    answer = getattr(calendars, rule)(pl.col("day"), pl.lit(calendar, Calendar))
    return pl.DataFrame({"day": [day]}).select(answer).item()


@pytest.mark.parametrize(
    ("day", "calendar", "opened"),
    [
        (date(2026, 4, 2), SETTLEMENT, True),
        (GOOD_FRIDAY, SETTLEMENT, False),
        (date(2026, 4, 4), SETTLEMENT, False),
        (date(2026, 6, 8), SETTLEMENT, False),  # King's Birthday, kept in both New South Wales and Victoria
        (date(2026, 6, 8), "QLD", True),
        (CUP_DAY, SETTLEMENT, True),
        (CUP_DAY, "VIC", False),
        (SYDNEY_LABOUR_DAY, SETTLEMENT, True),
        (SYDNEY_LABOUR_DAY, "NSW", False),
    ],
)
def test_a_day_is_open_by_its_own_calendar(day: date, calendar: str, opened: bool) -> None:
    assert look_up("is_open", day, calendar) is opened


def test_easter_moves_a_payment_over_four_closed_days() -> None:
    assert look_up("next_open", GOOD_FRIDAY) == date(2026, 4, 7)
    assert look_up("last_open", date(2026, 4, 6)) == date(2026, 4, 2)


@given(day=CALENDAR_DAYS, calendar=st.sampled_from(CALENDARS))
def test_next_and_last_open_day_agree_with_a_search_day_by_day(day: date, calendar: str) -> None:
    later, earlier = day, day
    while not look_up("is_open", later, calendar):
        later += timedelta(days=1)
    while not look_up("is_open", earlier, calendar):
        earlier -= timedelta(days=1)
    assert (look_up("next_open", day, calendar), look_up("last_open", day, calendar)) == (later, earlier)


@given(CALENDAR_DAYS)
def test_business_days_are_numbered_without_gaps(day: date) -> None:
    days = pl.DataFrame({"day": [day + timedelta(days=n) for n in range(30)]})
    calendar = pl.lit(SETTLEMENT, Calendar)
    counted = days.filter(calendars.is_open(pl.col("day"), calendar)).with_columns(
        number=calendars.business_day_number(pl.col("day"), calendar)
    )
    assert counted["number"].diff().drop_nulls().unique().to_list() == [1]


def test_without_known_holidays_only_weekends_are_closed() -> None:
    assert look_up("is_open", date(1970, 1, 1)) is True  # a Thursday; holidays are known from 1990
    assert look_up("is_open", date(2100, 12, 25)) is False  # a Saturday


@pytest.mark.parametrize(
    ("bsb", "calendar"),
    [
        ("062-000", "NSW"),
        ("063000", "VIC"),
        ("084-123", "QLD"),
        ("105-900", "SA"),
        ("016-441", "WA"),
        ("067-001", "TAS"),
        ("630-000", SETTLEMENT),  # a bank without branches
        ("6200", SETTLEMENT),
        (None, SETTLEMENT),
    ],
)
def test_the_third_digit_of_a_bsb_is_its_state(bsb: str | None, calendar: str) -> None:
    frame = pl.DataFrame({"bsb": [bsb]}, schema={"bsb": pl.String()})
    assert frame.select(calendars.look_up_calendar(pl.col("bsb"))).item() == calendar
