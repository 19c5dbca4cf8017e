"""What a rule that fired says of a customer: its words, all that its condition read, and how that compared."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from pipelines.decisions.answer import in_document, tree
from pipelines.decisions.nodes import Node
from pipelines.decisions.numbers import COMPARISONS
from pipelines.decisions.readings import column_of
from pipelines.decisions.unsettled import Row
from pipelines.metrics import cause_of
from pipelines.monitoring.watching import PlannedMetric, PlannedRule, PlannedRuleset, Watch

Data = dict[str, Any]
_OF_ONE = ("one_of", "is_true", "is_known")


def described(watch: Watch, planned: PlannedRuleset, of: PlannedRule, row: Row) -> Data:
    """
    Args:
        row: the customer's, of the columns that the rule rests on.
    """
    rule = of.rule
    return {
        "code": rule.code,
        "message": rule.message,
        "severity": rule.severity,
        "recommendedActions": list(rule.recommended_actions),
        "read": [_read(watch, planned, leaf, row) for leaf in watch.leaves_below(of.condition)],
        "trace": list(_compared(watch, planned, of.condition, row)),
    }


def _read(watch: Watch, planned: PlannedRuleset, leaf: Node, row: Row) -> Data:
    column = column_of(leaf)
    name = planned.called(leaf)
    read = {"kind": leaf.operator, "name": name, "value": row[column], "cause": row[cause_of(column)]}
    return read if leaf.operator == "attribute" else read | _of_metric(watch, planned.metrics[leaf.label], leaf, row)


def _of_metric(watch: Watch, metric: PlannedMetric, leaf: Node, row: Row) -> Data:
    """`baseline`: of which metric it is a reading, as of which day; null for one of today."""
    baseline = None
    if metric.baseline_of is not None:
        day = row[watch.days[leaf.label]]
        baseline = {"of": metric.baseline_of, "date": day and day.isoformat()}
    return {"metricId": metric.metric_id, "title": metric.title, "baseline": baseline}


def _compared(watch: Watch, planned: PlannedRuleset, condition: str, row: Row) -> Iterator[Data]:
    """Each thing that is asked below a condition. `right`: what it is compared with: for `between` both bounds, for
    `oneOf` the texts, none for `isTrue` and `isKnown`.
    """
    side = partial(tree, watch, row, called=planned.called)
    for node in watch.below(condition):
        if node.operator in COMPARISONS or node.operator in _OF_ONE or node.operator == "between":
            left, *others = (side(each) for each in node.of)
            yield {
                "operator": in_document(node.operator),
                "left": left,
                "right": _right(node, others),
                "holds": row[node.name],
            }


def _right(node: Node, others: list[Data]) -> Data | list[Data] | list[str] | None:
    if node.operator == "one_of":
        return list(node.subject)
    return others if node.operator == "between" else next(iter(others), None)
