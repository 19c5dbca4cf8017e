"""The day that a text prints becomes the value date, with the year nearest to the booking."""

from datetime import date, timedelta

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.enrichment.wording.details import read_details
from pipelines.enrichment.wording.value_dates import MAX_DAYS_APART, add_effective_date

POSTED_ON = date(2026, 1, 5)


def effective(
    day: int | None, month: int | None, year: int | None, posted: date = POSTED_ON, sent: date | None = None
) -> date | None:
    row = {"stated_day": [day], "stated_month": [month], "stated_year": [year], "date": [posted], "value_date": [sent]}
    kinds = {"stated_day": pl.Int8, "stated_month": pl.Int8, "stated_year": pl.Int32, "value_date": pl.Date}
    frame = pl.DataFrame(row, schema_overrides=kinds)
    found: date | None = add_effective_date(frame)["effective_date"].item()
    return found


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ((3, 1, 2026), date(2026, 1, 3)),
        ((3, 1, None), date(2026, 1, 3)),
        ((30, 12, None), date(2025, 12, 30)),
        ((30, 12, 2025), date(2025, 12, 30)),
        ((30, 12, 2026), None),
        ((1, 6, None), None),
        ((3, 1, 2016), None),
        ((31, 2, None), None),
        ((0, 1, None), None),
        ((1, 13, None), None),
        ((None, None, None), None),
    ],
)
def test_printed_day_gets_the_year_of_the_booking(stated: tuple[int, int, int | None], expected: date | None) -> None:
    assert effective(*stated) == expected


def test_sent_value_date_wins() -> None:
    sent = date(2020, 1, 1)
    assert effective(3, 1, 2026, sent=sent) == sent


def test_leap_day_is_found_only_in_a_leap_year() -> None:
    assert effective(29, 2, None, posted=date(2024, 3, 1)) == date(2024, 2, 29)
    assert effective(29, 2, None, posted=date(2025, 3, 1)) is None


@given(
    st.dates(date(1990, 1, 1), date(2100, 1, 1)),
    st.integers(-40, 140),
    st.integers(-40, 140),
    st.none() | st.integers(1900, 2200),
)
def test_effective_date_agrees_with_plain_python(posted: date, day: int, month: int, year: int | None) -> None:
    """The oracle: of all days close enough, the first that has this day, month and year."""
    day, month = min(day, 127), min(month, 127)
    near = (posted + timedelta(days=days) for days in range(-MAX_DAYS_APART, MAX_DAYS_APART + 1))
    found = [each for each in near if (each.day, each.month) == (day, month) and year in (None, each.year)]
    assert effective(day, month, year, posted) == next(iter(found), None)


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("SHOP VALUE DATE: 12/03/2026", (12, 3, 2026)),
        ("SHOP VALUE DATE 2/3/26", (2, 3, 2026)),
        ("SHOP EFFECTIVE DATE 12 MAR 2026", (12, 3, 2026)),
        ("SHOP EFFECTIVE DATE 12MAR", (12, 3, None)),
        ("CREDIT INTEREST EFFECTIVE DATE 30SEP", (30, 9, None)),
        ("EFTPOS PURCHASE 04JUL24 17:22 PUMA", (4, 7, 2024)),
        ("OSKO DEPOSIT 07AUG18:42 RENT", (7, 8, None)),
        ("SHOP - RECEIPT 12345 DATE 06 APR 2025 TIME 3:10 PM", (6, 4, 2025)),
        ("V1234 12/03 SHOP", (12, 3, None)),
        ("VISA PURCHASE SHOP SYDNEY AU 13/01 102.55 AUD", (13, 1, None)),
        ("OSKO PAYMENT FROM J SMITH CAKE FOR 14/03", (None, None, None)),
        ("RENT 01/03-31/03", (None, None, None)),
        ("INTERNET WITHDRAWAL 12SEP16:40 RENT 01/09", (12, 9, None)),
    ],
)
def test_a_day_is_read_where_the_bank_prints_it(text: str, stated: tuple[int | None, ...]) -> None:
    assert read_details(pl.Series([text])).select("stated_day", "stated_month", "stated_year").row(0) == stated
