"""Detect fees for dishonours without a payment that was sent back.

A payment and its return add up to nothing, so balances agree without them. The bank's fee is left.
"""

from datetime import timedelta

import polars as pl

from pipelines.figures.accounts import BY_ACCOUNT
from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.vocabulary.plans import collect

# All our judgement.
MIN_FEES = 2  # of an account; a single one may be for something else
CHARGED_WITHIN, CHARGED_BEFORE = 35, 3  # days from the return to its fee, as some banks charge once a month; and back
RETURNED_WITHIN = timedelta(days=5)  # from a payment to its return
_RETURNS = ("returned_payment", "dishonoured_receipt")


def lonely_fees(facts: Facts) -> pl.DataFrame:
    """Return fees for dishonours near which no payment of the account was sent back, if there are MIN_FEES.

    A credit that equals a payment shortly before counts as its return, whatever its text, unless it is an own transfer.
    """
    fees = facts.rows.filter(pl.col("category") == "dishonour_fee", pl.col("amount") < 0)
    if fees.height < MIN_FEES:  # true for most customers
        return fees.clear()
    rows = facts.rows.lazy().join(fees.lazy(), on=BY_ACCOUNT, how="semi")
    named = rows.filter(pl.col("category").is_in(_RETURNS)).select(*BY_ACCOUNT, returned_on="date")
    size = pl.col("amount").abs()
    paid, received = rows.filter(pl.col("amount") < 0), rows.filter(pl.col("amount") > 0, "is_external")
    equal = (
        received.select(*BY_ACCOUNT, "date", size=size)
        .sort("date")
        .join_asof(
            paid.select(*BY_ACCOUNT, paid_on="date", size=size).sort("paid_on"),
            left_on="date",
            right_on="paid_on",
            by=[*BY_ACCOUNT, "size"],
            tolerance=RETURNED_WITHIN,
            check_sortedness=False,
        )
        .filter(pl.col("paid_on").is_not_null())
        .select(*BY_ACCOUNT, returned_on="date")
    )
    later = (pl.col("date") - pl.col("returned_on")).dt.total_days()
    explained = (
        fees.lazy()
        .join(pl.concat([named, equal]).unique(), on=BY_ACCOUNT)
        .filter(later.is_between(-CHARGED_BEFORE, CHARGED_WITHIN))
    )
    lonely = fees.lazy().join(explained, on="transaction_id", how="anti")
    return lonely.filter(pl.len().over(BY_ACCOUNT) >= MIN_FEES).pipe(collect)


def withheld_dishonours(facts: Facts) -> pl.LazyFrame:
    """Return the rows of `lonely_fees`."""
    size = (-pl.col("amount")).to_physical().cast(pl.Int64)
    found = facts.cached(lonely_fees).lazy()
    return found.select(BY_CUSTOMER, "transaction_id", about=pl.lit(None, pl.String), cents=size)
