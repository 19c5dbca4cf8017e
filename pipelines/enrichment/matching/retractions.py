"""Retract submissions: what is held becomes what it would be if they had never been sent.

A submission affects only later ones. So the customer's rows are set back to just before the first retracted
submission, and everything received since is identified again, in the same order and by the same rules. A row that
repeated a retracted one becomes a transaction itself, a revision or a replacement is undone, and a pending row whose
posting is gone waits for it again.

Two things are preserved that a mere replay would lose. **Ids:** a transaction that stays keeps its id, and a row that
replaces a removed one in the same words inherits its id. A row in other words (a feed's beside a PDF statement's) gets
an id of its own, because the removed row's id could be derived again for a later row with those words. **History:**
rows that the retraction changed are stored as they were, so that what was held at any earlier time can still be shown.
"""

from dataclasses import dataclass

import polars as pl

from pipelines.enrichment.matching.duplicates import KNOWN, Identified, identify, number_new_rows
from pipelines.enrichment.matching.matching import ORDER, match_word_for_word
from pipelines.enrichment.matching.replacements import NO_DOCUMENTS, Documents
from pipelines.enrichment.wording.text import text_as_sent
from pipelines.vocabulary.places import sort_rows
from pipelines.vocabulary.schemas import ACCEPTED, TRANSACTIONS, UUID

# A submission to take back, with its own place and that of its retraction in the order of receipt.
RETRACTED = pl.Schema(
    {"customer_number": pl.Int64(), "job_id": UUID, "submission_seq": pl.Int64(), "retraction_seq": pl.Int64()}
)


@dataclass(frozen=True)
class Retractions:
    """The submissions to take back, and the rows that may have to replace theirs.

    `retracted` has schema RETRACTED. `sent` (schema ACCEPTED) holds all accepted rows of these customers' other
    submissions, at least of those received since: a row that was a duplicate may now become a transaction.
    """

    retracted: pl.DataFrame
    sent: pl.DataFrame


NO_RETRACTIONS = Retractions(pl.DataFrame(schema=RETRACTED), pl.DataFrame(schema=ACCEPTED))


@dataclass(frozen=True)
class Replayed:
    """The rows after the retraction (`identified`), and the former versions of changed rows (schema TRANSACTIONS)."""

    identified: Identified
    former: pl.DataFrame


def identify_without(
    held: pl.DataFrame, accepted: pl.DataFrame, retractions: Retractions, documents: Documents = NO_DOCUMENTS
) -> Replayed:
    """Add newly accepted rows to what is held, and remove those of retracted submissions.

    A customer's retractions and submissions of one batch take effect together, as of the last retraction.
    """
    if retractions.retracted.is_empty():
        return Replayed(identify(held, accepted, documents), held.clear())
    customers = retractions.retracted.group_by("customer_number").agg(
        first_seq=pl.col("submission_seq").min(), retraction_seq=pl.col("retraction_seq").max()
    )
    others = held.join(customers, on="customer_number", how="anti")
    affected = held.join(customers, on="customer_number", validate="m:1")
    sent = retractions.sent.join(customers, on="customer_number", validate="m:1")
    later = _list_facts_since(affected, sent, retractions.retracted)
    rest = documents.without(retractions.retracted.select("job_id"))
    identified = identify(pl.concat([others, _state_before(affected)]), pl.concat([accepted, later]), rest)
    replayed = _restore_ids(identified, affected)
    rows, former = _mark_changes(replayed.rows.join(customers, on="customer_number", validate="m:1"), affected)
    untouched = replayed.rows.join(customers, on="customer_number", how="anti")
    repeated = replayed.duplicates.join(accepted, on="job_id", how="semi")
    return Replayed(Identified(sort_rows(pl.concat([untouched, rows])), repeated), former)


def _is_since_first() -> pl.Expr:
    return pl.col("received_seq") >= pl.col("first_seq")


def _state_before(affected: pl.DataFrame) -> pl.DataFrame:
    """Return what was held just before the first retracted submission."""
    not_yet = pl.when(pl.col("superseded_seq") < pl.col("first_seq")).then("superseded_seq")
    return affected.filter(~_is_since_first()).with_columns(superseded_seq=not_yet).select(TRANSACTIONS.names())


def _list_facts_since(affected: pl.DataFrame, sent: pl.DataFrame, retracted: pl.DataFrame) -> pl.DataFrame:
    """Return every row accepted since the first retracted submission that is not retracted itself.

    Held rows are preferred to sent ones; their facts never change.
    """
    held, all_sent = affected.filter(_is_since_first()), sent.filter(_is_since_first())
    facts = [held, all_sent.join(held, on=ORDER, how="anti")]
    return pl.concat(each.join(retracted, on="job_id", how="anti").select(ACCEPTED.names()) for each in facts)


def _restore_ids(identified: Identified, affected: pl.DataFrame) -> Identified:
    """Restore the ids of rows that stay, and give new rows the ids of removed rows that they match.

    This concerns only rows without a client's id: other ids are derived from the client's id.
    """
    without_id = pl.col("client_transaction_id").is_null()
    rows = identified.rows.with_columns(text=text_as_sent())
    before = affected.filter(without_id).with_columns(text=text_as_sent())
    own = rows.filter(without_id).join(affected, on="customer_number", how="semi")
    old_id, unnamed = ("ordinal", "transaction_id"), own.drop("ordinal").rename({"transaction_id": "identified_id"})

    staying = unnamed.join(before.select(*ORDER, *old_id), on=ORDER, validate="1:1")
    coming, gone = unnamed.join(before, on=ORDER, how="anti"), before.join(own, on=ORDER, how="anti")
    # A row that stays may go on with a removed row's transaction: its id is still in use.
    free, beginning = gone.join(staying, on="transaction_id", how="anti"), coming.filter(pl.col("revision") == 1)
    heirs = match_word_for_word(free, beginning).join(
        gone.select(held_received_seq="received_seq", held_position="position", ordinal="ordinal"),
        on=["held_received_seq", "held_position"],
        validate="1:1",
    )
    inheriting = coming.join(heirs.select(*ORDER, *old_id), on=ORDER, validate="1:1")
    taken = pl.concat([staying.select(rows.columns), gone.select(rows.columns)])
    fresh = coming.join(heirs, on=ORDER, how="anti").pipe(number_new_rows, taken)
    columns = [*rows.columns, "identified_id"]
    named = _name_continued(pl.concat([frame.select(columns) for frame in (staying, inheriting, fresh)]), coming)
    others = rows.join(own, on=ORDER, how="anti")
    return Identified(
        pl.concat([others, named]).select(KNOWN.names()), _rename_duplicates(identified.duplicates, own, named)
    )


def _name_continued(named: pl.DataFrame, coming: pl.DataFrame) -> pl.DataFrame:
    """Give new rows that go on with a statement's transaction its final id."""
    continued = coming.filter(pl.col("revision") > 1)
    if not continued.is_empty():
        first = named.sort("revision").unique("identified_id", keep="first", maintain_order=True)
        ids = continued.select(*ORDER, "identified_id").join(
            first.select("identified_id", final_id="transaction_id"), on="identified_id", validate="m:1"
        )
        named = named.join(ids.drop("identified_id"), on=ORDER, how="left", validate="1:1").with_columns(
            transaction_id=pl.coalesce("final_id", "transaction_id")
        )
    return named.drop("identified_id", "final_id", strict=False)


def _rename_duplicates(duplicates: pl.DataFrame, own: pl.DataFrame, named: pl.DataFrame) -> pl.DataFrame:
    """Replace the ids that duplicates refer to by the final ids of the transactions."""
    names = (
        own.select(*ORDER, "transaction_id")
        .join(named.select(*ORDER, final_id="transaction_id"), on=ORDER, validate="1:1")
        .sort(ORDER)
        .unique("transaction_id", keep="last", maintain_order=True)  # of several versions, the last stands
    )
    final = duplicates.join(names.drop(ORDER), on="transaction_id", how="left", validate="m:1")
    return final.with_columns(transaction_id=pl.coalesce("final_id", "transaction_id")).drop("final_id")


def _mark_changes(rows: pl.DataFrame, affected: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Set `since_seq` of rows that the retraction changed, and return their former versions, which are stored as
    history.

    If a submission received after the retraction superseded a row, that submission counts as having changed it.
    """
    marks = ("revision", "superseded_seq", "since_seq")
    before = affected.select(*ORDER, *(pl.col(name).alias(f"old_{name}") for name in marks))
    by_then = pl.when(pl.col("superseded_seq") < pl.col("retraction_seq")).then("superseded_seq")
    same = (pl.col("revision") == pl.col("old_revision")) & by_then.eq_missing(pl.col("old_superseded_seq"))
    since_now = pl.max_horizontal("received_seq", "retraction_seq")
    marked = (
        rows.join(before, on=ORDER, how="left", validate="1:1")
        .with_columns(same=same.fill_null(value=False))
        .with_columns(since_seq=pl.when("same").then("old_since_seq").otherwise(since_now))
    )
    changed = affected.join(marked.filter("same"), on=ORDER, how="anti").with_columns(
        superseded_seq=pl.coalesce("superseded_seq", "retraction_seq"), retracted_seq="retraction_seq"
    )
    return marked.select(KNOWN.names()), changed.select(TRANSACTIONS.names())
