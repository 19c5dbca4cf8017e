"""Lineage: from a figure of a report back to the transactions behind it.

A figure is either a **sum** of what certain transactions contribute to it (an amount, a stated balance, 1 for a row
that is counted, a number of days), or a **formula** over other figures and constants. So every figure can be followed
down to rows, and every step can be checked: the contributions add up to the sum, the inputs give the formula's value.

A figure's path is a JSON Pointer (RFC 6901) into the report's `data`. A table may be named by its id instead of its
index: `/tables/monthly_cash_flow/values/3/moneyIn`. A formula's inputs are below it in the path:
`/summary/completenessScore/accounts`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, TypeAlias

import polars as pl

from pipelines.vocabulary.errors import NotFound
from pipelines.vocabulary.plans import collect
from pipelines.vocabulary.schemas import UUID

Constant: TypeAlias = int | Decimal | date | str | bool | None
CONTRIBUTIONS = pl.Schema({"transaction_id": UUID, "contribution": pl.Decimal(38, 4)})


@dataclass(frozen=True)
class Sum:
    """A figure that is the sum of `contributions` (schema CONTRIBUTIONS). A transaction may contribute twice.

    `format`: how the value is written, with the formats of metrics; None: its name shows it.
    """

    contributions: pl.DataFrame
    format: str | None = None

    @property
    def value(self) -> Decimal:
        return Decimal(self.contributions["contribution"].sum())


@dataclass(frozen=True)
class Formula:
    """A figure computed from others. `words` describe how; `apply` recomputes it from the inputs' values.

    `format`: as of `Sum`.
    """

    words: str
    inputs: Mapping[str, "Trace | Constant"]
    apply: Callable[[Mapping[str, Constant]], Constant]
    format: str | None = None

    @property
    def value(self) -> Constant:
        return self.apply({name: value_of(each) for name, each in self.inputs.items()})


Trace: TypeAlias = Sum | Formula
Explain: TypeAlias = Callable[[Any, Mapping[str, Any], tuple[str, ...]], Trace]


def value_of(traced: Trace | Constant) -> Constant:
    return traced.value if isinstance(traced, Sum | Formula) else traced


def contributions(rows: pl.LazyFrame, part: pl.Expr) -> pl.DataFrame:
    """Return CONTRIBUTIONS of the rows whose `part` is neither null nor 0, in the rows' order."""
    parts = rows.select("transaction_id", contribution=part.cast(CONTRIBUTIONS["contribution"]))
    return parts.filter(pl.col("contribution").is_not_null(), pl.col("contribution") != 0).pipe(collect)


def pointer(path: str) -> tuple[str, ...]:
    """Parse a JSON Pointer into its segments.

    Raises:
        NotFound: the path does not start with a slash.
    """
    if not path.startswith("/"):
        raise no_figure(path)
    return tuple(segment.replace("~1", "/").replace("~0", "~") for segment in path[1:].split("/"))


def no_figure(path: str | Sequence[str]) -> NotFound:
    text = path if isinstance(path, str) else "/" + "/".join(path)
    return NotFound("Report.FigureNotFound", f"There is no figure {text[:200]} in this report.")


def find_input(traced: Trace | Constant, names: Sequence[str]) -> Trace:
    """Return a formula's input by its name, that input's input by the next name, and so on.

    Raises:
        NotFound: there is no such input, or it is a constant.
    """
    for name in names:
        if not isinstance(traced, Formula) or name not in traced.inputs:
            raise no_figure(names)
        traced = traced.inputs[name]
    if not isinstance(traced, Sum | Formula):
        raise no_figure(names)
    return traced
