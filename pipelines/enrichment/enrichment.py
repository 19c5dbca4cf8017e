"""Enrichment: derive what each transaction is from what the bank wrote. This module lists the steps in order.

A customer's rows are always enriched together, because duplicates, transfers and balances depend on all of them. The
facts of a row (what was sent, and its identity) never change. Everything derived is computed anew each time, so a new
version of the rules takes effect by running this again.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial

import polars as pl

from pipelines.enrichment.balances import verify_balances
from pipelines.enrichment.counterparties import lists
from pipelines.enrichment.counterparties.categories import ask_model
from pipelines.enrichment.counterparties.corrections import apply_corrections
from pipelines.enrichment.counterparties.narratives import read_narratives
from pipelines.enrichment.counterparties.own_names import mark_own_names
from pipelines.enrichment.facilities import mark_facilities
from pipelines.enrichment.flags import add_flags
from pipelines.enrichment.knowledge import NOTHING_KNOWN, Activated, Knowledge, T
from pipelines.enrichment.learned.model import Model
from pipelines.enrichment.learned.model_file import load_base
from pipelines.enrichment.matching.retractions import NO_RETRACTIONS, Retractions, identify_without
from pipelines.enrichment.names import name_words
from pipelines.enrichment.names.name_groups import merge_cut_groups
from pipelines.enrichment.names.related import mark_related_parties
from pipelines.enrichment.recurrence import mark_series
from pipelines.enrichment.transfers.group_pairs import mark_group_transfers
from pipelines.enrichment.transfers.transfers import mark_transfers
from pipelines.enrichment.wording.value_dates import add_effective_date
from pipelines.vocabulary.schemas import SORT_KEY, TRANSACTIONS, Direction

ENRICHMENT_VERSION = 10
MIN_SHARE = 50_000  # rows: with fewer, a thread costs more than it saves (our judgement)


@dataclass(frozen=True)
class Enriched:
    """All rows of the customers as `transactions` (schema TRANSACTIONS, sorted), and the `duplicates` left out."""

    transactions: pl.LazyFrame
    duplicates: pl.LazyFrame


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
) -> Enriched:
    """Add accepted rows to what is held, remove retracted ones, and enrich all rows of every customer.

    Args:
        held: the customers' rows so far, including versions from before a retraction (schema TRANSACTIONS).
        accepted: new, validated rows of these customers (schema ACCEPTED).
        retractions: submissions to take back.
        knowledge: what is known about the customers besides their transactions.
    """
    is_former = pl.col("retracted_seq").is_not_null()
    replayed = identify_without(held.filter(~is_former), accepted, retractions)
    transactions = derive(replayed.identified.rows, knowledge).with_columns(
        enrichment_version=pl.lit(ENRICHMENT_VERSION, pl.UInt32()), retracted_seq=pl.lit(None, pl.Int64())
    )
    history = [held.filter(is_former).lazy(), replayed.former.lazy()]
    return Enriched(
        pl.concat([transactions.match_to_schema(TRANSACTIONS), *history]).sort(SORT_KEY),
        replayed.identified.duplicates.lazy(),
    )


def derive(rows: pl.DataFrame, knowledge: Knowledge = NOTHING_KNOWN) -> pl.LazyFrame:
    """Derive everything that follows from the facts of whole customers' rows (schema `duplicates.KNOWN`).

    Customers don't affect each other, so many rows are divided among the cores.
    """
    read = _read_narratives(rows.with_columns(direction=_direction()), knowledge)
    with ThreadPoolExecutor(pl.thread_pool_size()) as pool:
        return pl.concat(pool.map(partial(_derive_share, knowledge=knowledge), _split_by_core(read))).lazy()


def _read_narratives(rows: pl.DataFrame, knowledge: Knowledge) -> pl.DataFrame:
    """Read each customer's rows by the rules that its client activated, else by the shipped ones."""
    groups = _pair_with_customers(knowledge.own_lists, knowledge.lists or lists.load())
    parts = ((rows.filter(whose), read_by) for whose, read_by in groups)
    return pl.concat([read_narratives(part, read_by) for part, read_by in parts if part.height or rows.is_empty()])


def _split_by_core(rows: pl.DataFrame) -> list[pl.DataFrame]:
    """Split the rows into one part per core, each of whole customers. Few rows stay in one part."""
    shares = min(pl.thread_pool_size(), rows.height // MIN_SHARE)
    if shares < 2:
        return [rows]
    customers = rows["customer_number"].value_counts().sort("customer_number")
    up_to = pl.col("count").cum_sum() - 1
    share = customers.select("customer_number", share=up_to * shares // rows.height)
    return rows.join(share, on="customer_number", maintain_order="left").partition_by("share", include_key=False)


def _derive_share(read: pl.DataFrame, knowledge: Knowledge) -> pl.DataFrame:
    """Run the steps that follow from the texts and from all rows of a customer.

    The steps run eagerly: to plan their hundreds of small operations would take longer than to run them.
    """
    return (
        _ask_models(read, knowledge.models)
        .pipe(add_effective_date)
        .drop("text", "stated_day", "stated_month", "stated_year")
        .pipe(merge_cut_groups)
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


def _ask_models(rows: pl.DataFrame, own_models: Sequence[Activated[Model]]) -> pl.DataFrame:
    """Ask a model about each customer's unsure rows: the one that its client activated, else the shipped one."""
    groups = _pair_with_customers(own_models, load_base())
    return pl.concat(ask_model(rows.filter(whose), model) for whose, model in groups)


def _pair_with_customers(own: Sequence[Activated[T]], rest: T) -> list[tuple[pl.Expr, T]]:
    """Return pairs of an expression that selects customers, and what applies to them: what their client activated, or
    `rest` for all other customers.
    """
    groups = [(pl.col("customer_number").is_in(list(each.customers)), each.value) for each in own]
    others = ~pl.any_horizontal(pl.lit(value=False), *(of_client for of_client, _ in groups))
    return [*groups, (others, rest)]


def find_changed_customers(held: pl.DataFrame, transactions: pl.DataFrame) -> pl.Series:
    """Return the numbers of the customers whose rows differ from those held.

    Duplicates alone change nothing. Nor does a new version of the enrichment with equal results: `enrichment_version`
    is left out of the comparison, so a row keeps the version that first gave it its values.
    """
    before, after = _fingerprint_customers(held), _fingerprint_customers(transactions)
    same = after.join(before, on=after.columns, how="semi")
    return after.join(same, on="customer_number", how="anti")["customer_number"].sort()


def _fingerprint_customers(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the number of rows and a sum of their hashes per customer: equal for equal content in any order."""
    return (
        rows.select("customer_number", fingerprint=rows.drop("enrichment_version").hash_rows(seed=0))
        .group_by("customer_number")
        # High and low bits are summed apart: a sum of whole 64-bit hashes would overflow.
        .agg(pl.len(), (pl.col("fingerprint") // 2**20).sum(), low=(pl.col("fingerprint") % 2**32).sum())
    )


@cache
def _direction() -> pl.Expr:
    return pl.when(pl.col("amount") < 0).then(pl.lit("debit")).otherwise(pl.lit("credit")).cast(Direction)
