"""Aggregates that running totals can't give: largest, median and last row, number of distinct keys."""

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

from pipelines.metrics.definition import Days, Groups, Key, Transactions, Where, Window
from pipelines.metrics.outcome import NOT_APPLICABLE, cause_where, fractions, rows_at, stack_parameters
from pipelines.metrics.rows import KEYS, with_direction
from pipelines.metrics.running import WIDE, Layout, Running

_CENTS = {"median": 200, "min": 100, "max": 100}  # divides cents into AUD; the median comes as a sum of two
_COUNTS = frozenset({"distinct", "count", "most_at_once"})  # 0 without rows, where others have no value


def filter_and_window(definition: Transactions | Groups) -> tuple[Where, Window]:
    """Return the filter, with its direction stated, and the window."""
    measure = definition.measure if isinstance(definition, Transactions) else "amount"
    return with_direction(definition.where, measure), definition.window


def outcomes(definitions: Sequence[Transactions | Groups], layout: Layout) -> Callable[[Running], pl.LazyFrame]:
    """Return a function from rows to FRACTION: of all customers for the first metric, then for the second …"""
    parameters = pl.DataFrame(
        {
            "count": [definition.aggregate in _COUNTS for definition in definitions],
            "bottom": [_CENTS.get(definition.aggregate, 1) for definition in definitions],
        }
    )
    top = pl.when("count").then(pl.col("value").fill_null(0)).otherwise("value")
    cause, values = cause_where(NOT_APPLICABLE, top.is_null()), _values(definitions, layout)
    return lambda running: fractions(
        stack_parameters(parameters, running.customers).with_columns(value=values(running)),
        top,
        pl.col("bottom"),
        cause,
    )


def largest_sums(definitions: Sequence[Transactions], layout: Layout) -> Callable[[Running], pl.Series]:
    """Return a function from rows to the largest sum of any value of the key, in signed cents; null without the key."""
    return _stack([_largest_sum(definition, layout) for definition in definitions])


def _values(definitions: Sequence[Transactions | Groups], layout: Layout) -> Callable[[Running], pl.Series]:
    """Aggregate all definitions in one pass over the customers' rows; only `most_at_once` needs a pass of its own."""
    alone = [nth for nth, definition in enumerate(definitions) if definition.aggregate == "most_at_once"]
    together = [nth for nth in range(len(definitions)) if nth not in alone]
    parts = [_aggregate(definitions[nth], layout).cast(WIDE).alias(str(nth)) for nth in together]
    overlaps = _stack([_most_at_once(definitions[nth], layout) for nth in alone])
    in_order = np.argsort([*together, *alone])

    def values(running: Running) -> pl.Series:
        by_customer = running.marked.group_by("customer", maintain_order=True)
        aggregated = by_customer.agg(parts).drop("customer").get_columns()
        return pl.concat([*aggregated, overlaps(running)])[rows_at(in_order, running.customers)]

    return values


def _stack(parts: Sequence[Callable[[pl.LazyFrame], pl.LazyFrame]]) -> Callable[[Running], pl.Series]:
    """Stack frames of `customer` and `value`: all customers for the first, then for the second …"""

    def stack(running: Running) -> pl.Series:
        none = pl.Series([None], dtype=WIDE).new_from_index(0, running.customers)
        frames = pl.collect_all([part(running.marked.lazy()) for part in parts], engine="in-memory")
        filled = (none.clone().scatter(frame["customer"], frame["value"].cast(WIDE)) for frame in frames)
        return pl.concat([none.clear(), *filled])

    return stack


def _is_met(definition: Transactions | Groups, layout: Layout) -> pl.Expr:
    where, window = filter_and_window(definition)
    return pl.col(layout.mark(where)) & pl.col(layout.column_of_window(window))


def _aggregate(definition: Transactions | Groups, layout: Layout) -> pl.Expr:
    """Return the aggregate of a customer's rows: null where no row meets the filter, except for counts."""
    is_met = _is_met(definition, layout)
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
            return 0 - pl.col("cents")  # Polars can't negate Int128
        case "size":
            return pl.col("size")
        case _:
            return pl.col("cents")


def _key(definition: Groups) -> Key:
    return "facility" if definition.source == "facilities" else "series"


def _largest_sum(definition: Transactions, layout: Layout) -> Callable[[pl.LazyFrame], pl.LazyFrame]:
    assert definition.by is not None
    is_met, key, cents = _is_met(definition, layout), KEYS[definition.by], _cents(definition)
    return lambda marked: (
        marked.filter(is_met)
        .select("customer", key=key, cents=cents)
        .drop_nulls("key")
        .group_by("customer", "key")
        .agg(pl.col("cents").sum())
        .group_by("customer")
        .agg(value=pl.col("cents").max())
    )


def _most_at_once(definition: Groups | Transactions, layout: Layout) -> Callable[[pl.LazyFrame], pl.LazyFrame]:
    assert isinstance(definition, Groups)
    is_met, key = _is_met(definition, layout), KEYS[_key(definition)]
    return lambda marked: _count_at_once(marked.filter(is_met).select("customer", "date", key=key).drop_nulls("key"))


def _count_at_once(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Return the largest number of facilities or series (`key`) that ran at once.

    Each runs from its first to its last row, both days counted. The maximum is reached on a day when one begins.
    """
    day = pl.col("date")
    runs = rows.group_by("customer", "key").agg(start=day.min(), end=day.max() + pl.duration(days=1))
    begun = runs.select("customer", day="start", change=pl.lit(1, pl.Int64))
    ended = runs.select("customer", day="end", change=pl.lit(-1, pl.Int64))
    changes = pl.concat([begun, ended]).group_by("customer", "day").agg(pl.col("change").sum())
    at_once = changes.sort("customer", "day").with_columns(pl.col("change").cum_sum().over("customer"))
    return at_once.group_by("customer").agg(value=pl.col("change").max())
