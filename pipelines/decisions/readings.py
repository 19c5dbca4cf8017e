"""Read each leaf of a plan (metric, attribute or input) for many customers: its value, or why it has none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import Literal

import polars as pl

from pipelines.decisions.nodes import Graph, Node
from pipelines.decisions.numbers import NUMBER, round_column, round_value
from pipelines.decisions.policy import Kind
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.metrics import cause_of
from pipelines.metrics.outcome import CAUSES as OF_METRICS
from pipelines.metrics.outcome import OVERFLOW
from pipelines.vocabulary.plans import AS_WRITTEN

Value = str | Decimal | bool
Reading = tuple[Value | None, str | None]  # a value, or a cause (a key of CAUSES)

NOT_SET = "not_set"
EXPIRED = "expired"
WRONG_KIND = "wrong_kind"
CAUSES: Mapping[str, str] = {
    **OF_METRICS,
    NOT_SET: "it is not set",
    EXPIRED: "it has expired",
    WRONG_KIND: "the stored value is of another kind",
}

MAX_CACHED = 10_000  # nodes whose expressions are cached: building them takes longer than deciding one customer

TYPES: Mapping[Kind, pl.DataType] = {"decimal": NUMBER, "boolean": pl.Boolean(), "string": pl.String()}


@dataclass(frozen=True)
class Attribute:
    """A customer's attribute. `source`: `overridden` if the evaluation request gave the value instead."""

    value: Value | None
    expires_at: datetime | None = None
    source: Literal["stored", "overridden"] = "stored"


NONE = Attribute(None)
Attributes = Mapping[int, Mapping[str, Attribute]]  # by customer number, then by name


def column_of(node: Node) -> str:
    """Return the column of a leaf's readings; their causes are in `cause_of(column)`."""
    return " ".join((node.operator, *node.subject))


def read_leaves(
    graph: Graph, metrics: pl.DataFrame, attributes: Attributes, inputs: Mapping[str, Value], now: datetime
) -> pl.DataFrame:
    """Return `customer_number`, sorted, and for each leaf its value by `column_of` and its cause (null: known).

    Args:
        metrics: `metrics.values` of the metrics that the leaves read, one row per customer.
        inputs: every declared input's value, of its kind; the same for all customers.
        now: the time at which attributes are read; expired ones are unavailable.
    """
    leaves = [node for node in graph.nodes.values() if node.is_leaf]
    of_metrics = [node for node in leaves if node.operator == "metric"]
    customers = metrics[BY_CUSTOMER].to_list()
    of_attributes = [
        each
        for node in leaves
        if node.operator == "attribute"
        for each in _attribute_columns(
            node, [attributes.get(number, {}).get(node.label, NONE) for number in customers], now
        )
    ]
    of_inputs = [
        each for node in leaves if node.operator == "input" for each in _input_columns(node, inputs[node.label])
    ]
    causes = map(_cause_of_metric, of_metrics)
    return (
        metrics.lazy()
        .with_columns(map(_value_of_metric, of_metrics))
        .select(BY_CUSTOMER, *map(column_of, of_metrics), *causes, *of_inputs)
        .with_columns(of_attributes)
        .collect(engine="in-memory", optimizations=AS_WRITTEN)
    )


@lru_cache(MAX_CACHED)
def _value_of_metric(node: Node) -> pl.Expr:
    return round_column(pl.col(node.label)).alias(column_of(node))


@lru_cache(MAX_CACHED)
def _cause_of_metric(node: Node) -> pl.Expr:
    """Return the metric's own cause, or that its value is too large to be one of a policy."""
    column = column_of(node)
    too_large = pl.col(node.label).is_not_null() & pl.col(column).is_null()
    cause = pl.when(too_large).then(pl.lit(OVERFLOW)).otherwise(pl.col(cause_of(node.label)))
    return cause.alias(cause_of(column))


def _input_columns(node: Node, given: Value) -> Sequence[pl.Expr]:
    value, cause = as_reading(given)
    column = column_of(node)
    return pl.lit(value, TYPES[node.kind]).alias(column), pl.lit(cause, pl.String).alias(cause_of(column))


def _attribute_columns(node: Node, stated: Sequence[Attribute], now: datetime) -> Sequence[pl.Series]:
    return columns_of(node, [read_attribute(each, node.kind, now) for each in stated])


def columns_of(node: Node, readings: Sequence[Reading]) -> Sequence[pl.Series]:
    """Return a leaf's readings, one per customer, and their causes."""
    column = column_of(node)
    return (
        pl.Series(column, [value for value, _ in readings], TYPES[node.kind]),
        pl.Series(cause_of(column), [cause for _, cause in readings], pl.String),
    )


def read_attribute(stated: Attribute, kind: Kind, now: datetime) -> Reading:
    """Return the reading of an attribute that is declared to be of this kind."""
    if stated.value is None:
        return None, NOT_SET
    if stated.expires_at is not None and stated.expires_at <= now:
        return None, EXPIRED
    if not is_of_kind(stated.value, kind):
        return None, WRONG_KIND
    return as_reading(stated.value)


def as_reading(value: Value) -> Reading:
    """Return the value as policies read it: numbers are rounded; one that is too large has no value."""
    if not isinstance(value, Decimal):
        return value, None
    number = round_value(value)
    return number, OVERFLOW if number is None else None


def is_of_kind(value: Value, kind: Kind) -> bool:
    if isinstance(value, Decimal) and value.is_nan():
        return False
    return {"boolean": bool, "decimal": Decimal, "string": str}[kind] is type(value)
