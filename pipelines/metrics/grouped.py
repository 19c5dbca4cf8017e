"""Aggregates that no running total gives: the largest row, the middle one, the last, how many different ones."""

from collections.abc import Sequence

import polars as pl

from pipelines.metrics.definition import Days, Groups, Key, Transactions, Where, Window
from pipelines.metrics.outcome import NOT_APPLICABLE, caused, fractions, stacked
from pipelines.metrics.rows import KEYS, sided
from pipelines.metrics.running import WIDE, Running

_CENTS = {"median": 200, "min": 100, "max": 100}  # of what the figure is told in, to one AUD
_COUNTS = frozenset({"distinct", "count", "most_at_once"})  # of nothing there are none


def rows_of(definition: Transactions | Groups) -> tuple[Where, Window]:
    """The filter, with its direction stated, and the window."""
    measure = definition.measure if isinstance(definition, Transactions) else "amount"
    return sided(definition.where, measure), definition.window


def outcomes(definitions: Sequence[Transactions | Groups], running: Running) -> pl.LazyFrame:
    """FRACTION: of all customers for the first metric, then for the second …"""
    rows = stacked(
        {
            "count": [definition.aggregate in _COUNTS for definition in definitions],
            "bottom": [_CENTS.get(definition.aggregate, 1) for definition in definitions],
        },
        running.customers,
    ).with_columns(found=_found(definitions, running))
    top = pl.when("count").then(pl.col("found").fill_null(0)).otherwise("found")
    return fractions(rows, top, pl.col("bottom"), caused(NOT_APPLICABLE, top.is_null()))


def largest_sums(definitions: Sequence[Transactions], running: Running) -> pl.Series:
    """The largest sum that any of the key's values has, in cents with their sign; null where no row has the key."""
    return _placed([_largest_sum(definition, running) for definition in definitions], running.customers)


def _found(definitions: Sequence[Transactions | Groups], running: Running) -> pl.Series:
    """What one look at each customer's rows gives; only runs that overlap need more."""
    alone = [each for each in definitions if each.aggregate == "most_at_once"]
    parts = {str(nth): _aggregate(each, running) for nth, each in enumerate(definitions) if each not in alone}
    by_customer = running.marked.group_by("customer", maintain_order=True)
    found = by_customer.agg(part.cast(WIDE).alias(name) for name, part in parts.items())
    overlaps = iter([_most_at_once(each, running) for each in alone])
    return pl.concat(
        found[str(nth)] if str(nth) in parts else _placed([next(overlaps)], running.customers)
        for nth in range(len(definitions))
    )


def _placed(found: Sequence[pl.LazyFrame], customers: int) -> pl.Series:
    """Frames of `customer` and `found` → what is found of all customers for the first, then for the second …"""
    none = pl.Series([None], dtype=WIDE).new_from_index(0, customers)
    collected = pl.collect_all(
        [frame.select("customer", pl.col("found").cast(WIDE)) for frame in found], engine="in-memory"
    )
    return pl.concat(none.clone().scatter(frame["customer"], frame["found"]) for frame in collected)


def _met(definition: Transactions | Groups, running: Running) -> pl.Expr:
    where, window = rows_of(definition)
    return pl.col(running.mark(where)) & pl.col(running.inside(window))


def _aggregate(definition: Transactions | Groups, running: Running) -> pl.Expr:
    """Null where no row is met, but for counts."""
    met = _met(definition, running)
    if isinstance(definition, Groups):
        return KEYS[_key(definition)].filter(met).drop_nulls().n_unique()
    cents = _cents(definition)
    match definition.aggregate:
        case "distinct":
            assert definition.by is not None
            return KEYS[definition.by].filter(met).drop_nulls().n_unique()
        case "days_since":
            offset = definition.window.offset if isinstance(definition.window, Days) else 0
            return pl.col("age").filter(met).min() - offset
        case "median":
            ordered = cents.filter(met).cast(WIDE).sort()
            lower = (met.sum().cast(pl.Int64) - 1).clip(lower_bound=0) // 2
            return ordered.get(lower, null_on_oob=True) + ordered.get(met.sum() // 2, null_on_oob=True)
        case "min":
            return cents.filter(met).min()
        case _:
            return cents.filter(met).max()


def _cents(definition: Transactions) -> pl.Expr:
    """What a row counts, as `rows.counted`."""
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
    rows = running.marked.lazy().filter(_met(definition, running))
    sums = rows.select("customer", key=KEYS[definition.by], cents=_cents(definition)).drop_nulls("key")
    by_key = sums.group_by("customer", "key").agg(pl.col("cents").sum())
    return by_key.group_by("customer").agg(found=pl.col("cents").max())


def _most_at_once(definition: Groups | Transactions, running: Running) -> pl.LazyFrame:
    """Each runs from its first to its last row, both days counted; the most there are is reached where one begins."""
    assert isinstance(definition, Groups)
    day = pl.col("date")
    rows = (
        running.marked.lazy().filter(_met(definition, running)).select("customer", "date", key=KEYS[_key(definition)])
    )
    runs = rows.drop_nulls("key").group_by("customer", "key").agg(start=day.min(), end=day.max() + pl.duration(days=1))
    begun = runs.select("customer", day="start", change=pl.lit(1, pl.Int64))
    over = runs.select("customer", day="end", change=pl.lit(-1, pl.Int64))
    changes = pl.concat([begun, over]).group_by("customer", "day").agg(pl.col("change").sum())
    at_once = changes.sort("customer", "day").with_columns(pl.col("change").cum_sum().over("customer"))
    return at_once.group_by("customer").agg(found=pl.col("change").max())
