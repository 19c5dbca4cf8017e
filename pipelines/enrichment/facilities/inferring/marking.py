"""Give rows of inferred facilities an id and a product, without overruling what was known of them."""

import polars as pl

from pipelines.enrichment.facilities.inferring.dealings import find_dealings
from pipelines.enrichment.facilities.inferring.invoice_advances import find_advances
from pipelines.enrichment.facilities.inferring.loans import find_loans
from pipelines.enrichment.facilities.inferring.payments import DEALING, is_guess, is_return, select_payments
from pipelines.enrichment.facilities.inferring.takings_shares import find_takings_shares
from pipelines.enrichment.facilities.inferring.tax_plans import find_tax_plans
from pipelines.enrichment.facilities.joining import join_facilities
from pipelines.enrichment.facilities.products import credit_product
from pipelines.enrichment.matching.reversals import pair_returns
from pipelines.vocabulary.places import add_by_row
from pipelines.vocabulary.plans import AS_WRITTEN, collect

_BORROWED = ("row", *DEALING, "product", "date", "transaction_id", "size", "funds")


def add_inferred(posted_rows: pl.DataFrame) -> pl.DataFrame:
    """Fill `facility_id` of rows of inferred facilities, and add `inferred_product` and `is_inferred`.

    `inferred_product`: of rows that behave like a facility's and are not named as such. `is_inferred`: no row of the
    facility had a `facility_id`. A facility that words or lists name keeps its id and product, and rows that behave as
    a part of it are added. One that only the model recognised keeps its id; behaviour says what product it is.

    Args:
        posted_rows: posted rows of whole customers, with `facility_id` filled (schema TRANSACTIONS).
    """
    numbered = posted_rows.with_row_index("row")
    inferred = _infer_facilities(numbered)
    if inferred.is_empty():  # true of many customers
        return posted_rows.with_columns(inferred_product=pl.lit(None, pl.String()), is_inferred=pl.lit(value=False))
    members = _merge_known(numbered, inferred)
    bounced = pair_returns(numbered.filter(is_return() | pl.col("row").is_in(members["row"].implode())))
    returns = bounced.join(members, left_on="opened", right_on="row").select("inferred_id", row="closed")
    every = pl.concat([members, returns], how="diagonal")
    return (
        add_by_row(posted_rows, every)
        .with_columns(
            pl.col("is_inferred").fill_null(value=False), facility_id=pl.coalesce("inferred_id", "facility_id")
        )
        .drop("inferred_id")
    )


def _infer_facilities(numbered: pl.DataFrame) -> pl.DataFrame:
    """Return `row`, `member_of` (the facility's id) and `product` of the rows that fund and repay inferred facilities.

    Args:
        numbered: posted rows with their number in `row` (UInt32).
    """
    found = [rows.select(_BORROWED) for rows in _find_debts(numbered) if rows.height]
    if not found:
        return numbered.clear().select("row", member_of="facility_id", product=pl.lit(None, pl.String()))
    borrowed = (
        pl.concat(found)
        .sort("customer_number", "date", "transaction_id")
        .rename({"row": "place"})
        .with_row_index("row")
    )
    members = borrowed.join(join_facilities(borrowed.drop("place")), on="row", validate="1:1")
    return members.select("product", row="place", member_of="facility_id")


def _find_debts(numbered: pl.DataFrame) -> tuple[pl.DataFrame, ...]:
    """Return the rows of each kind of debt, with `lender` and `product`. No row is of two kinds."""
    payments = select_payments(numbered)
    candidates = payments.filter("is_candidate")
    advances = find_advances(candidates)
    dealings = find_dealings(_leave_out(candidates, advances))
    loans = find_loans(dealings)
    takings_shares = find_takings_shares(_leave_out(dealings, loans), numbered)
    tax_plans = find_tax_plans(payments.filter("to_tax_office"))
    return loans, takings_shares, advances, tax_plans


def _leave_out(rows: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
    return rows.join(found, on="row", how="anti") if found.height else rows


def _merge_known(numbered: pl.DataFrame, inferred: pl.DataFrame) -> pl.DataFrame:
    """Return `row`, `inferred_id`, `inferred_product` and `is_inferred` of the rows that change."""
    is_named = pl.col("facility_id").is_not_null() & ~is_guess()
    known = numbered.lazy().select("row", "facility_id", is_named=is_named, known_product=credit_product())
    members = inferred.lazy().join(known, on="row", validate="1:1").pipe(collect)
    return (
        members.lazy()
        .filter(~pl.col("is_named"))
        .join(_choose_ids(members.lazy()), on="member_of", validate="m:1")
        .select("row", "inferred_id", "is_inferred", inferred_product=pl.coalesce("named_product", "product"))
        .collect(engine="in-memory", optimizations=AS_WRITTEN)
    )


def _choose_ids(members: pl.LazyFrame) -> pl.LazyFrame:
    """Choose the `inferred_id` of each facility: the id of rows that words or lists name, else the id that most rows
    have, else a new one. Return also `named_product` and `is_inferred`.

    Several facilities may be parts of what was one: the part with most of its rows keeps the id.
    """
    facility_id = pl.col("facility_id")
    is_largest = pl.col("usual_id").is_first_distinct()
    return (
        members.group_by("member_of")
        .agg(
            named_id=_most_common(facility_id.filter("is_named")),
            named_product=_most_common(pl.col("known_product").filter("is_named")),
            usual_id=_most_common(facility_id.drop_nulls()),
            rows_with_id=facility_id.is_not_null().sum(),
        )
        .sort("rows_with_id", "member_of", descending=[True, False])
        .with_columns(
            inferred_id=pl.coalesce("named_id", pl.when(is_largest).then("usual_id"), "member_of"),
            is_inferred=pl.col("rows_with_id") == 0,
        )
    )


def _most_common(values: pl.Expr) -> pl.Expr:
    """Return the most common value, the smallest of several; null if there is none."""
    return values.mode().sort().first()
