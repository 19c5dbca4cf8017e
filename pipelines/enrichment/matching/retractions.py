"""Submissions taken back: what is held becomes what it would be, had they never been sent.

A submission decides only over those that come after it. So the customer is taken back to the moment before the first
retracted one, and what came later is identified again, in its order and by the same rules: what a later submission
repeated becomes its own row, a revision gives way to the version that it replaced, and a pending row whose posting is
gone waits for it again.

Two things are kept that a mere replay would lose. **Ids:** a transaction that stays keeps its id, and a row that
takes the place of one which goes, in the same words, inherits that one's. In other words, as a feed's beside those of a
PDF statement, it has the id of its own: another's could be derived once more for whoever sends those words later.
**History:** what the retraction changed stays beside the new state, put away as it was, so that what was held at any
time before can still be told.
"""

from dataclasses import dataclass

import polars as pl

from pipelines.enrichment.matching.duplicates import KNOWN, Identified, identify, number_new_rows
from pipelines.enrichment.matching.matching import ORDER, match_word_for_word
from pipelines.enrichment.wording.text import text_as_sent
from pipelines.vocabulary.schemas import ACCEPTED, SORT_KEY, TRANSACTIONS, UUID

# A submission to take back, and where it and its retraction stand in the order of receipt.
RETRACTED = pl.Schema(
    {"customer_number": pl.Int64(), "job_id": UUID, "submission_seq": pl.Int64(), "retraction_seq": pl.Int64()}
)


@dataclass(frozen=True)
class Retractions:
    """`retracted`: the submissions to take back (schema WITHDRAWN); `sent`: all rows accepted from these customers'
    other submissions, at least from those received since (schema ACCEPTED): what was not kept may have to be now.
    """

    retracted: pl.DataFrame
    sent: pl.DataFrame


NO_RETRACTIONS = Retractions(pl.DataFrame(schema=RETRACTED), pl.DataFrame(schema=ACCEPTED))


@dataclass(frozen=True)
class Replayed:
    """`identified`: what stands now; `put_away`: rows that no longer stand as they did (schema TRANSACTIONS)."""

    identified: Identified
    put_away: pl.DataFrame


def identify_without(held: pl.DataFrame, accepted: pl.DataFrame, retractions: Retractions) -> Replayed:
    """Take newly accepted rows into what is held, and take retracted submissions out of it.

    A customer's retractions and submissions of one batch come true together: each of them since the last retraction.
    """
    if retractions.retracted.is_empty():
        return Replayed(identify(held, accepted), held.clear())
    affected = retractions.retracted.group_by("customer_number").agg(
        first_seq=pl.col("submission_seq").min(), retraction_seq=pl.col("retraction_seq").max()
    )
    others = held.join(affected, on="customer_number", how="anti")
    mine = held.join(affected, on="customer_number", validate="m:1")
    sent = retractions.sent.join(affected, on="customer_number", validate="m:1")
    later = _facts_since(mine, sent, retractions.retracted)
    identified = identify(pl.concat([others, _state_before(mine)]), pl.concat([accepted, later]))
    replayed = _restore_ids(identified, mine)
    rows, put_away = _mark_changes(replayed.rows.join(affected, on="customer_number", validate="m:1"), mine)
    untouched = replayed.rows.join(affected, on="customer_number", how="anti")
    repeated = replayed.duplicates.join(accepted, on="job_id", how="semi")
    return Replayed(Identified(pl.concat([untouched, rows]).sort(SORT_KEY), repeated), put_away)


def _is_since_first() -> pl.Expr:
    return pl.col("received_seq") >= pl.col("first_seq")


def _state_before(mine: pl.DataFrame) -> pl.DataFrame:
    """What was held just before the first retracted submission."""
    not_yet = pl.when(pl.col("superseded_seq") < pl.col("first_seq")).then("superseded_seq")
    return mine.filter(~_is_since_first()).with_columns(superseded_seq=not_yet).select(TRANSACTIONS.names())


def _facts_since(mine: pl.DataFrame, sent: pl.DataFrame, retracted: pl.DataFrame) -> pl.DataFrame:
    """Every accepted row since then that is not retracted. What is held tells its facts itself; they never change."""
    held, all_sent = mine.filter(_is_since_first()), sent.filter(_is_since_first())
    facts = [held, all_sent.join(held, on=ORDER, how="anti")]
    return pl.concat(each.join(retracted, on="job_id", how="anti").select(ACCEPTED.names()) for each in facts)


def _restore_ids(identified: Identified, mine: pl.DataFrame) -> Identified:
    """Rows that are held already keep their ids, and new ones inherit those of matching rows that are gone.

    Only among rows without a client's id: an id derived from that one goes with it.
    """
    without_id = pl.col("client_transaction_id").is_null()
    rows = identified.rows.with_columns(text=text_as_sent())
    before = mine.filter(without_id).with_columns(text=text_as_sent())
    own = rows.filter(without_id).join(mine, on="customer_number", how="semi")
    old_id, unnamed = ("ordinal", "transaction_id"), own.drop("ordinal", "transaction_id")

    staying = unnamed.join(before.select(*ORDER, *old_id), on=ORDER, validate="1:1")
    coming, gone = unnamed.join(before, on=ORDER, how="anti"), before.join(own, on=ORDER, how="anti")
    heirs = match_word_for_word(gone, coming).join(
        gone.select(held_received_seq="received_seq", held_position="position", ordinal="ordinal"),
        on=["held_received_seq", "held_position"],
        validate="1:1",
    )
    inheriting = coming.join(heirs.select(*ORDER, *old_id), on=ORDER, validate="1:1")
    taken = pl.concat([staying.select(rows.columns), gone.select(rows.columns)])
    fresh = coming.join(heirs, on=ORDER, how="anti").pipe(number_new_rows, taken)
    named = pl.concat([frame.select(rows.columns) for frame in (staying, inheriting, fresh)])
    others = rows.join(own, on=ORDER, how="anti")
    return Identified(
        pl.concat([others, named]).select(KNOWN.names()), _rename_duplicates(identified.duplicates, own, named)
    )


def _rename_duplicates(duplicates: pl.DataFrame, own: pl.DataFrame, named: pl.DataFrame) -> pl.DataFrame:
    """Duplicates under the final ids of the transactions that they repeat."""
    names = own.select(*ORDER, "transaction_id").join(
        named.select(*ORDER, final_id="transaction_id"), on=ORDER, validate="1:1"
    )
    final = duplicates.join(names.drop(ORDER), on="transaction_id", how="left", validate="m:1")
    return final.with_columns(transaction_id=pl.coalesce("final_id", "transaction_id")).drop("final_id")


def _mark_changes(rows: pl.DataFrame, mine: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows, each with the job since which it stands so; and what stood otherwise before, put away.

    What submissions received after the retraction replaced is their doing, not a change that it made.
    """
    marks = ("revision", "superseded_seq", "since_seq")
    before = mine.select(*ORDER, *(pl.col(name).alias(f"old_{name}") for name in marks))
    by_then = pl.when(pl.col("superseded_seq") < pl.col("retraction_seq")).then("superseded_seq")
    same = (pl.col("revision") == pl.col("old_revision")) & by_then.eq_missing(pl.col("old_superseded_seq"))
    since_now = pl.max_horizontal("received_seq", "retraction_seq")
    marked = (
        rows.join(before, on=ORDER, how="left", validate="1:1")
        .with_columns(same=same.fill_null(value=False))
        .with_columns(since_seq=pl.when("same").then("old_since_seq").otherwise(since_now))
    )
    changed = mine.join(marked.filter("same"), on=ORDER, how="anti").with_columns(
        superseded_seq=pl.coalesce("superseded_seq", "retraction_seq"), retracted_seq="retraction_seq"
    )
    return marked.select(KNOWN.names()), changed.select(TRANSACTIONS.names())
