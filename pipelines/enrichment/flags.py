"""Flags on transactions, which reports and monitoring rules use.

Most flags follow from the row itself. Those that depend on other rows (returned, refunded, charged twice, unusual) are
first computed as Boolean columns.
"""

from collections.abc import Mapping
from functools import cache

import polars as pl

from pipelines.enrichment.matching.reversals import (
    find_duplicate_charges,
    pair_charges_given_back,
    pair_refunds,
    pair_returns,
)
from pipelines.enrichment.outliers import find_outliers
from pipelines.vocabulary.places import mark_places
from pipelines.vocabulary.schemas import MONEY

ROUND_FROM, ROUND_STEP = 1_000, 100  # AUD: smaller round amounts are too common to mean anything (our judgement)


def _has_group(name: str) -> pl.Expr:
    return pl.col("category_group") == name


def _has_category(*slugs: str) -> pl.Expr:
    return pl.col("category").is_in(slugs)


def _is_found(name: str) -> pl.Expr:
    """Return whether the row is in one of the sets of `_find_across_rows`."""
    return pl.col(f"found_{name}")


# Each flag and its condition. `dishonour` counts the returned item only: the fee that some banks charge for it has its
# own category and is not a second dishonour. `dishonoured` marks what came back whole: returned payments, and charges
# that the bank gave back.
FLAGS: Mapping[str, pl.Expr] = {
    "cash": pl.col("channel").is_in(["cash", "atm"]) | _has_category("cash_deposit", "cash_withdrawal"),
    "dishonour": _has_category("returned_payment"),
    "dishonoured": _is_found("dishonoured"),
    "duplicate_charge": _is_found("duplicate_charge"),
    "gambling": _has_category("gambling"),
    "information": pl.col("amount") == 0,
    "outlier": _is_found("outlier"),
    "payroll": _has_group("payroll"),
    "refund_matched": _is_found("refund_matched"),
    "related_party": pl.col("related_party").is_not_null()
    | _has_category("related_entity", "director_loan_in", "director_loan_out"),
    "revenue": _has_group("revenue") & pl.col("is_transfer").ne_missing(True),
    "round_amount": (pl.col("amount").abs() >= pl.lit(ROUND_FROM, MONEY))
    & (pl.col("amount") % pl.lit(ROUND_STEP, MONEY) == 0),
    "tax": _has_group("tax"),
    "unreconciled_statement": pl.col("statement_verdict") == "unreconciled",
}
_NAMES = sorted(FLAGS)


def add_flags(rows: pl.DataFrame) -> pl.DataFrame:
    """Fill `flags` with the names of the conditions that are true, sorted. Rows are those of whole customers.

    Superseded and pending rows get flags that follow from themselves, but are never matched with other rows.

    Few combinations of flags occur. So a row's combination is a number with one bit per flag, and each distinct number
    is turned into a list once. Making a million small lists instead takes twenty times as long.
    """
    bits = rows.with_columns(_find_across_rows(rows)).select(combination=_combine_flags())
    spelled = bits.unique().with_columns(flags=_spell_out())
    listed = bits.join(spelled, on="combination", how="left", validate="m:1", maintain_order="left")
    return rows.with_columns(listed["flags"])


@cache
def _combine_flags() -> pl.Expr:
    return pl.sum_horizontal(pl.when(FLAGS[name]).then(_bit(name)).otherwise(_NONE) for name in _NAMES)


@cache
def _spell_out() -> pl.Expr:
    marks = (pl.when(pl.col("combination").and_(_bit(name)) != 0).then(pl.lit(name)) for name in _NAMES)
    return pl.concat_list(marks).list.drop_nulls()


def _bit(name: str) -> pl.Expr:
    return pl.lit(1 << _NAMES.index(name), pl.UInt32())


_NONE = pl.lit(0, pl.UInt32())


def _find_across_rows(rows: pl.DataFrame) -> list[pl.Series]:
    """Return a Boolean column for each flag that depends on other rows."""
    numbered = rows.with_row_index("row")
    undone = pl.concat([pair_returns(numbered)["opened"], pair_charges_given_back(numbered)["opened"]])
    found = {
        "dishonoured": undone,
        "duplicate_charge": find_duplicate_charges(numbered, undone),
        "outlier": find_outliers(numbered),
        "refund_matched": pair_refunds(numbered, undone)["closed"],
    }
    return [mark_places(members, rows.height).alias(f"found_{name}") for name, members in found.items()]
