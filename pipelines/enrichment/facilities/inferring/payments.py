"""Select the payments from which facilities are inferred, and the limits that all kinds of them share."""

from functools import cache

import polars as pl

from pipelines.enrichment.facilities.products import credit_product
from pipelines.enrichment.matching.reversals import party
from pipelines.vocabulary.plans import AS_WRITTEN

# MIN_DEBITS and MAX_REPAID define a facility; the other numbers are our judgement.
MIN_DEBITS, MAX_REPAID = 4, 1.6  # MAX_REPAID: repaid ÷ funded
MIN_FUNDING = 300.0  # AUD
SURE = 0.9  # confidence from which a category is not overruled
DEALING = ("customer_number", "lender")  # `lender` stands for what a dealing's payments share
TAX_CATEGORIES = ("bas", "payg_instalment")  # what a payment to a tax office is, unless its words say more
GUESSED_BY = ("learned", "fallback")


def select_payments(posted_rows: pl.DataFrame) -> pl.DataFrame:
    """Select payments that may belong to a loan or advance (`is_candidate`), or go to a tax office (`to_tax_office`).

    Added are their `size`, whether they could be funding (`funds`), and the customer's last day (`through`).
    """
    return (
        posted_rows.lazy()
        .select(
            *("row", "customer_number", "date", "transaction_id", "description", "is_transfer"),
            size=pl.col("amount").abs(),
            funds=pl.col("amount") > 0,
            party=party(),
            through=pl.col("date").max().over("customer_number"),
            is_candidate=~is_return() & (is_guess() | credit_product().is_not_null()),
            to_tax_office=(pl.col("category").is_in(TAX_CATEGORIES) & (pl.col("amount") < 0)).fill_null(value=False),
        )
        .filter(pl.col("is_transfer").ne_missing(True), pl.col("is_candidate") | pl.col("to_tax_office"))
        .collect(engine="in-memory", optimizations=AS_WRITTEN)
    )


@cache
def is_guess() -> pl.Expr:
    """Return whether neither corrections, nor lists, nor words decided the category with confidence."""
    guessed = pl.col("category_source").cast(pl.String).is_in(GUESSED_BY) | (pl.col("confidence") < SURE)
    return guessed.fill_null(value=False)


def is_return() -> pl.Expr:
    return ((pl.col("category") == "returned_payment") & (pl.col("amount") > 0)).fill_null(value=False)
