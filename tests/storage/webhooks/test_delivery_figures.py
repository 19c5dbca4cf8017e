"""Summaries of deliveries and of the load count exactly what they state."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID, uuid4

import pytest
from sqlalchemy import select, text, update

from storage.core.models import DeliveryStatus, attempts, deliveries, jobs
from storage.core.store import Store
from storage.customers.customers import Customer
from storage.webhooks import conditions, delivery_figures, outbox, subscriptions
from storage.webhooks.delivery_figures import Load, Summary
from storage.webhooks.outbox import Attempt, Ended
from storage.webhooks.subscriptions import Subscription
from tests.storage.examples import a_client, a_customer, a_submission
from tests.storage.webhooks.test_outbox import ME, an_event, claim, enqueue
from tests.storage.webhooks.test_retries import subscribe

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


@pytest.fixture
def customer(store: Store, now: datetime) -> Customer:
    return a_customer(store, a_client(store, now), now)


def record_attempts(
    store: Store, customer: Customer, tries: Sequence[tuple[datetime, int, int | None, str | None]]
) -> None:
    """Record one event and attempt for each (time, duration in ms, status code, class of the failure)."""
    for at, duration_ms, status_code, error in tries:
        enqueue(store, an_event(customer, at))
        [claimed] = claim(store, at)
        fine = error is None and status_code == 200
        status = DeliveryStatus.DELIVERED if fine else DeliveryStatus.FAILED
        attempt = Attempt(uuid4(), at, duration_ms, status_code, error, None)
        with store.db.writing() as w:
            outbox.record(w, ME, [Ended(claimed.delivery_id, status, attempt)])


def summary(store: Store, subscription: Subscription, now: datetime) -> Summary:
    with store.db.reading() as r:
        current = subscriptions.get(r, None, subscription.subscription_id)
        return delivery_figures.read_summary(r, current, now)


def load(store: Store, now: datetime) -> Load:
    with store.db.reading() as r:
        return delivery_figures.read_load(r, now)


def test_a_summary_counts_attempts_by_outcome(store: Store, customer: Customer, now: datetime) -> None:
    subscription = subscribe(store, customer, now)
    recent = [(now - n * MINUTE, 100 * n, 200, None) for n in range(1, 8)]
    failed = [
        (now - 20 * HOUR, 1_000, None, "timeout"),
        (now - 21 * HOUR, 2_000, 503, None),
        (now - 22 * HOUR, 50, 200, "timeout"),  # an incomplete answer
    ]
    older = [(now - 25 * HOUR, 70, 500, None), (now - 8 * 24 * HOUR, 9_000, None, "dns")]
    record_attempts(store, customer, [*older, *failed, *recent])
    day, week = summary(store, subscription, now).periods
    assert (day.period, day.since, day.attempts, day.delivered, day.failed) == ("24h", now - 24 * HOUR, 10, 7, 3)
    assert day.by_error == {"timeout": 2, "status": 1}
    assert day.by_status_code == {503: 1, 200: 1}
    assert (day.duration_p50_ms, day.duration_p95_ms) == (400, 2_000)
    assert (week.period, week.attempts, week.failed) == ("7d", 11, 4)
    assert week.by_status_code == {503: 1, 200: 1, 500: 1}


def test_a_summary_without_attempts_has_no_durations(store: Store, customer: Customer, now: datetime) -> None:
    found = summary(store, subscribe(store, customer, now), now)
    assert (found.waiting, found.retrying, found.oldest_waiting_at) == (0, 0, None)
    assert [(each.attempts, each.duration_p50_ms, each.duration_p95_ms) for each in found.periods] == [
        (0, None, None),
        (0, None, None),
    ]


def test_a_summary_counts_waiting_deliveries_without_tests_and_other_subscriptions(
    store: Store, customer: Customer, now: datetime
) -> None:
    subscription = subscribe(store, customer, now, max_retries=3)
    record_attempts(store, customer, [(now - MINUTE, 5, 500, None)])
    subscribe(store, customer, now)
    enqueue(store, an_event(customer, now - MINUTE), an_event(customer, now))
    with store.db.writing() as w:
        outbox.enqueue_test(w, an_event(customer, now), subscription.subscription_id)
        w.execute(update(attempts).where(attempts.c.is_test).values(duration_ms=1))
    found = summary(store, subscription, now)
    assert (found.waiting, found.retrying, found.oldest_waiting_at) == (3, 1, now - MINUTE)
    try_all(store, now)
    assert [each.attempts for each in summary(store, subscription, now).periods] == [3, 3]


def try_all(store: Store, now: datetime) -> None:
    while claimed := claim(store, now):
        ends = [
            Ended(each.delivery_id, DeliveryStatus.DELIVERED, Attempt(uuid4(), now, 1, 200, None, b""))
            for each in claimed
        ]
        with store.db.writing() as w:
            outbox.record(w, ME, ends)


def test_the_load_counts_open_deliveries_and_attempts_of_the_last_hour(
    store: Store, customer: Customer, now: datetime
) -> None:
    subscribe(store, customer, now, max_retries=1)
    record_attempts(
        store,
        customer,
        [(now - 2 * HOUR, 1, 200, None), (now - 50 * MINUTE, 1, 200, None), (now - MINUTE, 1, 500, None)],
    )
    paused = subscribe(store, customer, now)
    enqueue(store, *(an_event(customer, now - n * MINUTE) for n in range(3)))
    claim(store, now, limit=1)
    with store.db.writing() as w:
        subscriptions.pause(w, None, paused.subscription_id, "operator", now)
    found = load(store, now)
    assert sum(found.deliveries.values()) == 7
    assert (found.deliveries["sending"], found.deliveries["retrying"]) == (1, 1)
    assert found.deliveries["due"] + found.deliveries["paused"] == 5
    assert found.deliveries["paused"] in (2, 3)
    assert found.attempts_last_hour == {"delivered": 1, "failed": 1}
    assert found.paused_subscriptions == 1
    assert found.oldest_due_s == 120.0


def test_the_load_counts_unfinished_jobs_by_flow(store: Store, customer: Customer, now: datetime) -> None:
    for ago in (5, 2):
        a_submission(store, customer, now - ago * MINUTE)
    found = load(store, now)
    assert found.jobs["Enrichment", "Queued"] == 2
    assert found.jobs["Enrichment", "Running"] == found.jobs["ReportRefresh", "Queued"] == 0
    assert (found.oldest_job_s["Enrichment"], found.oldest_job_s["ReportRefresh"]) == (300.0, 0.0)
    assert load(store, now - HOUR).oldest_job_s["Enrichment"] == 0.0  # the clock was set back


def test_an_idle_service_has_no_load(store: Store, now: datetime) -> None:
    found = load(store, now)
    assert found.deliveries == {"due": 0, "sending": 0, "retrying": 0, "paused": 0}
    assert (found.oldest_due_s, found.paused_subscriptions) == (0.0, 0)
    assert set(found.jobs.values()) == set(found.oldest_job_s.values()) == {0}


@pytest.mark.parametrize("planned", ["open deliveries", "last hour", "live jobs", "summary"])
def test_counts_use_an_index(store: Store, now: datetime, planned: str) -> None:
    if not store.db.is_sqlite:
        pytest.skip("PostgreSQL chooses its plans by statistics")
    mine = (attempts.c.subscription_id == UUID(int=1)) & (attempts.c.started_at >= now) & delivery_figures.COUNTED
    query, index = {
        "open deliveries": (select(text("count(*)")).select_from(deliveries).where(conditions.is_open()), "open"),
        "last hour": (
            select(attempts.c.error, attempts.c.status_code).where(attempts.c.started_at >= now),
            "COVERING INDEX ix_attempts_started_at",
        ),
        "live jobs": (select(jobs.c.flow).where(delivery_figures.LIVE_JOBS), "ix_jobs_customer_live"),
        "summary": (
            select(attempts.c.duration_ms, attempts.c.error, attempts.c.status_code).where(mine),
            "COVERING INDEX ix_attempts_subscription_id_started_at",
        ),
    }[planned]
    with store.db.reading() as r:
        sql = query.compile(r.engine, compile_kwargs={"literal_binds": True})
        [step] = [row.detail for row in r.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}")]
    assert index in step
