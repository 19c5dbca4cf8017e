"""Arithmetic over metrics: left to right, exact, and within the range of decimals."""

from collections.abc import Callable, Mapping, Sequence

import polars as pl

from pipelines.metrics.outcome import DIVISION_BY_ZERO, LARGEST, NOT_APPLICABLE, OVERFLOW, VALUE, caused

Step = Callable[[pl.Expr, pl.Expr], pl.Expr]


def calculate(operation: str, values: Sequence[pl.Series], causes: Sequence[pl.Series]) -> pl.LazyFrame:
    """Apply one operation, row by row.

    Args:
        values: one series (VALUE) for each operand, all of one length.
        causes: likewise, why an operand has no value.

    Returns:
        `value` (VALUE) and `cause` why there is none: that of the first unavailable operand, or the operation's own.
    """
    columns = {f"value_{nth}": each for nth, each in enumerate(values)}
    columns |= {f"cause_{nth}": each for nth, each in enumerate(causes)}
    operands, unavailable = ([pl.col(f"{name}_{nth}") for nth in range(len(values))] for name in ("value", "cause"))
    if operation in _CHOICES:
        return pl.LazyFrame(columns).select(
            value=_CHOICES[operation](operands).cast(VALUE), cause=pl.coalesce(unavailable)
        )
    frame = _stepped(_STEPS[operation], pl.LazyFrame(columns), operands)
    own = []
    if operation in {"divide", "ratio"}:
        own.append(caused(DIVISION_BY_ZERO, operands[1] == 0))
    if operation == "ratio":
        own.append(caused(NOT_APPLICABLE, operands[1] < 0))
    value = pl.col("value")
    return frame.select(value, cause=pl.coalesce(*unavailable, *own, caused(OVERFLOW, value.is_null())))


def _stepped(step: Step, frame: pl.LazyFrame, operands: Sequence[pl.Expr]) -> pl.LazyFrame:
    """Add `value`, the result of `step` from the left.

    Each step replaces the column. One expression of all steps would double in size with each, because a step uses
    the value before it several times.
    """
    first, *others = operands
    frame = frame.with_columns(value=first)
    for operand in others:
        frame = frame.with_columns(value=step(pl.col("value"), operand).cast(VALUE))
    return frame


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
