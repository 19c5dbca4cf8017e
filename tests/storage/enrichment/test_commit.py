"""A run's results become current in one commit, once, and only for customers that did not change meanwhile."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import date, datetime

import polars as pl
import pytest

from pipelines.enrichment.enrichment import ENRICHMENT_VERSION
from pipelines.vocabulary.errors import Conflict, Unprocessable
from pipelines.vocabulary.report_status import ReportStatus
from storage.core.models import JobStatus, Queue
from storage.core.store import Store
from storage.customers import customers
from storage.customers.customers import Customer
from storage.enrichment.commit import BatchResult, Committed, LockedCustomers, NewValue, commit_values
from storage.enrichment.day_counts import pack_counts
from storage.jobs import batches, jobs
from storage.jobs.batches import Superseded
from storage.jobs.jobs import Ending, Job
from storage.reports import reports
from storage.reports.reports import NewReport
from tests.storage.examples import a_client, a_customer, a_submission, submit
from tests.storage.values import on_postgresql

ONE_ROW = pack_counts(
    pl.LazyFrame({"customer_number": [1], "date": [date(2026, 6, 1)], "superseded_seq": [None]}), [1]
)[1]


def claim(store: Store, now: datetime, queue: Queue = Queue.ENRICHMENT) -> int:
    with store.db.writing() as w:
        batch = batches.claim(w, queue, store.settings, now)
    assert batch is not None
    return batch.token


def commit(store: Store, token: int, customer: Customer, job: Job, now: datetime, base: int = 0) -> Committed:
    """Commit a batch with one new row for one customer, computed from data version `base`."""
    segment = store.lake.put(f"transactions/{token}.parquet", b"segment")
    value = NewValue(customer.number, first_row=0, row_count=1, current_rows=1, day_counts=ONE_ROW)
    ending = Ending(job, JobStatus.COMPLETED, base + 1, processed=1, enriched=1)
    read = {customer.number: base}
    result = BatchResult(token=token, versions=read, segment=(segment, 1), values=[value], endings=[ending])
    with store.db.writing() as w:
        return commit_values(w, store.lake, result, now)


def fresh(store: Store, customer: Customer) -> Customer:
    with store.db.reading() as r:
        return customers.get(r, customer.client_id, customer.customer_id)


def an_enriched_customer(store: Store, now: datetime) -> Customer:
    customer = a_customer(store, a_client(store, now), now)
    job = a_submission(store, customer, now)
    commit(store, claim(store, now), customer, job, now)
    return fresh(store, customer)


def a_retraction(store: Store, customer: Customer, now: datetime) -> Job:
    """Request the retraction of the submission that `enriched` has committed."""
    with store.db.writing() as w:
        (ended,) = jobs.find(w, customer.client_id, status=JobStatus.COMPLETED).items
        return jobs.request_retraction(w, customer, ended, "test", now)


def test_the_pointer_moves_and_the_job_ends_in_one_commit(store: Store, now: datetime) -> None:
    customer = a_customer(store, a_client(store, now), now)
    job = a_submission(store, customer, now)
    committed = commit(store, claim(store, now), customer, job, now)
    assert committed.replaced == {customer.number}
    moved = fresh(store, customer)
    assert (moved.data_version, moved.location_version, moved.enriched_rows) == (1, 1, 1)
    with store.db.reading() as r:
        assert jobs.get(r, job.client_id, job.job_id).status is JobStatus.COMPLETED


def test_committing_twice_changes_nothing_the_second_time(store: Store, now: datetime) -> None:
    customer = a_customer(store, a_client(store, now), now)
    job = a_submission(store, customer, now)
    token = claim(store, now)
    commit(store, token, customer, job, now)
    with store.db.writing() as w, pytest.raises(Superseded):
        commit_values(w, store.lake, BatchResult(token=token, versions={customer.number: 0}), now)
    assert fresh(store, customer).data_version == 1


@on_postgresql
@pytest.mark.parametrize("second", [a_submission, a_retraction])
def test_jobs_are_committed_in_order_of_receipt(
    store: Store, now: datetime, second: Callable[[Store, Customer, datetime], Job]
) -> None:
    """Overlaps are found against what was received before, so that must be visible when the later one is enriched."""
    customer = an_enriched_customer(store, now)
    with ThreadPoolExecutor(1) as pool:
        with store.db.writing() as w:
            first = submit(w, store, customer, now)
            later = pool.submit(second, store, customer, now)
            wait([later], timeout=0.5)
            with store.db.reading() as r:
                assert not jobs.has_unfinished_change(r, customer.number)
        assert first.received_seq < later.result().received_seq


@on_postgresql
def test_submissions_of_other_customers_do_not_wait_for_each_other(store: Store, now: datetime) -> None:
    client_id = a_client(store, now)
    one, other = a_customer(store, client_id, now), a_customer(store, client_id, now)
    with ThreadPoolExecutor(1) as pool, store.db.writing() as w:
        submit(w, store, one, now)
        assert pool.submit(a_submission, store, other, now).result(timeout=3).status is JobStatus.QUEUED


@on_postgresql
def test_a_submission_does_not_wait_for_a_commit(store: Store, now: datetime) -> None:
    customer = a_customer(store, a_client(store, now), now)
    a_submission(store, customer, now)
    token = claim(store, now)
    with ThreadPoolExecutor(1) as pool, store.db.writing() as w:
        commit_values(w, store.lake, BatchResult(token=token, versions={customer.number: 0}), now)
        assert pool.submit(a_submission, store, customer, now).result(timeout=3).status is JobStatus.QUEUED


def test_the_job_of_a_superseded_customer_goes_back_to_the_queue(store: Store, now: datetime) -> None:
    customer = an_enriched_customer(store, now)
    job = a_submission(store, customer, now)
    committed = commit(store, claim(store, now), customer, job, now, base=0)  # but the customer has version 1
    assert committed.superseded == {customer.number}
    assert fresh(store, customer).data_version == 1
    with store.db.reading() as r:
        again = jobs.get(r, job.client_id, job.job_id)
    assert (again.status, again.attempts) == (JobStatus.QUEUED, 0)


def test_customers_are_superseded_if_their_versions_changed_or_they_are_left_to_a_submission() -> None:
    result = BatchResult(token=1, versions={1: 7, 2: 7, 3: 7, 4: 7}, knowledge_versions={1: 5, 2: 5, 3: 5, 4: 5})
    locked = LockedCustomers({1: (7, 9), 2: (8, 9), 3: (7, 9), 4: (7, 9)}, {1: 5, 2: 5, 3: 6, 4: 5}, frozenset({4}))
    assert result.find_superseded(locked) == {2, 3, 4}


def test_a_result_without_some_customers_has_the_values_of_the_others() -> None:
    values = [NewValue(number, 0, 1, 1, ONE_ROW) for number in (1, 2)]
    result = BatchResult(token=1, versions={1: 0, 2: 0}, values=values, recomputed=frozenset({1, 2}))
    left = result.without(frozenset({2}))
    assert (left.replaced, left.recomputed, left.versions) == ({1}, {1}, {1: 0, 2: 0})


def test_a_refresh_needs_enriched_transactions(store: Store, now: datetime) -> None:
    customer = a_customer(store, a_client(store, now), now)
    with store.db.writing() as w, pytest.raises(Unprocessable):
        jobs.request_refresh(w, customer, "test", now)


def test_the_database_lets_one_live_refresh_per_customer_exist(store: Store, now: datetime) -> None:
    customer = an_enriched_customer(store, now)
    with store.db.writing() as w:
        jobs.request_refresh(w, customer, "test", now)
    with pytest.raises(Conflict), store.db.writing() as w:
        jobs.request_refresh(w, customer, "test", now)


def refresh(store: Store, customer: Customer, now: datetime) -> None:
    with store.db.writing() as w:
        job = jobs.request_refresh(w, customer, "test", now)
    token = claim(store, now, Queue.REFRESH)
    with store.db.writing() as w:
        new = NewReport(customer.number, customer.data_version, '{"score":1}', now.date())
        reports.save(w, token, "risk", 1, [new], now.date(), now)
        batches.commit(w, token)
        jobs.finish(w, [Ending(job, JobStatus.COMPLETED, customer.data_version)], now)


def risk_status(store: Store, customer: Customer) -> tuple[ReportStatus, bool]:
    with store.db.reading() as r:
        current = customers.get(r, customer.client_id, customer.customer_id)
        view = reports.read_bundle(r, current)["risk"]
    return view.status, view.failed


def test_a_report_is_pending_then_ready_then_stale(store: Store, now: datetime) -> None:
    customer = an_enriched_customer(store, now)
    assert risk_status(store, customer) == (ReportStatus.PENDING, False)
    refresh(store, customer, now)
    assert risk_status(store, customer) == (ReportStatus.READY, False)
    job = a_submission(store, customer, now)
    assert risk_status(store, customer) == (ReportStatus.STALE, False)
    commit(store, claim(store, now), customer, job, now, base=1)
    assert risk_status(store, customer) == (ReportStatus.STALE, False)


def test_a_batch_without_jobs_leaves_customers_to_their_unfinished_submissions(store: Store, now: datetime) -> None:
    waited_for, other = an_enriched_customer(store, now), an_enriched_customer(store, now)
    a_submission(store, waited_for, now)
    both = {waited_for.number: 1, other.number: 1}
    with store.db.writing() as w:
        token = batches.open_without_jobs(w, Queue.PORTFOLIO, now.date(), store.settings, now)
        result = BatchResult(token=token, versions=both, recomputed=frozenset(both), yielding=True)
        committed = commit_values(w, store.lake, result, now)
    assert committed.superseded == {waited_for.number}
    assert [fresh(store, each).enrichment_version for each in (waited_for, other)] == [0, ENRICHMENT_VERSION]


def test_a_submission_of_nothing_new_leaves_the_report_ready(store: Store, now: datetime) -> None:
    customer = an_enriched_customer(store, now)
    refresh(store, customer, now)
    job = a_submission(store, customer, now)
    token = claim(store, now)
    with store.db.writing() as w:
        ending = Ending(job, JobStatus.COMPLETED, 1, processed=1, duplicates=1)
        commit_values(w, store.lake, BatchResult(token=token, versions={customer.number: 1}, endings=[ending]), now)
    assert risk_status(store, customer) == (ReportStatus.READY, False)


def test_a_failed_attempt_keeps_the_last_good_data(store: Store, now: datetime) -> None:
    customer = an_enriched_customer(store, now)
    refresh(store, customer, now)
    with store.db.writing() as w:
        token = batches.open_without_jobs(w, Queue.REFRESH, now.date(), store.settings, now)
        reports.save_failures(w, token, "risk", [customer.number])
    assert risk_status(store, customer) == (ReportStatus.STALE, True)
    with store.db.reading() as r:
        assert reports.read_bundle(r, customer)["risk"].data_json == '{"score":1}'


def test_a_first_attempt_that_fails_leaves_the_report_pending(store: Store, now: datetime) -> None:
    customer = an_enriched_customer(store, now)
    with store.db.writing() as w:
        token = batches.open_without_jobs(w, Queue.REFRESH, now.date(), store.settings, now)
        reports.save_failures(w, token, "risk", [customer.number])
    assert risk_status(store, customer) == (ReportStatus.PENDING, True)


def test_a_run_whose_batch_was_released_can_store_no_report(store: Store, now: datetime) -> None:
    customer = an_enriched_customer(store, now)
    with store.db.writing() as w:
        token = batches.open_without_jobs(w, Queue.REFRESH, now.date(), store.settings, now)
        batches.release(w, token, store.settings, now)
    with store.db.writing() as w, pytest.raises(Superseded):
        reports.save(w, token, "risk", 1, [NewReport(customer.number, 1, "{}", None)], now.date(), now)
