"""Terms of banking and credit that reports use, each an expression over schema TRANSACTIONS.

A report filters and sums by these and never by a raw slug, so that "revenue" means the same everywhere. The taxonomy
(`pipelines/vocabulary/taxonomy.py`) defines what a category means; only the groups and the few slugs that a figure is
named after appear here.
"""

from functools import cache

import polars as pl

from pipelines.vocabulary.schemas import MONEY

# Cards and loans state what is owed, so their balance is not money at hand.
CASH_ACCOUNT_TYPES = ("transaction", "savings", "term_deposit", "other")


@cache
def money_in() -> pl.Expr:
    """Return AUD that entered the account, as a positive amount; 0 for a row that left it."""
    return pl.col("amount").clip(lower_bound=pl.lit(0, MONEY))


@cache
def money_out() -> pl.Expr:
    """Return AUD that left the account, as a positive amount; 0 for a row that entered it."""
    return pl.max_horizontal(-pl.col("amount"), pl.lit(0, MONEY))


@cache
def is_credit() -> pl.Expr:
    return pl.col("amount") > 0


@cache
def is_debit() -> pl.Expr:
    return pl.col("amount") < 0


@cache
def is_own_transfer() -> pl.Expr:
    """Match transfers between accounts of the customer or of declared related parties: neither income nor cost.

    Enrichment found both sides, or one side's narrative says so. A client's correction or rule outweighs a match by
    equal amounts.
    """
    described = pl.col("category_source").is_in(["correction", "client_rule"]).fill_null(value=False)
    return (pl.col("is_transfer").eq_missing(True) & ~described) | pl.col("category_group").eq_missing("transfer")


@cache
def is_external() -> pl.Expr:
    """Match money that came from, or went to, somebody other than the customer and related parties."""
    return ~is_own_transfer()


@cache
def is_revenue() -> pl.Expr:
    """Match trading receipts and what was given back (refunds, chargebacks): the sum of `amount` is net revenue."""
    return pl.col("category_group").eq_missing("revenue") & is_external()


@cache
def is_debt_service() -> pl.Expr:
    """Match repayments, interest and fees paid to lenders outside the customer's own accounts.

    A repayment that a card's own statement shows as received is money coming in, not debt service.
    """
    return pl.col("category_group").eq_missing("debt_service") & is_debit() & is_external()


@cache
def is_payroll() -> pl.Expr:
    """Match staff costs: wages, superannuation, labour hire, workers compensation."""
    return pl.col("category_group").eq_missing("payroll") & is_debit() & is_external()


@cache
def is_tax() -> pl.Expr:
    """Match payments to tax offices and councils. A refund is money coming in, not less tax."""
    return pl.col("category_group").eq_missing("tax") & is_debit() & is_external()


@cache
def is_returned_payment() -> pl.Expr:
    """Match the customer's own payments that came back because they could not be met."""
    return pl.col("category").eq_missing("returned_payment") & is_credit()


@cache
def is_categorised() -> pl.Expr:
    return pl.col("category_group").ne_missing("unknown")


@cache
def is_unreconciled() -> pl.Expr:
    """Match rows of a PDF statement that the statement's balances don't prove.

    These are all rows of an `unreconciled` statement, and the rows of a `partial` one outside of what its balances
    prove. Rows sent as JSON or CSV claim no proof and never match.
    """
    verdict = pl.col("statement_verdict")
    whole = verdict.is_in(("reconciled", "reconciled_dates_doubtful"))  # for rows without `statement_proved`
    return verdict.is_not_null() & ~pl.coalesce("statement_proved", whole)


@cache
def is_cash_account() -> pl.Expr:
    """Match accounts whose balance is money at hand; cards and loans state what is owed, some as a positive balance."""
    return pl.col("account_type").is_in(CASH_ACCOUNT_TYPES).fill_null(value=True)
