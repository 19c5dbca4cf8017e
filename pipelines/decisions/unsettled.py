"""Why a node has no value: what is missing below it, and what would resolve it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pipelines.decisions import readings
from pipelines.decisions.nodes import Node
from pipelines.decisions.plan import Plan, every_metric, metric_of
from pipelines.decisions.policy import Kind, Policy
from pipelines.decisions.readings import column_of
from pipelines.decisions.starter import ATTRIBUTES
from pipelines.metrics import Metric, cause_of, select_with_inputs
from pipelines.metrics.outcome import DIVISION_BY_ZERO, OVERFLOW
from pipelines.pages.wording import label

METRIC_UNAVAILABLE = "DecisionPolicy.MetricUnavailable"
ATTRIBUTE_UNAVAILABLE = "DecisionPolicy.AttributeUnavailable"
INPUT_UNAVAILABLE = "DecisionPolicy.InputUnavailable"
CODES: Mapping[str, str] = {
    "metric": METRIC_UNAVAILABLE,
    "attribute": ATTRIBUTE_UNAVAILABLE,
    "input": INPUT_UNAVAILABLE,
}
OWN_CODES: Mapping[str, str] = {
    DIVISION_BY_ZERO: "DecisionPolicy.DivisionByZero",
    OVERFLOW: "DecisionPolicy.Overflow",
}
KINDS: Mapping[Kind, str] = {"decimal": "a number", "boolean": "yes or no", "string": "text"}

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Missing:
    """A leaf without a value, or a calculation without one although its operands have values."""

    node: Node
    cause: str


def find_missing(plan: Plan, row: Row, name: str) -> Iterator[Missing]:
    """Yield what is missing for a node that has no value; nothing if it has one."""
    found: dict[str, Missing] = {}
    _collect(plan, row, name, found)
    yield from found.values()


def _collect(plan: Plan, row: Row, name: str, found: dict[str, Missing]) -> None:
    node = plan.nodes[name]
    if row[name] is not None or name in found:
        return
    if cause := own_cause(node, row):
        found[name] = Missing(node, cause)
        return
    for each in _relevant_operands(node, row):
        _collect(plan, row, each, found)


def own_cause(node: Node, row: Row) -> str | None:
    """Return why a node itself has no value; None if it has one, or if an operand is the cause."""
    if row[node.name] is not None:
        return None
    if node.is_leaf:
        return str(row[cause_of(column_of(node))])
    if any(row[each] is None for each in _relevant_operands(node, row)):
        return None
    return DIVISION_BY_ZERO if node.operator == "divide" and row[node.operands[1]] == 0 else OVERFLOW


def _relevant_operands(node: Node, row: Row) -> Sequence[str]:
    """Return the operands that the value depends on: for tiers the number that chooses the band
    and, if it is known, only that band's value.
    """
    if node.operator != "tiers":
        return node.operands
    placed, *values, otherwise = node.operands
    if row[placed] is None:
        return [placed]
    bounds_and_values = zip(node.subject, values, strict=True)
    return [next((value for below, value in bounds_and_values if row[placed] < Decimal(below)), otherwise)]


def describe_missing(plan: Plan, found: Missing) -> dict[str, Any]:
    """Return an entry of the contract's `reasons`, with what would resolve it."""
    node = found.node
    metrics = [metric_of(plan.policy, each.label) for each in plan.leaves_below(node.name) if each.operator == "metric"]
    return {
        "code": CODES[node.operator] if node.is_leaf else OWN_CODES[found.cause],
        "message": f"{_subject(plan.policy, node)} is unavailable: {readings.CAUSES[found.cause]}.",
        "metricIds": [plan.policy.metric_id(metric) for metric in metrics],
        "cause": found.cause,
        "name": node.label if node.is_leaf else None,
        "settle": _settle(plan.policy, found),
    }


def _subject(policy: Policy, node: Node) -> str:
    match node.operator:
        case "metric":
            return metric_of(policy, node.label).name
        case "attribute" | "input":
            return _label(policy, node)
        case operator:
            return f"A calculation of the policy ({operator})"


def _label(policy: Policy, node: Node) -> str:
    """Return how forms label an attribute or input."""
    declared = policy.attributes if node.operator == "attribute" else policy.declared_inputs
    return label(node.label, next(each.format for each in declared if each.name == node.label))


def _where_from(node: Node) -> str:
    """Return where a starter attribute's value comes from; empty for other attributes."""
    known = ATTRIBUTES.get(node.label)
    return "" if known is None or known.kind != node.kind else f" {known.settle}"


def _settle(policy: Policy, found: Missing) -> str:
    """Return what the lender can do about it."""
    node = found.node
    match node.operator:
        case "attribute":
            verb = "Renew" if found.cause == readings.EXPIRED else "Set"
            return f"{verb} the customer's attribute “{_label(policy, node)}” ({KINDS[node.kind]}).{_where_from(node)}"
        case "input":
            # Every input has a value: what is missing is one that the policy can use.
            return f"Supply another value of “{_label(policy, node)}” ({KINDS[node.kind]})."
        case "metric":
            made_of = select_with_inputs([node.label], every_metric(policy)).values()
            return _more_data(list(made_of), found.cause)
        case _:
            return "Change the policy, or the values that this one is calculated from."


def _more_data(made_of: Sequence[Metric], cause: str) -> str:
    """Return which data to submit.

    Args:
        made_of: the missing metric and its inputs; the strictest requirement counts.
    """
    match cause:
        case "no_transactions":
            return "Submit the customer's transactions."
        case "stale":
            return f"Submit the latest transactions{_freshness(made_of)}."
        case "insufficient_history":
            return f"Submit earlier transactions: {_history(made_of)} needed."
        case "no_balances":
            return "Submit transactions with their running balance."
        case _:
            return "Submit transactions from which the figure can be computed, or change the policy to do without it."


def _freshness(made_of: Sequence[Metric]) -> str:
    days = [metric.fresh_days for metric in made_of if metric.fresh_days is not None]
    return f": at most {min(days)} days may have passed since the last" if days else ""


def _history(made_of: Sequence[Metric]) -> str:
    if months := max(metric.history_months for metric in made_of):
        return f"{months} complete months are"
    if days := max(metric.history_days for metric in made_of):
        return f"{days} days are"
    return "a longer history is"
