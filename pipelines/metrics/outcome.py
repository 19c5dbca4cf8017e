"""A metric's outcome: a value, or the cause of having none. Never an exception, and never NaN or infinity.

Values are decimals of four places, rounded half to even; so are the inputs of arithmetic. Values of LARGEST or more are
refused: no statement has values so large, and products of such values exceed Polars' decimals.
"""

from collections.abc import Mapping

import numpy as np
import polars as pl
from numpy.typing import NDArray

SCALE = 4
VALUE = pl.Decimal(38, SCALE)
LARGEST = 1e30

NO_TRANSACTIONS = "no_transactions"
STALE = "stale"
INSUFFICIENT_HISTORY = "insufficient_history"
NO_BALANCES = "no_balances"
NOT_APPLICABLE = "not_applicable"
DIVISION_BY_ZERO = "division_by_zero"
OVERFLOW = "overflow"
CAUSES: Mapping[str, str] = {
    NO_TRANSACTIONS: "there are no posted transactions",
    STALE: "the last row is too old",
    INSUFFICIENT_HISTORY: "the history is too short",
    NO_BALANCES: "no balance is known in the window",
    NOT_APPLICABLE: "there is nothing to compute it from",
    DIVISION_BY_ZERO: "its divisor is zero",
    OVERFLOW: "the figure is larger than any that can be stated",
}

FRACTION = pl.Schema({"top": pl.Int128(), "bottom": pl.Int128(), "cause": pl.String()})
"""A source's outcome for a customer: a fraction of whole numbers (cents, rows, days), so that it is rounded once.
Dividing by zero or less gives no value; `cause` gives any other reason why there is none."""


def fractions(rows: pl.LazyFrame, top: pl.Expr, bottom: pl.Expr | int, cause: pl.Expr | None = None) -> pl.LazyFrame:
    return rows.select(
        top.cast(FRACTION["top"]).alias("top"),
        (pl.lit(bottom) if isinstance(bottom, int) else bottom).cast(FRACTION["bottom"]).alias("bottom"),
        (pl.lit(None) if cause is None else cause).cast(FRACTION["cause"]).alias("cause"),
    )


def cause_where(cause: str, where: pl.Expr) -> pl.Expr:
    return pl.when(where).then(pl.lit(cause))


Places = NDArray[np.int64]


def rows_at(places: Places, customers: int) -> pl.Series:
    """Return which rows of a stack these places have: all customers at the first place, then at the second …

    In a stack, each metric has one place, with a row for each customer.
    """
    return pl.Series((places[:, np.newaxis] * customers + np.arange(customers)).ravel())


def stack_parameters(parameters: pl.DataFrame, customers: int) -> pl.LazyFrame:
    """Repeat each metric's row of parameters once for each customer."""
    rows = pl.int_range(pl.len() * customers) // max(customers, 1)
    return parameters.lazy().select(pl.all().gather(rows))
