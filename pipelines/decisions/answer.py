"""What one evaluation says: the verdict with its reasons, limits, indicators, what was read; and the trace.

Both are told from one customer's row of `evaluate.evaluated`, so that what is answered is what is traced.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cache
from operator import attrgetter
from typing import Any

from pydantic.alias_generators import to_camel

from pipelines.decisions.evaluate import rule_column, step_column
from pipelines.decisions.nodes import Graph, Node
from pipelines.decisions.plan import Plan, PlannedLimit, PlannedRule, metric_of
from pipelines.decisions.policy import INDETERMINATE, Reason
from pipelines.decisions.readings import NONE, Attribute, column_of
from pipelines.decisions.unsettled import Row, missing, own_cause, reason

MOST_PRINCIPAL = 4
BY_LABEL: Callable[[Node], str] = attrgetter("label")
Data = dict[str, Any]

in_document = cache(to_camel)  # an operator as documents call it; there are few


def answered(plan: Plan, row: Row, attributes: Mapping[str, Attribute], shown: Row) -> Data:
    """The contract's evaluation result, with `verdict.matchedRules` and `verdict.principalReasons` beside it.

    Args:
        row: one customer's row of `evaluated`.
        attributes: what is known of the customer, by name.
        shown: the customer's row of `metrics.values`: what indicators read.
    """
    policy = plan.policy
    priced = {limit.limit.product for limit in plan.limits}
    read = [metric_of(policy, slug) for slug in dict.fromkeys([*plan.labels("metric"), *_shown(plan)])]
    return {
        "verdict": _verdict(plan, row),
        "computedLimits": [_limit(plan, nth, limit, row) for nth, limit in enumerate(plan.limits)],
        "products": [
            {"productId": each.id, "slug": each.slug, "name": each.name}
            for each in policy.products
            if each.slug in priced
        ],
        "indicators": list(_indicators(plan, shown)),
        "metrics": [{"metricId": policy.metric_id(metric), "name": metric.name} for metric in read],
        "attributes": [
            {
                "name": node.label,
                "value": None if row[column_of(node)] is None else attributes.get(node.label, NONE).value,
                "source": attributes.get(node.label, NONE).source,
            }
            for node in plan.nodes.values()
            if node.operator == "attribute"
        ],
    }


# The verdict


def _verdict(plan: Plan, row: Row) -> Data:
    decisive = [] if row["outcome"] == INDETERMINATE else list(_decisive(plan, row))
    actions = dict.fromkeys(action for each, _ in decisive for action in each.recommended_actions)
    return {
        "outcome": row["outcome"],
        "recommendedActions": list(actions),
        "reasons": list(_undecided(plan, row)),
        "matchedRules": [_described(plan, *each) for each in decisive],
        "principalReasons": [each.customer_message for each, _ in decisive[:MOST_PRINCIPAL]],
    }


def _decisive(plan: Plan, row: Row) -> Iterator[tuple[Reason, list[str]]]:
    """What decided, with the conditions that it rests on: the matched rules, or the default's own reason."""
    default = plan.policy.default_reason
    if row["step"] is not None:
        yield from ((each.rule, [each.condition]) for each in _matched_rules(plan, row))
    elif default is not None:
        yield default, _unmet(plan, row)


def _unmet(plan: Plan, row: Row) -> list[str]:
    """What a customer would have had to meet: the false conditions of steps that need all of theirs."""
    return [
        each.condition
        for nth, planned in enumerate(plan.steps)
        for place, each in enumerate(planned.rules)
        if planned.step.match == "all" and row[rule_column(nth, place)] is False
    ]


def _matched_rules(plan: Plan, row: Row) -> Sequence[PlannedRule]:
    """Of the deciding step, the weightiest first."""
    step = row["step"]
    matched = [each for place, each in enumerate(plan.steps[step].rules) if row[rule_column(step, place)]]
    return sorted(matched, key=lambda each: each.rule.rank)


def _described(plan: Plan, reason: Reason, conditions: Sequence[str]) -> Data:
    return {
        "code": reason.code,
        "message": reason.message,
        "customerMessage": reason.customer_message,
        "metricIds": _metric_ids(plan, conditions),
    }


def _metric_ids(plan: Plan, conditions: Sequence[str]) -> list[Any]:
    leaves = (node for name in conditions for node in plan.leaves_below(name) if node.operator == "metric")
    slugs = dict.fromkeys(node.label for node in leaves)
    return [plan.policy.metric_id(metric_of(plan.policy, slug)) for slug in slugs]


def _undecided(plan: Plan, row: Row) -> Iterator[Data]:
    """Everything that keeps the undecidable step from being decided."""
    if row["outcome"] == INDETERMINATE:
        step = row["step"]
        undecided = [
            planned.condition
            for place, planned in enumerate(plan.steps[step].rules)
            if row[rule_column(step, place)] is None
        ]
        yield from _reasons(plan, row, undecided)


def _reasons(plan: Plan, row: Row, names: Sequence[str]) -> list[Data]:
    found = {each.node.name: each for name in names for each in missing(plan, row, name)}
    return [reason(plan, each) for each in found.values()]


# Limits and indicators


def _limit(plan: Plan, nth: int, planned: PlannedLimit, row: Row) -> Data:
    product = next(each for each in plan.policy.products if each.slug == planned.limit.product)
    amount = row[f"amount_{nth}"]
    if amount is None:
        return {"kind": INDETERMINATE, "productId": product.id, "reasons": _why_no_limit(plan, planned, row)}
    capped = row[f"capped_{nth}"]
    described: Data = {"kind": "computed", "productId": product.id, "amount": amount, "capped": capped}
    return described | ({"uncappedAmount": row[f"uncapped_{nth}"]} if capped else {})


def _why_no_limit(plan: Plan, planned: PlannedLimit, row: Row) -> list[Data]:
    if row["outcome"] == INDETERMINATE:
        return list(_undecided(plan, row))
    return _reasons(plan, row, planned.required)


def _shown(plan: Plan) -> list[str]:
    return [indicator.metric for indicator in plan.policy.indicators]


def _indicators(plan: Plan, shown: Row) -> Iterator[Data]:
    """Readings; one that is unavailable is left out."""
    for indicator in plan.policy.indicators:
        metric, value = metric_of(plan.policy, indicator.metric), shown[indicator.metric]
        shape = indicator.format or metric.format
        if value is not None:
            yield {
                "kind": "reading",
                "metricId": plan.policy.metric_id(metric),
                "value": round(value) if shape == "integer" else value,
                "format": shape,
            }


# The trace


def traced(plan: Plan, row: Row) -> Data:
    """Which rule read which value against which threshold; steps after the deciding one are traced, too."""
    return {
        "steps": [
            {
                "name": planned.step.name,
                "outcome": planned.step.outcome,
                "match": planned.step.match,
                "matched": row[step_column(nth)],
                "rules": [
                    {
                        "code": each.rule.code,
                        "pointer": each.pointer,
                        "counted": row[rule_column(nth, place)],
                        "condition": tree(plan, row, each.condition),
                    }
                    for place, each in enumerate(planned.rules)
                ],
            }
            for nth, planned in enumerate(plan.steps)
        ],
        "limits": [_traced_limit(plan, nth, planned, row) for nth, planned in enumerate(plan.limits)],
    }


def _traced_limit(plan: Plan, nth: int, planned: PlannedLimit, row: Row) -> Data:
    """Down to the amount that is offered, null while it is indeterminate. `notOffered`: for another outcome."""
    amount = row[f"amount_{nth}"]
    not_offered = amount is not None and row["outcome"] not in planned.limit.outcomes
    described = {
        "product": planned.limit.product,
        "amount": tree(plan, row, planned.amount),
        "caps": [{"code": cap.cap.code, "value": tree(plan, row, cap.value)} for cap in planned.caps],
        "notOffered": not_offered,
        "limitedBy": _binding_cap(planned, row) if row[f"capped_{nth}"] else None,
    }
    worked_out = NOT_WORKED_OUT if amount is None or not_offered else _worked_out(planned, row)
    return {**described, **worked_out, "offered": amount}


NOT_WORKED_OUT: Data = {"uncapped": None, "rounded": None, "belowMinimum": False}


def _binding_cap(planned: PlannedLimit, row: Row) -> str:
    """The lowest of those that are known; of several the first."""
    known = [each for each in planned.caps if row[each.value] is not None]
    return min(known, key=lambda each: _at_least_nothing(row[each.value])).cap.code


def _worked_out(planned: PlannedLimit, row: Row) -> Data:
    """`uncapped`: before caps. `rounded`: after them, before the minimum."""
    uncapped = _at_least_nothing(row[planned.amount])
    caps = [_at_least_nothing(row[each.value]) for each in planned.caps if row[each.value] is not None]
    lowest = min([uncapped, *caps])
    rounded = lowest - lowest % Decimal(planned.limit.round_down_to)
    below_minimum = rounded < Decimal(planned.limit.minimum)
    return {"uncapped": uncapped, "rounded": rounded, "belowMinimum": below_minimum}


def _at_least_nothing(value: Decimal) -> Decimal:
    return max(value, Decimal(0))


def tree(graph: Graph, row: Row, name: str, called: Callable[[Node], str] = BY_LABEL) -> Data:
    """A node in the document's words, what it came to, and of what. `called`: what a leaf is called there."""
    node = graph.nodes[name]
    operator = in_document(node.operator)
    described: Data = {operator: _subject(node, called)} if node.subject else {"operator": operator}
    described["value"] = row[name]
    if cause := own_cause(node, row):
        described["cause"] = cause
    if node.of:
        described["of"] = [tree(graph, row, each, called) for each in node.of]
    return described


def _subject(node: Node, called: Callable[[Node], str]) -> str | list[str]:
    if node.is_leaf:
        return called(node)
    return list(node.subject) if node.of else node.label
