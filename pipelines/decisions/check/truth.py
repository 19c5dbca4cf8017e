"""Derive for which values a condition can be true, and for which it can be false.

This covers comparisons of a value with constants, and comparisons of two values with each other. Not every impossible
condition is found, but a possible one is never called impossible.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from hashlib import blake2b

from pipelines.decisions.check.folding import Open, fold
from pipelines.decisions.check.spans import EVERYWHERE, Box, Spans, all_of, any_of, complement, point, points
from pipelines.decisions.numbers import units
from pipelines.decisions.policy import (
    AllOf,
    AnyOf,
    AttributeRef,
    Between,
    Condition,
    InputRef,
    IsKnown,
    IsTrue,
    MetricRef,
    Not,
    Number,
    OneOf,
    Operation,
    Reference,
    Tiers,
)


@dataclass(frozen=True)
class Truth:
    """The values for which a condition can be true, and those for which it can be false; None if there are none."""

    true: Box | None
    false: Box | None

    @property
    def opposite(self) -> "Truth":
        return Truth(self.false, self.true)


ANYTHING = Truth({}, {})


def conjunction(parts: Iterable[Truth]) -> Truth:
    parts = list(parts)
    return Truth(all_of(each.true for each in parts), any_of(each.false for each in parts))


def disjunction(parts: Iterable[Truth]) -> Truth:
    return conjunction(each.opposite for each in parts).opposite


def truth(condition: Condition) -> Truth:
    """Return for which values the condition can be true, and for which it can be false."""
    match condition:
        case AllOf():
            return conjunction(map(truth, condition.all))
        case AnyOf():
            return disjunction(map(truth, condition.any))
        case Not(not_=inner):
            return truth(inner).opposite
        case Between(between=(value, low, high)):
            return conjunction([_compare("at_least", value, low), _compare("at_most", value, high)])
        case OneOf() | IsTrue() | IsKnown():
            return _truth_of_question(condition)
        case Operation():
            return _compare(condition.operator, *condition.operands)


def _truth_of_question(condition: OneOf | IsTrue | IsKnown) -> Truth:
    match condition:
        case OneOf(one_of=membership):
            listed = points(map(_hash, membership.texts))
            return _truth_of_spans(membership.of, listed, complement(listed), [membership.of])
        case IsTrue(is_true=reference):
            return _truth_of_spans(reference, point(1), point(0), [reference])
        case IsKnown(is_known=reference):
            return Truth({_is_known_key(reference): point(1)}, {_is_known_key(reference): point(0)})


def _compare(operator: str, left: Number, right: Number) -> Truth:
    first, second = fold(left), fold(right)
    if Open.NO_VALUE in {first, second}:
        return ANYTHING
    if isinstance(first, Decimal) and isinstance(second, Decimal):
        return _compare_constants(operator, first, second)
    if isinstance(first, Decimal):
        return _compare(_MIRRORED[operator], right, left)
    if isinstance(second, Decimal):
        return _compare_with_constant(operator, left, units(second), _find_needed(left))
    return _compare_difference(operator, left, right)


def _compare_constants(operator: str, left: Decimal, right: Decimal) -> Truth:
    met = any(low <= units(left) <= high for low, high in _SPANS[operator](units(right)))
    return Truth({}, None) if met else Truth(None, {})


def _compare_difference(operator: str, left: Number, right: Number) -> Truth:
    """Compare two numbers that depend on data by their difference. Their order is normalised, so that `a < b` and
    `b > a` constrain the same difference.
    """
    if left == right:
        return _compare_constants(operator, Decimal(0), Decimal(0))
    if repr(left) > repr(right):
        left, right, operator = right, left, _MIRRORED[operator]
    return _compare_with_constant(operator, (left, right), 0, [*_find_needed(left), *_find_needed(right)])


def _compare_with_constant(operator: str, subject: Hashable, at: int, read: Iterable[Reference]) -> Truth:
    where = _SPANS[operator](at)
    return _truth_of_spans(subject, where, complement(where), read)


def _truth_of_spans(subject: Hashable, true: Spans, false: Spans, read: Iterable[Reference]) -> Truth:
    """Return the truth of a condition on one subject. It is true or false only if all its readings are known."""
    known = {_is_known_key(each): point(1) for each in read}
    return Truth({subject: true, **known}, {subject: false, **known})


_SPANS: Mapping[str, Callable[[int], Spans]] = {
    "at_least": lambda at: ((at, EVERYWHERE),),
    "at_most": lambda at: ((-EVERYWHERE, at),),
    "more_than": lambda at: ((at + 1, EVERYWHERE),),
    "less_than": lambda at: ((-EVERYWHERE, at - 1),),
    "equals": point,
    "differs": lambda at: complement(point(at)),
}
_MIRRORED: Mapping[str, str] = {
    "at_least": "at_most",
    "at_most": "at_least",
    "more_than": "less_than",
    "less_than": "more_than",
    "equals": "equals",
    "differs": "differs",
}


def _is_known_key(leaf: Reference) -> Hashable:
    return ("known", leaf)


def _find_needed(number: Number) -> Iterator[Reference]:
    """Yield the readings that must be known for the number to have a value."""
    match number:
        case MetricRef() | AttributeRef() | InputRef():
            yield number
        case Tiers(tiers=tiers):
            yield from _find_needed(tiers.of)
        case Operation():
            for each in number.operands:
                yield from _find_needed(each)


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=12).digest())
