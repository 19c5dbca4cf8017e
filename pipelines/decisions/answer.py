"""The result of an evaluation: verdict with reasons, limits, indicators, metrics and attributes read; and its trace.

Both are derived from one customer's row of `evaluate.evaluate_plan`, so that they always agree.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cache
from operator import attrgetter
from typing import Any

from pydantic.alias_generators import to_camel

from pipelines.decisions.evaluate import rule_column, step_column
from pipelines.decisions.nodes import Graph, Node
from pipelines.decisions.plan import Plan, PlannedCap, PlannedLimit, PlannedRule, metric_of
from pipelines.decisions.policy import INDETERMINATE, Reason
from pipelines.decisions.readings import NONE, Attribute, column_of
from pipelines.decisions.unsettled import Row, describe_missing, find_missing, own_cause

MAX_PRINCIPAL = 4  # principal reasons: more are not likely to be helpful (commentary to US Regulation B, 1002.9(b)(2))
BY_LABEL: Callable[[Node], str] = attrgetter("label")
Data = dict[str, Any]

in_document = cache(to_camel)  # an operator's name in documents; there are few, so the cache stays small


def build_answer(plan: Plan, row: Row, attributes: Mapping[str, Attribute], figures: Row) -> Data:
    """Return the contract's evaluation result, with `verdict.matchedRules` and `verdict.principalReasons`.

    Args:
        row: one customer's row of `evaluate_plan`.
        attributes: the customer's attributes by name.
        figures: the customer's row of `metrics.values`, which indicators read.
    """
    policy = plan.policy
    priced = {limit.limit.product for limit in plan.limits}
    read = [metric_of(policy, slug) for slug in dict.fromkeys([*plan.labels("metric"), *_indicator_metrics(plan)])]
    return {
        "verdict": _verdict(plan, row),
        "computedLimits": [_describe_limit(plan, nth, limit, row) for nth, limit in enumerate(plan.limits)],
        "products": [
            {"productId": each.id, "slug": each.slug, "name": each.name}
            for each in policy.products
            if each.slug in priced
        ],
        "indicators": list(_indicators(plan, figures)),
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
    decisive = [] if row["outcome"] == INDETERMINATE else list(_deciding_reasons(plan, row))
    actions = dict.fromkeys(action for each, _ in decisive for action in each.recommended_actions)
    return {
        "outcome": row["outcome"],
        "recommendedActions": list(actions),
        "reasons": list(_undecided_reasons(plan, row)),
        "matchedRules": [_describe_reason(plan, *each) for each in decisive],
        "principalReasons": [each.customer_message for each, _ in decisive[:MAX_PRINCIPAL]],
    }


def _deciding_reasons(plan: Plan, row: Row) -> Iterator[tuple[Reason, list[str]]]:
    """Yield the reasons that decided, each with its conditions: the matched rules, or the default's reason."""
    default = plan.policy.default_reason
    if row["step"] is not None:
        yield from ((each.rule, [each.condition]) for each in _matched_rules(plan, row))
    elif default is not None:
        yield default, _unmet_conditions(plan, row)


def _unmet_conditions(plan: Plan, row: Row) -> list[str]:
    """Return the conditions the customer failed: the false ones of steps that need all their rules."""
    return [
        each.condition
        for nth, planned in enumerate(plan.steps)
        for place, each in enumerate(planned.rules)
        if planned.step.match == "all" and row[rule_column(nth, place)] is False
    ]


def _matched_rules(plan: Plan, row: Row) -> Sequence[PlannedRule]:
    """Return the matched rules of the deciding step, the most important first."""
    step = row["step"]
    matched = [each for place, each in enumerate(plan.steps[step].rules) if row[rule_column(step, place)]]
    return sorted(matched, key=lambda each: each.rule.rank)


def _describe_reason(plan: Plan, reason: Reason, conditions: Sequence[str]) -> Data:
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


def _undecided_reasons(plan: Plan, row: Row) -> Iterator[Data]:
    """Yield every reason why the undecidable step could not be decided."""
    if row["outcome"] == INDETERMINATE:
        step = row["step"]
        undecided = [
            planned.condition
            for place, planned in enumerate(plan.steps[step].rules)
            if row[rule_column(step, place)] is None
        ]
        yield from _reasons(plan, row, undecided)


def _reasons(plan: Plan, row: Row, names: Sequence[str]) -> list[Data]:
    found = {each.node.name: each for name in names for each in find_missing(plan, row, name)}
    return [describe_missing(plan, each) for each in found.values()]


# Limits and indicators


def _describe_limit(plan: Plan, nth: int, planned: PlannedLimit, row: Row) -> Data:
    product = next(each for each in plan.policy.products if each.slug == planned.limit.product)
    amount = row[f"amount_{nth}"]
    if amount is None:
        return {"kind": INDETERMINATE, "productId": product.id, "reasons": _why_no_limit(plan, planned, row)}
    capped = row[f"capped_{nth}"]
    described: Data = {"kind": "computed", "productId": product.id, "amount": amount, "capped": capped}
    if not capped:
        return described
    cap = _binding_cap(planned, row).cap
    return described | {
        "uncappedAmount": row[f"uncapped_{nth}"],
        "cappedBy": {"code": cap.code, "message": cap.message},
    }


def _why_no_limit(plan: Plan, planned: PlannedLimit, row: Row) -> list[Data]:
    if row["outcome"] == INDETERMINATE:
        return list(_undecided_reasons(plan, row))
    return _reasons(plan, row, planned.required_nodes)


def _indicator_metrics(plan: Plan) -> list[str]:
    return [indicator.metric for indicator in plan.policy.indicators]


def _indicators(plan: Plan, figures: Row) -> Iterator[Data]:
    """Yield the values of indicators; unavailable ones are left out."""
    for indicator in plan.policy.indicators:
        metric, value = metric_of(plan.policy, indicator.metric), figures[indicator.metric]
        value_format = indicator.format or metric.format
        if value is not None:
            yield {
                "kind": "reading",
                "metricId": plan.policy.metric_id(metric),
                "value": round(value) if value_format == "integer" else value,
                "format": value_format,
            }


# The trace


def build_trace(plan: Plan, row: Row) -> Data:
    """Return which rule compared which value with which threshold. Steps after the deciding one are included."""
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
                        "condition": trace_node(plan, row, each.condition),
                    }
                    for place, each in enumerate(planned.rules)
                ],
            }
            for nth, planned in enumerate(plan.steps)
        ],
        "limits": [_traced_limit(plan, nth, planned, row) for nth, planned in enumerate(plan.limits)],
    }


def _traced_limit(plan: Plan, nth: int, planned: PlannedLimit, row: Row) -> Data:
    """Return how the offered amount came about; `offered` is null if indeterminate.

    `notOffered`: the limit is not offered for this outcome.
    """
    amount = row[f"amount_{nth}"]
    not_offered = amount is not None and row["outcome"] not in planned.limit.outcomes
    described = {
        "product": planned.limit.product,
        "amount": trace_node(plan, row, planned.amount),
        "caps": [{"code": cap.cap.code, "value": trace_node(plan, row, cap.value)} for cap in planned.caps],
        "notOffered": not_offered,
        "limitedBy": _binding_cap(planned, row).cap.code if row[f"capped_{nth}"] else None,
    }
    worked_out = NOT_WORKED_OUT if amount is None or not_offered else _worked_out(planned, row)
    return {**described, **worked_out, "offered": amount}


NOT_WORKED_OUT: Data = {"uncapped": None, "rounded": None, "belowMinimum": False}


def _binding_cap(planned: PlannedLimit, row: Row) -> PlannedCap:
    """Return the lowest known cap; the first of equal ones."""
    known = [each for each in planned.caps if row[each.value] is not None]
    return min(known, key=lambda each: _at_least_zero(row[each.value]))


def _worked_out(planned: PlannedLimit, row: Row) -> Data:
    """Return the steps of the calculation. `uncapped`: before caps. `rounded`: after caps, before the minimum."""
    uncapped = _at_least_zero(row[planned.amount])
    caps = [_at_least_zero(row[each.value]) for each in planned.caps if row[each.value] is not None]
    lowest = min([uncapped, *caps])
    rounded = lowest - lowest % Decimal(planned.limit.round_down_to)
    below_minimum = rounded < Decimal(planned.limit.minimum)
    return {"uncapped": uncapped, "rounded": rounded, "belowMinimum": below_minimum}


def _at_least_zero(value: Decimal) -> Decimal:
    return max(value, Decimal(0))


def trace_node(graph: Graph, row: Row, name: str, called: Callable[[Node], str] = BY_LABEL) -> Data:
    """Return a node in the document's words, with its value, cause and operands. `called`: returns a leaf's name."""
    node = graph.nodes[name]
    operator = in_document(node.operator)
    described: Data = {operator: _subject(node, called)} if node.subject else {"operator": operator}
    described["value"] = row[name]
    if cause := own_cause(node, row):
        described["cause"] = cause
    if node.operands:
        described["of"] = [trace_node(graph, row, each, called) for each in node.operands]
    return described


def _subject(node: Node, called: Callable[[Node], str]) -> str | list[str]:
    if node.is_leaf:
        return called(node)
    return list(node.subject) if node.operands else node.label
