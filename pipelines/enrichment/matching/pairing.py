"""One-to-one pairing in time: each closing event takes one earlier opening event, each at most once.

There are two orders. **Latest first** is a stack: a refund takes the latest purchase that is still free, and if that
one is too old, so are all others. **Oldest first** is a queue: first come, first served. Both count how many events
are open instead of joining equal rows with each other, so a million equal amounts cost no more than a sort.
"""

from collections.abc import Sequence

import polars as pl

PAIRS = pl.Schema({"opened": pl.UInt32(), "closed": pl.UInt32()})
NO_PAIRS = PAIRS.to_frame()

_OPEN = pl.col("opens")
_STEP = pl.when(_OPEN).then(1).otherwise(-1)


def pair_latest_first(events: pl.DataFrame, keys: Sequence[str], order: Sequence[str]) -> pl.DataFrame:
    """Pair each closing event with the latest earlier one that is still open (PAIRS).

    The events with equal keys are read as brackets: what opens at a depth is closed by the next event that returns to
    it.

    Args:
        events: `row` (UInt32), `opens` (Boolean; false closes), the columns `keys` and those of `order`.
        keys: columns that must be equal on both sides; null is a value like any other.
        order: columns that give the events with equal keys a total order.
    """
    candidates = _select_two_sided(events, keys)
    if candidates.is_empty():
        return NO_PAIRS
    return (
        candidates.pipe(_count_open, keys, order)
        .filter(_OPEN | (pl.col("waiting") > 0))
        .with_columns(depth=pl.col("waiting") + _OPEN.cast(pl.Int64))
        .with_columns(opened=pl.col("row").shift(1).over(*keys, "depth", order_by=order))
        .filter(~_OPEN)
        .select("opened", closed="row")
    )


def pair_oldest_first(events: pl.DataFrame, keys: Sequence[str], order: Sequence[str]) -> pl.DataFrame:
    """Pair each closing event with the one that has been open longest (PAIRS). Arguments as in `pair_latest_first`.

    In a queue, the n-th that is served is the n-th that came.
    """
    candidates = _select_two_sided(events, keys)
    if candidates.is_empty():
        return NO_PAIRS
    counted = candidates.pipe(_count_open, keys, order).with_columns(nth=pl.int_range(pl.len()).over(*keys, "opens"))
    served = counted.filter(~_OPEN, pl.col("waiting") > 0).with_columns(nth=pl.int_range(pl.len()).over(*keys))
    waiting = counted.filter(_OPEN).select(*keys, "nth", opened="row")
    return served.join(waiting, on=[*keys, "nth"], nulls_equal=True, validate="1:1").select("opened", closed="row")


def _select_two_sided(events: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Select the events of keys with an opening and a closing event; usually these are few."""
    sides = events.group_by(keys).agg(opened=_OPEN.any(), closed=(~_OPEN).any())
    return events.join(sides.filter("opened", "closed"), on=keys, how="semi", nulls_equal=True)


def _count_open(events: pl.DataFrame, keys: Sequence[str], order: Sequence[str]) -> pl.DataFrame:
    """Sort events and add how many of their key were open before each (`waiting`).

    Closing events that find nothing open don't count.
    """
    return (
        events.sort(*keys, *order)
        .with_columns(running=_STEP.cast(pl.Int64).cum_sum().over(keys))
        .with_columns(lowest=pl.min_horizontal(pl.col("running").cum_min().over(keys), 0))
        .with_columns(waiting=(pl.col("running") - pl.col("lowest")).shift(1, fill_value=0).over(keys))
    )
