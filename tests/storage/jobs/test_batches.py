"""Jobs are claimed in batches under a lease; a lost worker's batch is released and its late results change nothing."""

from datetime import datetime, timedelta
from uuid import uuid4

import pytest

from storage.core.models import JobStatus, Queue
from storage.core.settings import Settings
from storage.core.store import Store
from storage.jobs import batches, jobs
from storage.jobs.batches import Batch, Superseded
from storage.jobs.jobs import Job
from tests.storage.examples import a_client, a_customer, a_submission

REST = timedelta(seconds=Settings().job_retry_pause_s)


def claim(store: Store, now: datetime, queue: Queue = Queue.ENRICHMENT) -> Batch | None:
    with store.db.writing() as w:
        return batches.claim(w, queue, store.settings, now)


def status_of(store: Store, job: Job) -> JobStatus:
    with store.db.reading() as r:
        return jobs.get(r, job.client_id, job.job_id).status


def test_one_claim_takes_all_waiting_jobs(store: Store, now: datetime) -> None:
    client = a_client(store, now)
    submitted = [a_submission(store, a_customer(store, client, now), now, rows=10) for _ in range(3)]
    batch = claim(store, now)
    assert batch is not None
    assert (batch.jobs, batch.rows, batch.customers) == (3, 30, 3)
    assert {status_of(store, job) for job in submitted} == {JobStatus.RUNNING}
    assert claim(store, now) is None


def test_a_customer_in_an_open_batch_waits_and_others_do_not(store: Store, now: datetime) -> None:
    client = a_client(store, now)
    busy, idle = a_customer(store, client, now), a_customer(store, client, now)
    a_submission(store, busy, now)
    claim(store, now)
    waiting, free = a_submission(store, busy, now), a_submission(store, idle, now)
    second = claim(store, now)
    assert second is not None
    assert second.jobs == 1
    assert (status_of(store, waiting), status_of(store, free)) == (JobStatus.QUEUED, JobStatus.RUNNING)


def test_a_batch_stays_within_one_day_of_receipt(store: Store, now: datetime) -> None:
    client = a_client(store, now)
    a_submission(store, a_customer(store, client, now), now)
    a_submission(store, a_customer(store, client, now), now + timedelta(days=1))
    first, second = claim(store, now), claim(store, now)
    assert first is not None
    assert second is not None
    assert second.partition_day - first.partition_day == timedelta(days=1)


def test_an_expired_lease_puts_the_jobs_back_and_the_late_run_changes_nothing(store: Store, now: datetime) -> None:
    job = a_submission(store, a_customer(store, a_client(store, now), now), now)
    batch = claim(store, now)
    assert batch is not None
    late = now + timedelta(seconds=store.settings.batch_lease_s + 1)
    with store.db.writing() as w:
        assert batches.release_expired(w, store.settings, late) == 1
    assert status_of(store, job) is JobStatus.QUEUED
    with store.db.writing() as w, pytest.raises(Superseded):
        batches.commit(w, batch.token)


def test_an_expired_lease_counts_as_an_attempt_only_if_a_worker_had_begun(store: Store, now: datetime) -> None:
    job = a_submission(store, a_customer(store, a_client(store, now), now), now)
    for attempts, begins in ((0, False), (1, True)):
        batch = claim(store, now)
        assert batch is not None
        with store.db.writing() as w:
            assert not begins or batches.begin(w, batch.token, "run", uuid4())
            now += timedelta(seconds=store.settings.run_lease_s + 1)
            batches.release_expired(w, store.settings, now)
            assert not batches.begin(w, batch.token, "run", uuid4()), "too late"
        with store.db.reading() as r:
            assert jobs.get(r, job.client_id, job.job_id).attempts == attempts


def test_a_batch_is_begun_once(store: Store, now: datetime) -> None:
    a_submission(store, a_customer(store, a_client(store, now), now), now)
    batch = claim(store, now)
    assert batch is not None
    with store.db.writing() as w:
        assert batches.begin(w, batch.token, "run", uuid4())
        assert not batches.begin(w, batch.token, "run", uuid4())


def test_a_renewed_lease_is_not_reaped(store: Store, now: datetime) -> None:
    a_submission(store, a_customer(store, a_client(store, now), now), now)
    batch = claim(store, now)
    assert batch is not None
    late = now + timedelta(seconds=store.settings.batch_lease_s + 1)
    with store.db.writing() as w:
        assert batches.renew(w, batch.token, store.settings, late)
        assert batches.release_expired(w, store.settings, late) == 0


def test_a_batch_claimed_before_the_clock_was_set_back_is_reaped(store: Store, now: datetime) -> None:
    job = a_submission(store, a_customer(store, a_client(store, now), now), now)
    claim(store, now + timedelta(hours=2))
    with store.db.reading() as r:
        assert batches.has_expired(r, store.settings, now)
    with store.db.writing() as w:
        assert batches.release_expired(w, store.settings, now) == 1
    assert status_of(store, job) is JobStatus.QUEUED


def test_a_postponed_batch_pauses_and_costs_no_attempt(store: Store, now: datetime) -> None:
    job = a_submission(store, a_customer(store, a_client(store, now), now), now)
    for _ in range(store.settings.job_max_attempts + 1):
        batch = claim(store, now)
        assert batch is not None
        with store.db.writing() as w:
            batches.postpone(w, batch.token, store.settings, now)
        assert (status_of(store, job), claim(store, now)) == (JobStatus.QUEUED, None)
        now += 2 * REST


def test_a_job_fails_after_too_many_attempts_and_its_event_says_so(store: Store, now: datetime) -> None:
    job = a_submission(store, a_customer(store, a_client(store, now), now), now)
    for attempt in range(store.settings.job_max_attempts):
        batch = claim(store, now + attempt * REST)
        assert batch is not None
        with store.db.writing() as w:
            batches.release(w, batch.token, store.settings, now + attempt * REST)
    with store.db.reading() as r:
        ended = jobs.get(r, job.client_id, job.job_id)
    assert ended.status is JobStatus.FAILED
    assert ended.error == {"code": "Job.Abandoned", "message": "The work was interrupted 3 times."}


def test_jobs_interrupted_twice_pause_with_later_jobs_of_their_customers(store: Store, now: datetime) -> None:
    client = a_client(store, now)
    customer = a_customer(store, client, now)
    unlucky = a_submission(store, customer, now)
    for _ in range(2):
        batch = claim(store, now)
        assert batch is not None
        with store.db.writing() as w:
            batches.release(w, batch.token, store.settings, now)
    later, others = a_submission(store, customer, now), a_submission(store, a_customer(store, client, now), now)
    claimed = claim(store, now + REST / 2)
    assert claimed is not None
    assert claimed.jobs == 1
    assert [status_of(store, job) for job in (unlucky, later)] == [JobStatus.QUEUED] * 2
    assert status_of(store, others) is JobStatus.RUNNING
    assert claim(store, now + REST / 2) is None
    rested = claim(store, now + REST)
    assert rested is not None
    assert [status_of(store, job) for job in (unlucky, later)] == [JobStatus.RUNNING] * 2


def test_a_pause_that_began_before_the_clock_was_set_back_is_over(store: Store, now: datetime) -> None:
    a_submission(store, a_customer(store, a_client(store, now), now), now)
    ahead = now + timedelta(hours=2)
    for _ in range(2):
        batch = claim(store, ahead)
        assert batch is not None
        with store.db.writing() as w:
            batches.release(w, batch.token, store.settings, ahead)
    assert claim(store, now) is not None


def test_batches_of_a_dead_worker_are_released_at_once_and_others_stay(store: Store, now: datetime) -> None:
    client = a_client(store, now)
    dead, living = uuid4(), uuid4()
    submitted = []
    for worker in (dead, living):
        submitted.append(a_submission(store, a_customer(store, client, now), now))
        batch = claim(store, now)
        assert batch is not None
        with store.db.writing() as w:
            batches.record_launch(w, batch.token, "run", worker)
    with store.db.writing() as w:
        assert batches.release_of_worker(w, dead, store.settings, now) == 1
    assert [status_of(store, job) for job in submitted] == [JobStatus.QUEUED, JobStatus.RUNNING]


def test_fencing_tokens_grow(store: Store, now: datetime) -> None:
    client = a_client(store, now)
    tokens = []
    for _ in range(3):
        a_submission(store, a_customer(store, client, now), now)
        batch = claim(store, now)
        assert batch is not None
        tokens.append(batch.token)
    assert tokens == sorted(set(tokens))


def test_queues_do_not_wait_for_each_other(store: Store, now: datetime) -> None:
    a_submission(store, a_customer(store, a_client(store, now), now), now)
    assert claim(store, now, Queue.REFRESH) is None
    assert claim(store, now, Queue.ENRICHMENT) is not None
