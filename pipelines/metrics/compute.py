"""All metrics of all customers in one pass.

Figures stand one metric below the other, customers in their order: what is alike among metrics is worked out at once
for all of them, so that one customer costs little and ten thousand cost little more. The sources tell fractions of
whole numbers first (`outcome.FRACTION`); arithmetic follows, level by level.
"""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

import polars as pl

from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.metrics.arithmetic import calculated
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
"""One row a metric (its slug) and customer; `value` in the metric's unit, or null and the `cause` of having none."""


def cause_of(slug: str) -> str:
    """The column with the cause why a metric is unavailable. No slug has a space: it is nobody's own name."""
    return f"cause of {slug}"


def values(facts: Facts, metrics: Metrics = METRICS) -> pl.DataFrame:
    """Facts → one row per customer, sorted: `customer_number`, and of each metric its value by its slug (VALUE; null:
    unavailable) and its cause by `cause_of` (null: available).

    Args:
        metrics: with all that they are made of (`registry.with_inputs`).
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
    """Return the same as READINGS."""
    wide = facts.cached(values) if metrics is METRICS else values(facts, metrics)
    causes = wide.unpivot([cause_of(slug) for slug in metrics], value_name="cause")["cause"]
    long = wide.unpivot(list(metrics), index=BY_CUSTOMER, variable_name="metric", value_name="value")
    return long.with_columns(value=pl.col("value").cast(VALUE), cause=causes.cast(pl.String))


Figures = tuple[pl.Series, pl.Series]  # values and causes, in the order of the customers with rows


def _figures(facts: Facts, customers: pl.DataFrame, ordered: Sequence[Metric]) -> Mapping[str, Figures]:
    figures: dict[str, Figures] = {}
    unmet = _unmet(ordered, customers)
    from_sources, fraction = outcomes(facts, customers, ordered)
    figures |= _apart(from_sources, unmet, _divided(fraction))
    for alike in _alike([metric for metric in ordered if isinstance(metric.definition, Arithmetic)]):
        figures |= _apart(alike, unmet, _calculated(alike, figures, customers.height))
    return figures


def _unmet(metrics: Sequence[Metric], customers: pl.DataFrame) -> Mapping[str, pl.Series]:
    """For each metric the cause why customers haven't what it needs, whatever its source says; null where they have.
    Many metrics need the same.
    """
    needs = {metric.slug: (metric.history_days, metric.history_months, metric.fresh_days) for metric in metrics}
    names = {need: f"need_{nth}" for nth, need in enumerate(dict.fromkeys(needs.values()))}
    causes = customers.select(_cause(*need).alias(name) for need, name in names.items())
    return {slug: causes[names[need]] for slug, need in needs.items()}


def _cause(history_days: int, history_months: int, fresh_days: int | None) -> pl.Expr:
    stale = pl.lit(value=False) if fresh_days is None else pl.col("days_behind") > fresh_days
    short = (pl.col("days") < history_days) | (pl.col("complete_months") < history_months)
    return pl.when(stale).then(pl.lit(STALE)).when(short).then(pl.lit(INSUFFICIENT_HISTORY))


def _apart(metrics: Sequence[Metric], unmet: Mapping[str, pl.Series], outcomes: pl.LazyFrame) -> dict[str, Figures]:
    """Each metric's own share of the rows `value, cause`."""
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


def _divided(fraction: pl.LazyFrame) -> pl.LazyFrame:
    """FRACTION → `value`, `cause`. Of what is nothing or less no share can be told."""
    top, bottom = pl.col("top"), pl.col("bottom")
    cause = pl.coalesce(
        "cause",
        caused(DIVISION_BY_ZERO, bottom == 0),
        caused(NOT_APPLICABLE, bottom < 0),
        caused(OVERFLOW, top.is_null()),
    )
    value = top.cast(VALUE) / pl.when(bottom > 0).then(bottom).cast(VALUE)
    return fraction.select(value=value, cause=cause)


# What follows from other metrics


def _alike(metrics: Sequence[Metric]) -> Iterator[list[Metric]]:
    """Those of one operation that only need what came before."""
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


def _calculated(metrics: Sequence[Metric], figures: Mapping[str, Figures], customers: int) -> pl.LazyFrame:
    """`value`, `cause` of metrics of one operation with equally many operands."""
    definitions = [metric.definition for metric in metrics if isinstance(metric.definition, Arithmetic)]
    values, causes = list[pl.Series](), list[pl.Series]()
    for operands in zip(*(definition.operands for definition in definitions), strict=True):
        outcomes = [_operand(operand, figures, customers) for operand in operands]
        values.append(pl.concat(value for value, _ in outcomes))
        causes.append(pl.concat(cause for _, cause in outcomes))
    return calculated(definitions[0].operation, values, causes)


def _operand(text: str, figures: Mapping[str, Figures], customers: int) -> Figures:
    if not DECIMAL.fullmatch(text):
        return figures[text]
    value, cause = pl.Series([Decimal(text)], dtype=VALUE), pl.Series([None], dtype=pl.String)
    return value.new_from_index(0, customers), cause.new_from_index(0, customers)
