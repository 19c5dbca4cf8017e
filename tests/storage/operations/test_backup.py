"""A backup is complete and consistent even while the service works."""

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from pathlib import Path
from threading import Event
from typing import Any
from uuid import UUID, uuid4

import polars as pl
import pytest
from sqlalchemy import select

from pipelines.vocabulary.errors import Conflict, Corrupt
from pipelines.vocabulary.schemas import SORT_KEY
from storage.core import leases
from storage.core.buckets import bucket_of
from storage.core.database import Database
from storage.core.models import JobStatus, Queue
from storage.core.models import jobs as jobs_table
from storage.core.settings import Settings
from storage.core.store import Store
from storage.customers.customers import Customer, versions
from storage.enrichment import compaction, transactions
from storage.enrichment.commit import commit_values
from storage.jobs import batches, jobs
from storage.jobs.jobs import Ending, Job
from storage.operations import backup, integrity, retention
from storage.operations.integrity import Problem
from tests.storage import values
from tests.storage.examples import a_client, a_customer, a_submission
from tests.storage.values import commit, customers_of_a_bucket, on_sqlite, place_of
from tests.waiting import until


def clock() -> datetime:
    return datetime.now(UTC)


def enrich_all(store: Store) -> None:
    """End all queued submissions. Each adds one row with its job's id to its customer's transactions."""
    with store.db.writing() as w:
        batch = batches.claim(w, Queue.ENRICHMENT, store.settings, clock())
    if batch is None:
        return
    with store.db.reading() as r:
        claimed = jobs.find_of_batch(r, batch.token)
        read = versions(r, {job.customer_number for job in claimed})
        places = transactions.current_locations(r, read)
    held = transactions.scan(store.lake, places).collect()
    rows = pl.concat([held, *map(row_of, claimed)]).sort(SORT_KEY)
    stored = store.lake.put_frame(f"transactions/load/{uuid4()}.parquet", rows)
    endings = [Ending(job, JobStatus.COMPLETED, read[job.customer_number] + 1, 1, 1) for job in claimed]
    with store.db.writing() as w:
        commit_values(w, store.lake, values.a_result(batch.token, read, stored, rows, endings=endings), clock())


def row_of(job: Job) -> pl.DataFrame:
    row = values.value(job.customer_number, job.received_seq, 1)
    return row.with_columns(job_id=pl.lit(job.job_id.bytes))


@contextmanager
def load(store: Store, customers: list[Customer]) -> Iterator[None]:
    """Run submissions, batches, compactions and sweeps as fast as possible, without any retention time."""
    impatient = replace(store, settings=store.settings.model_copy(update={"retention": timedelta(0)}))
    turn, over = count(), Event()

    def submit() -> None:
        a_submission(store, customers[next(turn) % len(customers)], clock())

    def compact() -> None:
        for bucket in {bucket_of(customer.number) for customer in customers}:
            compaction.compact(store, bucket, clock)

    def repeat(work: Callable[[], object]) -> None:
        while not over.wait(0.01):
            with suppress(Conflict, Corrupt, OSError):  # its file was swept at once, or a backup holds the lease
                work()

    with ThreadPoolExecutor() as pool:
        works = (submit, lambda: enrich_all(store), compact, lambda: retention.sweep(impatient, clock, confirmed=True))
        running = [pool.submit(repeat, work) for work in works]
        try:
            yield
        finally:
            over.set()
    for each in running:
        each.result()


def ended_jobs(store: Store) -> list[UUID]:
    with store.db.reading() as r:
        return list(r.execute(select(jobs_table.c.job_id).where(jobs_table.c.completed_at.is_not(None))).scalars())


def restore(store: Store, folder: Path, home: Path, new_database: Callable[[], str]) -> Store:
    """Restore a backup as docs/how-to/operations.md says, and open it."""
    home.mkdir()
    shutil.copytree(folder / "lake", home / "lake")
    shutil.copy(store.settings.key_file, home)
    if store.db.is_sqlite:
        shutil.copy(folder / "tidemark.db", home / "tidemark.db")
        return Store.open(Settings(home=home))
    url = f"127.0.0.1:5432/{new_database()}"
    options = ["--clean", "--if-exists", "--no-owner", f"--dbname=postgresql://{url}"]
    subprocess.run(["pg_restore", *options, folder / "tidemark.dump"], check=True)
    return Store.open(Settings(home=home, database_url=f"postgresql+psycopg://{url}"))


@pytest.fixture
def new_database(request: pytest.FixtureRequest, store: Store) -> Callable[[], str]:
    if store.db.is_sqlite:
        return lambda: ""
    if shutil.which("pg_dump") is None and not os.environ.get("CI"):
        pytest.skip("install PostgreSQL's client (pg_dump, pg_restore) to run this")
    make: Callable[[], str] = request.getfixturevalue("postgres_database")
    return make


def has_ended_jobs(store: Store, count: int) -> bool:
    return len(ended_jobs(store)) >= count


@pytest.mark.slow  # works for seconds as fast as possible
def test_a_backup_taken_under_load_passes_the_invariants(
    store: Store, tmp_path: Path, new_database: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "LOOSE_FILES", 1)
    client_id = a_client(store, clock())
    customers = [a_customer(store, client_id, clock()) for _ in range(6)]
    with load(store, customers):
        for count in (10, 20):
            until(partial(has_ended_jobs, store, count))
            done = backup.back_up(store, tmp_path / "backup")
            assert done.damages == []
    again = restore(store, tmp_path / "backup", tmp_path / "restored", new_database)
    assert integrity.check(again, clock).damages == []
    ended = ended_jobs(again)
    with again.db.reading() as r:
        rows = transactions.scan(again.lake, transactions.current_locations(r)).select("job_id").collect()
    assert len(ended) >= 20
    assert sorted(rows["job_id"]) == sorted(job_id.bytes for job_id in ended), "each ended job's row, once"
    again.close()


def test_a_second_backup_copies_only_new_files(store: Store, now: datetime, tmp_path: Path) -> None:
    numbers = customers_of_a_bucket(store, 2, now)
    commit(store, {numbers[0]: 1}, now)
    assert backup.back_up(store, tmp_path).copied == 1
    commit(store, {numbers[1]: 1}, now)
    done = backup.back_up(store, tmp_path)
    assert (done.files, done.copied) == (2, 1)


@on_sqlite
def test_a_damaged_file_is_reported_and_not_backed_up(store: Store, now: datetime, tmp_path: Path) -> None:
    numbers = customers_of_a_bucket(store, 2, now)
    for number in numbers:
        commit(store, {number: 1}, now)
    damaged = place_of(store, numbers[0]).path
    (store.lake.root / damaged).write_bytes(b"rot")
    done = backup.back_up(store, tmp_path)
    assert (done.damages, done.files) == ([(damaged, Problem.CHANGED)], 1)
    assert not (tmp_path / "lake" / damaged).exists()


@on_sqlite
def test_a_backup_waits_for_a_sweep(store: Store, tmp_path: Path) -> None:
    with store.db.writing() as w:
        leases.hold(w, leases.FILE_KEEPER, uuid4(), 60, leases.clock(store.db))
    with pytest.raises(Conflict):
        backup.back_up(store, tmp_path, patience_s=0.1)
    assert not (tmp_path / "tidemark.db").exists()


def before_copying(monkeypatch: pytest.MonkeyPatch, work: Callable[[sqlite3.Connection], object]) -> None:
    """Call `work` each time before SQLite copies a database."""

    class Slow(sqlite3.Connection):
        def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
            if sql.startswith("VACUUM"):
                work(super())  # pyrefly: ignore[bad-argument-type]
            return super().execute(sql, *parameters)

    monkeypatch.setattr(backup, "PROLONG_EVERY_S", 0.01)
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Slow))


@on_sqlite
def test_a_long_snapshot_keeps_its_lease(
    store: Store, now: datetime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = list[datetime]()

    def clock(_: Database) -> datetime:
        reads.append(now + len(reads) * timedelta(seconds=leases.LONG_LEASE_S - 1))
        return reads[-1]

    monkeypatch.setattr(leases, "clock", clock)
    before_copying(monkeypatch, lambda _: until(lambda: len(reads) > 10))
    backup.back_up(store, tmp_path)


@on_sqlite
def test_a_snapshot_that_lost_its_lease_is_aborted_at_once(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def take_lease(connection: sqlite3.Connection) -> None:
        with store.db.writing() as w:
            assert leases.hold(w, leases.FILE_KEEPER, uuid4(), 60, clock() + timedelta(hours=1))
        connection.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT max(i) FROM n")

    before_copying(monkeypatch, take_lease)
    with pytest.raises(Conflict):
        backup.back_up(store, tmp_path)
    assert not (tmp_path / "tidemark.db").exists()


@on_sqlite
def test_the_copy_is_private(store: Store, tmp_path: Path) -> None:
    done = backup.back_up(store, tmp_path / "new")
    assert [(tmp_path / "new").stat().st_mode & 0o077, Path(done.snapshot).stat().st_mode & 0o077] == [0, 0]
