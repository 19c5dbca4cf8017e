"""PDFs in storage are kept, checked and backed up like landing files, and older segments can still be read."""

import os
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from sqlalchemy import func, select, update

from pipelines.vocabulary.schemas import TRANSACTIONS
from storage.core.database import Writing
from storage.core.lake import Lake
from storage.core.models import JobStatus, Queue, Stage
from storage.core.models import jobs as all_jobs
from storage.core.store import Store
from storage.enrichment import transactions
from storage.intake import statements
from storage.jobs import batches, jobs
from storage.operations import backup, integrity, retention
from storage.operations.integrity import Problem
from tests.fake_statements import COFFEE, RENT, FakeReader, extract, extraction, statement, submit_files
from tests.storage.examples import a_client, a_customer, a_submission
from tests.storage.values import commit, customers_of_a_bucket, on_sqlite, place_of

LONG_AGO = timedelta(days=900)
READ = FakeReader(june=extraction(statement(RENT, COFFEE)))


def paths(store: Store) -> list[str]:
    return sorted(found.path for folder in ("statements", "landing") for found in store.lake.files(folder))


def age_files(store: Store, now: datetime) -> None:
    """Make every file very old."""
    for path in paths(store):
        os.utime(store.lake.root / path, times=((now - LONG_AGO).timestamp(),) * 2)


@on_sqlite
def test_originals_and_rows_are_never_swept(store: Store, now: datetime) -> None:
    submit_files(store, a_customer(store, a_client(store, now), now), "june")
    extract(store, READ)
    before = paths(store)
    assert len(before) == 3  # the original, the rows with their positions, the landing file
    age_files(store, now)
    retention.sweep(store, lambda: now)
    assert paths(store) == before


@on_sqlite
def test_an_unnamed_original_is_swept(store: Store, now: datetime) -> None:
    store.lake.put("statements/2026-06-01/a.pdf.sealed", b"its request died")
    age_files(store, now)
    assert retention.sweep(store, lambda: now).orphans == 1
    assert paths(store) == []


def test_originals_and_rows_are_checked_and_name_their_customer(store: Store, now: datetime) -> None:
    customer = a_customer(store, a_client(store, now), now)
    submit_files(store, customer, "june")
    extract(store, READ)
    assert integrity.check(store, lambda: now).files == 3
    for path in paths(store):
        (store.lake.root / path).write_bytes(b"rot")
    found = integrity.check(store, lambda: now).damages
    assert [damage.path for damage in found] == paths(store)
    assert {(damage.problem, *damage.customers) for damage in found} == {(Problem.CHANGED, customer.customer_id)}


def test_originals_and_rows_are_backed_up(store: Store, now: datetime, tmp_path: Path) -> None:
    submit_files(store, a_customer(store, a_client(store, now), now), "june")
    extract(store, READ)
    done = backup.back_up(store, tmp_path)
    assert (done.files, done.damages) == (3, [])
    copied = Lake(tmp_path / "lake")
    assert sorted(found.path for folder in ("statements", "landing") for found in copied.files(folder)) == paths(store)


def test_a_job_is_not_accepted_if_its_original_was_removed_as_an_orphan(store: Store, now: datetime) -> None:
    customer = a_customer(store, a_client(store, now), now)

    class Sweeping(Lake):
        def require(self, w: Writing, path: str) -> None:
            self.discard(path)
            super().require(w, path)

    swept = Store(store.settings, store.db, Sweeping(store.lake.root), store.vault)
    with pytest.raises(Exception, match="not stored in time"):
        submit_files(swept, customer, "june")
    with store.db.reading() as r:
        assert r.execute(select(func.count()).select_from(all_jobs)).scalar_one() == 0


def test_sequence_numbers_of_receipt_increase_with_every_landing_and_submission(store: Store, now: datetime) -> None:
    customer = a_customer(store, a_client(store, now), now)
    pdfs = [submit_files(store, customer, name) for name in ("june", "june")]
    fed = a_submission(store, customer, now)
    extract(store, READ)
    later = a_submission(store, customer, now)
    with store.db.reading() as r:
        landed = [jobs.get(r, job.client_id, job.job_id).received_seq for job in pdfs]
    assert fed.received_seq < min(landed) < max(landed) < later.received_seq
    assert len(set(landed)) == 2


def test_only_the_jobs_batch_can_land_or_refuse_it(store: Store, now: datetime) -> None:
    job = submit_files(store, a_customer(store, a_client(store, now), now), "letter")
    with store.db.writing() as w:
        batch = batches.claim(w, Queue.EXTRACTION, store.settings, now)
    assert batch is not None
    with store.db.writing() as w:
        w.execute(update(all_jobs).values(batch_token=None, status=JobStatus.QUEUED))
    with pytest.raises(batches.Superseded), store.db.writing() as w:
        statements.refuse(w, batch.token, job, [], [], {"code": "x", "message": "y"}, now)
    with store.db.reading() as r:
        assert jobs.get(r, job.client_id, job.job_id).stage is Stage.EXTRACTION


def test_a_pausing_job_delays_no_other_file_of_its_customer(store: Store, now: datetime) -> None:
    customer = a_customer(store, a_client(store, now), now)
    pausing, other = submit_files(store, customer, "june"), submit_files(store, customer, "july")
    rested = now + timedelta(seconds=store.settings.job_retry_pause_s / 2)
    with store.db.writing() as w:
        w.execute(update(all_jobs).where(all_jobs.c.job_id == pausing.job_id).values(not_before=rested))
        batch = batches.claim(w, Queue.EXTRACTION, store.settings, now)
        assert batch is not None
        assert [job.job_id for job in jobs.find_of_batch(w, batch.token)] == [other.job_id]
        batches.claim(w, Queue.EXTRACTION, store.settings, rested + timedelta(seconds=1))
        assert jobs.get(w, pausing.client_id, pausing.job_id).status is JobStatus.RUNNING


@on_sqlite
def test_segments_from_before_statements_existed_are_read(store: Store, now: datetime) -> None:
    (number,) = customers_of_a_bucket(store, 1, now)
    commit(store, {number: 2}, now)
    place = place_of(store, number)
    older = pl.read_parquet(store.lake.root / place.path).drop("statement_id")
    stored = store.lake.put_frame("transactions/older.parquet", older)
    older_place = replace(place, path=stored.path, sha256=stored.sha256)
    for rows in (older_place.scan(store.lake), transactions.scan(store.lake, [older_place])):
        found = rows.collect()
        assert found.schema == TRANSACTIONS
        assert found["statement_id"].to_list() == [None, None]
