"""Arithmetic over metrics, from left to right: each step gives a decimal of four places, or null if it is too large."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, reduce

import polars as pl

from pipelines.metrics.outcome import DIVISION_BY_ZERO, LARGEST, NOT_APPLICABLE, OVERFLOW, VALUE, cause_where
from pipelines.vocabulary.plans import AS_WRITTEN

Step = Callable[[pl.Expr, pl.Expr], pl.Expr]


def calculate(operation: str, values: Sequence[pl.Series], causes: Sequence[pl.Series]) -> pl.DataFrame:
    """Apply one operation, row by row.

    Args:
        values: one series (VALUE) for each operand, all of one length.
        causes: series of causes that leave a row without a value, whatever the operation gives; the first one counts.

    Returns:
        `value` (VALUE; null if there is a cause), and `cause`: of `causes`, or else the operation's own.
    """
    columns = {f"value_{nth}": each for nth, each in enumerate(values)}
    columns |= {f"cause_{nth}": each for nth, each in enumerate(causes)}
    steps, cause = _expressions(operation, len(values), len(causes))
    # In two steps, because the value reads the cause: one expression would compute the cause twice.
    calculated = reduce(pl.LazyFrame.with_columns, steps, pl.LazyFrame(columns)).select("value", cause)
    return calculated.select(_VALUE_WITHOUT_CAUSE, "cause").collect(engine="in-memory", optimizations=AS_WRITTEN)


_VALUE_WITHOUT_CAUSE = pl.when(pl.col("cause").is_null()).then("value").alias("value")


@cache
def _expressions(operation: str, operands: int, causes: int) -> tuple[Sequence[pl.Expr], pl.Expr]:
    """Return the steps that give `value`, each replacing it, and then the `cause`.

    One expression of all steps would double in size with each, because a step uses the value before it several times.
    """
    steps, own = _steps(operation, [pl.col(f"value_{nth}") for nth in range(operands)])
    return steps, pl.coalesce(*(pl.col(f"cause_{nth}") for nth in range(causes)), *own).alias("cause")


def _steps(operation: str, operands: list[pl.Expr]) -> tuple[Sequence[pl.Expr], Sequence[pl.Expr]]:
    """Return the steps, and the causes by which the operation itself has no value."""
    if operation in _CHOICES:
        return [_CHOICES[operation](operands).cast(VALUE).alias("value")], []
    value, step, (first, *others) = pl.col("value"), _STEPS[operation], operands
    own = []
    if operation in {"divide", "ratio"}:
        own.append(cause_where(DIVISION_BY_ZERO, operands[1] == 0))
    if operation == "ratio":
        own.append(cause_where(NOT_APPLICABLE, operands[1] < 0))
    starts = step(first, others[0]).cast(VALUE).alias("value")
    steps = [starts, *(step(value, operand).cast(VALUE).alias("value") for operand in others[1:])]
    return steps, [*own, cause_where(OVERFLOW, value.is_null())]


def _if_within_range(estimate: pl.Expr, value: pl.Expr) -> pl.Expr:
    """Return the value, or null where the result would be too large: Polars would fail for the whole frame."""
    return pl.when(estimate.abs() < LARGEST).then(value)


def _float(value: pl.Expr) -> pl.Expr:
    return value.cast(pl.Float64)


def _add(left: pl.Expr, right: pl.Expr) -> pl.Expr:
    return left + _if_within_range(_float(left) + _float(right), right)


def _subtract(left: pl.Expr, right: pl.Expr) -> pl.Expr:
    return left - _if_within_range(_float(left) - _float(right), right)


def _multiply(left: pl.Expr, right: pl.Expr) -> pl.Expr:
    return left * _if_within_range(_float(left) * _float(right), right)


def _divide(left: pl.Expr, right: pl.Expr) -> pl.Expr:
    nonzero = pl.when(right != 0).then(right)
    return left / _if_within_range(_float(left) / _float(nonzero), nonzero)


_STEPS: Mapping[str, Step] = {
    "add": _add,
    "subtract": _subtract,
    "multiply": _multiply,
    "divide": _divide,
    "ratio": _divide,
}
_CHOICES: Mapping[str, Callable[[list[pl.Expr]], pl.Expr]] = {"min": pl.min_horizontal, "max": pl.max_horizontal}
