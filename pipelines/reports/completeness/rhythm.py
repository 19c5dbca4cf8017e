"""Rhythm: how probable a silence is for an account, by its own days.

The model: the account has rows on a working day with probability p, on a day of the weekend with probability q, each
day by itself. Both are what its other days show, the silence left out: (days with rows + 1) / (days + 2), Laplace's
rule of succession. A given stretch of w working days and v days of the weekend is then silent with probability
(1 - p)^w × (1 - q)^v: that is what a gap states. Public holidays and a firm's closed weeks are not in the model;
therefore only silences that are far less probable than one in a thousand are listed, SURE_BELOW.
"""

import polars as pl

PROBABILITY = pl.Decimal(38, 10)
SURE_BELOW = "0.000001"


def working_days(first: pl.Expr, last: pl.Expr) -> pl.Expr:
    """Mondays to Fridays from `first` to `last`, dates, both counted."""
    return pl.business_day_count(first, last + pl.duration(days=1)).cast(pl.Int64)


def probability() -> pl.Expr:
    """Of `silentWorkingDays` and `silentWeekendDays` in a row, by the counts of the account's other days."""
    working = _silent(pl.col("activeWorkingDays"), pl.col("otherWorkingDays"))
    weekend = _silent(pl.col("activeWeekendDays"), pl.col("otherWeekendDays"))
    both = working.log() * pl.col("silentWorkingDays") + weekend.log() * pl.col("silentWeekendDays")
    return both.exp().round(10).cast(PROBABILITY)


def _silent(active: pl.Expr, days: pl.Expr) -> pl.Expr:
    return 1 - (active + 1) / (days + 2)


def is_improbable(probability: pl.Expr) -> pl.Expr:
    return probability < pl.lit(SURE_BELOW).cast(PROBABILITY)
