"""What policies do on their own, and with which personal information: what Australia's Privacy Act asks a lender to say
in its privacy policy about automated decisions (Australian Privacy Principles 1.7 to 1.9, in force from 10 December
2026).

Asked for are the kinds of personal information that such a program uses, the kinds of decisions that it makes alone,
and those that it does much of, while a person decides. Which attributes and inputs are personal a policy declares;
statements of a sole trader always are.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from pipelines.decisions.plan import planned
from pipelines.decisions.policy import DeclaredAttribute, DeclaredInput, Outcome, Policy

Data = dict[str, Any]
ALONE: Sequence[Outcome] = ("proceed", "blocked")
ASSISTED: Sequence[Outcome] = ("conditional",)


def statement(policies: Sequence[Policy]) -> Data:
    """Of each policy what it uses and what it decides."""
    return {"policies": [_of_policy(policy) for policy in policies]}


def _of_policy(policy: Policy) -> Data:
    plan = planned(policy)
    metrics = [metric for metric in plan.metrics.values() if not metric.inputs]
    return {
        "slug": policy.slug,
        "name": policy.name,
        "personalInformation": [
            *_personal(policy.attributes, plan.labels("attribute"), "attribute"),
            *_personal(policy.declared_inputs, plan.labels("input"), "input"),
        ],
        "bankTransactions": sorted(metric.name for metric in metrics),
        "decidedAutomatically": [*_decisions(policy, ALONE), *_limits(policy)],
        "decidedWithAssistance": [*_decisions(policy, ASSISTED), _UNDECIDED],
    }


_UNDECIDED = "Applications that can't be decided because information is missing are left to a person."


def _personal(declared: Sequence[DeclaredAttribute | DeclaredInput], read: Sequence[str], sort: str) -> Iterator[Data]:
    for each in declared:
        if each.personal and each.name in read:
            yield {"name": each.name, "from": sort, "kind": each.kind, "meaning": each.meaning}


def _decisions(policy: Policy, outcomes: Sequence[Outcome]) -> Iterator[str]:
    for step in policy.steps:
        if step.outcome in outcomes:
            met = "any" if step.match == "any" else "all"
            reasons = " ".join(rule.message for rule in step.rules)
            yield f"{step.name}: the application is {_OUTCOMES[step.outcome]} when {met} of these are met. {reasons}"
    if policy.default_outcome in outcomes:
        reason = f" {policy.default_reason.message}" if policy.default_reason else ""
        yield f"Otherwise the application is {_OUTCOMES[policy.default_outcome]}.{reason}"


_OUTCOMES = {"proceed": "let through", "conditional": "referred to a person", "blocked": "refused"}


def _limits(policy: Policy) -> Iterator[str]:
    names = {product.slug: product.name for product in policy.products}
    for limit in policy.limits:
        yield f"How much is offered of {names[limit.product]}."


def as_markdown(stated: Data) -> str:
    """For the lender's lawyer to work into the privacy policy."""
    parts = [part for policy in stated["policies"] for part in _section(policy)]
    return "\n".join(["# Decisions made by a computer program", "", *parts])


def _section(policy: Data) -> Iterator[str]:
    personal = [f"{each['name']} ({each['from']}): {each['meaning'] or each['kind']}" for each in policy[_PERSONAL]]
    yield from (f"## {policy['name']} (`{policy['slug']}`)", "")
    yield from _listed("Personal information that is used", personal)
    yield from _listed("Figures of bank transactions, which are personal for a sole trader", policy["bankTransactions"])
    yield from _listed("Decided automatically", policy["decidedAutomatically"])
    yield from _listed("Prepared by the program, decided by a person", policy["decidedWithAssistance"])


_PERSONAL = "personalInformation"


def _listed(title: str, items: Sequence[str]) -> Iterator[str]:
    yield from (f"### {title}", "", *(f"- {item}" for item in items or ["None."]), "")
