"""Which customers are due for maintenance is read from the data; requests and progress are stored by bucket."""

from datetime import date, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import insert, update

from storage.core import models
from storage.core.store import Store
from storage.customers.customers import Customer
from storage.portfolio import maintenance
from storage.portfolio.maintenance import SILENT_AFTER, BucketProgress, State, Task
from tests.storage.examples import a_client, a_customer, a_submission

VERSIONS = {"completeness": 1, "risk": 2, "aggregate": 1}
TODAY = date(2026, 11, 20)
BUCKET = 1  # the first customer's


def with_data(store: Store, now: datetime, **values: Any) -> Customer:
    customer = a_customer(store, a_client(store, now), now)
    held = {"data_version": 3, "location_version": 3, "enriched_rows": 5, "enrichment_version": 1} | values
    with store.db.writing() as w:
        w.execute(update(models.customers).where(models.customers.c.number == customer.number).values(held))
    return customer


def with_report(store: Store, customer: Customer, **values: Any) -> None:
    report = {"kind": "risk", "data": "{}", "data_version": 3, "report_version": 2, "as_of": TODAY, "failed": False}
    row = report | values | {"customer_number": customer.number}
    with store.db.writing() as w:
        w.execute(insert(models.reports).values(row))


def stale(store: Store) -> list[tuple[int, int]]:
    with store.db.reading() as r:
        return maintenance.find_due(r, maintenance.has_stale_report(VERSIONS, TODAY - timedelta(days=6)), BUCKET)


def progress(store: Store, task: Task = Task.BACKFILL) -> BucketProgress:
    with store.db.reading() as r:
        [found] = maintenance.read_progress(r, task, [BUCKET])
    return found


def test_a_backfill_is_due_for_customers_enriched_by_another_version(store: Store, now: datetime) -> None:
    behind = with_data(store, now, enrichment_version=1)
    with_data(store, now, enrichment_version=2)
    a_customer(store, a_client(store, now), now)  # without transactions
    with store.db.reading() as r:
        assert maintenance.find_due(r, maintenance.is_outdated(2), BUCKET) == [(behind.number, 5)]
        assert maintenance.find_buckets_due(r, maintenance.is_outdated(2)) == [BUCKET]
        assert maintenance.find_buckets_due(r, maintenance.has_transactions()) == [1, 2]


@pytest.mark.parametrize(
    ("report", "is_stale"),
    [
        ({}, False),
        ({"as_of": TODAY - timedelta(days=6)}, False),
        ({"as_of": TODAY - timedelta(days=7)}, True),
        ({"data_version": 2}, True),
        ({"report_version": 1}, True),
        ({"failed": True}, True),
        ({"failed": True, "data": None, "data_version": None, "report_version": None, "as_of": None}, True),
    ],
)
def test_a_refresh_is_due_for_reports_that_fell_behind(
    store: Store, now: datetime, report: dict[str, Any], is_stale: bool
) -> None:
    with_report(store, with_data(store, now), **report)
    assert bool(stale(store)) is is_stale


def test_no_refresh_is_due_without_a_report_or_without_transactions(store: Store, now: datetime) -> None:
    with_data(store, now)
    assert stale(store) == []
    with store.db.writing() as w:
        w.execute(update(models.customers).values(enriched_rows=0))
    with_report(store, a_customer(store, a_client(store, now), now), failed=True)
    assert stale(store) == []


def test_customers_with_an_unfinished_submission_are_left_to_it(store: Store, now: datetime) -> None:
    one, other = with_data(store, now), with_data(store, now)
    a_submission(store, other, now)
    with store.db.reading() as r:
        assert maintenance.select_still_due(r, maintenance.is_outdated(2), [one.number, other.number]) == [one.number]
        assert maintenance.select_still_due(r, maintenance.is_outdated(1), [one.number, other.number]) == []
        assert maintenance.has_unfinished_jobs(r)


def test_a_task_is_requested_begun_counted_and_ended(store: Store, now: datetime) -> None:
    later = now + timedelta(seconds=5)
    with store.db.writing() as w:
        maintenance.request(w, Task.BACKFILL, [BUCKET, 7], now)
        assert [each.bucket for each in maintenance.find_waiting(w, Task.BACKFILL)] == [BUCKET, 7]
        assert maintenance.find_waiting(w, Task.REFRESH) == []
    assert progress(store).state(now) is State.WAITING

    with store.db.writing() as w:
        maintenance.begin(w, Task.BACKFILL, BUCKET, later)
        maintenance.add_to_total(w, Task.BACKFILL, BUCKET, 4)
        maintenance.advance(w, Task.BACKFILL, BUCKET, later, 3, changed=2, failed=1)
        assert [each.bucket for each in maintenance.find_waiting(w, Task.BACKFILL)] == [7]
    running = progress(store)
    assert (running.total, running.done, running.changed, running.failed) == (4, 3, 2, 1)
    assert running.state(later) is State.RUNNING
    assert running.state(later + SILENT_AFTER) is State.INTERRUPTED

    with store.db.writing() as w:
        maintenance.end(w, Task.BACKFILL, BUCKET, later)
    assert progress(store).state(later + SILENT_AFTER) is State.DONE


def test_a_resumed_run_keeps_the_counts_and_a_new_run_counts_from_zero(store: Store, now: datetime) -> None:
    later = now + timedelta(hours=1)
    with store.db.writing() as w:
        maintenance.begin(w, Task.BACKFILL, BUCKET, now)
        maintenance.add_to_total(w, Task.BACKFILL, BUCKET, 4)
        maintenance.advance(w, Task.BACKFILL, BUCKET, now, 3, changed=2, failed=0)
        maintenance.begin(w, Task.BACKFILL, BUCKET, later)
        maintenance.add_to_total(w, Task.BACKFILL, BUCKET, 1)
    resumed = progress(store)
    assert (resumed.total, resumed.done, resumed.changed) == (4, 3, 2)

    with store.db.writing() as w:
        maintenance.end(w, Task.BACKFILL, BUCKET, later, error="MemoryError")
    assert progress(store).state(later) is State.FAILED
    with store.db.writing() as w:
        maintenance.begin(w, Task.BACKFILL, BUCKET, later)
        maintenance.add_to_total(w, Task.BACKFILL, BUCKET, 6)
    fresh = progress(store)
    assert (fresh.total, fresh.done, fresh.error, fresh.state(later)) == (6, 0, None, State.RUNNING)


def test_a_repeated_request_changes_nothing_while_the_first_waits_or_runs(store: Store, now: datetime) -> None:
    later = now + timedelta(seconds=1)
    with store.db.writing() as w:
        maintenance.request(w, Task.BACKFILL, [BUCKET], now)
        maintenance.request(w, Task.BACKFILL, [BUCKET], later)
    assert progress(store).requested_at == now
    with store.db.writing() as w:
        maintenance.begin(w, Task.BACKFILL, BUCKET, later)
        maintenance.add_to_total(w, Task.BACKFILL, BUCKET, 1)
        maintenance.request(w, Task.BACKFILL, [BUCKET], later)
        assert maintenance.find_waiting(w, Task.BACKFILL) == []
        maintenance.end(w, Task.BACKFILL, BUCKET, later)
        maintenance.request(w, Task.BACKFILL, [BUCKET], later + timedelta(seconds=1))
    assert progress(store).state(later) is State.WAITING


def test_a_request_whose_run_never_began_can_be_made_again(store: Store, now: datetime) -> None:
    later = now + SILENT_AFTER
    with store.db.writing() as w:
        maintenance.request(w, Task.BACKFILL, [BUCKET], now)
        maintenance.request(w, Task.BACKFILL, [BUCKET], later)
    assert progress(store).requested_at == later
