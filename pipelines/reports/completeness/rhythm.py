"""Rhythm: how probable a silence is for an account, judged by its other days.

The model: the account has rows on a working day with probability p and on a weekend day with probability q, each
day independently. Both are estimated from its other days, without the silence: (days with rows + 1) / (days + 2),
Laplace's rule of succession. A given stretch of w working days and v weekend days is then silent with probability
(1 - p)^w × (1 - q)^v, the `probability` of a gap. Public holidays and a firm's closed weeks are not in the model;
therefore only silences less probable than one in a million are listed (SURE_BELOW, our judgement).
"""

import polars as pl

PROBABILITY = pl.Decimal(38, 10)
SURE_BELOW = "0.000001"


def working_days(first: pl.Expr, last: pl.Expr) -> pl.Expr:
    """Return the number of Mondays to Fridays between two dates, both included."""
    return pl.business_day_count(first, last + pl.duration(days=1)).cast(pl.Int64)


def probability() -> pl.Expr:
    """Return the probability of `silentWorkingDays` and `silentWeekendDays` in a row, from counts of other days."""
    working = _silent(pl.col("activeWorkingDays"), pl.col("otherWorkingDays"))
    weekend = _silent(pl.col("activeWeekendDays"), pl.col("otherWeekendDays"))
    both = working.log() * pl.col("silentWorkingDays") + weekend.log() * pl.col("silentWeekendDays")
    return both.exp().round(10).cast(PROBABILITY)


def _silent(active: pl.Expr, days: pl.Expr) -> pl.Expr:
    return 1 - (active + 1) / (days + 2)


def is_improbable(probability: pl.Expr) -> pl.Expr:
    return probability < pl.lit(SURE_BELOW).cast(PROBABILITY)
