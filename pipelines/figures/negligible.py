"""Rows that move next to no money show nothing about a business, however many there are.

An export may have lines of 0.00 for information, and anybody can add rows of a few cents that look like activity or
like well described payments. Neither must change how much evidence there seems to be.
"""

from collections.abc import Sequence

import polars as pl

SHARE = 10_000  # of what a usual month moves: AUD 5 of AUD 50,000; our judgement
_YEAR, _MONTH = 365, 30  # days


def is_negligible(by: Sequence[str]) -> pl.Expr:
    """Match rows (of `Facts.rows`) of 0.00, and those below 1/SHARE of what a usual month moves, in and out together.

    A usual month is the mean of 30 days of the last year; with less than a year of rows, of the days that there are.

    Args:
        by: the keys of the account or customer whose usual month counts.
    """
    cents, age = pl.col("amount").abs().to_physical().cast(pl.Int64), pl.col("age").cast(pl.Int64)
    moved = cents.filter(age < _YEAR).sum().over(by).cast(pl.Float64)
    days = (age.max().over(by) + 1).clip(_MONTH, _YEAR)
    return (cents == 0) | (cents.cast(pl.Float64) * SHARE * days < moved * _MONTH)
