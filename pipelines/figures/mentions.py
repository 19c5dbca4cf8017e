"""Accounts that texts mention but nobody supplied, computed once for all figures that use them."""

import polars as pl

from pipelines.enrichment.transfers.own_accounts import find_mentions
from pipelines.figures.accounts import BY_ACCOUNT
from pipelines.figures.facts import Facts

_READ = (
    *(*BY_ACCOUNT, "bsb", "account_number", "transaction_id", "superseded_seq", "date", "amount", "description"),
    *(
        "clean_description",
        "counterparty_name",
        "counterparty_kind",
        "channel",
        "category",
        "category_source",
        "confidence",
        "is_transfer",
        "other_account",
        "money_in",
        "money_out",
    ),
)


def mentions(facts: Facts) -> pl.DataFrame:
    """Return the rows that name an own account of the customer that was not supplied (see `find_mentions`)."""
    return facts.cached(_mentions)


def _mentions(facts: Facts) -> pl.DataFrame:
    return find_mentions(facts.rows.select(_READ))
