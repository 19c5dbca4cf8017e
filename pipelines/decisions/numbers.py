"""Arithmetic of policies: exact decimals of eight places, each step rounded half to even.

The first part of this module works on columns, the second on single numbers, for results and searches outside of
frames.

A node whose value is LARGEST or more, or which divides by zero, has no value; evaluation continues. With 15 digits
before the point the sum or product of two numbers always fits the 38 digits of Polars' decimals. One number that does
not fit would make Polars raise for the whole frame.
"""

from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from functools import reduce

import polars as pl

SCALE = 8
NUMBER = pl.Decimal(38, SCALE)
LARGEST = 10**15  # limit of any value, exclusive
_BOUNDED = pl.Decimal(15 + SCALE, SCALE)  # the widest type that can't hold LARGEST

Operands = Sequence[pl.Expr]
Combine = Callable[[pl.Expr, pl.Expr], pl.Expr]


def round_column(value: pl.Expr) -> pl.Expr:
    """Round a decimal of any precision to a policy's number; null if it is LARGEST or more.

    The value must occur once in the expression: if it occurred twice, the expression would double with every operand,
    and 20 operands would exhaust a process's memory. A cast to fewer digits is the only test of Polars that
    names its operand just once.
    """
    return value.cast(_BOUNDED, strict=False).cast(NUMBER)


def combine_from_left(combine: Combine) -> Callable[[Operands], pl.Expr]:
    """Combine operands from the left and bound each step: a sum that exceeds LARGEST on the way has no value either."""
    return lambda operands: reduce(lambda left, right: round_column(combine(left, right)), operands)


def _divide(top: pl.Expr, bottom: pl.Expr) -> pl.Expr:
    return top / pl.when(bottom != 0).then(bottom)


def least(operands: Operands) -> pl.Expr:
    return _if_all_known(operands, pl.min_horizontal(operands))


def greatest(operands: Operands) -> pl.Expr:
    return _if_all_known(operands, pl.max_horizontal(operands))


def _if_all_known(operands: Operands, value: pl.Expr) -> pl.Expr:
    """Return null if any operand is unknown: Polars skips nulls, but the unknown one could be the least or greatest."""
    return pl.when(pl.all_horizontal(each.is_not_null() for each in operands)).then(value)


def in_bands(operands: Operands, bounds: Sequence[str]) -> pl.Expr:
    """Return the value of the first band whose bound is above the first operand, else the last operand.

    Args:
        operands: the number to place, a value for each band, and the value for numbers above all bounds.
    """
    number, *values, otherwise = operands
    chosen = otherwise
    for below, value in reversed(list(zip(bounds, values, strict=True))):
        chosen = pl.when(number < constant(below)).then(value).otherwise(chosen)
    return pl.when(number.is_not_null()).then(chosen)


def round_down(value: pl.Expr, multiple: str) -> pl.Expr:
    """Round a value that is not negative down to a multiple."""
    return value - value % constant(multiple)


def constant(text: str) -> pl.Expr:
    return pl.lit(text).cast(NUMBER)


ARITHMETIC: Mapping[str, Callable[[Operands], pl.Expr]] = {
    "add": combine_from_left(pl.Expr.add),
    "subtract": combine_from_left(pl.Expr.sub),
    "multiply": combine_from_left(pl.Expr.mul),
    "divide": combine_from_left(_divide),
    "min": least,
    "max": greatest,
}
COMPARISONS: Mapping[str, Combine] = {
    "at_least": pl.Expr.ge,
    "at_most": pl.Expr.le,
    "more_than": pl.Expr.gt,
    "less_than": pl.Expr.lt,
    "equals": pl.Expr.eq,
    "differs": pl.Expr.ne,
}


# Single numbers

EXACT = Context(prec=80, rounding=ROUND_HALF_EVEN)  # holds the exact product or quotient of two numbers
_PLACES = Decimal(1).scaleb(-SCALE)


def round_value(value: Decimal) -> Decimal | None:
    """Round to a policy's number; None if it is LARGEST or more."""
    if value.copy_abs() >= LARGEST:
        return None
    number = value.quantize(_PLACES, context=EXACT)
    return number if number.copy_abs() < LARGEST else None


def units(number: Decimal) -> int:
    """Return a number in hundred-millionths, as a whole number."""
    return int(number.scaleb(SCALE))


def as_number(value: int) -> Decimal:
    """Return the number that this many hundred-millionths make: the inverse of `units`."""
    return Decimal(value).scaleb(-SCALE)
