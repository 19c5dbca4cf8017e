"""Compute all metrics of all customers in one pass.

Values are stacked: all customers for the first metric, then for the second … Metrics of one kind are computed together,
so one customer costs little, and ten thousand cost little more. Sources first return fractions of whole numbers
(`outcome.FRACTION`); arithmetic over metrics follows, level by level.
"""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

import polars as pl

from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.metrics.arithmetic import calculate
from pipelines.metrics.definition import DECIMAL, Arithmetic, Metric, Metrics
from pipelines.metrics.outcome import (
    DIVISION_BY_ZERO,
    INSUFFICIENT_HISTORY,
    NO_TRANSACTIONS,
    NOT_APPLICABLE,
    OVERFLOW,
    STALE,
    VALUE,
    caused,
)
from pipelines.metrics.registry import METRICS, in_order
from pipelines.metrics.sources import outcomes
from pipelines.metrics.windows import periods

READINGS = pl.Schema({BY_CUSTOMER: pl.Int64(), "metric": pl.String(), "value": VALUE, "cause": pl.String()})
"""One row per metric (its slug) and customer; `value` in the metric's unit, or null with the `cause` why."""


def cause_of(slug: str) -> str:
    """Return the name of the column that says why a metric is unavailable. Slugs have no spaces, so it is unique."""
    return f"cause of {slug}"


def values(facts: Facts, metrics: Metrics = METRICS) -> pl.DataFrame:
    """Compute metrics for all customers of the facts.

    Args:
        metrics: with all that they are made of (`registry.with_inputs`).

    Returns:
        One row per customer, sorted: `customer_number`, and for each metric its value in the column of its slug (VALUE;
        null: unavailable) and the cause in the column `cause_of(slug)` (null: available).
    """
    customers = periods(facts)
    figures = _figures(facts, customers, list(in_order(metrics)))
    columns = [
        column for slug in metrics for column in (figures[slug][0].alias(slug), figures[slug][1].alias(cause_of(slug)))
    ]
    known = pl.DataFrame([customers[BY_CUSTOMER], *columns])
    if known.height == facts.customers.height:
        return known
    silent = facts.customers.join(known, on=BY_CUSTOMER, how="anti")
    without = silent.with_columns(pl.lit(NO_TRANSACTIONS).alias(cause_of(slug)) for slug in metrics)
    return pl.concat([known, without], how="diagonal").sort(BY_CUSTOMER)


def readings(facts: Facts, metrics: Metrics = METRICS) -> pl.DataFrame:
    """Return `values` as READINGS."""
    wide = facts.cached(values) if metrics is METRICS else values(facts, metrics)
    causes = wide.unpivot([cause_of(slug) for slug in metrics], value_name="cause")["cause"]
    long = wide.unpivot(list(metrics), index=BY_CUSTOMER, variable_name="metric", value_name="value")
    return long.with_columns(value=pl.col("value").cast(VALUE), cause=causes.cast(pl.String))


Figures = tuple[pl.Series, pl.Series]  # values and causes, in the order of the customers with rows


def _figures(facts: Facts, customers: pl.DataFrame, ordered: Sequence[Metric]) -> Mapping[str, Figures]:
    figures: dict[str, Figures] = {}
    unmet = _unmet(ordered, customers)
    from_sources, fraction = outcomes(facts, customers, ordered)
    figures |= _unstack(from_sources, unmet, _divide(fraction))
    for alike in _group_alike([metric for metric in ordered if isinstance(metric.definition, Arithmetic)]):
        figures |= _unstack(alike, unmet, _calculate(alike, figures, customers.height))
    return figures


def _unmet(metrics: Sequence[Metric], customers: pl.DataFrame) -> Mapping[str, pl.Series]:
    """Return for each metric the cause why customers don't meet what it needs, or null where they do.

    It comes before any cause of the source. Many metrics need the same, so each need is checked once.
    """
    needs = {metric.slug: (metric.history_days, metric.history_months, metric.fresh_days) for metric in metrics}
    names = {need: f"need_{nth}" for nth, need in enumerate(dict.fromkeys(needs.values()))}
    causes = customers.select(_cause(*need).alias(name) for need, name in names.items())
    return {slug: causes[names[need]] for slug, need in needs.items()}


def _cause(history_days: int, history_months: int, fresh_days: int | None) -> pl.Expr:
    stale = pl.lit(value=False) if fresh_days is None else pl.col("days_behind") > fresh_days
    short = (pl.col("days") < history_days) | (pl.col("complete_months") < history_months)
    return pl.when(stale).then(pl.lit(STALE)).when(short).then(pl.lit(INSUFFICIENT_HISTORY))


def _unstack(metrics: Sequence[Metric], unmet: Mapping[str, pl.Series], outcomes: pl.LazyFrame) -> dict[str, Figures]:
    """Split stacked rows `value, cause` into each metric's own."""
    if not metrics:
        return {}
    first = pl.concat(unmet[metric.slug] for metric in metrics)
    height = len(unmet[metrics[0].slug])
    figures = outcomes.with_columns(cause=pl.coalesce(first, "cause"))
    value = pl.when(pl.col("cause").is_null()).then("value").alias("value")
    values, causes = figures.select(value, "cause").collect(engine="in-memory")
    return {metric.slug: (_nth(values, nth, height), _nth(causes, nth, height)) for nth, metric in enumerate(metrics)}


def _nth(values: pl.Series, nth: int, customers: int) -> pl.Series:
    return values.slice(nth * customers, customers)


def _divide(fraction: pl.LazyFrame) -> pl.LazyFrame:
    """Return `value`, `cause` of FRACTION. Dividing by zero or less gives no value."""
    top, bottom = pl.col("top"), pl.col("bottom")
    cause = pl.coalesce(
        "cause",
        caused(DIVISION_BY_ZERO, bottom == 0),
        caused(NOT_APPLICABLE, bottom < 0),
        caused(OVERFLOW, top.is_null()),
    )
    value = top.cast(VALUE) / pl.when(bottom > 0).then(bottom).cast(VALUE)
    return fraction.select(value=value, cause=cause)


# Arithmetic over other metrics


def _group_alike(metrics: Sequence[Metric]) -> Iterator[list[Metric]]:
    """Group metrics by level, operation and number of operands; each level needs only the levels before it."""
    own = {metric.slug for metric in metrics}
    depth: dict[str, int] = {}
    groups: dict[tuple[int, str, int], list[Metric]] = {}
    for metric in metrics:
        definition = metric.definition
        assert isinstance(definition, Arithmetic)
        depth[metric.slug] = 1 + max((depth[slug] for slug in metric.inputs if slug in own), default=0)
        alike = depth[metric.slug], definition.operation, len(definition.operands)
        groups.setdefault(alike, []).append(metric)
    yield from (groups[alike] for alike in sorted(groups))


def _calculate(metrics: Sequence[Metric], figures: Mapping[str, Figures], customers: int) -> pl.LazyFrame:
    """Return `value`, `cause` of metrics with the same operation and number of operands."""
    definitions = [metric.definition for metric in metrics if isinstance(metric.definition, Arithmetic)]
    values, causes = list[pl.Series](), list[pl.Series]()
    for operands in zip(*(definition.operands for definition in definitions), strict=True):
        outcomes = [_operand(operand, figures, customers) for operand in operands]
        values.append(pl.concat(value for value, _ in outcomes))
        causes.append(pl.concat(cause for _, cause in outcomes))
    return calculate(definitions[0].operation, values, causes)


def _operand(text: str, figures: Mapping[str, Figures], customers: int) -> Figures:
    if not DECIMAL.fullmatch(text):
        return figures[text]
    value, cause = pl.Series([Decimal(text)], dtype=VALUE), pl.Series([None], dtype=pl.String)
    return value.new_from_index(0, customers), cause.new_from_index(0, customers)
