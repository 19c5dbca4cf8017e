"""What a policy never does, or always: conditions that contradict themselves, steps and rules that nobody reaches,
numbers that come to nothing, limits that offer nothing.

Works on those parts of a plain document that are sound on their own, so that a fault in one hides none in another.
"""

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations, permutations
from typing import Any

from pydantic import TypeAdapter, ValidationError

from pipelines.decisions.check.findings import Finding, finding
from pipelines.decisions.check.folding import Open, folded, most
from pipelines.decisions.check.references import Data, entries
from pipelines.decisions.check.spans import Box, both, excluded
from pipelines.decisions.check.truth import ANYTHING, Truth, all_true, any_true, truth
from pipelines.decisions.policy import OUTCOMES, AllOf, AnyOf, Between, Condition, Limit, Not, Number, Operation, Tiers

_CONDITION: TypeAdapter[Any] = TypeAdapter(Condition)
_NUMBER: TypeAdapter[Any] = TypeAdapter(Number)
_LIMIT: TypeAdapter[Limit] = TypeAdapter(Limit)


@dataclass(frozen=True)
class Ruled:
    """A rule: when it counts as matched and when not. `own`: what is wrong with its condition alone."""

    pointer: str
    condition: Truth
    counted: Truth
    own: list[Finding]


@dataclass(frozen=True)
class Stepped:
    pointer: str
    match: str
    rules: list[Ruled]
    matched: Truth

    @property
    def sound(self) -> list[Ruled]:
        return [rule for rule in self.rules if not rule.own]


def found(document: object, astray: Collection[str] = ()) -> Iterator[Finding]:
    """`astray`: where something of a wrong kind is read. What would follow from its values isn't told."""
    policy = document if isinstance(document, dict) else {}
    yield from of_rules(policy, astray)
    yield from _unreachable(_steps(policy, astray))
    for pointer, limit in entries(policy, "limits"):
        yield from _of_limit(policy, pointer, limit)


def of_rules(policy: Data, astray: Collection[str] = ()) -> Iterator[Finding]:
    """Of the rules of each step for themselves, whatever other steps decide."""
    for step in _steps(policy, astray):
        for rule in step.rules:
            yield from rule.own
        yield from _repeated(step)


def warned(document: object, astray: Collection[str] = ()) -> Iterator[Finding]:
    """Rules that never decide, because another of their step always does when they would."""
    policy = document if isinstance(document, dict) else {}
    for step in _steps(policy, astray):
        yield from _idle(step)


# Conditions


def _steps(policy: Data, astray: Collection[str]) -> list[Stepped]:
    return [_stepped(pointer, step, astray) for pointer, step in entries(policy, "steps")]


def _stepped(pointer: str, step: Data, astray: Collection[str]) -> Stepped:
    listed, match = step.get("rules"), step.get("match", "any")
    rules = [_ruled(at, rule, astray) for at, rule in entries(step, "rules", pointer)]
    whole = isinstance(listed, list) and 0 < len(rules) == len(listed)
    together = all_true if match == "all" else any_true
    return Stepped(pointer, match, rules, together(rule.counted for rule in rules) if whole else ANYTHING)


def _ruled(pointer: str, rule: Data, astray: Collection[str]) -> Ruled:
    condition = _sound(_CONDITION, rule.get("condition"))
    if condition is None:
        return Ruled(pointer, ANYTHING, ANYTHING, [])
    at = f"{pointer}/condition"
    constant = [each for each in _constantly(condition, at) if not _reaches(each.pointer, astray)]
    own = [*_numbers_in(condition, at), *constant]
    holds = ANYTHING if _reaches(at, astray) else truth(condition)
    return Ruled(pointer, holds, _counted(holds, rule.get("onUnavailable")), own)


def _reaches(pointer: str, astray: Collection[str]) -> bool:
    """Whether one of these stands below."""
    return any(each.startswith(f"{pointer}/") for each in astray)


def _counted(holds: Truth, on_unavailable: object) -> Truth:
    """An unknown condition that counts as something may do so anywhere."""
    match on_unavailable:
        case "matched":
            return Truth({}, holds.false)
        case "notMatched":
            return Truth(holds.true, {})
        case _:
            return holds


def _sound(adapter: TypeAdapter[Any], given: object) -> Any:
    try:
        return adapter.validate_json(json.dumps(given), strict=True)
    except ValidationError:
        return None


def _constantly(condition: Condition, pointer: str) -> Iterator[Finding]:
    """The smallest parts that are never true, or never false."""
    below = [each for inner, at in _parts(condition, pointer) for each in _constantly(inner, at)]
    yield from below
    if not below:
        yield from _constant(condition, pointer)


def _parts(condition: Condition, pointer: str) -> list[tuple[Condition, str]]:
    match condition:
        case AllOf() | AnyOf():
            return [(each, f"{pointer}/{condition.operator}/{nth}") for nth, each in enumerate(condition.operands)]
        case Not(not_=inner):
            return [(inner, f"{pointer}/not")]
        case _:
            return []


def _constant(condition: Condition, pointer: str) -> Iterator[Finding]:
    holds = truth(condition)
    if isinstance(condition, Between) and holds.true is None:
        yield finding(pointer, "EmptyRange", "Nothing lies between these two: the lower bound is above the upper one.")
    elif holds.true is None:
        yield finding(pointer, "NeverTrue", "This can never be true: nothing meets all that it asks for.")
    elif holds.false is None:
        yield finding(pointer, "AlwaysTrue", "This is never false: it tells nobody from anybody.")


# Numbers


def _numbers_in(condition: Condition, pointer: str) -> Iterator[Finding]:
    match condition:
        case AllOf() | AnyOf() | Not():
            for inner, at in _parts(condition, pointer):
                yield from _numbers_in(inner, at)
        case Operation():
            yield from _of_operands(condition, pointer)


def _of_operands(operation: Any, pointer: str) -> Iterator[Finding]:
    for nth, each in enumerate(operation.operands):
        yield from _of_number(each, f"{pointer}/{_key(operation)}/{nth}")


def _key(operation: Operation) -> str:
    field = type(operation).model_fields[operation.operator]
    return field.alias or operation.operator


def _of_number(number: Number, pointer: str) -> Iterator[Finding]:
    below = list(_below(number, pointer))
    yield from below
    if not below and folded(number) is Open.NO_VALUE:
        says = "This never has a value: it divides by zero, or goes beyond what numbers hold."
        yield finding(pointer, "NoValue", says)


def _below(number: Number, pointer: str) -> Iterator[Finding]:
    match number:
        case Tiers(tiers=tiers):
            at = f"{pointer}/tiers"
            yield from _of_number(tiers.of, f"{at}/of")
            for nth, band in enumerate(tiers.bands):
                yield from _of_number(band.value, f"{at}/bands/{nth}/value")
                if nth and Decimal(band.below) <= Decimal(tiers.bands[nth - 1].below):
                    says = "Bands rise: this is not above the one before, so nothing falls into it."
                    yield finding(f"{at}/bands/{nth}/below", "BandsDontRise", says)
            yield from _of_number(tiers.otherwise, f"{at}/otherwise")
        case Operation():
            yield from _of_operands(number, pointer)


# Steps


def _unreachable(steps: list[Stepped]) -> Iterator[Finding]:
    """Of customers that come as far as a step, all steps before were false."""
    left: Box | None = {}
    for step in steps:
        if left is None:
            yield finding(step.pointer, "StepUnreachable", "Nobody gets here: the steps before decide for everybody.")
        elif step.sound == step.rules:
            yield from _never_matching(step, left)
        left = both(left, step.matched.false)


def _never_matching(step: Stepped, left: Box) -> Iterator[Finding]:
    if excluded(left, step.matched.true):
        yield finding(step.pointer, "StepUnreachable", _NEVER_MATCHES)
        return
    for rule in step.rules:
        if excluded(left, rule.counted.true):
            says = "Nobody meets this here: whoever would is decided by a step before."
            yield finding(rule.pointer, "RuleUnreachable", says)


_NEVER_MATCHES = "This step never matches: its rules exclude each other, or whoever meets them is decided before."


def _repeated(step: Stepped) -> Iterator[Finding]:
    for earlier, later in combinations(step.sound, 2):
        if _implies(earlier, later) and _implies(later, earlier):
            says = f"This rule asks for the same as the one at {earlier.pointer}."
            yield finding(f"{later.pointer}/condition", "RuleRepeated", says)


def _idle(step: Stepped) -> Iterator[Finding]:
    seen: set[str] = set()
    for one, other in permutations(step.sound, 2):
        idle, by = (one, other) if step.match == "any" else (other, one)
        if idle.pointer not in seen and _decides(one, other) and not _implies(other, one):
            seen.add(idle.pointer)
            says = f"This rule never decides: the one at {by.pointer} does whenever it would. It only adds a reason."
            yield finding(f"{idle.pointer}/condition", "RuleIdle", says)


def _implies(one: Ruled, other: Ruled) -> bool:
    """Whether the second holds wherever the first does."""
    return excluded(one.condition.true, other.condition.false)


def _decides(one: Ruled, other: Ruled) -> bool:
    """The same of how they count, unknown values included."""
    return excluded(one.counted.true, other.counted.false)


# Limits


def _of_limit(policy: Data, pointer: str, given: Data) -> Iterator[Finding]:
    numbers = [(f"{pointer}/amount", given.get("amount"))]
    numbers += [(f"{at}/value", cap.get("value")) for at, cap in entries(given, "caps", pointer)]
    for at, number in numbers:
        if (sound := _sound(_NUMBER, number)) is not None:
            yield from _of_number(sound, at)
    if (limit := _sound(_LIMIT, given)) is not None:
        yield from _of_offer(limit, _member(given, pointer, "minimum"))
        yield from _never_offered(policy, limit, _member(given, pointer, "outcomes"))


def _member(of: Data, pointer: str, name: str) -> str:
    """Where a member stands, or what should have it."""
    return f"{pointer}/{name}" if name in of else pointer


def _of_offer(limit: Limit, pointer: str) -> Iterator[Finding]:
    multiple, minimum = Decimal(limit.round_down_to), Decimal(limit.minimum)
    ceiling = _ceiling(limit)
    if ceiling is not None and ceiling // multiple * multiple < max(minimum, multiple):
        says = "Nothing is ever offered: the lowest constant cap, rounded down, is below the minimum."
        yield finding(pointer, "MinimumAboveCap", says)


def _ceiling(limit: Limit) -> Decimal | None:
    """What constants alone let through at most."""
    ceilings = [most(each) for each in (limit.amount, *(cap.value for cap in limit.caps))]
    return min((each for each in ceilings if each is not None), default=None)


def _never_offered(policy: Data, limit: Limit, pointer: str) -> Iterator[Finding]:
    decided = [policy.get("defaultOutcome"), *(step.get("outcome") for _, step in entries(policy, "steps"))]
    if all(each in OUTCOMES for each in decided) and not set(decided) & set(limit.outcomes):
        yield finding(pointer, "NeverOffered", "No step and no default has any of these outcomes.")
