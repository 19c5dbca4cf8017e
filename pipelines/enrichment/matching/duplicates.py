"""Identify rows: which are new, which repeat a transaction already held, and which revise one.

With a client's `transactionId`, a row with the same content as the previous version is a duplicate. Any other content
is a revision and supersedes the previous version. Without an id, overlapping submissions are matched as multisets: a
submission adds only the rows beyond the number already held with the same account, date, amount, description and
status. Where both sides state a balance, it must be equal, too. So two equal coffees in one submission are two
transactions, and the same statement sent twice adds nothing.

Rows of PDF statements have other words than those of a feed and are matched by their balances: `alignment` finds those
that repeat a held row before the rest is matched here. Where a statement corrects an earlier one, `replacements` finds
the rows that it replaces.

Submissions are handled in order of receipt, as if each came alone, so the result does not depend on how they were cut
into batches. Submissions that share no key don't affect each other. So round n of `_identify_by_count` takes the n-th
submission of every key at once, and most batches need one round.

A new row concerns few of the held ones, which `_mark_concerned` finds: only they are matched. So what a feed costs
follows from what it brings, and the rest of a long history is copied once, where it must be put in order.
"""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from operator import attrgetter
from typing import NamedTuple

import polars as pl

from pipelines.enrichment.matching.alignment import Turn, is_from_statement, match_statements, split_into_turns
from pipelines.enrichment.matching.identities import derive_ids
from pipelines.enrichment.matching.matching import (
    KEY,
    ORDER,
    match_word_for_word,
    select_unpaired,
    select_unpaired_held,
)
from pipelines.enrichment.matching.replacements import (
    NO_DOCUMENTS,
    Documents,
    continue_transactions,
    find_replaced,
    find_replacing,
    supersede,
)
from pipelines.enrichment.wording.text import id_as_sent, text_as_sent
from pipelines.vocabulary.places import mark_places, sort_rows
from pipelines.vocabulary.schemas import ACCEPTED, DUPLICATES, TRANSACTIONS

IDENTITY = ("transaction_id", "ordinal", "revision", "since_seq", "superseded_seq")
KNOWN = pl.Schema({**ACCEPTED, **{name: TRANSACTIONS[name] for name in IDENTITY}})
PENDING_LASTS = timedelta(days=7)  # card schemes let an authorisation lapse after seven days
POSTED_EARLIER = timedelta(days=1)  # banks date a posting back by a day at most

_ID_KEY = ("account_id", "sent_id")
_SAME_PAYMENT = ("account_id", "amount", "text")
_PAIRS = pl.Schema({**{name: ACCEPTED[name] for name in ORDER}, "posting_seq": ACCEPTED["received_seq"]})
_FIRST_VERSION = (
    pl.lit(1, pl.UInt32()).alias("revision"),
    pl.col("received_seq").alias("since_seq"),
    pl.lit(None, pl.Int64()).alias("superseded_seq"),
)
_CONTENT = ("date", "value_date", "description", "description_digest", "amount", "balance", "status")


class _Waiting(NamedTuple):
    """A pending row that waits for its posting. The order of the fields is the order in which postings take rows."""

    date: date
    received_seq: int
    position: int
    superseded_seq: int | None


@dataclass(frozen=True)
class Identified:
    """Held and new `rows` with their identity (schema KNOWN), and the `duplicates` among the new (DUPLICATES)."""

    rows: pl.DataFrame
    duplicates: pl.DataFrame


def identify(held: pl.DataFrame, accepted: pl.DataFrame, documents: Documents = NO_DOCUMENTS) -> Identified:
    """Add newly accepted rows to what is held. Eager: the number of rounds depends on the data."""
    facts = held.select(KNOWN.names())
    new = accepted.with_columns(text=text_as_sent(), sent_id=id_as_sent()).sort(*ORDER)
    concerned = _mark_concerned(facts, new)
    known = facts.filter(concerned).with_columns(text=text_as_sent(), sent_id=id_as_sent())
    first, *later = split_into_turns(known, new, find_replacing(known, new, documents))
    known, repeated = _add_turn(known, first, new, documents)
    duplicates = [repeated]
    for turn in later:
        others = known.join(turn.rows, on="account_id", how="anti")
        known, repeated = _add_turn(known.join(turn.rows, on="account_id", how="semi"), turn, new, documents)
        known = pl.concat([others, known])
        duplicates.append(repeated)
    rows = pl.concat([facts.filter(~concerned), known.select(KNOWN.names())])
    return Identified(sort_rows(rows), pl.concat(duplicates).sort("job_id", "position"))


def _mark_concerned(held: pl.DataFrame, new: pl.DataFrame) -> pl.Series:
    """Mark the held rows that new ones may repeat, revise or post.

    They have the account and amount of a new row, or its client's id. Where one version of a transaction is concerned,
    so are all: which one was held on a submission's arrival depends on those that follow. Beside a statement's rows, so
    is the whole account: whether two rows are one transaction may depend on the rows between them.
    """
    numbered = held.select("account_id", "amount", sent_id=id_as_sent()).with_row_index("row")
    equal = numbered.join(new, on=["account_id", "amount"], how="semi")
    ids = pl.concat([new.select(_ID_KEY), equal.select(_ID_KEY)])
    versions = numbered.filter(pl.col("sent_id").is_not_null()).join(ids, on=_ID_KEY, how="semi")
    stated = pl.concat(rows.filter(is_from_statement()).select("account_id") for rows in (held, new))
    whole = numbered.join(new.join(stated, on="account_id", how="semi"), on="account_id", how="semi")
    return mark_places(pl.concat(rows["row"] for rows in (equal, versions, whole)), held.height)


def _add_turn(
    known: pl.DataFrame, turn: Turn, every: pl.DataFrame, documents: Documents
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Add the rows of a turn. Return all rows held after it, and the duplicates among its rows.

    Args:
        every: the new rows of all turns.
    """
    repeats = match_statements(known, turn.may_repeat)
    replacement = find_replaced(known, turn.may_repeat, repeats, every, documents)
    known = supersede(known, replacement)
    new = select_unpaired(turn.rows, repeats)
    has_id = pl.col("sent_id").is_not_null()
    versions, repeated = _identify_by_id(known.filter(has_id), new.filter(has_id))
    counted, overlapping = _identify_by_count(known.filter(~has_id), new.filter(~has_id), versions, repeats)
    # A sent row that repeats a statement's row is still the posting of a pending row with the same words.
    brought_before = turn.rows.join(repeats, on=ORDER, how="semi")
    rows = continue_transactions(pl.concat([versions, counted]), replacement)
    # A row that goes on with a transaction is no new posting: an earlier version may have been one.
    rows = rows.pipe(_replace_pending, select_unpaired(new, replacement.continued), brought_before)
    return rows.select(known.columns), pl.concat([repeats.select(DUPLICATES.names()), repeated, overlapping])


def _identify_by_id(held: pl.DataFrame, new: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Identify rows with a client's id. Return all versions, and the duplicates among the new rows."""
    if new.is_empty():
        return held, pl.DataFrame(schema=DUPLICATES)
    identified = _add_ids(new, pl.concat_str(pl.lit("id:"), "sent_id")).with_columns(
        _FIRST_VERSION, ordinal=pl.lit(None, pl.UInt32())
    )
    alone = _is_alone(identified, [held], _ID_KEY)
    shared = identified.filter(~alone)
    held_shared = held.join(shared, on=_ID_KEY, how="semi")
    versions, repeated = _number_versions(held_shared, shared)
    others = held.join(shared, on=_ID_KEY, how="anti")
    return pl.concat([others, identified.filter(alone).select(held.columns), versions]), repeated


def _number_versions(held: pl.DataFrame, new: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Do the work of `_identify_by_id` for rows whose ids occur more than once."""
    unnumbered = new.with_columns(revision=pl.lit(None, pl.UInt32()))
    together = pl.concat([held, unnumbered], how="diagonal").sort(*_ID_KEY, *ORDER)
    content = pl.struct(_CONTENT)
    repeats = pl.col("revision").is_null() & (content == content.shift(1).over(_ID_KEY)).fill_null(value=False)
    marked = together.with_columns(repeats=repeats)
    versions = marked.filter(~pl.col("repeats")).with_columns(
        revision=pl.int_range(1, pl.len() + 1, dtype=pl.UInt32).over(_ID_KEY),
        superseded_seq=pl.coalesce("superseded_seq", pl.col("received_seq").shift(-1).over(_ID_KEY)),
    )
    return versions.select(held.columns), marked.filter("repeats").select(DUPLICATES.names())


def _identify_by_count(
    held: pl.DataFrame, new: pl.DataFrame, versions: pl.DataFrame, repeats: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Identify rows without an id. Return all rows held now, and the duplicates among the new rows.

    Versions of transactions with an id also count as held until they are revised, because a statement may repeat what
    a feed sent. A held row that `repeats` already pairs with another row of the submission is not matched again.
    """
    if new.is_empty():
        return held, pl.DataFrame(schema=DUPLICATES)
    revised = pl.col("received_seq").shift(-1).over(_ID_KEY, order_by=ORDER)
    in_reach = versions.join(new, on="account_id", how="semi").with_columns(revised_seq=revised)
    alone = _is_alone(new, [held, in_reach], KEY)
    shared = new.filter(~alone)
    held_shared, versions_shared = (frame.join(shared, on=KEY, how="semi") for frame in (held, in_reach))
    counted, duplicates = _count_shared_keys(held_shared, versions_shared, shared, repeats)
    added = new.filter(alone).pipe(number_new_rows, held.clear()).with_columns(_FIRST_VERSION)
    others = held.join(shared, on=KEY, how="anti")
    return pl.concat([others, added.select(held.columns), counted]), duplicates


def _count_shared_keys(
    held: pl.DataFrame, also_held: pl.DataFrame, new: pl.DataFrame, repeats: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Do the work of `_identify_by_count` for rows whose keys occur more than once."""
    duplicates = [pl.DataFrame(schema=DUPLICATES)]
    for submissions in _split_into_rounds(new):
        marked = held.with_columns(revised_seq=pl.when(pl.col("status") == "posted").then("superseded_seq"))
        earlier = pl.concat([marked, also_held], how="diagonal").pipe(_select_held_on_arrival, submissions)
        same = match_word_for_word(select_unpaired_held(earlier, repeats), submissions.filter(~pl.col("appended")))
        duplicates.append(same.select(DUPLICATES.names()))
        added = select_unpaired(submissions, same).pipe(number_new_rows, held).with_columns(_FIRST_VERSION)
        held = pl.concat([held, added.select(held.columns)])
    return held, pl.concat(duplicates)


def _split_into_rounds(new: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield the new rows in rounds: round n has the n-th submission of every key."""
    numbered = new.with_columns(turn=pl.col("received_seq").rank("dense").over(KEY))
    for _, submissions in sorted(numbered.partition_by("turn", as_dict=True, include_key=False).items()):
        yield submissions


def _select_held_on_arrival(rows: pl.DataFrame, submissions: pl.DataFrame) -> pl.DataFrame:
    """Select rows with the submissions' keys that were held on arrival: received before, and not yet revised."""
    keys = submissions.group_by(KEY).agg(arrival=pl.col("received_seq").first())
    not_revised = pl.col("revised_seq").is_null() | (pl.col("revised_seq") > pl.col("arrival"))
    return (
        rows.join(keys, on=KEY, validate="m:1")
        .filter(pl.col("received_seq") < pl.col("arrival"), not_revised)
        .drop("arrival", "revised_seq")
    )


def number_new_rows(added: pl.DataFrame, held: pl.DataFrame) -> pl.DataFrame:
    """Add to new transactions their ordinal within their key, and the id derived from both."""
    taken = held.group_by(KEY).agg(next_ordinal=pl.col("ordinal").max() + 1)
    numbered = (
        added.join(taken, on=KEY, how="left", validate="m:1")
        .sort(*ORDER)
        .with_columns(ordinal=(pl.col("next_ordinal").fill_null(0) + pl.int_range(pl.len()).over(KEY)).cast(pl.UInt32))
    )
    key = pl.concat_str("date", "amount", "status", "ordinal", "text", separator="|")
    return _add_ids(numbered, key)


def _add_ids(rows: pl.DataFrame, name: pl.Expr) -> pl.DataFrame:
    """Add `transaction_id`, derived from the account and `name`."""
    return rows.with_columns(transaction_id=derive_ids(rows["account_id"], rows.select(name).to_series()))


def _is_alone(new: pl.DataFrame, held: Sequence[pl.DataFrame], key: Sequence[str]) -> pl.Series:
    """Return for each new row whether no other row, new or held, has its key.

    Hashes are compared. Two keys with the same hash count as not alone, which costs time but changes nothing.
    """
    hashes = [frame.select(pl.struct(key).hash()).to_series() for frame in (new, *held)]
    return pl.concat(hashes).is_unique().head(new.height)


def _replace_pending(rows: pl.DataFrame, new: pl.DataFrame, also_posted: pl.DataFrame) -> pl.DataFrame:
    """Supersede each pending row by its posting: received later, same account, amount and text, a few days apart.

    Pairs are one to one, in the order in which postings were received, and use the rows as they were at that time: a
    later revision of either changes nothing. So the result does not depend on how batches were cut.
    """
    pending = rows.filter(pl.col("status") == "pending")
    if pending.is_empty():
        return rows
    posted = rows.filter(pl.col("status") == "posted").join(new.select(ORDER), on=ORDER, how="semi")
    postings = pl.concat([posted, also_posted.match_to_schema(rows.schema, missing_columns="insert")])
    sides = [pending.join(postings, on=_SAME_PAYMENT, how="semi"), postings.join(pending, on=_SAME_PAYMENT, how="semi")]
    pairs = pl.DataFrame(_pair_postings(pl.concat(sides)), schema=_PAIRS, orient="row")
    if pairs.is_empty():
        return rows
    return rows.join(pairs, on=ORDER, how="left", validate="1:1").with_columns(
        superseded_seq=pl.min_horizontal("superseded_seq", "posting_seq")
    )


def _pair_postings(rows: pl.DataFrame) -> Iterator[tuple[int, int, int]]:
    """Give each posting the earliest row that waits for it. Yield that row's place and the posting's `received_seq`.

    A loop over rows, because what still waits depends on what earlier postings took. It sees only the few payments
    that occur both pending and posted. Rows sent together are never paired: postings come first within a submission.
    """
    waiting: defaultdict[int, list[_Waiting]] = defaultdict(list)  # by payment, in order
    payment = pl.struct(_SAME_PAYMENT).rank("dense")
    in_order = rows.sort("received_seq", pl.col("status") == "pending", "position")
    for number, status, row in zip(
        in_order.select(payment).to_series(),
        in_order["status"],
        map(_Waiting._make, in_order.select(_Waiting._fields).rows()),
        strict=True,
    ):
        if status == "pending":
            insort(waiting[number], row)
        elif (taken := _take_pending(waiting[number], row)) is not None:
            yield taken.received_seq, taken.position, row.received_seq


def _take_pending(waiting: list[_Waiting], posting: _Waiting) -> _Waiting | None:
    """Remove from `waiting` the first row that fits the posting and return it, or None.

    Rows on the way that had already been superseded are removed as well.
    """
    at = bisect_left(waiting, posting.date - PENDING_LASTS, key=attrgetter("date"))
    while at < len(waiting) and waiting[at].date <= posting.date + POSTED_EARLIER:
        found = waiting.pop(at)
        if found.superseded_seq is None or found.superseded_seq > posting.received_seq:
            return found
    return None
