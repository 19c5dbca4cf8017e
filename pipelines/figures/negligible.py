"""Rows that move next to no money show nothing about a business, however many there are.

An export may have lines of 0.00 for information, and anybody can add rows of a few cents that look like activity or
like well described payments. Neither must change how much evidence there seems to be.
"""

from collections.abc import Sequence

import polars as pl

SHARE = 10_000  # of what a usual month moves: AUD 5 of AUD 50,000; our judgement
_YEAR, _MONTH = 365, 30  # days


CENTS = pl.col("amount").abs().to_physical().cast(pl.Int64)  # of a row of `Facts.rows`


def is_negligible(keys: Sequence[str], largest: pl.Expr = CENTS, moved: pl.Expr = CENTS) -> pl.Expr:
    """Match rows of 0.00, and those below 1/SHARE of what a usual month moves, in and out together.

    A usual month is the mean of 30 days of the last year; with less than a year of rows, of the days that there are.
    Works on `Facts.rows`, and on days with rows and their `age`.

    Args:
        keys: those of the account or customer whose usual month counts.
        largest: cents of the row, or of the day's largest row.
        moved: cents of the row, or of all the day's rows.
    """
    age = pl.col("age").cast(pl.Int64)
    in_year = moved.filter(age < _YEAR).sum().over(keys).cast(pl.Float64)
    days = (age.max().over(keys) + 1).clip(_MONTH, _YEAR)
    return (largest == 0) | (largest.cast(pl.Float64) * SHARE * days < in_year * _MONTH)
