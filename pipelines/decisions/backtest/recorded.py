"""Recorded decisions as one side of a backtest, and their inputs for the other side."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

import polars as pl

from pipelines.decisions import readings
from pipelines.decisions.backtest.sides import DECISIONS, LIMITS, UNDECIDABLE, Side
from pipelines.decisions.decision import Recorded
from pipelines.decisions.plan import Plan
from pipelines.decisions.policy import INDETERMINATE, Kind
from pipelines.decisions.readings import NOT_SET, Attributes, Reading, Value, as_reading, columns_of, is_of_kind
from pipelines.figures.periods import BY_CUSTOMER

Records = Mapping[int, Recorded]  # by customer number
Data = Mapping[str, Any]


def side(records: Records) -> Side:
    """Return recorded decisions as a side. It has no tallies, because different versions decided on the customers."""
    decisions = [_decision(number, each.content) for number, each in records.items()]
    limits = [limit for number, each in records.items() for limit in _limits(number, each.content)]
    return Side(
        pl.DataFrame(decisions, schema=DECISIONS, orient="row"), pl.DataFrame(limits, schema=LIMITS, orient="row"), {}
    )


def inputs_of(records: Records) -> dict[int, Mapping[str, Value]]:
    return {number: each.content["case"]["inputs"] for number, each in records.items()}


def read_leaves(
    plan: Plan, metrics: pl.DataFrame, attributes: Attributes, inputs: Mapping[int, Mapping[str, Value]], now: datetime
) -> pl.DataFrame:
    """Read the leaves as `readings.read_leaves` does, but with each customer's own inputs.

    An input that a customer doesn't have, or has with another kind, is unavailable.
    """
    leaves = [node for node in plan.nodes.values() if node.operator == "input"]
    blanks: dict[str, Value] = {node.label: _BLANKS[node.kind] for node in leaves}
    frame = readings.read_leaves(plan, metrics, attributes, blanks, now)
    customers = frame[BY_CUSTOMER].to_list()
    return frame.with_columns(
        column
        for node in leaves
        for column in columns_of(node, [_parse_reading(inputs[each].get(node.label), node.kind) for each in customers])
    )


_BLANKS: Mapping[Kind, Value] = {"decimal": Decimal(0), "boolean": False, "string": ""}  # placeholders, all replaced


def _parse_reading(value: Value | None, kind: Kind) -> Reading:
    return (None, NOT_SET) if value is None or not is_of_kind(value, kind) else as_reading(value)


def _decision(number: int, content: Data) -> tuple[Any, ...]:
    outcome = content["answer"]["verdict"]["outcome"]
    steps = content["trace"]["steps"]
    deciding = next((step for step in steps if step["matched"] is not False), None)
    results = [_code_with_mark(rule) for step in steps for rule in step["rules"] if rule["counted"] is not False]
    decisive = [
        _code_with_mark(rule)
        for rule in (deciding["rules"] if deciding else ())
        if (rule["counted"] is None if outcome == INDETERMINATE else rule["counted"])
    ]
    return number, outcome, deciding and deciding["name"], decisive, results


def _code_with_mark(rule: Data) -> str:
    code: str = rule["code"]
    return code + UNDECIDABLE if rule["counted"] is None else code


def _limits(number: int, content: Data) -> Iterator[tuple[Any, ...]]:
    """Yield the limits with the products' slugs, which are in the trace; the answer's limits are in its order."""
    priced = zip(content["trace"]["limits"], content["answer"]["computedLimits"], strict=True)
    return ((number, traced["product"], limit.get("amount")) for traced, limit in priced)
