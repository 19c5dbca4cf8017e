"""Short marks on a transaction that reports and rules ask for."""

from collections.abc import Mapping

import polars as pl

from pipelines.schemas import MONEY

ROUND_FROM, ROUND_STEP = 1_000, 100  # AUD: smaller round sums say nothing


def _group(name: str) -> pl.Expr:
    return pl.col("category_group") == name


def _category(*slugs: str) -> pl.Expr:
    return pl.col("category").is_in(slugs)


# A flag and what it means.
FLAGS: Mapping[str, pl.Expr] = {
    "cash": pl.col("channel").is_in(["cash", "atm"]) | _category("cash_deposit", "cash_withdrawal"),
    "dishonour": _category("dishonour_fee", "returned_payment", "dishonoured_receipt"),
    "gambling": _category("gambling"),
    "information": pl.col("amount") == 0,
    "payroll": _group("payroll"),
    "round_amount": (pl.col("amount").abs() >= pl.lit(ROUND_FROM, MONEY))
    & (pl.col("amount") % pl.lit(ROUND_STEP, MONEY) == 0),
    "tax": _group("tax"),
}


def flags(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Fill `flags` with the names that hold, sorted."""
    marks = [pl.when(holds).then(pl.lit(name)) for name, holds in sorted(FLAGS.items())]
    return rows.with_columns(flags=pl.concat_list(marks).list.drop_nulls())
