"""Retention: replaced versions are kept for a set time, then swept; so is what nothing ever named.

What is kept, and for how long:

- **Replaced places** (a customer's earlier versions, places left by compaction) and replaced tables of the portfolio:
  for `TIDEMARK_RETENTION`, counted from the moment they were replaced. A segment goes with the last of its places.
- **PDF statements**, sealed as they were sent, and the rows read from them with their places on the pages: for ever, as
  landing files.
- **Landing files**: for ever. They are the raw record: refused rows and unknown fields stand nowhere else, and from
  them a retraction, a replay or the repair of a damaged segment is computed. Erasing a customer removes its own.
- **Outcomes** (refused and duplicate rows): as long as their jobs, whose `errors` and `duplicates` they answer.
- **Idempotency keys**: 24 hours.
- **Data keys** that were retired: two days at least, and as long as anything is sealed under them.
- **Policies, evaluations and overrides**: for ever; they stand in the database alone. Erasing a customer removes its
  evaluations with what was decided instead.
- **Rulesets and matches**: for ever, in the database, too; a customer's matches go with it. Which rules have fired is
  kept while they have; how often they were looked by (`rule_counts`), a row a rule and day, for 400 days.

Rows go first, a slice in one transaction; then their files. Killed in between, a file is left that no row names: an
orphan, which a later sweep collects. So every way of being interrupted ends the same.

**Why no version is swept that somebody reads.** Who reads looks places up and then reads their files, for minutes: a
batch's run is ended after an hour, and a run of the portfolio, which may take a day, looks places up again for every
slice of customers and for every file that it writes. A place that was current at the look-up is swept at the earliest
when it has been replaced for `TIDEMARK_RETENTION`, which is at least two hours.

**Why no file is collected that a row will name.** A file is written, then named. Between the two it looks like an
orphan, and however old it is, its writer may merely have been suspended. So files are removed inside a transaction
that no other transaction which names files can overlap (SQLite: the one writer; PostgreSQL: the naming tables locked
in SHARE mode, which waits for their writers and holds new ones up). In it, the file is found unnamed again, and:

- a *batch's* file is kept while any batch is open that began before the file was written: once there is none, the
  file's batch is closed, and a closed batch can't commit;
- everyone else (submissions, compaction, the portfolio) checks with `Lake.require`, after naming the file and in the
  same transaction, that it is still there. Removed before: they find it gone and roll back. Not yet removed: the name
  is committed before the collector may look.

**Why a sweep may refuse.** A clock that runs far ahead, a retention time that was shortened by mistake, or another
database beside this lake make much look as if it could go. So a sweep that would remove an unexpected share of what is
held (`unexpected`) removes nothing until an operator confirms it.

So age (`ORPHAN_AGE`) decides nothing about truth: it only spares those who are slow a failure. Drafts, files that
never got their own name, can't be named at all: their writer's last step fails if they are gone.
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
from storage.core import idempotency, leases, vault_keys
from storage.core.database import Reading, Writing
from storage.core.lake import Found, Lake
from storage.core.models import BatchState, batches, damaged_files, locations, portfolio_tables, rule_counts, segments
from storage.core.store import Store
from storage.operations.integrity import named

# No other is touched: its files may have names elsewhere.
LANDING = "landing"
FOLDERS = (LANDING, "statements", "transactions", "outcomes", "portfolio", "backtests", "simulations")
ORPHAN_AGE = timedelta(hours=24)
COUNTS_RETAINED = timedelta(days=400)  # of what rules came to: a year, to compare with, and what is shown of it
SWEEP_OVERDUE = timedelta(days=7)  # longer than nightly sweeps are ever late: our judgement
EXPECTED_SHARE = 0.1  # of what is held that one sweep may remove although it is overdue or unnamed: our judgement
STRAY_FILES = 1  # so few are no share: what a submission leaves that was killed before its commit
UNEXPECTED = "Retention.Unexpected"
CLOCKS_DIFFER_BY = timedelta(hours=1)  # the file system's from the database's, at most
SLICE = 1_000  # what one transaction forgets, or removes

T = TypeVar("T")
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Swept:
    """What a sweep removed."""

    versions: int  # replaced places of customers' values, and replaced tables of the portfolio
    files: int  # those whose last place went
    orphans: int  # files that nothing named, drafts included
    idempotency_keys: int
    bytes_freed: int


def sweep(store: Store, clock: Callable[[], datetime], *, confirmed: bool = False) -> Swept:
    """Remove what has been kept long enough, and orphans.

    Raises:
        Conflict: another sweep, or a backup, is under way; or an unexpected share would go, and nobody confirmed it.
    """
    with leases.exclusively(store.db, leases.FILE_KEEPER, clock) as prolong:
        if not confirmed and (surprise := unexpected(store, clock())) is not None:
            raise Conflict(UNEXPECTED, f"Nothing was removed: {surprise} If so: tidemark sweep --confirm")
        keys = _in_slices(store, lambda w: idempotency.sweep(w, clock(), SLICE), prolong)
        _in_slices(store, lambda w: _forget_counts(w, (clock() - COUNTS_RETAINED).date()), prolong)
        versions = files = freed = 0
        while (slice_ := _forget(store, clock() - store.settings.retention)).versions:
            versions += slice_.versions
            files += len(slice_.paths)
            freed += sum(map(store.lake.discard, slice_.paths))
            prolong()
        orphans, freed_by_orphans = collect_orphans(store, clock, prolong)
        vault_keys.forget(store.db, clock())
    return Swept(versions, files, orphans, keys, freed + freed_by_orphans)


def collect_orphans(store: Store, clock: Callable[[], datetime], prolong: Callable[[], None]) -> tuple[int, int]:
    """Remove old files that nothing names and nothing can name any more: how many, and their bytes."""
    removed = freed = 0
    for found in _slices(_old_files(store.lake, clock() - ORPHAN_AGE)):
        sizes = _remove_unnamed(store, found)
        removed += len(sizes)
        freed += sum(sizes)
        prolong()
    return removed, freed


def unexpected(store: Store, now: datetime) -> str | None:
    """Say in words what a sweep would remove far more of than sweeps do, if there is such a thing.

    That is replaced versions for which the retention time was over more than `SWEEP_OVERDUE` ago, and submissions as
    they were received, which are kept for ever: the database names them all.
    """
    with store.db.reading() as r:
        overdue, replaced = _overdue(r, now - store.settings.retention - SWEEP_OVERDUE)
    if overdue > EXPECTED_SHARE * replaced:
        return (
            f"{overdue:,} of {replaced:,} replaced versions would go that an earlier sweep should have removed. "
            "Is the clock right, and TIDEMARK_RETENTION what you mean?"
        )
    unnamed, received = _unnamed_submissions(store, now)
    if unnamed > max(STRAY_FILES, EXPECTED_SHARE * received):
        return f"the database doesn't name {unnamed:,} of {received:,} landing files. Is it the one of this lake?"
    return None


def _overdue(r: Reading, replaced_before: datetime) -> tuple[int, int]:
    """How many replaced places and tables are older than that, and how many there are."""
    overdue = replaced = 0
    for at in (locations.c.replaced_at, portfolio_tables.c.replaced_at):
        query = select(func.count().filter(at < replaced_before), func.count()).where(at.is_not(None))
        of_these, all_of_them = r.execute(query).one()
        overdue, replaced = overdue + of_these, replaced + all_of_them
    return overdue, replaced


def _unnamed_submissions(store: Store, now: datetime) -> tuple[int, int]:
    """How many landing files a sweep would take for orphans, and how many there are."""
    unnamed = received = 0
    for found in _slices(store.lake.files(LANDING)):
        old = [file for file in found if file.modified < now - ORPHAN_AGE]
        with store.db.reading() as r:
            unnamed += len(_unnamed(r, old))
        received += len(found)
    return unnamed, received


def orphans(store: Store, now: datetime) -> tuple[int, int]:
    """How many files a sweep would take for orphans, and their bytes."""
    count = size = 0
    for found in _slices(_old_files(store.lake, now - ORPHAN_AGE)):
        with store.db.reading() as r:
            unnamed = _unnamed(r, found)
        count += len(unnamed)
        size += sum(file.size for file in unnamed)
    return count, size


@dataclass(frozen=True)
class _Forgotten:
    versions: int
    paths: list[str]  # of files that nothing names any more


def _in_slices(store: Store, forget: Callable[[Writing], int], prolong: Callable[[], None]) -> int:
    """Forget a slice in a transaction of its own, until there is none; how many rows it were."""
    forgotten = 0
    while slice_ := _one_slice(store, forget):
        forgotten += slice_
        prolong()
    return forgotten


def _one_slice(store: Store, forget: Callable[[Writing], int]) -> int:
    with store.db.writing() as w:
        return forget(w)


def _forget_counts(w: Writing, before: date) -> int:
    key = (rule_counts.c.ruleset_id, rule_counts.c.rule, rule_counts.c.day)
    old = select(*key).where(rule_counts.c.day < before).limit(SLICE)
    return w.execute(delete(rule_counts).where(tuple_(*key).in_(old))).rowcount


def _forget(store: Store, replaced_before: datetime) -> _Forgotten:
    """Forget a slice of what was replaced long enough ago, with the segments that this leaves without a place."""
    with store.db.writing() as w:
        places, left = _forget_places(w, replaced_before)
        tables, left_by_tables = _forget_tables(w, replaced_before)
        return _Forgotten(places + tables, _forget_segments(w, left | left_by_tables))


def _forget_places(w: Writing, replaced_before: datetime) -> tuple[int, set[UUID]]:
    key = (locations.c.customer_number, locations.c.data_version, locations.c.location_version)
    query = select(*key, locations.c.segment_id).where(locations.c.replaced_at < replaced_before)
    rows = w.execute(query.order_by(locations.c.replaced_at).limit(SLICE)).all()
    w.execute(delete(locations).where(tuple_(*key).in_([tuple(row[:3]) for row in rows])))
    return len(rows), {row.segment_id for row in rows}


def _forget_tables(w: Writing, replaced_before: datetime) -> tuple[int, set[UUID]]:
    query = select(portfolio_tables.c.segment_id).where(portfolio_tables.c.replaced_at < replaced_before).limit(SLICE)
    left = set(w.execute(query).scalars())
    w.execute(delete(portfolio_tables).where(portfolio_tables.c.segment_id.in_(left)))
    return len(left), left


def _forget_segments(w: Writing, candidates: set[UUID]) -> list[str]:
    """A segment gets all of its places in the transaction that names it: without any, it never has one again."""
    still_used = select(locations.c.segment_id).where(locations.c.segment_id.in_(candidates))
    gone = candidates - set(w.execute(still_used.distinct()).scalars())
    paths = list(w.execute(select(segments.c.path).where(segments.c.segment_id.in_(gone))).scalars())
    w.execute(delete(segments).where(segments.c.segment_id.in_(gone)))
    w.execute(delete(damaged_files).where(damaged_files.c.path.in_(paths)))
    return paths


def _old_files(lake: Lake, written_before: datetime) -> Iterator[Found]:
    for folder in FOLDERS:
        yield from (found for found in lake.files(folder) if found.modified < written_before)


def _remove_unnamed(store: Store, found: list[Found]) -> list[int]:
    """Remove those that are orphans; their sizes. Looks before it locks: mostly there is nothing to do."""
    with store.db.reading() as r:
        suspects = _unnamed(r, found)
    if not suspects:
        return []
    with store.db.writing() as w:
        _let_nobody_name_files(w)
        oldest = w.execute(select(func.min(batches.c.created_at)).where(batches.c.state == BatchState.OPEN)).scalar()
        orphans = [file for file in _unnamed(w, suspects) if not _may_be_of_a_batch(file, oldest)]
        for file in orphans:
            log.warning("removing %s: nothing names it", file.path)
        return [store.lake.discard(file.path) for file in orphans]


def _unnamed(r: Reading, found: Sequence[Found]) -> list[Found]:
    names = named(r, [file.path for file in found])
    return [file for file in found if file.path not in names]


def _let_nobody_name_files(w: Writing) -> None:
    """Until this transaction ends. SQLite's writers take turns anyway."""
    if w.dialect.name == "postgresql":
        w.execute(text("LOCK TABLE segments, jobs, statement_files IN SHARE MODE"))


def _may_be_of_a_batch(file: Found, oldest_open: datetime | None) -> bool:
    return oldest_open is not None and file.modified > oldest_open - CLOCKS_DIFFER_BY


def _slices(items: Iterable[T]) -> Iterator[list[T]]:
    rest = iter(items)
    while slice_ := list(islice(rest, SLICE)):
        yield slice_
