"""One-to-one pairing in time: what comes back meets what went out before it, each at most once.

Two orders are known. **Latest first** is a stack: a refund meets the latest purchase that is still free, and if that
one is too old, so are all others. **Oldest first** is a queue: the first that waits is the first that is served. Both
are found by counting how many are open, never by joining equal with equal, so a million equal amounts cost a sort.
"""

from collections.abc import Sequence

import polars as pl

PAIRS = pl.Schema({"opened": pl.UInt32(), "closed": pl.UInt32()})

_OPEN = pl.col("opens")
_STEP = pl.when(_OPEN).then(1).otherwise(-1)


def pair_latest_first(events: pl.DataFrame, by: Sequence[str], order: Sequence[str]) -> pl.DataFrame:
    """Each closing event with the latest one before it that is still open: PAIRS.

    Args:
        events: `row` (UInt32), `opens` (Boolean; the others close), the columns `by` and those of `order`.
        by: columns that must be equal on both sides; null is a value like any other.
        order: columns that sort the events of a key totally.

    The events of a key are read as brackets. What opens at a depth is closed by the next that comes back to it.
    """
    return (
        events.pipe(_count_open, by, order)
        .filter(_OPEN | (pl.col("waiting") > 0))
        .with_columns(depth=pl.col("waiting") + _OPEN.cast(pl.Int64))
        .with_columns(opened=pl.col("row").shift(1).over(*by, "depth", order_by=order))
        .filter(~_OPEN)
        .select("opened", closed="row")
    )


def pair_oldest_first(events: pl.DataFrame, by: Sequence[str], order: Sequence[str]) -> pl.DataFrame:
    """Each closing event with the one that has been open longest: PAIRS. Arguments as `latest_first`.

    In a queue the nth to be served is the nth that came.
    """
    counted = events.pipe(_count_open, by, order).with_columns(nth=pl.int_range(pl.len()).over(*by, "opens"))
    served = counted.filter(~_OPEN, pl.col("waiting") > 0).with_columns(nth=pl.int_range(pl.len()).over(*by))
    waiting = counted.filter(_OPEN).select(*by, "nth", opened="row")
    return served.join(waiting, on=[*by, "nth"], nulls_equal=True, validate="1:1").select("opened", closed="row")


def _count_open(events: pl.DataFrame, by: Sequence[str], order: Sequence[str]) -> pl.DataFrame:
    """Events in order, with how many of their key were open before each: those that close nothing don't count.

    Keys in which nothing opens or nothing closes are left out: usually nearly all.
    """
    sides = [events.filter(side).select(by).unique() for side in (_OPEN, ~_OPEN)]
    both = sides[0].join(sides[1], on=by, how="semi", nulls_equal=True)
    return (
        events.join(both, on=by, how="semi", nulls_equal=True)
        .sort(*by, *order)
        .with_columns(running=_STEP.cast(pl.Int64).cum_sum().over(by))
        .with_columns(lowest=pl.min_horizontal(pl.col("running").cum_min().over(by), 0))
        .with_columns(waiting=(pl.col("running") - pl.col("lowest")).shift(1, fill_value=0).over(by))
    )
