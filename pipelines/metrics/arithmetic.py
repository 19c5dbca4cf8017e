"""Arithmetic over metrics: from the left, exact, and never more than decimals hold."""

from collections.abc import Callable, Mapping
from functools import reduce

import polars as pl

from pipelines.metrics.outcome import DIVISION_BY_ZERO, LARGEST, NOT_APPLICABLE, OVERFLOW, caused

Step = Callable[[pl.Expr, pl.Expr], pl.Expr]


def calculated(operation: str, operands: list[pl.Expr], causes: list[pl.Expr]) -> tuple[pl.Expr, pl.Expr]:
    """The value, and the cause why there is none: that of the first operand that is unavailable, or its own."""
    if operation in _CHOICES:
        return _CHOICES[operation](operands), pl.coalesce(causes)
    value = reduce(_STEPS[operation], operands)
    own = []
    if operation in {"divide", "ratio"}:
        own.append(caused(DIVISION_BY_ZERO, operands[1] == 0))
    if operation == "ratio":
        own.append(caused(NOT_APPLICABLE, operands[1] < 0))
    return value, pl.coalesce(*causes, *own, caused(OVERFLOW, value.is_null()))


def _within(estimate: pl.Expr, value: pl.Expr) -> pl.Expr:
    """What would be too large is left out before it is worked out: Polars would refuse the whole frame."""
    return pl.when(estimate.abs() < LARGEST).then(value)


def _float(value: pl.Expr) -> pl.Expr:
    return value.cast(pl.Float64)


def _add(left: pl.Expr, right: pl.Expr) -> pl.Expr:
    return left + _within(_float(left) + _float(right), right)


def _subtract(left: pl.Expr, right: pl.Expr) -> pl.Expr:
    return left - _within(_float(left) - _float(right), right)


def _multiply(left: pl.Expr, right: pl.Expr) -> pl.Expr:
    return left * _within(_float(left) * _float(right), right)


def _divide(left: pl.Expr, right: pl.Expr) -> pl.Expr:
    nonzero = pl.when(right != 0).then(right)
    return left / _within(_float(left) / _float(nonzero), nonzero)


_STEPS: Mapping[str, Step] = {
    "add": _add,
    "subtract": _subtract,
    "multiply": _multiply,
    "divide": _divide,
    "ratio": _divide,
}
_CHOICES: Mapping[str, Callable[[list[pl.Expr]], pl.Expr]] = {"min": pl.min_horizontal, "max": pl.max_horizontal}
