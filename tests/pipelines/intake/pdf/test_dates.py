"""Dates are read in every printed form; a year that is not printed follows from the period, or is doubted."""

from datetime import date, timedelta

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pipelines.intake.pdf.page.dates import Printed, leading_date, resolve

FULL = ["%d %b %Y", "%d %B %Y", "%d/%m/%Y", "%d/%m/%y", "%d-%b-%Y", "%d-%b-%y", "%d.%m.%y", "%Y-%m-%d", "%d%b%Y",
        "%d%b%y", "%b %d, %Y", "%a %d %b %Y", "%A, %d %B %Y", "%d %b %y"]  # fmt: skip
WITHOUT_YEAR = ["%d %b", "%d/%m", "%d%b", "%b %d", "%a %d %b", "%d-%b"]
DAYS = st.dates(date(2001, 1, 1), date(2049, 12, 31))


@given(DAYS, st.sampled_from(FULL), st.booleans())
def test_dates_with_a_year_are_read_in_every_form(day: date, form: str, capitals: bool) -> None:
    text = day.strftime(form)
    found = leading_date(f"{text.upper() if capitals else text} WOOLWORTHS 1234")
    assert found is not None
    assert (found[0].full, found[1]) == (day, len(text))


@given(DAYS, st.sampled_from(WITHOUT_YEAR))
def test_dates_without_a_year_are_read_without_one(day: date, form: str) -> None:
    found = leading_date(day.strftime(form))
    assert found is not None
    assert (found[0].day, found[0].month, found[0].year) == (day.day, day.month, None)


@pytest.mark.parametrize("text", ["12.50", "3 Marsden St", "32 Jan", "13/13/2024", "Mayfield 5", "05/2024", ""])
def test_other_texts_are_not_dates(text: str) -> None:
    assert leading_date(text) is None


@given(DAYS, st.integers(0, 360), st.data())
def test_a_day_in_the_period_has_the_year_that_puts_it_there(start: date, length: int, data: st.DataObject) -> None:
    end = start + timedelta(days=length)
    days = sorted(data.draw(st.lists(st.dates(start, end), min_size=1, max_size=8)))
    assume(all((day.month, day.day) != (2, 29) for day in days))
    found = resolve([Printed(day.day, day.month, None) for day in days], [None] * len(days), (start, end), None)
    assert found.dates == tuple(days)
    assert not found.doubts


def test_a_card_purchase_shortly_before_the_period_keeps_its_year() -> None:
    found = resolve([Printed(20, 12, None)], [None], (date(2024, 1, 5), date(2024, 2, 4)), None)
    assert found.dates == (date(2023, 12, 20),)


def test_a_year_row_applies_to_the_rows_below() -> None:
    printed = [Printed(31, 12, None), Printed(1, 1, None)]
    found = resolve(printed, [2023, 2024], (None, None), None)
    assert found.dates == (date(2023, 12, 31), date(2024, 1, 1))


def test_years_of_a_period_longer_than_a_year_follow_row_by_row_and_are_doubted() -> None:
    printed = [Printed(1, 7, None), Printed(1, 1, None), Printed(1, 7, None), Printed(1, 1, None)]
    found = resolve(printed, [None] * 4, (date(2022, 6, 1), date(2024, 5, 31)), None)
    assert found.dates == (date(2022, 7, 1), date(2023, 1, 1), date(2023, 7, 1), date(2024, 1, 1))
    assert found.doubts


def test_without_any_year_the_files_date_is_used_and_doubted() -> None:
    found = resolve([Printed(30, 12, None), Printed(2, 1, None)], [None, None], (None, None), date(2024, 1, 10))
    assert found.dates == (date(2023, 12, 30), date(2024, 1, 2))
    assert found.doubts


def test_without_any_hint_there_is_no_date() -> None:
    found = resolve([Printed(30, 12, None)], [None], (None, None), None)
    assert found.dates == (None,)
    assert found.doubts


def test_a_date_far_outside_of_the_period_is_doubted() -> None:
    assert resolve([Printed(1, 3, 2019)], [None], (date(2024, 3, 1), date(2024, 3, 31)), None).doubts
