"""Arithmetic of policies: exact decimals of eight places, each step rounded half to even.

Columns of them first, then the same of one number, for what is told or looked for outside of frames.

A value of LARGEST or more is not told, nor what is divided by zero: such a node has no value, and the rest goes on.
With 15 digits before the point, what two numbers make together always fits the 38 digits that Polars has, which would
refuse a whole frame for one that doesn't.
"""

from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from functools import reduce

import polars as pl

SCALE = 8
NUMBER = pl.Decimal(38, SCALE)
LARGEST = 10**15  # of any value, exclusive
_DESCRIBED = pl.Decimal(15 + SCALE, SCALE)  # which holds no LARGEST

Operands = Sequence[pl.Expr]
Combine = Callable[[pl.Expr, pl.Expr], pl.Expr]


def described(value: pl.Expr) -> pl.Expr:
    """A decimal of any precision as a number of a policy; null from LARGEST on."""
    fits = pl.when(value.abs() < LARGEST).then(value)
    return bounded(fits.cast(NUMBER))


def bounded(value: pl.Expr) -> pl.Expr:
    """Null what is LARGEST or more.

    The value is named once: an expression that named it twice would double with every operand, and 20 of them take a
    process's memory. A cast to fewer digits is the only such test that Polars has.
    """
    return value.cast(_DESCRIBED, strict=False).cast(NUMBER)


def from_the_left(combine: Combine) -> Callable[[Operands], pl.Expr]:
    """Each step is bounded: what comes back from beyond LARGEST isn't told either."""
    return lambda operands: reduce(lambda left, right: bounded(combine(left, right)), operands)


def _quotient(top: pl.Expr, bottom: pl.Expr) -> pl.Expr:
    return top / pl.when(bottom != 0).then(bottom)


def least(operands: Operands) -> pl.Expr:
    return _if_all_known(operands, pl.min_horizontal(operands))


def greatest(operands: Operands) -> pl.Expr:
    return _if_all_known(operands, pl.max_horizontal(operands))


def _if_all_known(operands: Operands, value: pl.Expr) -> pl.Expr:
    """Polars leaves nulls out of the least and the greatest; an unknown one could have been either."""
    return pl.when(pl.all_horizontal(each.is_not_null() for each in operands)).then(value)


def in_bands(operands: Operands, bounds: Sequence[str]) -> pl.Expr:
    """Of the operands the first is placed; the value of the first band that it is below, else the last."""
    of, *values, otherwise = operands
    chosen = otherwise
    for below, value in reversed(list(zip(bounds, values, strict=True))):
        chosen = pl.when(of < constant(below)).then(value).otherwise(chosen)
    return pl.when(of.is_not_null()).then(chosen)


def rounded_down(value: pl.Expr, multiple: str) -> pl.Expr:
    """To a multiple; the value is not negative."""
    return value - value % constant(multiple)


def constant(text: str) -> pl.Expr:
    return pl.lit(text).cast(NUMBER)


ARITHMETIC: Mapping[str, Callable[[Operands], pl.Expr]] = {
    "add": from_the_left(pl.Expr.add),
    "subtract": from_the_left(pl.Expr.sub),
    "multiply": from_the_left(pl.Expr.mul),
    "divide": from_the_left(_quotient),
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


# One number

EXACT = Context(prec=80, rounding=ROUND_HALF_EVEN)  # two numbers' product and quotient fit before they are rounded
_PLACES = Decimal(1).scaleb(-SCALE)


def rounded(value: Decimal) -> Decimal | None:
    """As policies count; None from LARGEST on."""
    if value.copy_abs() >= LARGEST:
        return None
    number = value.quantize(_PLACES, context=EXACT)
    return number if number.copy_abs() < LARGEST else None


def units(number: Decimal) -> int:
    """In hundred-millionths, of which every number is a whole one."""
    return int(number.scaleb(SCALE))


def as_number(value: int) -> Decimal:
    """Of so many units."""
    return Decimal(value).scaleb(-SCALE)
