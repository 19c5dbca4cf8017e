"""Find what a policy never or always does: contradictory conditions, steps and rules that are never reached, numbers
without a value, limits that offer nothing.

It works on the parts of a plain document whose shape is sound, so that a fault in one part hides none in another.
"""

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations, permutations
from typing import Any

from pydantic import TypeAdapter, ValidationError

from pipelines.decisions.check.findings import Finding, finding
from pipelines.decisions.check.folding import Open, fold, upper_bound
from pipelines.decisions.check.references import Data, entries
from pipelines.decisions.check.spans import Box, both, exclude_each_other
from pipelines.decisions.check.truth import ANYTHING, Truth, conjunction, disjunction, truth
from pipelines.decisions.policy import OUTCOMES, AllOf, AnyOf, Between, Condition, Limit, Not, Number, Operation, Tiers

_CONDITION: TypeAdapter[Any] = TypeAdapter(Condition)
_NUMBER: TypeAdapter[Any] = TypeAdapter(Number)
_LIMIT: TypeAdapter[Limit] = TypeAdapter(Limit)


@dataclass(frozen=True)
class ReadRule:
    """A rule as read. `counted`: when it counts as matched and when not. `own`: faults of its condition alone."""

    pointer: str
    condition: Truth
    counted: Truth
    own: list[Finding]


@dataclass(frozen=True)
class ReadStep:
    pointer: str
    match: str
    rules: list[ReadRule]
    matched: Truth

    @property
    def rules_without_finding(self) -> list[ReadRule]:
        return [rule for rule in self.rules if not rule.own]


def find_faults(document: object, wrong_kind: Collection[str] = ()) -> Iterator[Finding]:
    """Yield the faults of conditions, steps, numbers and limits.

    Args:
        wrong_kind: pointers of references of a wrong kind; contradictions that depend on them are not reported.
    """
    policy = document if isinstance(document, dict) else {}
    yield from find_rule_faults(policy, wrong_kind)
    yield from _find_unreachable(_steps(policy, wrong_kind))
    for pointer, limit in entries(policy, "limits"):
        yield from _check_limit(policy, pointer, limit)


def find_rule_faults(policy: Data, wrong_kind: Collection[str] = ()) -> Iterator[Finding]:
    """Yield the faults of each step's rules, regardless of other steps."""
    for step in _steps(policy, wrong_kind):
        for rule in step.rules:
            yield from rule.own
        yield from _find_repeated(step)


def find_warnings(document: object, wrong_kind: Collection[str] = ()) -> Iterator[Finding]:
    """Yield warnings for rules that never decide, because another rule of their step decides whenever they would."""
    policy = document if isinstance(document, dict) else {}
    for step in _steps(policy, wrong_kind):
        yield from _find_idle(step)


# Conditions


def _steps(policy: Data, wrong_kind: Collection[str]) -> list[ReadStep]:
    return [_read_step(pointer, step, wrong_kind) for pointer, step in entries(policy, "steps")]


def _read_step(pointer: str, step: Data, wrong_kind: Collection[str]) -> ReadStep:
    listed, match = step.get("rules"), step.get("match", "any")
    rules = [_read_rule(at, rule, wrong_kind) for at, rule in entries(step, "rules", pointer)]
    whole = isinstance(listed, list) and 0 < len(rules) == len(listed)
    together = conjunction if match == "all" else disjunction
    return ReadStep(pointer, match, rules, together(rule.counted for rule in rules) if whole else ANYTHING)


def _read_rule(pointer: str, rule: Data, wrong_kind: Collection[str]) -> ReadRule:
    condition = _read_if_sound(_CONDITION, rule.get("condition"))
    if condition is None:
        return ReadRule(pointer, ANYTHING, ANYTHING, [])
    at = f"{pointer}/condition"
    constant = [each for each in _find_constant_parts(condition, at) if not _is_above_any(each.pointer, wrong_kind)]
    own = [*_check_numbers(condition, at), *constant]
    holds = ANYTHING if _is_above_any(at, wrong_kind) else truth(condition)
    return ReadRule(pointer, holds, _apply_on_unavailable(holds, rule.get("onUnavailable")), own)


def _is_above_any(pointer: str, wrong_kind: Collection[str]) -> bool:
    """Return whether one of the references is below the pointer."""
    return any(each.startswith(f"{pointer}/") for each in wrong_kind)


def _apply_on_unavailable(holds: Truth, on_unavailable: object) -> Truth:
    """Return when a rule counts as matched and when not; an unknown condition may occur for any values."""
    match on_unavailable:
        case "matched":
            return Truth({}, holds.false)
        case "notMatched":
            return Truth(holds.true, {})
        case _:
            return holds


def _read_if_sound(adapter: TypeAdapter[Any], given: object) -> Any:
    try:
        return adapter.validate_json(json.dumps(given), strict=True)
    except ValidationError:
        return None


def _find_constant_parts(condition: Condition, pointer: str) -> Iterator[Finding]:
    """Yield the smallest parts that are never true, or never false."""
    below = [each for inner, at in _parts(condition, pointer) for each in _find_constant_parts(inner, at)]
    yield from below
    if not below:
        yield from _check_constant(condition, pointer)


def _parts(condition: Condition, pointer: str) -> list[tuple[Condition, str]]:
    match condition:
        case AllOf() | AnyOf():
            return [(each, f"{pointer}/{condition.operator}/{nth}") for nth, each in enumerate(condition.operands)]
        case Not(not_=inner):
            return [(inner, f"{pointer}/not")]
        case _:
            return []


def _check_constant(condition: Condition, pointer: str) -> Iterator[Finding]:
    holds = truth(condition)
    if isinstance(condition, Between) and holds.true is None:
        yield finding(pointer, "EmptyRange", "No number is in this range: the lower bound is above the upper one.")
    elif holds.true is None:
        yield finding(pointer, "NeverTrue", "This can never be true: its parts contradict each other.")
    elif holds.false is None:
        yield finding(pointer, "AlwaysTrue", "This is never false, so it does not distinguish between customers.")


# Numbers


def _check_numbers(condition: Condition, pointer: str) -> Iterator[Finding]:
    match condition:
        case AllOf() | AnyOf() | Not():
            for inner, at in _parts(condition, pointer):
                yield from _check_numbers(inner, at)
        case Operation():
            yield from _check_operands(condition, pointer)


def _check_operands(operation: Operation, pointer: str) -> Iterator[Finding]:
    for nth, each in enumerate(operation.operands):
        yield from _check_number(each, f"{pointer}/{_key(operation)}/{nth}")


def _key(operation: Operation) -> str:
    field = type(operation).model_fields[operation.operator]
    return field.alias or operation.operator


def _check_number(number: Number, pointer: str) -> Iterator[Finding]:
    below = list(_check_inner_numbers(number, pointer))
    yield from below
    if not below and fold(number) is Open.NO_VALUE:
        says = "This never has a value: it divides by zero, or exceeds the largest number."
        yield finding(pointer, "NoValue", says)


def _check_inner_numbers(number: Number, pointer: str) -> Iterator[Finding]:
    match number:
        case Tiers(tiers=tiers):
            at = f"{pointer}/tiers"
            yield from _check_number(tiers.of, f"{at}/of")
            for nth, band in enumerate(tiers.bands):
                yield from _check_number(band.value, f"{at}/bands/{nth}/value")
                if nth and Decimal(band.below) <= Decimal(tiers.bands[nth - 1].below):
                    says = "Bounds of bands must increase: no number falls into a band that ends below the one before."
                    yield finding(f"{at}/bands/{nth}/below", "BandsDontRise", says)
            yield from _check_number(tiers.otherwise, f"{at}/otherwise")
        case Operation():
            yield from _check_operands(number, pointer)


# Steps


def _find_unreachable(steps: list[ReadStep]) -> Iterator[Finding]:
    """Yield steps and rules that no customer reaches: at each step, all steps before it were false."""
    left: Box | None = {}
    for step in steps:
        if left is None:
            says = "No customer reaches this step: the steps before it decide for every customer."
            yield finding(step.pointer, "StepUnreachable", says)
        elif step.rules_without_finding == step.rules:
            yield from _find_never_matching(step, left)
        left = both(left, step.matched.false)


def _find_never_matching(step: ReadStep, left: Box) -> Iterator[Finding]:
    if exclude_each_other(left, step.matched.true):
        yield finding(step.pointer, "StepUnreachable", _NEVER_MATCHES)
        return
    for rule in step.rules:
        if exclude_each_other(left, rule.counted.true):
            says = "No customer meets this rule here: a step before decides for all who would."
            yield finding(rule.pointer, "RuleUnreachable", says)


_NEVER_MATCHES = "This step never matches: its rules exclude each other, or steps before decide for all who meet them."


def _find_repeated(step: ReadStep) -> Iterator[Finding]:
    for earlier, later in combinations(step.rules_without_finding, 2):
        if _implies(earlier, later) and _implies(later, earlier):
            says = f"This rule has the same condition as the one at {earlier.pointer}."
            yield finding(f"{later.pointer}/condition", "RuleRepeated", says)


def _find_idle(step: ReadStep) -> Iterator[Finding]:
    seen: set[str] = set()
    for one, other in permutations(step.rules_without_finding, 2):
        idle, first = (one, other) if step.match == "any" else (other, one)
        if idle.pointer not in seen and _decides(one, other) and not _implies(other, one):
            seen.add(idle.pointer)
            says = (
                f"This rule never decides: the one at {first.pointer} decides whenever it would. It only adds a reason."
            )
            yield finding(f"{idle.pointer}/condition", "RuleIdle", says)


def _implies(one: ReadRule, other: ReadRule) -> bool:
    """Return whether the second condition holds wherever the first does."""
    return exclude_each_other(one.condition.true, other.condition.false)


def _decides(one: ReadRule, other: ReadRule) -> bool:
    """Return whether the second rule counts as matched wherever the first does, including unknown values."""
    return exclude_each_other(one.counted.true, other.counted.false)


# Limits


def _check_limit(policy: Data, pointer: str, given: Data) -> Iterator[Finding]:
    numbers = [(f"{pointer}/amount", given.get("amount"))]
    numbers += [(f"{at}/value", cap.get("value")) for at, cap in entries(given, "caps", pointer)]
    for at, number in numbers:
        if (sound := _read_if_sound(_NUMBER, number)) is not None:
            yield from _check_number(sound, at)
    if (limit := _read_if_sound(_LIMIT, given)) is not None:
        yield from _check_offer(limit, _member(given, pointer, "minimum"))
        yield from _check_outcomes(policy, limit, _member(given, pointer, "outcomes"))


def _member(given: Data, pointer: str, name: str) -> str:
    """Return the pointer of a member, or of its object if the member is missing."""
    return f"{pointer}/{name}" if name in given else pointer


def _check_offer(limit: Limit, pointer: str) -> Iterator[Finding]:
    multiple, minimum = Decimal(limit.round_down_to), Decimal(limit.minimum)
    ceiling = _ceiling(limit)
    if ceiling is not None and ceiling // multiple * multiple < max(minimum, multiple):
        says = "Nothing is ever offered: the lowest constant cap, rounded down, is below the minimum."
        yield finding(pointer, "MinimumAboveCap", says)


def _ceiling(limit: Limit) -> Decimal | None:
    """Return the most that constants allow to be offered; None if they set no bound."""
    ceilings = [upper_bound(each) for each in (limit.amount, *(cap.value for cap in limit.caps))]
    return min((each for each in ceilings if each is not None), default=None)


def _check_outcomes(policy: Data, limit: Limit, pointer: str) -> Iterator[Finding]:
    decided = [policy.get("defaultOutcome"), *(step.get("outcome") for _, step in entries(policy, "steps"))]
    if all(each in OUTCOMES for each in decided) and not set(decided) & set(limit.outcomes):
        yield finding(pointer, "NeverOffered", "No step and no default has any of these outcomes.")
