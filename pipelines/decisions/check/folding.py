"""Constant folding: the value of a policy's number that is known before any data are read."""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from enum import Enum
from typing import TypeAlias

from pipelines.decisions.numbers import EXACT, round_value
from pipelines.decisions.policy import Number, Operation, Tiers


class Open(Enum):
    DEPENDS = "depends on data"
    NO_VALUE = "never has a value: it divides by zero, or exceeds the largest number"


Folded: TypeAlias = Decimal | Open


def fold(number: Number) -> Folded:
    match number:
        case str():
            return Decimal(number)
        case Tiers(tiers=tiers):
            bands = [(Decimal(band.below), band.value) for band in tiers.bands]
            return _fold_tiers(fold(tiers.of), bands, tiers.otherwise)
        case Operation():
            return _calculate(number.operator, [fold(each) for each in number.operands])
        case _:
            return Open.DEPENDS


def _fold_tiers(placed: Folded, bands: Sequence[tuple[Decimal, Number]], otherwise: Number) -> Folded:
    if isinstance(placed, Open):
        return placed
    return fold(next((value for below, value in bands if placed < below), otherwise))


def _calculate(operator: str, operands: Sequence[Folded]) -> Folded:
    if Open.NO_VALUE in operands or (operator == "divide" and operands[1] == 0):
        return Open.NO_VALUE
    first, *others = operands
    for operand in others:
        first = _step(operator, first, operand)
    return first


def _step(operator: str, left: Folded, right: Folded) -> Folded:
    if isinstance(left, Open) or isinstance(right, Open):
        return Open.NO_VALUE if Open.NO_VALUE in {left, right} else Open.DEPENDS
    value = round_value(_STEPS[operator](left, right))
    return Open.NO_VALUE if value is None else value


_STEPS: Mapping[str, Callable[[Decimal, Decimal], Decimal]] = {
    "add": EXACT.add,
    "subtract": EXACT.subtract,
    "multiply": EXACT.multiply,
    "divide": EXACT.divide,
    "min": min,
    "max": max,
}


def upper_bound(number: Number) -> Decimal | None:
    """Return the largest value that constants allow the number to have; None if they set no bound."""
    value = fold(number)
    if isinstance(value, Decimal):
        return value
    match number:
        case Tiers(tiers=tiers):
            values = [upper_bound(each) for each in (*(band.value for band in tiers.bands), tiers.otherwise)]
            return _greatest_if_all_known(values)
        case Operation(operator="min"):
            return min((each for each in map(upper_bound, number.operands) if each is not None), default=None)
        case Operation(operator="max"):
            return _greatest_if_all_known([upper_bound(each) for each in number.operands])
        case _:
            return None


def _greatest_if_all_known(values: Sequence[Decimal | None]) -> Decimal | None:
    known = [each for each in values if each is not None]
    return max(known) if len(known) == len(values) else None
