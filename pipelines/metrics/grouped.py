"""Aggregates that running totals can't give: largest, median and last row, number of distinct keys."""

from collections.abc import Sequence

import polars as pl

from pipelines.metrics.definition import Days, Groups, Key, Transactions, Where, Window
from pipelines.metrics.outcome import NOT_APPLICABLE, caused, fractions, stacked
from pipelines.metrics.rows import KEYS, with_direction
from pipelines.metrics.running import WIDE, Running

_CENTS = {"median": 200, "min": 100, "max": 100}  # divides cents into AUD; the median comes as a sum of two
_COUNTS = frozenset({"distinct", "count", "most_at_once"})  # 0 without rows, where others have no value


def filter_and_window(definition: Transactions | Groups) -> tuple[Where, Window]:
    """Return the filter, with its direction stated, and the window."""
    measure = definition.measure if isinstance(definition, Transactions) else "amount"
    return with_direction(definition.where, measure), definition.window


def outcomes(definitions: Sequence[Transactions | Groups], running: Running) -> pl.LazyFrame:
    """Return FRACTION of all customers for the first metric, then for the second …"""
    rows = stacked(
        {
            "count": [definition.aggregate in _COUNTS for definition in definitions],
            "bottom": [_CENTS.get(definition.aggregate, 1) for definition in definitions],
        },
        running.customers,
    ).with_columns(value=_values(definitions, running))
    top = pl.when("count").then(pl.col("value").fill_null(0)).otherwise("value")
    return fractions(rows, top, pl.col("bottom"), caused(NOT_APPLICABLE, top.is_null()))


def largest_sums(definitions: Sequence[Transactions], running: Running) -> pl.Series:
    """Return the largest sum of any value of the key, in cents with its sign; null where no row has the key."""
    return _stack([_largest_sum(definition, running) for definition in definitions], running.customers)


def _values(definitions: Sequence[Transactions | Groups], running: Running) -> pl.Series:
    """Aggregate all definitions in one pass over the customers' rows; only `most_at_once` needs a pass of its own."""
    alone = [definition for definition in definitions if definition.aggregate == "most_at_once"]
    parts = {str(nth): _aggregate(each, running) for nth, each in enumerate(definitions) if each not in alone}
    by_customer = running.marked.group_by("customer", maintain_order=True)
    aggregated = by_customer.agg(part.cast(WIDE).alias(name) for name, part in parts.items())
    overlaps = iter([_most_at_once(definition, running) for definition in alone])
    return pl.concat(
        aggregated[str(nth)] if str(nth) in parts else _stack([next(overlaps)], running.customers)
        for nth in range(len(definitions))
    )


def _stack(frames: Sequence[pl.LazyFrame], customers: int) -> pl.Series:
    """Stack frames of `customer` and `value`: all customers for the first, then for the second …"""
    none = pl.Series([None], dtype=WIDE).new_from_index(0, customers)
    collected = pl.collect_all(
        [frame.select("customer", pl.col("value").cast(WIDE)) for frame in frames], engine="in-memory"
    )
    return pl.concat(none.clone().scatter(frame["customer"], frame["value"]) for frame in collected)


def _is_met(definition: Transactions | Groups, running: Running) -> pl.Expr:
    where, window = filter_and_window(definition)
    return pl.col(running.mark(where)) & pl.col(running.inside(window))


def _aggregate(definition: Transactions | Groups, running: Running) -> pl.Expr:
    """Return the aggregate of a customer's rows: null where no row meets the filter, except for counts."""
    is_met = _is_met(definition, running)
    if isinstance(definition, Groups):
        return KEYS[_key(definition)].filter(is_met).drop_nulls().n_unique()
    cents = _cents(definition)
    match definition.aggregate:
        case "distinct":
            assert definition.by is not None
            return KEYS[definition.by].filter(is_met).drop_nulls().n_unique()
        case "days_since":
            offset = definition.window.offset if isinstance(definition.window, Days) else 0
            return pl.col("age").filter(is_met).min() - offset
        case "median":
            ordered = cents.filter(is_met).cast(WIDE).sort()
            lower = (is_met.sum().cast(pl.Int64) - 1).clip(lower_bound=0) // 2
            return ordered.get(lower, null_on_oob=True) + ordered.get(is_met.sum() // 2, null_on_oob=True)
        case "min":
            return cents.filter(is_met).min()
        case _:
            return cents.filter(is_met).max()


def _cents(definition: Transactions) -> pl.Expr:
    """Return what a row counts, in cents, like `rows.row_value`."""
    match definition.measure:
        case "money_out":
            return 0 - pl.col("cents")  # Polars negates no Int128
        case "size":
            return pl.col("size")
        case _:
            return pl.col("cents")


def _key(definition: Groups) -> Key:
    return "facility" if definition.source == "facilities" else "series"


def _largest_sum(definition: Transactions, running: Running) -> pl.LazyFrame:
    assert definition.by is not None
    rows = running.marked.lazy().filter(_is_met(definition, running))
    sums = rows.select("customer", key=KEYS[definition.by], cents=_cents(definition)).drop_nulls("key")
    by_key = sums.group_by("customer", "key").agg(pl.col("cents").sum())
    return by_key.group_by("customer").agg(value=pl.col("cents").max())


def _most_at_once(definition: Groups | Transactions, running: Running) -> pl.LazyFrame:
    """Return how many facilities or series ran at once at most.

    Each runs from its first to its last row, both days counted. The maximum is reached on a day when one begins.
    """
    assert isinstance(definition, Groups)
    day = pl.col("date")
    rows = (
        running.marked.lazy()
        .filter(_is_met(definition, running))
        .select("customer", "date", key=KEYS[_key(definition)])
    )
    runs = rows.drop_nulls("key").group_by("customer", "key").agg(start=day.min(), end=day.max() + pl.duration(days=1))
    begun = runs.select("customer", day="start", change=pl.lit(1, pl.Int64))
    over = runs.select("customer", day="end", change=pl.lit(-1, pl.Int64))
    changes = pl.concat([begun, over]).group_by("customer", "day").agg(pl.col("change").sum())
    at_once = changes.sort("customer", "day").with_columns(pl.col("change").cum_sum().over("customer"))
    return at_once.group_by("customer").agg(value=pl.col("change").max())
