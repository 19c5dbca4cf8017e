"""Accounts whose balances prove nothing, because a month of rows seems to be missing or receipts seem to be moved.

Balances that agree on both sides of a silence prove that nothing is missing, unless somebody changed them. If a receipt
is on another day than its text prints, and was moved there, somebody changed the balances that agree with it. The rows
don't show whether anybody did, so the balances from there on count as unproven until a person resolves the finding.
"""

import polars as pl

from pipelines.figures.accounts import BY_ACCOUNT
from pipelines.figures.facts import Facts
from pipelines.integrity.finding import open_rows
from pipelines.integrity.texts import printed_days
from pipelines.integrity.withheld import balance_jumps, silences


def unproven_since(facts: Facts) -> pl.DataFrame:
    """Return `customer_number, account_id, unproven_since` (a date) of each account with such an unresolved finding."""
    found = pl.concat(
        [
            facts.cached(silences).select(*BY_ACCOUNT, "date", "transaction_id", finding=pl.lit("month_withheld")),
            facts.cached(printed_days)
            .filter("far")
            .select(*BY_ACCOUNT, "date", "transaction_id", finding=pl.lit("receipts_moved")),
        ]
    )
    if not found.is_empty():
        # Another finding may contain the same row, and says nothing about balances.
        unresolved = open_rows(facts).select("transaction_id", "finding")
        found = found.join(unresolved, on=["transaction_id", "finding"], how="semi")
    return found.group_by(BY_ACCOUNT).agg(unproven_since=pl.col("date").min())


def withheld_until(facts: Facts) -> pl.DataFrame:
    """Return `customer_number, account_id, withheld_until` of each account of which rows seem to be withheld.

    `withheld_until` is the last day whose balance shows that earlier rows are missing, unless a person has explained
    it.
    """
    jumps = facts.cached(balance_jumps)
    if not jumps.is_empty():
        unexplained = open_rows(facts).filter(pl.col("finding") == "rows_withheld")
        jumps = jumps.join(unexplained, on="transaction_id", how="semi")
    return jumps.group_by(BY_ACCOUNT).agg(withheld_until=pl.col("date").max())
