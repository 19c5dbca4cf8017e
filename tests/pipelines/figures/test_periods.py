"""Windows end where the data end, and months without a row are listed."""

from datetime import date

import polars as pl

from pipelines.figures.periods import days_behind, is_partial_month, list_months


def test_a_row_dated_tomorrow_has_age_zero() -> None:
    through = pl.DataFrame({"data_through": [date(2025, 5, 2), date(2025, 4, 21)]})
    assert through.select(days_behind(date(2025, 5, 1))).to_series().to_list() == [0, 10]


def test_months_without_rows_are_listed_and_uncovered_ones_are_partial() -> None:
    history = pl.LazyFrame(
        {"customer_number": [1], "first_date": [date(2024, 1, 2)], "data_through": [date(2024, 4, 30)]}
    )
    months = list_months(history).select("month", partial=is_partial_month()).collect()
    assert months.rows() == [
        (date(2024, 1, 1), True),
        (date(2024, 2, 1), False),
        (date(2024, 3, 1), False),
        (date(2024, 4, 1), False),
    ]
