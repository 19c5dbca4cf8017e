"""Enrichment: derive what each transaction is from what the bank wrote. This module lists the steps in order.

A customer's rows are always enriched together, because duplicates, transfers and balances depend on all of them. The
facts of a row (what was sent, and its identity) never change. Everything derived is computed anew each time, except
what was read in the row itself by the same rules (`reading`). So a new version of the rules takes effect by running
this again.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import polars as pl

from pipelines.enrichment.balances import verify_balances
from pipelines.enrichment.counterparties import lists
from pipelines.enrichment.counterparties.corrections import apply_corrections
from pipelines.enrichment.counterparties.own_names import mark_own_names
from pipelines.enrichment.facilities import mark_facilities
from pipelines.enrichment.flags import add_flags
from pipelines.enrichment.knowledge import NOTHING_KNOWN, Knowledge
from pipelines.enrichment.learned.model_file import load_base
from pipelines.enrichment.matching.replacements import NO_DOCUMENTS, Documents
from pipelines.enrichment.matching.retractions import NO_RETRACTIONS, Retractions, identify_without
from pipelines.enrichment.names import name_words
from pipelines.enrichment.names.name_groups import merge_cut_groups
from pipelines.enrichment.names.related import mark_related_parties
from pipelines.enrichment.reading import REMEMBERED, read_rows, remember
from pipelines.enrichment.recurrence import mark_series
from pipelines.enrichment.transfers.group_pairs import mark_group_transfers
from pipelines.enrichment.transfers.transfers import mark_transfers
from pipelines.vocabulary.places import sort_rows
from pipelines.vocabulary.schemas import TRANSACTIONS, not_retracted

ENRICHMENT_VERSION = 17
NOT_COMPARED = ("enrichment_version", "read_by", "as_read")  # what says how a row came to be, not what it is
MIN_SHARE = 50_000  # rows: with fewer, a thread costs more than it saves (our judgement)


@dataclass(frozen=True)
class Enriched:
    """All rows of the customers as `transactions` (schema TRANSACTIONS, sorted), the `duplicates` left out, and what
    was held before, as `before` (from `fingerprint_customers`).
    """

    transactions: pl.LazyFrame
    duplicates: pl.LazyFrame
    before: pl.DataFrame


def prepare() -> None:
    """Load lists, rules and the model that ships with Tidemark, so that the first batch does not wait for them.

    Raises:
        RuleError: a file of `rules/` is broken; the message says which file, where and why.
    """
    lists.load()
    name_words.load()
    load_base()


def enrich(
    held: pl.DataFrame,
    accepted: pl.DataFrame,
    retractions: Retractions = NO_RETRACTIONS,
    knowledge: Knowledge = NOTHING_KNOWN,
    documents: Documents = NO_DOCUMENTS,
) -> Enriched:
    """Add accepted rows to what is held, remove retracted ones, and enrich all rows of every customer.

    Args:
        held: the customers' rows so far, including versions from before a retraction (schema TRANSACTIONS). A long
            history takes gigabytes: a caller that doesn't keep it sets its memory free.
        accepted: new, validated rows of these customers (schema ACCEPTED).
        retractions: submissions to take back.
        knowledge: what is known about the customers besides their transactions.
        documents: what decides whether a statement replaces an earlier one. Without them, none does.
    """
    replayed = identify_without(held.filter(not_retracted()), accepted, retractions, documents)
    identified, former = replayed.identified, pl.concat([held.filter(~not_retracted()), replayed.former])
    before, remembered = fingerprint_customers(held), held.select(REMEMBERED)
    del held, replayed  # a long history takes gigabytes, and what follows needs little of it
    read = read_rows(identified.rows, remembered, knowledge)
    duplicates = identified.duplicates
    del identified, remembered
    transactions = derive(read, knowledge).with_columns(
        enrichment_version=pl.lit(ENRICHMENT_VERSION, pl.UInt32()), retracted_seq=pl.lit(None, pl.Int64())
    )
    every = pl.concat([transactions.match_to_schema(TRANSACTIONS), former])
    return Enriched(sort_rows(every).lazy(), duplicates.lazy(), before)


def derive(read: pl.DataFrame, knowledge: Knowledge = NOTHING_KNOWN) -> pl.DataFrame:
    """Derive everything that follows from all rows of whole customers (from `read_rows`).

    Customers don't affect each other, so many rows are divided among the cores.
    """
    with ThreadPoolExecutor(pl.thread_pool_size()) as pool:
        return pl.concat(pool.map(partial(_derive_share, knowledge=knowledge), _split_by_core(read)))


def _split_by_core(rows: pl.DataFrame) -> list[pl.DataFrame]:
    """Split the rows into one part per core, each of whole customers. Few rows stay in one part."""
    customers = rows["customer_number"].value_counts().sort("customer_number")
    shares = min(pl.thread_pool_size(), customers.height, rows.height // MIN_SHARE)
    if shares < 2:
        return [rows]
    up_to = pl.col("count").cum_sum() - 1
    share = customers.select("customer_number", share=up_to * shares // rows.height)
    return rows.join(share, on="customer_number", maintain_order="left").partition_by("share", include_key=False)


def _derive_share(read: pl.DataFrame, knowledge: Knowledge) -> pl.DataFrame:
    """Run the steps that follow from all rows of a customer.

    The steps run eagerly: to plan their hundreds of small operations would take longer than to run them.
    """
    derived = (
        merge_cut_groups(read)
        .pipe(mark_own_names, knowledge.customers)
        .pipe(mark_related_parties, knowledge.related_parties)
        .pipe(mark_transfers)
        .pipe(mark_group_transfers, knowledge.group_rows)
        .pipe(apply_corrections, knowledge.corrections)
        .pipe(mark_series)
        .pipe(mark_facilities)
        .pipe(add_flags)
        .pipe(verify_balances)
    )
    return remember(derived, read)


def find_changed_customers(before: pl.DataFrame, transactions: pl.DataFrame) -> pl.Series:
    """Return the numbers of the customers whose rows differ from those held `before` (from `fingerprint_customers`).

    Duplicates alone change nothing. Nor does a new version of the enrichment with equal results: NOT_COMPARED is left
    out of the comparison, so a row keeps the version that first gave it its values.
    """
    after = fingerprint_customers(transactions)
    same = after.join(before, on=after.columns, how="semi")
    return after.join(same, on="customer_number", how="anti")["customer_number"].sort()


def fingerprint_customers(rows: pl.DataFrame) -> pl.DataFrame:
    """Return `customer_number`, the number of rows and sums of their hashes: equal for equal content in any order."""
    return (
        rows.select("customer_number", fingerprint=rows.drop(NOT_COMPARED).hash_rows(seed=0))
        .group_by("customer_number")
        # High and low bits are summed apart: a sum of whole 64-bit hashes would overflow.
        .agg(pl.len(), (pl.col("fingerprint") // 2**20).sum(), low=(pl.col("fingerprint") % 2**32).sum())
    )
