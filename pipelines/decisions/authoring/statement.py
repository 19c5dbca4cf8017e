"""Statement about automated decisions for a lender's privacy policy.

Australia's Privacy Act requires it from 10 December 2026 (Australian Privacy Principles 1.7 to 1.9). It lists the kinds
of personal information that a computer program uses, the kinds of decisions that it makes alone, and the kinds that it
prepares to a substantial degree for a person who decides. A policy declares which of its attributes and inputs are
personal; a sole trader's bank statements always are.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from pipelines.decisions.plan import plan_policy
from pipelines.decisions.policy import Declared, Outcome, Policy

Data = dict[str, Any]
ALONE: Sequence[Outcome] = ("proceed", "blocked")
ASSISTED: Sequence[Outcome] = ("conditional",)


def describe_automation(policies: Sequence[Policy]) -> Data:
    """Return for each policy which information it uses and what it decides."""
    return {"policies": [_describe_policy(policy) for policy in policies]}


def _describe_policy(policy: Policy) -> Data:
    plan = plan_policy(policy)
    metrics = [metric for metric in plan.metrics.values() if not metric.inputs]
    return {
        "slug": policy.slug,
        "name": policy.name,
        "personalInformation": [
            *_list_personal(policy.attributes, plan.labels("attribute"), "attribute"),
            *_list_personal(policy.declared_inputs, plan.labels("input"), "input"),
        ],
        "bankTransactions": sorted(metric.name for metric in metrics),
        "decidedAutomatically": [*_list_decisions(policy, ALONE), *_list_limits(policy)],
        "decidedWithAssistance": [*_list_decisions(policy, ASSISTED), _UNDECIDED],
    }


_UNDECIDED = "Applications that can't be decided because information is missing are left to a person."


def _list_personal(declared: Sequence[Declared], read: Sequence[str], source: str) -> Iterator[Data]:
    for each in declared:
        if each.personal and each.name in read:
            yield {"name": each.name, "from": source, "kind": each.kind, "meaning": each.meaning}


def _list_decisions(policy: Policy, outcomes: Sequence[Outcome]) -> Iterator[str]:
    for step in policy.steps:
        if step.outcome in outcomes:
            met = "any" if step.match == "any" else "all"
            reasons = " ".join(rule.message for rule in step.rules)
            yield f"{step.name}: the application is {_OUTCOMES[step.outcome]} when {met} of these are met. {reasons}"
    if policy.default_outcome in outcomes:
        reason = f" {policy.default_reason.message}" if policy.default_reason else ""
        yield f"Otherwise the application is {_OUTCOMES[policy.default_outcome]}.{reason}"


_OUTCOMES = {"proceed": "let through", "conditional": "referred to a person", "blocked": "refused"}


def _list_limits(policy: Policy) -> Iterator[str]:
    names = {product.slug: product.name for product in policy.products}
    for limit in policy.limits:
        yield f"How much is offered of {names[limit.product]}."


def as_markdown(statement: Data) -> str:
    """Return what `describe_automation` returned as Markdown, for the lender's lawyer to put into the policy."""
    parts = [part for policy in statement["policies"] for part in _section(policy)]
    return "\n".join(["# Decisions made by a computer program", "", *parts])


def _section(policy: Data) -> Iterator[str]:
    personal = [f"{each['name']} ({each['from']}): {each['meaning'] or each['kind']}" for each in policy[_PERSONAL]]
    yield from (f"## {policy['name']} (`{policy['slug']}`)", "")
    yield from _list_items("Personal information that is used", personal)
    yield from _list_items(
        "Figures of bank transactions, which are personal for a sole trader", policy["bankTransactions"]
    )
    yield from _list_items("Decided automatically", policy["decidedAutomatically"])
    yield from _list_items("Prepared by the program, decided by a person", policy["decidedWithAssistance"])


_PERSONAL = "personalInformation"


def _list_items(title: str, items: Sequence[str]) -> Iterator[str]:
    yield from (f"### {title}", "", *(f"- {item}" for item in items or ["None."]), "")
