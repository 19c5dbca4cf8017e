"""Accounts whose balances, or whose rows, prove less than they seem to.

Balances prove nothing where a month of rows seems to be missing or receipts seem to be moved. Balances that agree on
both sides of a silence prove that nothing is missing, unless somebody changed them. If a receipt is on another day than
its text or its processor's rhythm shows, and was moved there, somebody changed the balances that agree with it. The
rows don't show whether anybody did, so the balances from there on count as unproven until a person resolves the
finding.

Rows prove no count of bad rows where some of them seem to be missing or reworded: any of those may be a bad one.
"""

from collections.abc import Iterator

import polars as pl

from pipelines.figures.accounts import BY_ACCOUNT
from pipelines.figures.facts import Facts
from pipelines.integrity.finding import open_rows
from pipelines.integrity.instalments import frequent_bills
from pipelines.integrity.moved import moved_receipts
from pipelines.integrity.texts import odd_texts
from pipelines.integrity.withheld import balance_jumps, silences


def unproven_since(facts: Facts) -> pl.DataFrame:
    """Return `customer_number, account_id, unproven_since` (a date) of each account with such an unresolved finding."""
    columns = (*BY_ACCOUNT, "date", "transaction_id")
    found = pl.concat(
        [
            facts.cached(silences).select(*columns, finding=pl.lit("month_withheld")),
            facts.cached(moved_receipts).select(*columns, finding=pl.lit("receipts_moved")),
        ]
    )
    if not found.is_empty():
        # Another finding may contain the same row, and says nothing about balances.
        unresolved = open_rows(facts).select("transaction_id", "finding")
        found = found.join(unresolved, on=["transaction_id", "finding"], how="semi")
    return found.group_by(BY_ACCOUNT).agg(unproven_since=pl.col("date").min())


def counts_unproven_until(facts: Facts) -> pl.DataFrame:
    """Return `customer_number, account_id, counts_unproven_until` of each account whose bad rows can't be counted.

    Until that day, rows seem to be missing or to have another text than the bank's, unless a person has explained it:
    any of them may be a bad row.
    """
    jumps = facts.cached(balance_jumps).select(*BY_ACCOUNT, "date", "transaction_id", finding=pl.lit("rows_withheld"))
    found = pl.concat([jumps, *_reworded_rows(facts)])
    if not found.is_empty():
        unexplained = open_rows(facts).select("transaction_id", "finding")
        found = found.join(unexplained, on=["transaction_id", "finding"], how="semi")
    return found.group_by(BY_ACCOUNT).agg(counts_unproven_until=pl.col("date").max())


def _reworded_rows(facts: Facts) -> Iterator[pl.DataFrame]:
    columns = (*BY_ACCOUNT, "date", "transaction_id")
    styles, bills = facts.cached(odd_texts).filter("is_reworded"), facts.cached(frequent_bills)
    yield styles.select(*columns, finding=pl.lit("texts_reworded"))
    yield bills.select(*columns, finding=pl.lit("instalments_reworded"))
