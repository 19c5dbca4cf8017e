"""Describe a rule that fired for a customer: its message, what its condition read, and the comparisons."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from pipelines.decisions.answer import in_document, trace_node
from pipelines.decisions.nodes import Node
from pipelines.decisions.numbers import COMPARISONS
from pipelines.decisions.readings import column_of
from pipelines.decisions.unsettled import Row
from pipelines.metrics import cause_of
from pipelines.monitoring.planning import MonitoringPlan, PlannedMetric, PlannedRule, PlannedRuleset

Data = dict[str, Any]
_OF_ONE = ("one_of", "is_true", "is_known")  # operators with one operand


def describe_firing(plan: MonitoringPlan, planned: PlannedRuleset, planned_rule: PlannedRule, row: Row) -> Data:
    """Return a rule's description, as part of a match's record.

    Args:
        row: the customer's values of the columns that the rule reads.
    """
    rule = planned_rule.rule
    return {
        "code": rule.code,
        "message": rule.message,
        "severity": rule.severity,
        "recommendedActions": list(rule.recommended_actions),
        "read": [_describe_reading(plan, planned, leaf, row) for leaf in plan.leaves_below(planned_rule.condition)],
        "trace": list(_comparisons(plan, planned, planned_rule.condition, row)),
    }


def _describe_reading(plan: MonitoringPlan, planned: PlannedRuleset, leaf: Node, row: Row) -> Data:
    column = column_of(leaf)
    name = planned.name_leaf(leaf)
    read = {"kind": leaf.operator, "name": name, "value": row[column], "cause": row[cause_of(column)]}
    if leaf.operator == "attribute":
        return read | {"format": planned.attribute_formats[leaf.label]}
    return read | _describe_metric(plan, planned.metrics[leaf.label], leaf, row)


def _describe_metric(plan: MonitoringPlan, metric: PlannedMetric, leaf: Node, row: Row) -> Data:
    """Describe a metric. `baseline`: the metric and day that it is a reading of; null for today's value."""
    baseline = None
    if metric.baseline_of is not None:
        day = row[plan.days[leaf.label]]
        baseline = {"of": metric.baseline_of, "date": day and day.isoformat()}
    return {"metricId": metric.metric_id, "title": metric.title, "format": metric.format, "baseline": baseline}


def _comparisons(plan: MonitoringPlan, planned: PlannedRuleset, condition: str, row: Row) -> Iterator[Data]:
    """Yield each comparison in a condition. `right` is what the left side is compared with: both bounds for `between`,
    the texts for `oneOf`, nothing for `isTrue` and `isKnown`.
    """
    side = partial(trace_node, plan, row, called=planned.name_leaf)
    for node in plan.below(condition):
        if node.operator in COMPARISONS or node.operator in _OF_ONE or node.operator == "between":
            left, *others = (side(each) for each in node.operands)
            yield {
                "operator": in_document(node.operator),
                "left": left,
                "right": _right_operand(node, others),
                "holds": row[node.name],
            }


def _right_operand(node: Node, others: list[Data]) -> Data | list[Data] | list[str] | None:
    if node.operator == "one_of":
        return list(node.subject)
    return others if node.operator == "between" else next(iter(others), None)
