"""The words of banking and credit that reports speak, each one an expression over schema TRANSACTIONS.

A report filters and sums by these, never by a raw slug, so that "revenue" means the same everywhere. What a
category means is the taxonomy's business (`pipelines/vocabulary/taxonomy.py`); here stand only the groups and the few
slugs that a figure is named after.
"""

import polars as pl

from pipelines.vocabulary.schemas import MONEY

CASH_ACCOUNT_TYPES = ("transaction", "savings", "term_deposit", "other")


def money_in() -> pl.Expr:
    """AUD that entered the account, as a positive amount; 0 for a row that left it."""
    return pl.col("amount").clip(lower_bound=pl.lit(0, MONEY))


def money_out() -> pl.Expr:
    """AUD that left the account, as a positive amount; 0 for a row that entered it."""
    return pl.max_horizontal(-pl.col("amount"), pl.lit(0, MONEY))


def is_credit() -> pl.Expr:
    return pl.col("amount") > 0


def is_debit() -> pl.Expr:
    return pl.col("amount") < 0


def is_own_transfer() -> pl.Expr:
    """Between accounts of the customer or of parties declared as related: both sides found, or one side that says so.
    Neither income nor cost. What the client said of a row outweighs that an equal amount was found.
    """
    described = pl.col("category_source").is_in(["correction", "client_rule"]).fill_null(value=False)
    return (pl.col("is_transfer").eq_missing(True) & ~described) | pl.col("category_group").eq_missing("transfer")


def is_external() -> pl.Expr:
    """Money that came from, or went to, somebody else."""
    return ~is_own_transfer()


def is_revenue() -> pl.Expr:
    """Trading receipts and what was given back of them (refunds, chargebacks): sum `amount` for revenue, net."""
    return pl.col("category_group").eq_missing("revenue") & is_external()


def is_debt_service() -> pl.Expr:
    """Repayments, interest and fees to whoever lent, outside the customer's own accounts. What a card's own statement
    shows as received is the customer's money coming in, not debt service.
    """
    return pl.col("category_group").eq_missing("debt_service") & is_debit() & is_external()


def is_payroll() -> pl.Expr:
    """What staff cost: wages, superannuation, labour hire, workers compensation."""
    return pl.col("category_group").eq_missing("payroll") & is_debit() & is_external()


def is_tax() -> pl.Expr:
    """Paid to tax offices and councils. A refund is money coming in, not less tax."""
    return pl.col("category_group").eq_missing("tax") & is_debit() & is_external()


def is_returned_payment() -> pl.Expr:
    """The customer's own payment coming back because it could not be met."""
    return pl.col("category").eq_missing("returned_payment") & is_credit()


def is_categorised() -> pl.Expr:
    return pl.col("category_group").ne_missing("unknown")


def is_unreconciled() -> pl.Expr:
    """Stands on a PDF statement whose balances don't prove it: every row of one that is `unreconciled`, of a `partial`
    one those that lie outside of what its balances prove. Rows that came as JSON or CSV claim no proof: none of them.
    """
    verdict = pl.col("statement_verdict")
    whole = verdict.is_in(("reconciled", "reconciled_dates_doubtful"))  # of rows from before each said so itself
    return verdict.is_not_null() & ~pl.coalesce("statement_proved", whole)


def is_cash_account() -> pl.Expr:
    """Accounts whose balance is money at hand; cards and loans state what is owed, some with the sign turned."""
    return pl.col("account_type").is_in(CASH_ACCOUNT_TYPES).fill_null(value=True)
