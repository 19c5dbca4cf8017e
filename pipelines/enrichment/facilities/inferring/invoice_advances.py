"""Find advances on invoices, which are repaid one by one."""

import polars as pl

from pipelines.enrichment.facilities.inferring.payments import DEALING, MIN_DEBITS, MIN_FUNDING
from pipelines.vocabulary.plans import collect

# The numbers are our judgement.
ADVANCED_FOR = (5, 120)  # days from an advance on an invoice to its repayment
ADVANCE_FACTOR = (1.003, 1.15)  # repayment ÷ advance
INVOICE = r"\d{4,}"  # a number: shorter ones are dates
MAX_PRINTED = 4  # rows on a side that print an invoice's number: a number on more is the customer's or the funder's


def find_advances(candidates: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of advances on invoices, those not yet repaid included.

    `lender` stands for the funder, as far as it is named, and the factor by which its repayments are larger.
    """
    repaid = _pair_advances(candidates)
    if repaid.is_empty():
        return candidates.clear()
    sides = [repaid.select("lender", row=side) for side in ("row", "row_back")]
    members = pl.concat([*sides, _find_open_advances(candidates, repaid)])
    return candidates.join(members, on="row", validate="1:1").with_columns(product=pl.lit("invoice_finance"))


def _pair_advances(candidates: pl.DataFrame) -> pl.DataFrame:
    """Pair credits (`row`) with later, slightly larger debits that print the same number (`row_back`)."""
    number = pl.col("description").str.extract_all(INVOICE).list.unique()
    printed = pl.len().over("customer_number", "number", "funds")
    every = candidates.lazy().select("row", "customer_number", "date", "size", "funds", "party", number=number)
    numbered = every.explode("number").drop_nulls("number").filter(printed <= MAX_PRINTED)
    advanced = numbered.filter(pl.col("funds"), pl.col("size") >= MIN_FUNDING)
    days = (pl.col("date_back") - pl.col("date")).dt.total_days()
    factor = pl.col("size_back").cast(pl.Float64) / pl.col("size").cast(pl.Float64)
    funder = pl.format("{} x {}", pl.col("party").fill_null(""), (factor * 1000).round())
    paired = (
        advanced.join(numbered.filter(~pl.col("funds")), on=["customer_number", "number"], suffix="_back")
        .filter(days.is_between(*ADVANCED_FOR), factor.is_between(*ADVANCE_FACTOR))
        .pipe(collect)
    )
    if paired.height < MIN_DEBITS:
        return paired.clear()
    return (
        paired.lazy()
        .select("row", "row_back", "customer_number", lender=funder)
        .sort("row", "row_back")
        .unique("row", keep="first", maintain_order=True)
        .unique("row_back", keep="first", maintain_order=True)
        .filter(pl.len().over(DEALING) >= MIN_DEBITS)
        .pipe(collect)
    )


def _find_open_advances(candidates: pl.DataFrame, repaid: pl.DataFrame) -> pl.DataFrame:
    """Return `lender` and `row` of recent credits that are worded like a funder's repaid advances, but for the numbers.

    They may be advances that are not yet repaid.
    """
    worded = candidates.filter("funds").with_columns(wording=pl.col("description").str.replace_all(r"\d", ""))
    alike = ("customer_number", "wording")
    repaid_ones = worded.join(repaid.select("row", "lender"), on="row").sort("row")
    known = repaid_ones.unique(alike, keep="first", maintain_order=True)
    recent = (pl.col("through") - pl.col("date")).dt.total_days() <= ADVANCED_FOR[1]
    unpaid = worded.filter(recent).join(repaid, on="row", how="anti")
    return unpaid.join(known.select(*alike, "lender"), on=alike, validate="m:1").select("lender", "row")
