"""Accounts whose balances, or whose rows, prove less than they seem to.

Balances prove nothing where weeks of rows seem to be missing or receipts seem to be moved. Balances that agree on
both sides of a silence prove that nothing is missing, unless somebody changed them. If a receipt is on another day than
its text or its processor's rhythm shows, and was moved there, somebody changed the balances that agree with it. The
rows don't show whether anybody did, so the balances from there on count as unproven until a person resolves the
finding. If the account was hardly used on one side of a silence, it may have been opened or closed: then only the days
of the silence itself don't count.

Bad rows can't be counted where rows seem to be missing or reworded, because any of those may be a bad row. If the
rhythm of rows contradicts their texts, no text of the customer proves anything: whoever describes instalments as
something else could change all texts.
"""

import polars as pl

from pipelines.figures.accounts import BY_ACCOUNT
from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.integrity.dishonours import lonely_fees
from pipelines.integrity.finding import open_rows
from pipelines.integrity.instalments import odd_bills
from pipelines.integrity.moved import moved_receipts
from pipelines.integrity.texts import odd_texts
from pipelines.integrity.withheld import balance_jumps, silences

_ROW = (*BY_ACCOUNT, "date", "transaction_id")


def unproven_since(facts: Facts) -> pl.DataFrame:
    """Return `customer_number, account_id, unproven_since` (a date) of each account with such an unresolved finding."""
    found = pl.concat(
        [
            facts.cached(silences).filter("is_between").select(*_ROW, finding=pl.lit("month_withheld")),
            facts.cached(moved_receipts).select(*_ROW, finding=pl.lit("receipts_moved")),
        ]
    )
    return _unresolved(facts, found).group_by(BY_ACCOUNT).agg(unproven_since=pl.col("date").min())


def open_silences(facts: Facts) -> pl.DataFrame:
    """Return `customer_number, account_id, silent_since, date` of each improbable silence that nobody resolved.

    It lies between two days with rows, `silent_since` and `date`.
    """
    found = facts.cached(silences).with_columns(finding=pl.lit("month_withheld"))
    return _unresolved(facts, found).select(*BY_ACCOUNT, "silent_since", "date")


def counts_unproven_until(facts: Facts) -> pl.DataFrame:
    """Return `customer_number, account_id, counts_unproven_until` of each account whose bad rows can't be counted.

    Rows up to that day seem to be missing or reworded, and nobody resolved this: any of them may be a bad row.
    """
    odd = facts.cached(odd_texts).filter("is_reworded")
    found = pl.concat(
        [
            facts.cached(balance_jumps).select(*_ROW, finding=pl.lit("rows_withheld")),
            facts.cached(lonely_fees).select(*_ROW, finding=pl.lit("dishonours_withheld")),
            odd.select(*_ROW, finding=pl.lit("texts_reworded")),
        ]
    )
    return _unresolved(facts, found).group_by(BY_ACCOUNT).agg(counts_unproven_until=pl.col("date").max())


def reworded_customers(facts: Facts) -> pl.DataFrame:
    """Return `customer_number` of each customer with instalments whose texts seem forged, if nobody resolved this."""
    found = facts.cached(odd_bills).select(*_ROW, finding=pl.lit("instalments_reworded"))
    return _unresolved(facts, found).select(BY_CUSTOMER).unique()


def _unresolved(facts: Facts, found: pl.DataFrame) -> pl.DataFrame:
    """Return the rows whose `finding` nobody resolved. Another finding may contain the same row, and doesn't count."""
    if found.is_empty():
        return found
    return found.join(
        open_rows(facts).select("transaction_id", "finding"), on=["transaction_id", "finding"], how="semi"
    )
