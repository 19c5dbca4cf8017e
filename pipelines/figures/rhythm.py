"""Rhythm: how probable a silence is for an account, judged by its other days.

The model: the account has rows on a working day with probability p and on a weekend day with probability q, each
day independently. Both are estimated from its other days, without the silence: (days with rows + 1) / (days + 2),
Laplace's rule of succession. A given stretch of w working days and v weekend days is then silent with probability
(1 - p)^w × (1 - q)^v, the `probability` of a gap. Public holidays and a firm's closed weeks are not in the model, so
only silences less probable than one in a million count (SURE_BELOW, our judgement).
"""

from decimal import Decimal

import polars as pl

from pipelines.figures.accounts import BY_ACCOUNT

PROBABILITY = pl.Decimal(38, 10)
SURE_BELOW = Decimal("0.000001")


def count_pause_days(pauses: pl.LazyFrame, days: pl.LazyFrame) -> pl.LazyFrame:
    """Return the pauses with the counts of days that `probability` is computed from.

    Args:
        pauses: `customer_number`, `account_id`, and the days with rows before and after: `previous_day` and `day`.
        days: all days with rows of the accounts: `customer_number`, `account_id`, `day`.
    """
    first, last = pl.col("previous_day").cast(pl.Date), pl.col("day").cast(pl.Date)
    silent = (last - first).dt.total_days() - 1
    working = _working_days(first + pl.duration(days=1), last - pl.duration(days=1))
    return (
        pauses.join(_days_of_accounts(days), on=BY_ACCOUNT, how="left", validate="m:1")
        .with_columns(silentWorkingDays=working, silentWeekendDays=silent - working)
        .with_columns(
            otherWorkingDays=pl.col("workingDays") - pl.col("silentWorkingDays"),
            otherWeekendDays=pl.col("weekendDays") - pl.col("silentWeekendDays"),
        )
    )


def _days_of_accounts(days: pl.LazyFrame) -> pl.LazyFrame:
    """Return each account's working and weekend days between its first and last row, and how many had rows."""
    day = pl.col("day").cast(pl.Date)
    is_working = day.dt.weekday() <= 5
    spanned, working = (pl.col("last") - pl.col("first")).dt.total_days() + 1, pl.col("workingDays")
    return (
        days.group_by(BY_ACCOUNT)
        .agg(
            activeWorkingDays=is_working.sum().cast(pl.Int64),
            activeWeekendDays=(~is_working).sum().cast(pl.Int64),
            first=day.min(),
            last=day.max(),
        )
        .with_columns(workingDays=_working_days(pl.col("first"), pl.col("last")))
        .with_columns(weekendDays=spanned - working)
    )


def _working_days(first: pl.Expr, last: pl.Expr) -> pl.Expr:
    """Return the number of Mondays to Fridays between two dates, both included."""
    return pl.business_day_count(first, last + pl.duration(days=1)).cast(pl.Int64)


def probability() -> pl.Expr:
    """Return the probability of `silentWorkingDays` and `silentWeekendDays` in a row, from counts of other days."""
    working = _share_of_silent_days(pl.col("activeWorkingDays"), pl.col("otherWorkingDays"))
    weekend = _share_of_silent_days(pl.col("activeWeekendDays"), pl.col("otherWeekendDays"))
    both = working.log() * pl.col("silentWorkingDays") + weekend.log() * pl.col("silentWeekendDays")
    return both.exp().round(10).cast(PROBABILITY)


def _share_of_silent_days(active: pl.Expr, days: pl.Expr) -> pl.Expr:
    return 1 - (active + 1) / (days + 2)


def is_improbable() -> pl.Expr:
    """Return whether a silence is too improbable to be chance, from the same counts."""
    return probability() < pl.lit(SURE_BELOW, PROBABILITY)
