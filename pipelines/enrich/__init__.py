"""Enrichment: what a transaction is, said from what the bank wrote. This module is its table of contents.

A customer is always enriched whole: duplicates, transfers and balances look at all of its rows. The facts of a row
(what was sent, and its identity) never change; everything derived is computed anew, so a new version of the rules
is carried through by running this again.
"""

from dataclasses import dataclass

import polars as pl

from pipelines.enrich.balances import verify_balances
from pipelines.enrich.categories import categorise
from pipelines.enrich.channels import channels
from pipelines.enrich.clean import clean_descriptions
from pipelines.enrich.flags import flags
from pipelines.enrich.transfers import transfers
from pipelines.enrich.withdrawals import NO_WITHDRAWALS, Withdrawals, identify_without
from pipelines.schemas import SORT_KEY, TRANSACTIONS, Direction

ENRICHMENT_VERSION = 1


@dataclass(frozen=True)
class Enriched:
    """`transactions` (schema TRANSACTIONS, sorted): the customers' whole values; `duplicates`: rows not kept."""

    transactions: pl.LazyFrame
    duplicates: pl.LazyFrame


def enrich(held: pl.DataFrame, accepted: pl.DataFrame, withdrawals: Withdrawals = NO_WITHDRAWALS) -> Enriched:
    """Take accepted rows into what is held, take withdrawn ones out of it, and enrich every customer whole.

    Args:
        held: the customers' values so far, marked history included (schema TRANSACTIONS).
        accepted: new, validated rows of any of them (schema ACCEPTED).
    """
    put_away = pl.col("withdrawn_seq").is_not_null()
    replayed = identify_without(held.filter(~put_away), accepted, withdrawals)
    transactions = (
        replayed.identified.rows.lazy()
        .with_columns(direction=_direction())
        .pipe(clean_descriptions)
        .pipe(channels)
        .pipe(categorise)
        .pipe(transfers)
        .pipe(flags)
        .pipe(verify_balances)
        .with_columns(
            enrichment_version=pl.lit(ENRICHMENT_VERSION, pl.UInt32()), withdrawn_seq=pl.lit(None, pl.Int64())
        )
        .match_to_schema(TRANSACTIONS)
    )
    history = [held.filter(put_away).lazy(), replayed.put_away.lazy()]
    return Enriched(pl.concat([transactions, *history]).sort(SORT_KEY), replayed.identified.duplicates.lazy())


def changed_customers(held: pl.DataFrame, transactions: pl.DataFrame) -> pl.Series:
    """Numbers of the customers whose value is not the one held. Duplicates alone change nothing, and neither does
    a new version of the enrichment that comes to the same: a row names the version that made it what it is.
    """
    before, after = _fingerprints(held), _fingerprints(transactions)
    same = after.join(before, on=after.columns, how="semi")
    return after.join(same, on="customer_number", how="anti")["customer_number"].sort()


def _fingerprints(rows: pl.DataFrame) -> pl.DataFrame:
    """Per customer, the number of rows and a sum of their hashes: equal for equal content in any order."""
    return (
        rows.select("customer_number", fingerprint=rows.drop("enrichment_version").hash_rows(seed=0))
        .group_by("customer_number")
        .agg(pl.len(), (pl.col("fingerprint") // 2**20).sum(), low=(pl.col("fingerprint") % 2**32).sum())
    )


def _direction() -> pl.Expr:
    return pl.when(pl.col("amount") < 0).then(pl.lit("debit")).otherwise(pl.lit("credit")).cast(Direction)
