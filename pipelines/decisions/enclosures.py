"""Enclose the possible results of a plan while one number varies within a range, for `sensitivity`.

An enclosure may contain results that never occur, but none that may occur is missing.

Numbers are whole units of 10⁻⁸, so that everything here is exact. Arithmetic is monotone in each operand, except for
division at zero, and so is rounding: the results at the corners of the ranges enclose all results between.
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
MAX_UNITS = LARGEST * ONE - 1  # the largest number of a policy, in units

Truths = frozenset[bool | None]  # possible values of a condition; None: unknown
UNKNOWN: Truths = frozenset((None,))


@dataclass(frozen=True)
class Range:
    """A range in units, bounds included. `known`: it may have a value; `unknown`: it may have none."""

    low: int
    high: int
    known: bool = True
    unknown: bool = False

    @property
    def is_point(self) -> bool:
        return self.low == self.high


NOTHING = Range(0, 0, known=False, unknown=True)
NodeValues = dict[str, Any]  # by node: a Range, Truths, or for a leaf its text or truth


def depending_nodes(plan: Plan, name: str) -> list[Node]:
    """Return the nodes that depend on this one, operands first."""
    above = {name}
    for node in plan.nodes.values():
        if not above.isdisjoint(node.operands):
            above.add(node.name)
    return [node for node in plan.nodes.values() if node.name in above and node.name != name]


def fixed_values(plan: Plan, row: Mapping[str, Any]) -> NodeValues:
    """Return every node's value in a row of `evaluate_plan` as a range of one point or a set of one truth."""
    return {node.name: _enclose(node, row[node.name]) for node in plan.nodes.values()}


def _enclose(node: Node, value: Any) -> Any:
    if node.kind == "decimal":
        return NOTHING if value is None else Range(units(value), units(value))
    return value if node.is_leaf else frozenset((value,))


def possible_outcomes(plan: Plan, found: NodeValues, depending: Sequence[Node]) -> frozenset[str]:
    """Return every possible outcome.

    Args:
        found: `fixed_values`, with the range of the varying leaf; the nodes that depend on it are updated in place.
        depending: the nodes that depend on it (`depending_nodes`).
    """
    for node in depending:
        found[node.name] = _VALUES[node.operator](node, [found[each] for each in node.operands])
    return frozenset(_outcomes(plan, found))


def _outcomes(plan: Plan, found: NodeValues) -> Iterable[str]:
    for planned in plan.steps:
        truths = _step(planned, found)
        if True in truths:
            yield planned.step.outcome
        if None in truths:
            yield INDETERMINATE
        if False not in truths:
            return
    yield plan.policy.default_outcome


def _step(planned: PlannedStep, found: NodeValues) -> Truths:
    rules = [
        frozenset(each.rule.when_unknown if truth is None else truth for truth in found[each.condition])
        for each in planned.rules
    ]
    return _any(rules) if planned.step.match == "any" else _all(rules)


# Logic of sets of possible truths


def _all(operands: Sequence[Truths]) -> Truths:
    return reduce(lambda left, right: frozenset(_and(a, b) for a in left for b in right), operands)


def _any(operands: Sequence[Truths]) -> Truths:
    return _not(_all([_not(each) for each in operands]))


def _and(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return True if left and right else None


def _not(truths: Truths) -> Truths:
    return frozenset(None if truth is None else not truth for truth in truths)


def _possible_truths(least: bool, most: bool, *operands: Range) -> Truths:
    """Return the possible truths. `least`, `most`: the comparison at its least and at its most favourable corner."""
    if not all(each.known for each in operands):
        return UNKNOWN
    unknown: Truths = UNKNOWN if any(each.unknown for each in operands) else frozenset()
    return unknown | {least, most}


def _more(left: Range, right: Range) -> Truths:
    return _possible_truths(left.low > right.high, left.high > right.low, left, right)


def _at_least(left: Range, right: Range) -> Truths:
    return _possible_truths(left.low >= right.high, left.high >= right.low, left, right)


def _is_between(value: Range, low: Range, high: Range) -> Truths:
    return _all([_at_least(value, low), _at_least(high, value)])


def _equals(left: Range, right: Range) -> Truths:
    surely = left.is_point and right.is_point and left.low == right.low
    return _possible_truths(surely, left.low <= right.high and right.low <= left.high, left, right)


def _is_known(leaf: Range) -> Truths:
    return frozenset(truth for truth, may in ((True, leaf.known), (False, leaf.unknown)) if may)


# Arithmetic of ranges


def _cut_at_largest(low: int, high: int, *, unknown: bool) -> Range:
    """Cut a range at the largest number; values beyond it are unknown."""
    beyond = low < -MAX_UNITS or high > MAX_UNITS
    low, high = max(low, -MAX_UNITS), min(high, MAX_UNITS)
    return NOTHING if low > high else Range(low, high, known=True, unknown=unknown or beyond)


def _at_corners(corner: Callable[[int, int], int]) -> Callable[[Range, Range], Range]:
    def value(left: Range, right: Range) -> Range:
        if not (left.known and right.known):
            return NOTHING
        corners = [corner(a, b) for a in (left.low, left.high) for b in (right.low, right.high)]
        return _cut_at_largest(min(corners), max(corners), unknown=left.unknown or right.unknown)

    return value


def _divide(left: Range, right: Range) -> Range:
    """Divide by the negative and by the positive part of the range separately; division by zero has no value."""
    sides = ((right.low, min(right.high, -1)), (max(right.low, 1), right.high))
    parts = [Range(low, high, known=right.known) for low, high in sides if low <= high]
    may_be_unknown = right.unknown or right.low <= 0 <= right.high
    return _enclose_all([_at_corners(_quotient)(left, part) for part in parts], unknown=may_be_unknown)


def _enclose_all(found: Sequence[Range], *, unknown: bool) -> Range:
    """Return the range that encloses all of these."""
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
    """Return the quotient, rounded to a whole number, half to even."""
    if bottom < 0:
        top, bottom = -top, -bottom
    whole, rest = divmod(top, bottom)
    return whole + (2 * rest > bottom or (2 * rest == bottom and whole % 2 == 1))


def _extreme_of(choose: Callable[[Iterable[int]], int], operands: Sequence[Range]) -> Range:
    if not all(each.known for each in operands):
        return NOTHING
    low, high = choose(each.low for each in operands), choose(each.high for each in operands)
    return Range(low, high, known=True, unknown=any(each.unknown for each in operands))


def _tiers(node: Node, operands: Sequence[Range]) -> Range:
    """Return the range that encloses the values of all bands that the placed number may fall into."""
    placed, *values = operands
    edges = [-MAX_UNITS, *(units(Decimal(each)) for each in node.subject), MAX_UNITS + 1]
    bands = zip(values, pairwise(edges), strict=True)
    touched = [value for value, (low, high) in bands if placed.known and placed.low < high and placed.high >= low]
    return _enclose_all(touched, unknown=placed.unknown)


def _fold(two: Callable[[Range, Range], Range]) -> Callable[[Node, Sequence[Range]], Range]:
    return lambda _, operands: reduce(two, operands)


_VALUES: Mapping[str, Callable[[Node, Sequence[Any]], Any]] = {
    "add": _fold(_at_corners(int.__add__)),
    "subtract": _fold(_at_corners(int.__sub__)),
    "multiply": _fold(_at_corners(_product)),
    "divide": _fold(_divide),
    "min": lambda _, operands: _extreme_of(min, operands),
    "max": lambda _, operands: _extreme_of(max, operands),
    "tiers": _tiers,
    "at_least": lambda _, sides: _at_least(*sides),
    "at_most": lambda _, sides: _at_least(sides[1], sides[0]),
    "more_than": lambda _, sides: _more(*sides),
    "less_than": lambda _, sides: _more(sides[1], sides[0]),
    "equals": lambda _, sides: _equals(*sides),
    "differs": lambda _, sides: _not(_equals(*sides)),
    "between": lambda _, operands: _is_between(*operands),
    "is_known": lambda _, operands: _is_known(operands[0]),
    "all": lambda _, operands: _all(operands),
    "any": lambda _, operands: _any(operands),
    "not": lambda _, operands: _not(operands[0]),
}
