"""Days, windows and months of a customer's history.

Windows end at the customer's last posted row (`data_through`), not at today: an old statement is described as it was,
and only freshness measures its age.
"""

from datetime import date

import polars as pl

BY_CUSTOMER = "customer_number"


def days_behind(as_of: date | pl.Expr) -> pl.Expr:
    """Return days from `data_through` to `as_of`; 0 for a row dated tomorrow (time zones)."""
    day = as_of if isinstance(as_of, pl.Expr) else pl.lit(as_of)
    return (day - pl.col("data_through")).dt.total_days().clip(lower_bound=0)


def age() -> pl.Expr:
    """Return how many days a row lies before its customer's last row."""
    return (pl.col("date").max().over(BY_CUSTOMER) - pl.col("date")).dt.total_days()


def posted_month() -> pl.Expr:
    """Return the first day of the month a row is posted in."""
    return pl.col("date").dt.truncate("1mo")


def list_months(history: pl.LazyFrame) -> pl.LazyFrame:
    """Return `customer_number, first_date, data_through` once for every calendar month of the history, with `month`.

    Months without a row are included: readers should see that nothing happened.
    """
    months = pl.date_ranges(pl.col("first_date").dt.truncate("1mo"), pl.col("data_through"), "1mo")
    return history.with_columns(month=months).explode("month")


def is_partial_month() -> pl.Expr:
    """Return whether the history starts after the first or ends before the last day of `month`."""
    starts_late = pl.col("first_date") > pl.col("month")
    ends_early = pl.col("data_through") < pl.col("month").dt.month_end()
    return starts_late | ends_early
