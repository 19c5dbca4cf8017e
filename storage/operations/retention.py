"""Retention: keep replaced versions for a set time, then sweep them, together with orphans.

Orphans are files that the database doesn't name.

What is kept, and for how long:

- **Replaced locations** (a customer's earlier versions, and those that compaction replaced) and replaced tables of the
  portfolio: for `TIDEMARK_RETENTION` after they were replaced. A segment is removed with the last of its locations.
- **PDF statements**, encrypted as they were sent, and the rows read from them with their positions on the pages: for
  ever, like landing files.
- **Attachments**, encrypted as they were sent: until a person deletes them.
- **Landing files**: for ever. They are the raw record: rejected rows and unknown fields are stored nowhere else, and
  retractions, replays and the repair of a damaged segment are computed from them.
- **Outcomes** (rejected and duplicate rows): as long as their jobs, whose `errors` and `duplicates` read them.
- **Rows of backtests and simulations**: as long as their jobs, which list them.
- **Sandbox customers** (profile, seed and the last day that was sent): as long as the customer.
- **Local copies of a bucket's files**, in the home: until they are the least recently used. Those of removed files are
  removed with them only in the home of the sweep.
- **Idempotency keys**: 24 hours.
- **Sessions and sign-in links**: until they end. **Users**: until they are erased; their ids stay in what they did.
- **Retired data keys**: at least two days, and as long as anything is encrypted under them.
- **Policies, evaluations, overrides and requests for approval**: for ever; they are only in the database.
- **Notes, and what people did with alerts and decisions**: for ever, but the text of a note until it is deleted.
- **Rulesets and matches**: for ever, also only in the database. Which rules have fired is kept until they are reset;
  the daily counts of each rule (`rule_counts`) for 400 days.

Erasing a customer is not built yet, so nothing is removed together with a customer.

Rows are deleted first, one slice per transaction, then their files. After a kill in between, a file is left that no row
names: an orphan, which a later sweep collects. So every interruption has the same result.

**Why no version that is being read is swept.** A reader looks up locations and then reads their files for minutes: a
batch's run is ended after an hour, and a run of the portfolio, which may take a day, looks up locations again for every
slice of customers and for every file that it writes. A location that was current at the look-up is swept at the
earliest `TIDEMARK_RETENTION` after it was replaced, which is at least two hours.

**Why no file that a row will name is collected.** A file is written first and named later. In between it looks like an
orphan, and however old it is, its writer may only have been suspended. So every writer calls `Lake.require`, after
naming the file and in the same transaction, and rolls back if the file was collected:

- in a *folder*, orphans are found by listing. They are removed inside a transaction that can't overlap any other which
  names files (SQLite has one writer; on PostgreSQL the naming tables are locked in SHARE mode, which waits for their
  writers and blocks new ones), and which checks again that they are unnamed. If a file was removed before, `require`
  doesn't find it. If it was not, the name is committed before the sweep can check. Drafts, which are files without
  their final name, can't be named by a row: if they are gone, their writer fails;
- in a *bucket*, orphans are found by their intents (`storage.core.file_intents`), which `require` deletes. A
  transaction condemns old intents, and only after its commit are the objects removed. If an intent was condemned
  before, `require` doesn't find it. If `require` deleted it first, there is nothing to condemn.

The age of a file (`ORPHAN_AGE`) is therefore not needed for correctness: it only avoids failures of slow writers.

**Why a sweep may refuse.** If the clock runs far ahead, the retention time was shortened by mistake, or another
database is used with this lake, too much seems removable. So a sweep that would remove an unexpected share
(`describe_unexpected`) removes nothing until an operator confirms it. Each sweep records when it ended, so that the
next one knows how much time has passed.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import islice
from typing import TypeVar
from uuid import UUID

from sqlalchemy import delete, func, select, text, tuple_

from pipelines.vocabulary.errors import Conflict
from storage.access import sessions
from storage.core import idempotency, leases, vault_keys
from storage.core.database import Reading, Writing
from storage.core.lake import FoundFile, Lake
from storage.core.models import damaged_files, locations, portfolio_tables, rule_counts, segments
from storage.core.store import Store
from storage.operations.integrity import find_last_finished, select_named, update_pass

# The sweep touches no other folder, because its files may be named elsewhere.
LANDING = "landing"
FOLDERS = (LANDING, "statements", "attachments", "transactions", "outcomes", "portfolio", "backtests", "simulations")
ORPHAN_AGE = timedelta(hours=24)
COUNTS_RETAINED = timedelta(days=400)  # of `rule_counts`: a year to compare with, and the period that is shown
SWEEP_OVERDUE = timedelta(days=7)  # longer than nightly sweeps are ever late: our judgement
SWEEP = "sweep"  # in `passes`
EXPECTED_SHARE = 0.1  # unexplained replaced versions, or unnamed landing files: more must be confirmed; our judgement
STRAY_FILES = 1  # unnamed landing files that are expected: a submission killed before its commit leaves one
UNEXPECTED = "Retention.Unexpected"
SLICE = 1_000  # rows that one transaction deletes, or files that it removes

T = TypeVar("T")
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Swept:
    """How many objects a sweep removed, by kind."""

    versions: int  # replaced locations of customers' transactions, and replaced tables of the portfolio
    files: int  # segments whose last location was removed
    orphans: int  # files that nothing named, including drafts
    idempotency_keys: int
    bytes_freed: int


def sweep(store: Store, clock: Callable[[], datetime], *, confirmed: bool = False) -> Swept:
    """Remove what was kept for its retention time, and orphans.

    Raises:
        Conflict: another sweep or a backup is in progress; or an unexpected share would be removed, without
            `confirmed`.
    """
    with leases.hold_or_raise(store.db, leases.FILE_KEEPER) as prolong:
        if not confirmed and (surprise := describe_unexpected(store, clock())) is not None:
            raise Conflict(UNEXPECTED, f"Nothing was removed: {surprise} If so: tidemark sweep --confirm")
        keys = _delete_in_slices(store, lambda w: idempotency.sweep(w, clock(), SLICE), prolong)
        _delete_in_slices(store, lambda w: _delete_counts(w, (clock() - COUNTS_RETAINED).date()), prolong)
        versions = files = freed = 0
        while (slice_ := _delete_replaced(store, clock() - store.settings.retention)).versions:
            versions += slice_.versions
            files += len(slice_.files)
            freed += sum(size for _, size in slice_.files)
            store.lake.discard(*[path for path, _ in slice_.files])
            prolong()
        orphans, freed_by_orphans = collect_orphans(store, clock, prolong)
        vault_keys.delete_unused_keys(store.db, clock())
        with store.db.writing() as w:
            sessions.sweep(w, clock())
            update_pass(w, SWEEP, {"finished_at": clock()})
    return Swept(versions, files, orphans, keys, freed + freed_by_orphans)


def collect_orphans(store: Store, clock: Callable[[], datetime], prolong: Callable[[], None]) -> tuple[int, int]:
    """Remove old files that nothing names and nothing can name any more. Return their number and bytes."""
    removed = freed = 0
    for files in _slices(_old_files(store.lake, clock() - ORPHAN_AGE)):
        unnamed = _remove_unnamed(store, files)
        removed += len(unnamed)
        freed += sum(file.size for file in unnamed)
        prolong()
    store.lake.purge()
    return removed, freed


def describe_unexpected(store: Store, now: datetime) -> str | None:
    """Return a sentence about what a sweep would remove in unexpected numbers; None if there is nothing.

    It checks two things. Replaced versions are unexpected if the time since the last sweep doesn't explain them;
    without a recorded sweep, all are. Unnamed landing files are unexpected because landing files are kept for ever, so
    that the database should name all of them.
    """
    with store.db.reading() as r:
        last = find_last_finished(r, SWEEP)
        unexplained, replaced = _count_unexplained(r, last, now, store.settings.retention)
    if unexplained > EXPECTED_SHARE * replaced:
        since = f"the last sweep was on {last:%Y-%m-%d at %H:%M} UTC" if last else "no sweep is recorded yet"
        return (
            f"{unexplained:,} of {replaced:,} replaced versions would go, though {since}. "
            "Is the clock right, and TIDEMARK_RETENTION what you mean?"
        )
    if not store.lake.lists_all_files:
        return None  # this database announced whatever a sweep removes from a bucket
    unnamed, received = _count_unnamed_submissions(store, now)
    if unnamed > max(STRAY_FILES, EXPECTED_SHARE * received):
        return f"the database doesn't name {unnamed:,} of {received:,} landing files. Does it belong to this lake?"
    return None


def _count_unexplained(r: Reading, last: datetime | None, now: datetime, retention: timedelta) -> tuple[int, int]:
    """Return how many replaced locations and tables a sweep would remove without an explanation, and how many exist.

    Explained are those whose retention time ended after the last sweep, but at most `SWEEP_OVERDUE` after it. An
    earlier end means that the retention was shortened or the clock set back, a later one that the clock runs ahead or
    that no sweep ran.
    """
    unexplained = replaced = 0
    for at in (locations.c.replaced_at, portfolio_tables.c.replaced_at):
        due = at < now - retention
        if last is not None:
            due &= (at < last - retention) | (at >= last + SWEEP_OVERDUE - retention)
        query = select(func.count().filter(due), func.count()).where(at.is_not(None))
        odd, all_ = r.execute(query).one()
        unexplained, replaced = unexplained + odd, replaced + all_
    return unexplained, replaced


def _count_unnamed_submissions(store: Store, now: datetime) -> tuple[int, int]:
    """Return the number of landing files that a sweep would take for orphans, and of all landing files."""
    unnamed = received = 0
    for files in _slices(store.lake.files(LANDING)):
        old = [file for file in files if file.modified < now - ORPHAN_AGE]
        with store.db.reading() as r:
            unnamed += len(_select_unnamed(r, old))
        received += len(files)
    return unnamed, received


def count_orphans(store: Store, now: datetime) -> tuple[int, int]:
    """Return the number of files that a sweep would take for orphans, and their bytes."""
    count = size = 0
    for files in _slices(_old_files(store.lake, now - ORPHAN_AGE)):
        with store.db.reading() as r:
            unnamed = _select_unnamed(r, files)
        count += len(unnamed)
        size += sum(file.size for file in unnamed)
    return count, size


@dataclass(frozen=True)
class _Deleted:
    versions: int
    files: list[tuple[str, int]]  # path and bytes of those that nothing names any more


def _delete_in_slices(store: Store, delete_slice: Callable[[Writing], int], prolong: Callable[[], None]) -> int:
    """Delete slices, each in a transaction of its own, until nothing is left. Return the number of rows."""
    deleted = 0
    while slice_ := _commit_slice(store, delete_slice):
        deleted += slice_
        prolong()
    return deleted


def _commit_slice(store: Store, delete_slice: Callable[[Writing], int]) -> int:
    with store.db.writing() as w:
        return delete_slice(w)


def _delete_counts(w: Writing, before: date) -> int:
    key = (rule_counts.c.ruleset_id, rule_counts.c.rule, rule_counts.c.day)
    old = select(*key).where(rule_counts.c.day < before).limit(SLICE)
    return w.execute(delete(rule_counts).where(tuple_(*key).in_(old))).rowcount


def _delete_replaced(store: Store, replaced_before: datetime) -> _Deleted:
    """Delete a slice of locations and tables that were replaced before a time, and segments that are then unused."""
    with store.db.writing() as w:
        count, segment_ids = _delete_locations(w, replaced_before)
        tables, of_tables = _delete_tables(w, replaced_before)
        files = _delete_segments(w, segment_ids | of_tables)
        store.lake.release(w, files)
        return _Deleted(count + tables, files)


def _delete_locations(w: Writing, replaced_before: datetime) -> tuple[int, set[UUID]]:
    key = (locations.c.customer_number, locations.c.data_version, locations.c.location_version)
    query = select(*key, locations.c.segment_id).where(locations.c.replaced_at < replaced_before)
    rows = w.execute(query.order_by(locations.c.replaced_at).limit(SLICE)).all()
    w.execute(delete(locations).where(tuple_(*key).in_([tuple(row[:3]) for row in rows])))
    return len(rows), {row.segment_id for row in rows}


def _delete_tables(w: Writing, replaced_before: datetime) -> tuple[int, set[UUID]]:
    query = select(portfolio_tables.c.segment_id).where(portfolio_tables.c.replaced_at < replaced_before).limit(SLICE)
    segment_ids = set(w.execute(query).scalars())
    w.execute(delete(portfolio_tables).where(portfolio_tables.c.segment_id.in_(segment_ids)))
    return len(segment_ids), segment_ids


def _delete_segments(w: Writing, candidates: set[UUID]) -> list[tuple[str, int]]:
    """Delete the segments without any location, and return path and bytes of their files.

    A segment gets all of its locations in the transaction that names it, so one without any never gets one again.
    """
    still_used = select(locations.c.segment_id).where(locations.c.segment_id.in_(candidates))
    unused = candidates - set(w.execute(still_used.distinct()).scalars())
    query = select(segments.c.path, segments.c.bytes).where(segments.c.segment_id.in_(unused))
    files = [(row.path, row.bytes) for row in w.execute(query)]
    w.execute(delete(segments).where(segments.c.segment_id.in_(unused)))
    w.execute(delete(damaged_files).where(damaged_files.c.path.in_([path for path, _ in files])))
    return files


def _old_files(lake: Lake, written_before: datetime) -> Iterator[FoundFile]:
    for folder in FOLDERS:
        yield from (file for file in lake.files(folder) if file.modified < written_before)


def _remove_unnamed(store: Store, files: list[FoundFile]) -> list[FoundFile]:
    """Remove the orphans among the files, and return them.

    It checks in a read transaction before it locks, because mostly there are none.
    """
    with store.db.reading() as r:
        suspects = _select_unnamed(r, files)
    if not suspects:
        return []
    with store.db.writing() as w:
        if store.lake.lists_all_files:
            _lock_naming_tables(w)
        orphans = _select_unnamed(w, suspects)
        for file in orphans:
            log.warning("removing %s: nothing names it", file.path)
        store.lake.collect(w, orphans)
    return orphans


def _select_unnamed(r: Reading, files: Sequence[FoundFile]) -> list[FoundFile]:
    named = select_named(r, [file.path for file in files])
    return [file for file in files if file.path not in named]


def _lock_naming_tables(w: Writing) -> None:
    """Prevent other transactions from naming files until this one ends. SQLite has only one writer anyway."""
    if w.dialect.name == "postgresql":
        w.execute(text("LOCK TABLE segments, jobs, statement_files, attachments IN SHARE MODE"))


def _slices(items: Iterable[T]) -> Iterator[list[T]]:
    rest = iter(items)
    while slice_ := list(islice(rest, SLICE)):
        yield slice_
