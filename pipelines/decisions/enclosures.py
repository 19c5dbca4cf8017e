"""What a plan could come to while one number moves within a range: an enclosure, never too narrow.

Numbers are whole units of 10⁻⁸, so that everything here is exact. Arithmetic is monotone in each of its operands, apart
from division at zero, and so is rounding: what the corners come to encloses what lies between.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from itertools import pairwise
from typing import Any

from pipelines.decisions.nodes import Node
from pipelines.decisions.numbers import LARGEST, SCALE, units
from pipelines.decisions.plan import Plan, PlannedStep
from pipelines.decisions.policy import INDETERMINATE

ONE: int = 10**SCALE
MOST = LARGEST * ONE - 1  # the largest number that there is, in units

Truths = frozenset[bool | None]  # what a condition may be; None: unknown
UNKNOWN: Truths = frozenset((None,))


@dataclass(frozen=True)
class Range:
    """From `low` to `high`, in units, both included. `known`: whether it may have a value; `unknown`: may have none."""

    low: int
    high: int
    known: bool = True
    unknown: bool = False

    @property
    def is_point(self) -> bool:
        return self.low == self.high


NOTHING = Range(0, 0, known=False, unknown=True)
Found = dict[str, Any]  # by node: a Range, Truths, or the text or the truth that it is


def depending(plan: Plan, name: str) -> list[Node]:
    """The nodes above this one, operands first."""
    above = {name}
    for node in plan.nodes.values():
        if not above.isdisjoint(node.of):
            above.add(node.name)
    return [node for node in plan.nodes.values() if node.name in above and node.name != name]


def fixed(plan: Plan, row: Mapping[str, Any]) -> Found:
    """Every node as it was evaluated (a row of `evaluated`)."""
    return {node.name: _as_evaluated(node, row[node.name]) for node in plan.nodes.values()}


def _as_evaluated(node: Node, value: Any) -> Any:
    if node.kind == "decimal":
        return NOTHING if value is None else Range(units(value), units(value))
    return value if node.is_leaf else frozenset((value,))


def outcomes(plan: Plan, found: Found, moving: Sequence[Node]) -> frozenset[str]:
    """Every outcome that there may be.

    Args:
        found: `fixed`, with the leaf that moves as its range; what depends on it is put there.
        moving: what depends on it (`depending`).
    """
    for node in moving:
        found[node.name] = _VALUES[node.operator](node, [found[each] for each in node.of])
    return frozenset(_outcomes(plan, found))


def _outcomes(plan: Plan, found: Found) -> Iterable[str]:
    for planned in plan.steps:
        truths = _step(planned, found)
        if True in truths:
            yield planned.step.outcome
        if None in truths:
            yield INDETERMINATE
        if False not in truths:
            return
    yield plan.policy.default_outcome


def _step(planned: PlannedStep, found: Found) -> Truths:
    rules = [
        frozenset(each.rule.when_unknown if truth is None else truth for truth in found[each.condition])
        for each in planned.rules
    ]
    return _any(rules) if planned.step.match == "any" else _all(rules)


# Logic, of all that may be


def _all(of: Sequence[Truths]) -> Truths:
    return reduce(lambda left, right: frozenset(_and(a, b) for a in left for b in right), of)


def _any(of: Sequence[Truths]) -> Truths:
    return _not(_all([_not(each) for each in of]))


def _and(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return True if left and right else None


def _not(of: Truths) -> Truths:
    return frozenset(None if truth is None else not truth for truth in of)


def _compared(least: bool, most: bool, *operands: Range) -> Truths:
    """`least`, `most`: what the comparison is at its unlikeliest and at its likeliest."""
    if not all(each.known for each in operands):
        return UNKNOWN
    unknown: Truths = UNKNOWN if any(each.unknown for each in operands) else frozenset()
    return unknown | {least, most}


def _more(left: Range, right: Range) -> Truths:
    return _compared(left.low > right.high, left.high > right.low, left, right)


def _at_least(left: Range, right: Range) -> Truths:
    return _compared(left.low >= right.high, left.high >= right.low, left, right)


def _equals(left: Range, right: Range) -> Truths:
    surely = left.is_point and right.is_point and left.low == right.low
    return _compared(surely, left.low <= right.high and right.low <= left.high, left, right)


def _is_known(of: Range) -> Truths:
    return frozenset(truth for truth, may in ((True, of.known), (False, of.unknown)) if may)


# Arithmetic, of all that may be


def _bounded(low: int, high: int, *, unknown: bool) -> Range:
    """What lies beyond the largest number is unknown."""
    beyond = low < -MOST or high > MOST
    low, high = max(low, -MOST), min(high, MOST)
    return NOTHING if low > high else Range(low, high, known=True, unknown=unknown or beyond)


def _of_two(corner: Callable[[int, int], int]) -> Callable[[Range, Range], Range]:
    def value(left: Range, right: Range) -> Range:
        if not (left.known and right.known):
            return NOTHING
        corners = [corner(a, b) for a in (left.low, left.high) for b in (right.low, right.high)]
        return _bounded(min(corners), max(corners), unknown=left.unknown or right.unknown)

    return value


def _divided(left: Range, right: Range) -> Range:
    """By what is below nothing and by what is above it apart; by nothing there is no value."""
    sides = ((right.low, min(right.high, -1)), (max(right.low, 1), right.high))
    parts = [Range(low, high, known=right.known) for low, high in sides if low <= high]
    by_nothing = right.unknown or right.low <= 0 <= right.high
    return _either([_of_two(_quotient)(left, part) for part in parts], unknown=by_nothing)


def _either(found: Sequence[Range], *, unknown: bool) -> Range:
    """Whatever one of these may be."""
    known = [each for each in found if each.known]
    if not known:
        return NOTHING
    unknown = unknown or any(each.unknown for each in found)
    return Range(min(each.low for each in known), max(each.high for each in known), known=True, unknown=unknown)


def _product(left: int, right: int) -> int:
    return half_even(left * right, ONE)


def _quotient(left: int, right: int) -> int:
    return half_even(left * ONE, right)


def half_even(top: int, bottom: int) -> int:
    """The quotient, rounded to a whole number, half to even."""
    if bottom < 0:
        top, bottom = -top, -bottom
    whole, rest = divmod(top, bottom)
    return whole + (2 * rest > bottom or (2 * rest == bottom and whole % 2 == 1))


def _extreme(choose: Callable[[Iterable[int]], int], of: Sequence[Range]) -> Range:
    if not all(each.known for each in of):
        return NOTHING
    low, high = choose(each.low for each in of), choose(each.high for each in of)
    return Range(low, high, known=True, unknown=any(each.unknown for each in of))


def _tiers(node: Node, operands: Sequence[Range]) -> Range:
    """Of the bands that the range touches, any."""
    of, *values = operands
    edges = [-MOST, *(units(Decimal(each)) for each in node.subject), MOST + 1]
    bands = zip(values, pairwise(edges), strict=True)
    touched = [value for value, (since, until) in bands if of.known and of.low < until and of.high >= since]
    return _either(touched, unknown=of.unknown)


def _folded(two: Callable[[Range, Range], Range]) -> Callable[[Node, Sequence[Range]], Range]:
    return lambda _, of: reduce(two, of)


_VALUES: Mapping[str, Callable[[Node, Sequence[Any]], Any]] = {
    "add": _folded(_of_two(int.__add__)),
    "subtract": _folded(_of_two(int.__sub__)),
    "multiply": _folded(_of_two(_product)),
    "divide": _folded(_divided),
    "min": lambda _, of: _extreme(min, of),
    "max": lambda _, of: _extreme(max, of),
    "tiers": _tiers,
    "at_least": lambda _, of: _at_least(*of),
    "at_most": lambda _, of: _at_least(of[1], of[0]),
    "more_than": lambda _, of: _more(*of),
    "less_than": lambda _, of: _more(of[1], of[0]),
    "equals": lambda _, of: _equals(*of),
    "differs": lambda _, of: _not(_equals(*of)),
    "between": lambda _, of: _all([_at_least(of[0], of[1]), _at_least(of[2], of[0])]),
    "is_known": lambda _, of: _is_known(of[0]),
    "all": lambda _, of: _all(of),
    "any": lambda _, of: _any(of),
    "not": lambda _, of: _not(of[0]),
}
