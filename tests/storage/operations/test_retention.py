"""Replaced versions and files without an owner are removed after the retention time, and nothing else is."""

import os
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import event, func, insert, select

from pipelines.vocabulary.errors import Conflict, Unavailable
from storage.core import idempotency, leases
from storage.core.idempotency import Claim
from storage.core.lake import Lake
from storage.core.models import locations, rule_counts, segments
from storage.core.segments import register
from storage.core.store import Store
from storage.enrichment.compaction import LOOSE_FILES, compact
from storage.operations import retention
from storage.operations.retention import ORPHAN_AGE, sweep
from tests.storage import values
from tests.storage.examples import a_client, a_customer, a_submission
from tests.storage.ruleset_evaluations import a_ruleset, create_ruleset
from tests.storage.values import BUCKET, commit, content, customers_of_a_bucket, on_sqlite, place_of

HOUR = timedelta(hours=1)


def retention_of(store: Store) -> timedelta:
    return store.settings.retention


def on_disk(store: Store) -> set[str]:
    return {found.path for folder in retention.FOLDERS for found in store.lake.files(folder)}


def counts(store: Store) -> tuple[int, int]:
    """Return the numbers of locations and segments in the database."""
    with store.db.reading() as r:
        both = [r.execute(select(func.count()).select_from(table)).scalar_one() for table in (locations, segments)]
    return both[0], both[1]


def set_age(store: Store, path: str, written: datetime) -> str:
    """Set a file's time of modification, and return its path."""
    os.utime(store.lake.root / path, (written.timestamp(), written.timestamp()))
    return path


@on_sqlite
def test_a_replaced_version_is_kept_for_the_retention_time(store: Store, now: datetime) -> None:
    (number,) = customers_of_a_bucket(store, 1, now)
    commit(store, {number: 2}, now)
    replaced = place_of(store, number)
    commit(store, {number: 3}, now)
    assert sweep(store, lambda: now + retention_of(store)).versions == 0
    assert values.read_place(store, replaced) == content(number, 1, 2)


def test_after_the_retention_time_its_row_and_file_are_removed(store: Store, now: datetime) -> None:
    (number,) = customers_of_a_bucket(store, 1, now)
    commit(store, {number: 2}, now)
    replaced = place_of(store, number)
    commit(store, {number: 3}, now)
    swept = sweep(store, lambda: now + retention_of(store) + HOUR, confirmed=True)
    assert (swept.versions, swept.files) == (1, 1)
    assert swept.bytes_freed > 0
    assert on_disk(store) == {place_of(store, number).path} != {replaced.path}
    assert counts(store) == (1, 1)
    assert values.read_place(store, place_of(store, number)) == content(number, 2, 3)


@on_sqlite
def test_a_file_is_kept_while_it_holds_any_customers_current_data(store: Store, now: datetime) -> None:
    numbers = customers_of_a_bucket(store, 2, now)
    commit(store, dict.fromkeys(numbers, 2), now)
    commit(store, {numbers[0]: 3}, now)
    swept = sweep(store, lambda: now + retention_of(store) + HOUR, confirmed=True)
    assert (swept.versions, swept.files) == (1, 0)
    assert values.read_place(store, place_of(store, numbers[1])) == content(numbers[1], 1, 2)


def test_locations_replaced_by_compaction_are_removed_too(store: Store, now: datetime) -> None:
    numbers = customers_of_a_bucket(store, LOOSE_FILES + 1, now)
    for number in numbers:
        commit(store, {number: 2}, now)
    compact(store, BUCKET, lambda: now)
    swept = sweep(store, lambda: now + retention_of(store) + HOUR, confirmed=True)
    assert (swept.versions, swept.files) == (len(numbers), len(numbers))
    assert on_disk(store) == {place_of(store, numbers[0]).path}


class Killed(Lake):
    """A lake that raises instead of removing a file, as if the process were killed."""

    def discard(self, *paths: str) -> None:
        raise InterruptedError(*paths)


def test_after_a_kill_the_next_sweep_removes_the_files(store: Store, now: datetime) -> None:
    (number,) = customers_of_a_bucket(store, 1, now)
    commit(store, {number: 2}, now)
    commit(store, {number: 3}, now)
    later = now + retention_of(store) + HOUR
    with pytest.raises(InterruptedError):
        sweep(replace(store, lake=Killed(store.lake.root)), lambda: later, confirmed=True)
    assert counts(store) == (1, 1)
    for path in on_disk(store):
        set_age(store, path, now)
    assert sweep(store, lambda: later).orphans == 1
    assert on_disk(store) == {place_of(store, number).path}


@on_sqlite
def test_landing_files_and_outcomes_are_kept(store: Store, now: datetime) -> None:
    job = a_submission(store, a_customer(store, a_client(store, now), now), now)
    assert job.landing_path is not None
    set_age(store, job.landing_path, now - timedelta(days=900))
    sweep(store, lambda: now + 10 * retention_of(store))
    assert on_disk(store) == {job.landing_path}


@on_sqlite
def test_an_old_unnamed_file_is_removed_and_a_new_one_kept(store: Store, now: datetime) -> None:
    old = store.lake.put(f"landing/{uuid4()}.parquet", b"nobody was promised this")
    young = store.lake.put(f"transactions/{uuid4()}.parquet", b"somebody may be about to name this")
    set_age(store, old.path, now - ORPHAN_AGE - HOUR)
    set_age(store, young.path, now - HOUR)
    swept = sweep(store, lambda: now)
    assert (swept.orphans, swept.bytes_freed) == (1, old.size)
    assert on_disk(store) == {young.path}


@on_sqlite
def test_an_unfinished_draft_is_removed(store: Store, now: datetime) -> None:
    draft = store.lake.put(f"outcomes/.a.parquet.{uuid4().hex}", b"half a fi")
    set_age(store, draft.path, now - ORPHAN_AGE - HOUR)
    assert sweep(store, lambda: now).orphans == 1


def test_a_batch_whose_file_was_collected_cannot_commit(store: Store, now: datetime) -> None:
    (number,) = customers_of_a_bucket(store, 1, now)

    def collect() -> None:
        for path in on_disk(store):
            set_age(store, path, now - ORPHAN_AGE - HOUR)
        assert sweep(store, lambda: now).orphans == 1

    with pytest.raises(Unavailable, match="not stored in time"):
        commit(values.interrupt_after_write(store, collect), {number: 2}, now)
    assert counts(store) == (0, 0)


@on_sqlite
def test_files_in_other_folders_are_not_touched(store: Store, now: datetime) -> None:
    theirs = store.lake.put("papers/a.pdf", b"not ours to judge")
    set_age(store, theirs.path, now - timedelta(days=900))
    sweep(store, lambda: now)
    assert (store.lake.root / theirs.path).exists()


def test_the_sweep_waits_for_a_transaction_that_names_a_file(store: Store, now: datetime) -> None:
    """It waits for a lock in the database, so it can't check too early, however slow the other is."""
    segment = store.lake.put(f"transactions/{uuid4()}.parquet", b"written a day ago")
    set_age(store, segment.path, now - ORPHAN_AGE - HOUR)
    with ThreadPoolExecutor(1) as pool:
        with store.db.writing() as w:
            register(w, store.lake, (segment, 1), now)
            store.lake.require(w, segment.path)
            collecting = pool.submit(retention.collect_orphans, store, lambda: now, lambda: None)
            wait([collecting], timeout=0.3)
        assert collecting.result() == (0, 0)
    assert on_disk(store) == {segment.path}


def test_a_sweep_waits_for_a_backup(store: Store, now: datetime) -> None:
    with store.db.writing() as w:
        leases.hold(w, leases.FILE_KEEPER, (backup := uuid4()), 60, leases.clock(store.db))
    with pytest.raises(Conflict):
        sweep(store, lambda: now)
    with store.db.writing() as w:
        leases.release(w, leases.FILE_KEEPER, backup)
    assert sweep(store, lambda: now).versions == 0


@on_sqlite
def test_idempotency_keys_are_deleted_in_slices(store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "SLICE", 2)
    client_id = a_client(store, now)
    for number in range(5):
        with store.db.writing() as w:
            idempotency.claim(w, Claim.to(client_id, str(number)), b"", now)
    deleted: list[int] = []

    @event.listens_for(store.db.engine, "after_cursor_execute")
    def note_deleted(_c: object, cursor: Any, statement: str, *_rest: object) -> None:
        if statement.startswith("DELETE FROM idempotency_keys"):
            deleted.append(cursor.rowcount)

    assert sweep(store, lambda: now + HOUR + idempotency.RETAINED_FOR).idempotency_keys == 5
    assert deleted == [2, 2, 1, 0]


@on_sqlite
def test_a_second_sweep_changes_nothing(store: Store, now: datetime) -> None:
    numbers = customers_of_a_bucket(store, 3, now)
    for rows in range(1, 4):
        commit(store, dict.fromkeys(numbers, rows), now)
    later = now + retention_of(store) + HOUR
    assert sweep(store, lambda: later, confirmed=True).versions == 6
    after = on_disk(store), counts(store)
    assert sweep(store, lambda: later).versions == 0
    assert (on_disk(store), counts(store)) == after


def test_daily_counts_of_rules_are_deleted_after_their_time(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "SLICE", 2)
    ruleset = create_ruleset(store, a_client(store, now), a_ruleset(), now)
    oldest_retained = (now - retention.COUNTS_RETAINED).date()
    row = {"ruleset_id": ruleset.ruleset_id, "rule": "LONG", "observed": 1, "held": 0, "unknown": 0, "fired": 0}
    days = [oldest_retained + timedelta(days=nth) for nth in range(-5, 2)]
    with store.db.writing() as w:
        w.execute(insert(rule_counts), [{**row, "day": day} for day in days])
    sweep(store, lambda: now)
    with store.db.reading() as r:
        assert sorted(r.execute(select(rule_counts.c.day)).scalars()) == days[5:]


def assert_refused(store: Store, at: datetime) -> None:
    """Assert that a sweep removes nothing without confirmation."""
    before, known = on_disk(store), counts(store)
    with pytest.raises(Conflict) as refusal:
        sweep(store, lambda: at)
    assert refusal.value.code == retention.UNEXPECTED
    assert (on_disk(store), counts(store)) == (before, known)
    sweep(store, lambda: at, confirmed=True)
    assert on_disk(store) < before


def test_with_the_clock_far_ahead_nothing_is_removed_without_confirmation(store: Store, now: datetime) -> None:
    (number,) = customers_of_a_bucket(store, 1, now)
    commit(store, {number: 2}, now)
    commit(store, {number: 3}, now)
    assert_refused(store, now + timedelta(days=365))


def test_with_the_clock_a_month_ahead_young_versions_are_kept(store: Store, now: datetime) -> None:
    """None of them is long overdue, but the days since the last sweep don't explain that their time ended."""
    sweep(store, lambda: now - HOUR)
    (number,) = customers_of_a_bucket(store, 1, now)
    commit(store, {number: 2}, now)
    commit(store, {number: 3}, now)
    assert_refused(store, now + timedelta(days=33))


@on_sqlite
def test_a_nightly_sweep_removes_what_came_due_without_confirmation(store: Store, now: datetime) -> None:
    (number,) = customers_of_a_bucket(store, 1, now)
    commit(store, {number: 2}, now)
    commit(store, {number: 3}, now)
    due = now + retention_of(store)
    assert sweep(store, lambda: due - HOUR).versions == 0
    assert sweep(store, lambda: due + timedelta(days=1)).versions == 1


@on_sqlite
def test_after_two_weeks_without_a_sweep_nothing_is_removed_without_confirmation(store: Store, now: datetime) -> None:
    (number,) = customers_of_a_bucket(store, 1, now)
    commit(store, {number: 2}, now)
    commit(store, {number: 3}, now)
    sweep(store, lambda: now + retention_of(store) - timedelta(days=10))
    assert_refused(store, now + retention_of(store) + timedelta(days=4))


@on_sqlite
def test_with_a_shorter_retention_nothing_is_removed_without_confirmation(store: Store, now: datetime) -> None:
    (number,) = customers_of_a_bucket(store, 1, now)
    commit(store, {number: 2}, now)
    commit(store, {number: 3}, now)
    shorter = store.settings.model_copy(update={"retention": 2 * HOUR})
    assert_refused(replace(store, settings=shorter), now + timedelta(days=29))


@on_sqlite
def test_with_another_database_nothing_is_removed_without_confirmation(store: Store, now: datetime) -> None:
    customer = a_customer(store, a_client(store, now), now)
    named = [a_submission(store, customer, now) for _ in range(20)]
    assert len(on_disk(store)) >= len(named)
    one = set_age(store, store.lake.put("landing/one", b"").path, now)
    sweep(store, lambda: now + ORPHAN_AGE + HOUR)  # one unnamed file needs no confirmation
    assert one not in on_disk(store)
    for number in range(3):
        set_age(store, store.lake.put(f"landing/{number}", b"").path, now)
    assert_refused(store, now + ORPHAN_AGE + HOUR)
