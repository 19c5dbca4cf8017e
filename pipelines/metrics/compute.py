"""Compute all metrics of all customers in one pass.

Values are stacked: all customers for the first metric, then for the second … Metrics of one kind are computed together,
so one customer costs little, and ten thousand cost little more. Sources first return fractions of whole numbers
(`outcome.FRACTION`); arithmetic over metrics follows, level by level.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
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
    Places,
    cause_where,
    rows_at,
)
from pipelines.metrics.registry import METRICS, in_order
from pipelines.metrics.sources import Sources
from pipelines.metrics.windows import periods
from pipelines.vocabulary.plans import AS_WRITTEN

READINGS = pl.Schema({BY_CUSTOMER: pl.Int64(), "metric": pl.String(), "value": VALUE, "cause": pl.String()})
"""One row per metric (its slug) and customer; `value` in the metric's unit, or null with the `cause` why."""

_OUTCOME = pl.Schema({"value": VALUE, "cause": pl.String()})
_CACHED_PLANS = 100  # of the metrics of a report, and of policies with metrics of their own; our judgement
Needs: TypeAlias = tuple[int, int, int | None]  # days and months of history, and the greatest age of the last row


def cause_of(slug: str) -> str:
    """Return the name of the column that says why a metric is unavailable. Slugs have no spaces, so it is unique."""
    return f"cause of {slug}"


def values(facts: Facts, metrics: Metrics = METRICS) -> pl.DataFrame:
    """Compute metrics for all customers of the facts.

    Args:
        metrics: with all that they are made of (`registry.select_with_inputs`).

    Returns:
        One row per customer, sorted: `customer_number`, and for each metric its value in the column of its slug (VALUE;
        null: unavailable) and the cause in the column `cause_of(slug)` (null: available).
    """
    known = _plan(tuple(metrics.values()), shares_rows=facts.shares_rows).values(facts, periods(facts))
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


class _Step(NamedTuple):
    """Arithmetic metrics with the same operation and number of operands. Of each metric: where its operands are in the
    stack, and where its own need is among the needs.
    """

    operation: str
    operands: Sequence[Places]
    needs: Places


class _Plan:
    """How to compute a set of metrics for any customers: making it takes longer than using it for one customer.

    Values and causes are stacked: those of constants, of metrics with a source, then of one step after the other.
    """

    def __init__(self, metrics: Sequence[Metric], *, shares_rows: bool) -> None:
        ordered = list(in_order({metric.slug: metric for metric in metrics}))
        steps = list(_group_alike([metric for metric in ordered if isinstance(metric.definition, Arithmetic)]))
        operands = dict.fromkeys(each for alike in steps for metric in alike for each in _operands(metric))
        constants = [each for each in operands if DECIMAL.fullmatch(each)]
        self._sources = Sources(ordered, shares_rows=shares_rows)
        stacked = [*self._sources.metrics, *(metric for alike in steps for metric in alike)]
        places = {name: nth for nth, name in enumerate([*constants, *(metric.slug for metric in stacked)])}
        needs = list(dict.fromkeys(map(_needs, ordered)))
        self._unmet = [_cause(*need).alias(str(nth)) for nth, need in enumerate(needs)]
        self._constants = pl.DataFrame({"value": list(map(Decimal, constants)), "cause": None}, schema=_OUTCOME)
        self._source_needs = _places(needs.index(_needs(metric)) for metric in self._sources.metrics)
        self._steps = [_step(alike, places, needs) for alike in steps]
        self._places = {metric.slug: places[metric.slug] for metric in metrics}

    def values(self, facts: Facts, customers: pl.DataFrame) -> pl.DataFrame:
        """Return `values` of the customers, given their `windows.periods`."""
        height = customers.height
        unmet = pl.concat([pl.Series([], dtype=pl.String), *customers.select(self._unmet).get_columns()])
        values, causes = self._constants[np.repeat(np.arange(self._constants.height), height)].get_columns()
        fractions = self._sources.fractions(facts, customers)
        _extend(values, causes, _divide(fractions, unmet[rows_at(self._source_needs, height)]))
        for step in self._steps:
            operands, needs = [rows_at(places, height) for places in step.operands], rows_at(step.needs, height)
            missing = [unmet[needs], *(causes[rows] for rows in operands)]
            _extend(values, causes, calculate(step.operation, [values[rows] for rows in operands], missing))
        columns = [customers[BY_CUSTOMER]]
        for slug, place in self._places.items():
            columns.append(values.slice(place * height, height).alias(slug))
            columns.append(causes.slice(place * height, height).alias(cause_of(slug)))
        return pl.DataFrame(columns)


# Expressions for the metrics of a set; a policy with metrics of its own adds a set.
_plan = lru_cache(_CACHED_PLANS)(_Plan)


def _places(places: Iterable[int]) -> Places:
    return np.fromiter(places, np.int64)


def _needs(metric: Metric) -> Needs:
    return metric.history_days, metric.history_months, metric.fresh_days


def _cause(history_days: int, history_months: int, fresh_days: int | None) -> pl.Expr:
    """Return which of a metric's needs a customer doesn't meet, as a cause; null if all are met.

    It comes before any cause of the source. Many metrics need the same, so each need is checked once.
    """
    stale = pl.lit(value=False) if fresh_days is None else pl.col("days_behind") > fresh_days
    short = (pl.col("days") < history_days) | (pl.col("complete_months") < history_months)
    return pl.when(stale).then(pl.lit(STALE)).when(short).then(pl.lit(INSUFFICIENT_HISTORY))


def _extend(values: pl.Series, causes: pl.Series, outcomes: pl.DataFrame) -> None:
    value, cause = outcomes.get_columns()
    values.extend(value)
    causes.extend(cause)


def _divide(fractions: pl.LazyFrame, unmet: pl.Series) -> pl.DataFrame:
    """Return `value`, `cause` of FRACTION. Dividing by zero or less gives no value, nor does an unmet need."""
    divided = fractions.with_columns(unmet=unmet).with_columns(_CAUSE).select(_VALUE, "cause")
    return divided.collect(engine="in-memory", optimizations=AS_WRITTEN)


_TOP, _BOTTOM = pl.col("top"), pl.col("bottom")
_CAUSE = pl.coalesce(
    "unmet",
    "cause",
    cause_where(DIVISION_BY_ZERO, _BOTTOM == 0),
    cause_where(NOT_APPLICABLE, _BOTTOM < 0),
    cause_where(OVERFLOW, _TOP.is_null()),
).alias("cause")
_QUOTIENT = _TOP.cast(VALUE) / pl.when(_BOTTOM > 0).then(_BOTTOM).cast(VALUE)
_VALUE = pl.when(pl.col("cause").is_null()).then(_QUOTIENT).alias("value")


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


def _operands(metric: Metric) -> Sequence[str]:
    assert isinstance(metric.definition, Arithmetic)
    return metric.definition.operands


def _step(alike: Sequence[Metric], places: Mapping[str, int], needs: Sequence[Needs]) -> _Step:
    assert isinstance(alike[0].definition, Arithmetic)
    operands = zip(*map(_operands, alike), strict=True)
    return _Step(
        alike[0].definition.operation,
        [_places(places[operand] for operand in nth) for nth in operands],
        _places(needs.index(_needs(metric)) for metric in alike),
    )
