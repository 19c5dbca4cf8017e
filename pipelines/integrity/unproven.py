"""Accounts whose balances prove nothing, because a month of their rows seems to be missing.

Balances that agree on both sides of a silence prove that nothing is missing, unless somebody changed them. The rows
don't show whether anybody did, so the balances after the silence count as unproven until a person resolves the finding.
"""

import polars as pl

from pipelines.figures.accounts import BY_ACCOUNT
from pipelines.figures.facts import Facts
from pipelines.integrity.finding import open_rows
from pipelines.integrity.withheld import silences


def unproven_since(facts: Facts) -> pl.DataFrame:
    """Return `customer_number, account_id, unproven_since` (a date) of each account with an unresolved silence."""
    silent = facts.cached(silences)
    if not silent.is_empty():
        # Another finding may contain the same row, and says nothing about the silence.
        unresolved = open_rows(facts).filter(pl.col("finding") == "month_withheld")
        silent = silent.join(unresolved, on="transaction_id", how="semi")
    return silent.group_by(BY_ACCOUNT).agg(unproven_since=pl.col("date").min())
