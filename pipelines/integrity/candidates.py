"""Candidates: rows that are large enough to change a lender's decision, and the usual month that measures their size.

Small rows can't change revenue or a balance by much. Leaving them out also limits the work: on average a customer has
at most about a hundred receipts a month that are a hundredth of a usual month's receipts or more.

Sizes are whole cents (Int64) and compared exactly; `usual` is only a scale, a float in cents.
"""

import polars as pl

from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.vocabulary.plans import collect

SMALLEST_SHARE = 100  # rows below 1/SMALLEST_SHARE of a usual month's receipts are left out; our judgement
SMALLEST = 200_00  # cents: so are rows below AUD 200; our judgement
RECENT = 200  # days before the last row: the half year that readings cover, and some days before it
YEAR, MONTH = 365, 30
OLDEST = 400  # days: a season is compared with the same season a year before
_READ = (
    *(BY_CUSTOMER, "transaction_id", "account_id", "date", "age", "category", "category_group", "channel", "flags"),
    *("counterparty_kind", "counterparty_lender_id", "counterparty_group", "related_party", "description"),
    *("is_revenue", "is_external", "is_transfer", "series_id", "facility_id"),
)
# Payers and payees with whom an applicant can't arrange payments.
_INSTITUTIONS = ("processor", "government", "bank", "lender")
_BY_INSTITUTIONS = ("card_settlement", "platform_payout", "government_receipt")
# These payments return a receipt that failed or was disputed, so they say nothing about an arrangement.
_GIVEN_BACK = ("dishonoured_receipt", "chargeback", "returned_payment")
_NEVER_ARRANGED = ("tax", "debt_service", "distress", "transfer")


def is_institution() -> pl.Expr:
    return pl.col("counterparty_kind").cast(pl.String).is_in(_INSTITUTIONS).fill_null(value=False)


def usual_month(facts: Facts) -> pl.DataFrame:
    """Return `customer_number`, and `usual`: mean receipts per 30 days of the last year, in cents.

    Loans and money from owners are left out. Customers with less than a year of rows are measured by the days that
    they have, at least MONTH.
    """
    earned = pl.col("money_in").filter(
        "is_external", pl.col("age") < YEAR, pl.col("category_group").is_in(["debt_inflow", "owner"]).not_()
    )
    days = (pl.col("age").max().cast(pl.Int64) + 1).clip(MONTH, YEAR)
    return (
        facts.rows.lazy()
        .group_by(BY_CUSTOMER, maintain_order=True)
        .agg(usual=earned.sum().cast(pl.Float64) * 100 * MONTH / days)
        .pipe(collect)
    )


def candidates(facts: Facts) -> pl.DataFrame:
    """Return the rows that are large enough, in the order of `Facts.rows`.

    Besides columns of `Facts.rows`: `cents` (with its sign), `size`, `usual` (as in `usual_month`), `party` (the
    counterparty's group; null: unknown), `name` (as shown), `is_receipt` (a credit that is or could be revenue, from
    somebody with whom an applicant could have arranged it) and `is_payment` (a debit to somebody like that).
    """
    cents = pl.col("amount").to_physical().cast(pl.Int64)
    is_arranged = pl.col("is_external") & ~is_institution()
    return (
        facts.rows.lazy()
        .filter(pl.col("age") < OLDEST)
        .select(*_READ, "amount", name=pl.coalesce("related_party", "counterparty_name"))
        .join(facts.cached(usual_month).lazy(), on=BY_CUSTOMER, how="left", validate="m:1", maintain_order="left")
        .with_columns(cents=cents, size=cents.abs(), party="counterparty_group")
        .filter(pl.col("size") >= SMALLEST, pl.col("size") * SMALLEST_SHARE >= pl.col("usual"))
        .with_columns(
            is_receipt=(cents > 0)
            & is_arranged
            & ~pl.col("category").is_in(_BY_INSTITUTIONS)
            & (pl.col("is_revenue") | (pl.col("category") == "unknown_credit")),
            is_payment=(cents < 0)
            & is_arranged
            & ~pl.col("category").is_in(_GIVEN_BACK)
            & ~pl.col("category_group").is_in(_NEVER_ARRANGED),
        )
        .pipe(collect)
    )


def plain_words(name: str) -> pl.Expr:
    """Return a column's text in lower case, with each run of characters other than a–z and 0–9 as one space."""
    return pl.col(name).str.to_lowercase().str.replace_all(r"[^a-z0-9]+", " ").str.strip_chars()
