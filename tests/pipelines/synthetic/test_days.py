"""The generator's calendar: windows, public holidays, and days on which regular payments fall."""

from datetime import date

import pytest

from pipelines.synthetic.world.days import (
    bank_holidays,
    easter_sunday,
    is_business_day,
    next_business_day,
    same_day_of_month,
    window,
)


def ordinals(*days: tuple[int, int, int]) -> list[int]:
    return [date(*day).toordinal() for day in days]


@pytest.mark.parametrize(
    ("until", "months", "first"),
    [
        (date(2025, 6, 30), 6, date(2025, 1, 1)),
        (date(2025, 6, 15), 12, date(2024, 6, 16)),
        (date(2025, 4, 30), 3, date(2025, 2, 1)),
        (date(2024, 2, 29), 1, date(2024, 2, 1)),
        (date(2025, 3, 30), 1, date(2025, 3, 1)),
    ],
)
def test_a_window_holds_its_months_and_ends_on_the_day_asked_for(until: date, months: int, first: date) -> None:
    days = window(months, until)
    assert (date.fromordinal(days.first), date.fromordinal(days.last)) == (first, until)


def test_a_window_without_months_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one month"):
        window(0, date(2025, 6, 30))


@pytest.mark.parametrize(
    "sunday", [(2023, 4, 9), (2024, 3, 31), (2025, 4, 20), (2026, 4, 5), (2038, 4, 25), (2285, 3, 22)]
)
def test_easter_falls_where_the_almanac_has_it(sunday: tuple[int, int, int]) -> None:
    assert easter_sunday(sunday[0]) == date(*sunday).toordinal()


@pytest.mark.parametrize(
    ("year", "christmas"),
    [(2020, [25, 28]), (2021, [27, 28]), (2022, [26, 27]), (2024, [25, 26])],
)
def test_christmas_and_boxing_day_are_kept_on_working_days(year: int, christmas: list[int]) -> None:
    december = [date.fromordinal(day).day for day in sorted(bank_holidays(year)) if date.fromordinal(day).month == 12]
    assert december == christmas


def test_banks_rest_from_good_friday_to_easter_monday() -> None:
    thursday, friday, tuesday = ordinals((2025, 4, 17), (2025, 4, 18), (2025, 4, 22))
    assert is_business_day(thursday)
    assert next_business_day(friday) == tuesday


def test_a_monthly_payment_moves_on_from_a_weekend() -> None:
    days = window(3, date(2025, 6, 30))
    assert list(days.monthly(1)) == ordinals((2025, 4, 1), (2025, 5, 1), (2025, 6, 2))


def test_a_short_month_is_paid_on_its_last_day() -> None:
    assert list(window(1, date(2025, 2, 28)).monthly(30)) == ordinals((2025, 2, 28))


def test_a_fortnightly_payment_comes_every_second_week() -> None:
    thursdays = list(window(1, date(2025, 5, 31)).weekly(3, weeks=2))
    assert thursdays == ordinals((2025, 5, 1), (2025, 5, 15), (2025, 5, 29))


def test_activity_statements_are_due_four_times_a_year() -> None:
    due = list(window(12, date(2025, 6, 30)).bas_due())
    assert due == ordinals((2024, 7, 29), (2024, 10, 28), (2025, 2, 28), (2025, 4, 28))


def test_a_month_later_is_the_same_day_or_the_last_of_a_shorter_month() -> None:
    (begun,) = ordinals((2024, 12, 31))
    assert [same_day_of_month(begun, months) for months in (0, 1, 2, 14)] == ordinals(
        (2024, 12, 31), (2025, 1, 31), (2025, 2, 28), (2026, 2, 28)
    )
