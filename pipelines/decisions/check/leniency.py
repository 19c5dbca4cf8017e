"""Find where a policy is more lenient with less data: a customer who sends less must never get a better result.

Three-valued logic is safe by itself: when a value disappears, a condition becomes unknown or stays as it was. Only two
features break this: asking whether a value is known, and stating what an unknown rule counts as. So this module derives
which changes each condition may undergo when data are removed, and warns if such a change leads to a milder outcome.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import reduce
from itertools import product
from typing import TypeAlias

from pipelines.decisions.check.findings import Finding, finding
from pipelines.decisions.policy import (
    OUTCOMES,
    AllOf,
    AnyOf,
    AttributeRef,
    Condition,
    InputRef,
    IsKnown,
    Limit,
    MetricRef,
    Not,
    Outcome,
    Policy,
    Rule,
    Step,
)
from pipelines.metrics.definition import Strict

FALSE, UNKNOWN, TRUE = range(3)  # in this order `all` is the minimum and `any` the maximum
Change: TypeAlias = tuple[int, int]  # the truth with all data, and with less
Changes: TypeAlias = frozenset[Change]

UNCHANGED: Changes = frozenset({(FALSE, FALSE), (UNKNOWN, UNKNOWN), (TRUE, TRUE)})
MAY_BECOME_UNKNOWN: Changes = UNCHANGED | {(FALSE, UNKNOWN), (TRUE, UNKNOWN)}
SEVERITY: Mapping[Outcome, int] = {outcome: nth for nth, outcome in enumerate(OUTCOMES)}


def find_warnings(policy: Policy) -> Iterator[Finding]:
    """Yield a warning for each place where less data may give a better result. Warnings must be acknowledged before the
    policy is published.
    """
    for nth, step in enumerate(policy.steps):
        for place, rule in enumerate(step.rules):
            yield from _check_rule(rule, step.outcome, _outcomes_after(policy, nth), f"/steps/{nth}/rules/{place}")
    for nth, limit in enumerate(policy.limits):
        yield from _check_limit(policy, limit, f"/limits/{nth}")


# Rules


def _check_rule(rule: Rule, outcome: Outcome, after: Collection[Outcome], pointer: str) -> Iterator[Finding]:
    condition = possible_changes(rule.condition)
    if _is_lenient(condition, outcome, after):
        yield finding(f"{pointer}/condition", "LenientIsKnown", _ASKS)
    elif _is_lenient(_rule_changes(rule), outcome, after):
        not_matched = rule.on_unavailable == "notMatched"
        code, says = ("LenientNotMatched", _NOT_MATCHED) if not_matched else ("LenientMatched", _MATCHED)
        yield finding(f"{pointer}/onUnavailable", code, says)


_ASKS = "This asks whether a value is known, so a customer with less data may get a milder outcome."
_NOT_MATCHED = "While its data are unavailable this rule doesn't count: a customer with less data may do better."
_MATCHED = "While its data are unavailable this rule counts as met, and keeps the customer from a harsher step below."


def _is_lenient(possible: Changes, outcome: Outcome, after: Collection[Outcome]) -> bool:
    """Return whether a change may lead to a milder outcome.

    If a step no longer matches, the steps after it decide. If it newly matches, they are no longer reached.
    """
    milder = any(SEVERITY[each] < SEVERITY[outcome] for each in after)
    harsher = any(SEVERITY[each] > SEVERITY[outcome] for each in after)
    return (milder and _decreases(possible)) or (harsher and _increases(possible))


def _decreases(possible: Changes) -> bool:
    return bool(possible & {(TRUE, FALSE), (UNKNOWN, FALSE)})


def _increases(possible: Changes) -> bool:
    return bool(possible & {(FALSE, TRUE), (UNKNOWN, TRUE)})


def _outcomes_after(policy: Policy, nth: int) -> set[Outcome]:
    return {policy.default_outcome, *(step.outcome for step in policy.steps[nth + 1 :])}


# Changes


def possible_changes(condition: Condition) -> Changes:
    """Return how the truth of a condition may change when data are removed."""
    match condition:
        case AllOf():
            return _combine_all(min, map(possible_changes, condition.all))
        case AnyOf():
            return _combine_all(max, map(possible_changes, condition.any))
        case Not(not_=inner):
            return frozenset((TRUE - before, TRUE - after) for before, after in possible_changes(inner))
        case IsKnown():
            return frozenset({(FALSE, FALSE), (TRUE, TRUE), (TRUE, FALSE)}) if _may_be_missing(condition) else UNCHANGED
        case _:
            return MAY_BECOME_UNKNOWN if _may_be_missing(condition) else UNCHANGED


def _combine_all(combine: Callable[[int, int], int], parts: Iterable[Changes]) -> Changes:
    return reduce(lambda left, right: _combine(combine, left, right), parts)


def _combine(combine: Callable[[int, int], int], left: Changes, right: Changes) -> Changes:
    pairs = product(left, right)
    return frozenset((combine(one[0], other[0]), combine(one[1], other[1])) for one, other in pairs)


def _rule_changes(rule: Rule) -> Changes:
    counts_as = {True: TRUE, False: FALSE, None: UNKNOWN}[rule.when_unknown]
    counted = {FALSE: FALSE, UNKNOWN: counts_as, TRUE: TRUE}
    return frozenset((counted[before], counted[after]) for before, after in possible_changes(rule.condition))


def _step_changes(step: Step) -> Changes:
    return _combine_all(max if step.match == "any" else min, map(_rule_changes, step.rules))


def _may_be_missing(read: object) -> bool:
    """Return whether a condition or number reads data that may be missing; inputs never are."""
    match read:
        case MetricRef() | AttributeRef():
            return True
        case InputRef():
            return False
        case Strict():
            return any(_may_be_missing(each) for _, each in read)
        case tuple():
            return any(map(_may_be_missing, read))
        case _:
            return False


# Limits


def _check_limit(policy: Policy, limit: Limit, pointer: str) -> Iterator[Finding]:
    for nth, cap in enumerate(limit.caps):
        if cap.on_unavailable == "ignore" and _may_be_missing(cap.value):
            yield finding(f"{pointer}/caps/{nth}/onUnavailable", "LenientCap", _IGNORED)
    if any(before not in limit.outcomes and after in limit.outcomes for before, after in _outcome_changes(policy)):
        yield finding(f"{pointer}/outcomes", "LenientOutcomes", _OFFERED)


_IGNORED = "While its data are unavailable this cap is left out: a customer with less data may be offered more."
_OFFERED = "With less data the outcome may change from one without this offer to one with it."


def _outcome_changes(policy: Policy) -> Iterator[tuple[Outcome, Outcome]]:
    """Yield the changes between outcomes that less data may cause."""
    for nth, step in enumerate(policy.steps):
        possible, after = _step_changes(step), _outcomes_after(policy, nth)
        if (TRUE, FALSE) in possible:
            yield from ((step.outcome, each) for each in after)
        if (FALSE, TRUE) in possible:
            yield from ((each, step.outcome) for each in after)
