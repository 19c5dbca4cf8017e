"""Retries and pauses of subscriptions that ask for them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import func, insert, select, text

from pipelines.vocabulary.errors import Conflict, NotFound
from pipelines.webhooks.events import EventType
from pipelines.webhooks.retries import MAX_RETRIES, SCHEDULE, longest_wait
from storage.core import audit
from storage.core.database import Writing
from storage.core.models import DeliveryStatus, deliveries, events
from storage.core.store import Store
from storage.customers.customers import Customer
from storage.webhooks import delivery_log, outbox, subscriptions, turns
from storage.webhooks.delivery_log import Delivery
from storage.webhooks.outbox import Attempt, Claimed, Ended, Pause
from storage.webhooks.subscriptions import FailureHandling, Subscription
from storage.webhooks.turns import PER_SUBSCRIPTION
from tests.storage.examples import a_client, a_customer
from tests.storage.webhooks.test_outbox import LEASE_S, an_event, claim, enqueue, log

ME = UUID(int=1)
SECOND = timedelta(seconds=1)


@pytest.fixture
def customer(store: Store, now: datetime) -> Customer:
    return a_customer(store, a_client(store, now), now)


def subscribe(
    store: Store, customer: Customer, now: datetime, max_retries: int = 0, pause_after: int | None = None
) -> Subscription:
    on_failure = FailureHandling(max_retries, pause_after)
    with store.db.writing() as w:
        url, kind = "https://lender.example/hook", EventType.JOB_COMPLETED
        return subscriptions.create(w, customer.client_id, kind, url, (), store.vault, now, on_failure)[0]


def read_subscription(store: Store, subscription: Subscription) -> Subscription:
    with store.db.reading() as r:
        return subscriptions.get(r, None, subscription.subscription_id)


def end_attempt(claimed: Claimed, at: datetime, status_code: int | None = 500, error: str | None = None) -> Ended:
    fine = status_code is not None and 200 <= status_code <= 299 and error is None
    status = DeliveryStatus.DELIVERED if fine else DeliveryStatus.FAILED
    return Ended(claimed.delivery_id, status, Attempt(uuid4(), at, 0, status_code, error, None))


def record(store: Store, ends: Sequence[Ended], holder: UUID = ME) -> list[Pause]:
    with store.db.writing() as w:
        return outbox.record(w, holder, ends)


def make_retries_due(store: Store, now: datetime) -> int:
    with store.db.reading() as r:
        expected = outbox.has_retry_due(r, now)
    with store.db.writing() as w:
        made = outbox.make_retries_due(w, now)
    assert expected is (made > 0)
    return made


def find_retrying(store: Store) -> Delivery:
    (delivery,) = log(store)
    assert delivery.status is DeliveryStatus.RETRYING
    return delivery


def test_by_default_a_failure_is_only_recorded(store: Store, customer: Customer, now: datetime) -> None:
    subscription = subscribe(store, customer, now)
    enqueue(store, an_event(customer, now))
    for _ in range(3):
        [claimed] = claim(store, now)
        assert record(store, [end_attempt(claimed, now)]) == []
        assert log(store)[0].status is DeliveryStatus.FAILED
        assert make_retries_due(store, now + timedelta(days=400)) == 0
        with store.db.writing() as w:
            delivery_log.resend(w, None, claimed.delivery_id, now)
    assert read_subscription(store, subscription).paused_at is None
    assert read_subscription(store, subscription).failure_streak == 3


def test_a_failure_is_retried_by_the_schedule_with_the_same_bytes(
    store: Store, customer: Customer, now: datetime
) -> None:
    subscribe(store, customer, now, max_retries=3)
    enqueue(store, an_event(customer, now))
    at = now
    [first] = claim(store, at)
    record(store, [end_attempt(first, at)])
    for wait in SCHEDULE[:3]:
        retry_at = find_retrying(store).retry_at
        assert retry_at is not None
        assert wait <= retry_at - at < wait * 1.1
        assert make_retries_due(store, retry_at - SECOND) == 0
        assert claim(store, at) == []
        at = retry_at
        assert make_retries_due(store, at) == 1
        assert claim(store, at) == [first]
        record(store, [end_attempt(first, at)])
    (delivery,) = log(store)
    assert (delivery.status, delivery.retry_at, len(delivery.attempts)) == (DeliveryStatus.FAILED, None, 4)


def test_a_successful_retry_ends_the_delivery(store: Store, customer: Customer, now: datetime) -> None:
    subscribe(store, customer, now, max_retries=MAX_RETRIES)
    enqueue(store, an_event(customer, now))
    [claimed] = claim(store, now)
    record(store, [end_attempt(claimed, now)])
    make_retries_due(store, now + timedelta(minutes=1))
    claim(store, now)
    record(store, [end_attempt(claimed, now, 204)])
    assert log(store)[0].status is DeliveryStatus.DELIVERED
    assert make_retries_due(store, now + timedelta(days=400)) == 0


@pytest.mark.parametrize(("status_code", "error"), [(410, None), (None, "refused")])
def test_failures_that_can_not_succeed_are_not_retried(
    store: Store, customer: Customer, now: datetime, status_code: int | None, error: str | None
) -> None:
    subscribe(store, customer, now, max_retries=MAX_RETRIES)
    enqueue(store, an_event(customer, now))
    [claimed] = claim(store, now)
    record(store, [end_attempt(claimed, now, status_code, error)])
    assert log(store)[0].status is DeliveryStatus.FAILED


@pytest.mark.parametrize("tries", [1, 4, MAX_RETRIES])
def test_a_clock_that_is_set_back_does_not_delay_a_retry(
    store: Store, customer: Customer, now: datetime, tries: int
) -> None:
    """A retry planned by a clock that was ahead waits no longer than any other."""
    subscribe(store, customer, now, max_retries=MAX_RETRIES)
    enqueue(store, an_event(customer, now))
    ahead = now + timedelta(days=400)
    for nth in range(tries):
        if nth:
            make_retries_due(store, ahead + longest_wait(MAX_RETRIES))
        [claimed] = claim(store, ahead)
        record(store, [end_attempt(claimed, ahead)])
    assert make_retries_due(store, now) == 1


def test_a_clock_set_back_by_two_hours_does_not_delay_a_short_wait(
    store: Store, customer: Customer, now: datetime
) -> None:
    subscribe(store, customer, now, max_retries=1)
    enqueue(store, an_event(customer, now))
    [claimed] = claim(store, now)
    record(store, [end_attempt(claimed, now)])
    assert make_retries_due(store, now - timedelta(hours=2)) == 1


def test_a_clock_set_ahead_makes_retries_due(store: Store, customer: Customer, now: datetime) -> None:
    subscribe(store, customer, now, max_retries=1)
    enqueue(store, an_event(customer, now))
    [claimed] = claim(store, now)
    record(store, [end_attempt(claimed, now)])
    assert make_retries_due(store, now + timedelta(days=400)) == 1


def test_an_end_that_is_recorded_twice_counts_once(store: Store, customer: Customer, now: datetime) -> None:
    subscription = subscribe(store, customer, now, max_retries=2, pause_after=2)
    enqueue(store, an_event(customer, now))
    [claimed] = claim(store, now)
    end = end_attempt(claimed, now)
    for _ in range(3):
        assert record(store, [end]) == []
    assert read_subscription(store, subscription).failure_streak == 1
    assert len(find_retrying(store).attempts) == 1


def test_an_end_from_a_late_sender_neither_retries_nor_counts(store: Store, customer: Customer, now: datetime) -> None:
    subscription = subscribe(store, customer, now, max_retries=2, pause_after=1)
    enqueue(store, an_event(customer, now))
    [claimed] = claim(store, now)
    with store.db.writing() as w:
        outbox.release_expired(w, now + timedelta(seconds=LEASE_S))
    assert record(store, [end_attempt(claimed, now)]) == []
    (delivery,) = log(store)
    assert (delivery.status, len(delivery.attempts)) == (DeliveryStatus.DUE, 1)
    assert read_subscription(store, subscription).failure_streak == 0


def test_retries_end_with_their_subscription(store: Store, customer: Customer, now: datetime) -> None:
    """A waiting retry is cancelled, and a delivery in progress fails without a retry."""
    subscription = subscribe(store, customer, now, max_retries=5)
    enqueue(store, an_event(customer, now), an_event(customer, now))
    waits, under_way = claim(store, now)
    record(store, [end_attempt(waits, now)])
    with store.db.writing() as w:
        subscriptions.delete(w, customer.client_id, subscription.subscription_id)
    record(store, [end_attempt(under_way, now)])
    by_id = {each.delivery_id: each.status for each in log(store)}
    assert by_id == {waits.delivery_id: DeliveryStatus.CANCELLED, under_way.delivery_id: DeliveryStatus.FAILED}
    assert make_retries_due(store, now + timedelta(days=400)) == 0


def test_a_manual_resend_has_all_retries_again(store: Store, customer: Customer, now: datetime) -> None:
    subscribe(store, customer, now, max_retries=1)
    enqueue(store, an_event(customer, now))
    for _ in range(2):
        [claimed] = claim(store, now)
        record(store, [end_attempt(claimed, now)])
        find_retrying(store)
        with store.db.writing() as w:  # a resend needn't wait for the retry
            delivery_log.resend(w, None, claimed.delivery_id, now)


def test_many_retries_become_due_in_parts(
    store: Store, customer: Customer, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "RETRIES_AT_ONCE", 3)
    subscribe(store, customer, now, max_retries=1)
    enqueue(store, *(an_event(customer, now) for _ in range(4)))
    record(store, [end_attempt(each, now) for each in claim(store, now)])
    later = now + timedelta(minutes=1)
    assert [make_retries_due(store, later) for _ in range(3)] == [3, 1, 0]


def test_a_streak_of_failures_pauses_and_a_success_ends_it(store: Store, customer: Customer, now: datetime) -> None:
    subscription = subscribe(store, customer, now, pause_after=3)
    enqueue(store, *(an_event(customer, now) for _ in range(6)))
    one, two, three, four = claim(store, now)
    assert record(store, [end_attempt(one, now), end_attempt(two, now)]) == []
    assert record(store, [end_attempt(three, now + SECOND, 200)]) == []
    reported = read_subscription(store, subscription)
    assert (reported.failure_streak, reported.last_failed_at, reported.last_delivered_at) == (0, now, now + SECOND)
    failures = [end_attempt(each, now + n * SECOND) for n, each in enumerate([four, *claim(store, now)])]
    [pause] = record(store, failures)
    assert pause == Pause(subscription.subscription_id, customer.client_id, 3, now + 2 * SECOND)
    reported = read_subscription(store, subscription)
    assert (reported.paused_at, reported.paused_by, reported.failure_streak) == (now + 2 * SECOND, "failures", 3)
    assert reported.last_delivered_at == now + SECOND
    with store.db.reading() as r:
        [entry] = audit.find(r, customer.client_id)
    assert (entry.who, entry.action) == ("service", "Subscription.Paused")
    assert entry.resource == {"subscriptionId": str(subscription.subscription_id)}


def test_a_pause_reports_its_failures_even_if_a_success_followed(
    store: Store, customer: Customer, now: datetime
) -> None:
    subscription = subscribe(store, customer, now, pause_after=2)
    enqueue(store, *(an_event(customer, now) for _ in range(3)))
    codes = (500, 500, 200)
    ends = [end_attempt(each, now + n * SECOND, codes[n]) for n, each in enumerate(claim(store, now))]
    [pause] = record(store, ends)
    assert (pause.failures, pause.paused_at) == (2, now + SECOND)
    assert read_subscription(store, subscription).failure_streak == 0


def test_tests_and_our_own_failures_do_not_count(store: Store, customer: Customer, now: datetime) -> None:
    subscription = subscribe(store, customer, now, max_retries=2, pause_after=1)
    send_test(store, customer, subscription, now)
    [sample] = claim(store, now)
    assert record(store, [end_attempt(sample, now)]) == []
    assert [each.status for each in log(store)] == [DeliveryStatus.FAILED]  # without a retry
    enqueue(store, an_event(customer, now))
    [claimed] = claim(store, now)
    assert record(store, [end_attempt(claimed, now, None, "secret")]) == []
    assert read_subscription(store, subscription).failure_streak == 0


def test_while_a_subscription_is_paused_nothing_is_sent_or_lost(
    store: Store, customer: Customer, now: datetime
) -> None:
    paused, other = subscribe(store, customer, now), subscribe(store, customer, now)
    earlier, later = an_event(customer, now), an_event(customer, now)
    enqueue(store, earlier)
    with store.db.writing() as w:
        subscriptions.pause(w, customer.client_id, paused.subscription_id, "client", now)
        assert outbox.find_due_since(w) == now  # the delivery of the other subscription
    enqueue(store, later)
    claimed = claim(store, now)
    assert {each.subscription_id for each in claimed} == {other.subscription_id}
    with store.db.writing() as w:
        assert not outbox.has_due(w)
        assert outbox.find_due_since(w) is None
        subscriptions.resume(w, customer.client_id, paused.subscription_id)
    assert [each.event_id for each in claim(store, now)] == [earlier.event_id, later.event_id]


def test_deleting_a_paused_subscription_cancels_waiting_deliveries(
    store: Store, customer: Customer, now: datetime
) -> None:
    subscription = subscribe(store, customer, now)
    enqueue(store, an_event(customer, now))
    with store.db.writing() as w:
        subscriptions.pause(w, None, subscription.subscription_id, "operator", now)
        subscriptions.delete(w, customer.client_id, subscription.subscription_id)
    assert log(store)[0].status is DeliveryStatus.CANCELLED


def test_pausing_and_resuming_twice_changes_nothing(store: Store, customer: Customer, now: datetime) -> None:
    subscription = subscribe(store, customer, now)
    mine = (customer.client_id, subscription.subscription_id)
    with store.db.writing() as w:
        first, changed = subscriptions.pause(w, *mine, "client", now)
        assert changed
        assert subscriptions.pause(w, None, mine[1], "operator", now + SECOND) == (first, False)
        assert [subscriptions.resume(w, *mine) for _ in range(2)] == [(subscription, True), (subscription, False)]


def test_a_stranger_can_not_pause_resume_or_change_a_subscription(
    store: Store, customer: Customer, now: datetime
) -> None:
    subscription_id, stranger = subscribe(store, customer, now).subscription_id, uuid4()
    with store.db.writing() as w:
        with pytest.raises(NotFound):
            subscriptions.pause(w, stranger, subscription_id, "client", now)
        with pytest.raises(NotFound):
            subscriptions.resume(w, stranger, subscription_id)
        with pytest.raises(NotFound):
            subscriptions.change(w, stranger, subscription_id, {"max_retries": 1})


def test_many_paused_queues_do_not_delay_others(store: Store, customer: Customer, now: datetime) -> None:
    for _ in range(30):
        paused = subscribe(store, customer, now)
        with store.db.writing() as w:
            subscriptions.pause(w, None, paused.subscription_id, "operator", now)
    healthy = subscribe(store, customer, now)
    enqueue(store, *(an_event(customer, now) for _ in range(5)))
    assert [each.subscription_id for each in claim(store, now)] == [healthy.subscription_id] * PER_SUBSCRIPTION


def send_test(store: Store, customer: Customer, subscription: Subscription, now: datetime) -> Delivery:
    event = an_event(customer, now)
    with store.db.writing() as w:
        return delivery_log.get(w, None, outbox.enqueue_test(w, event, subscription.subscription_id))


def test_a_test_is_sent_even_while_paused_and_one_at_a_time(store: Store, customer: Customer, now: datetime) -> None:
    subscription = subscribe(store, customer, now)
    enqueue(store, an_event(customer, now))
    with store.db.writing() as w:
        subscriptions.pause(w, None, subscription.subscription_id, "operator", now)
    made = send_test(store, customer, subscription, now)
    assert made.is_test
    with pytest.raises(Conflict, match="not ended"):
        send_test(store, customer, subscription, now)
    [claimed] = claim(store, now)
    assert claimed.delivery_id == made.delivery_id
    record(store, [end_attempt(claimed, now, 200)])
    assert claim(store, now) == []
    assert send_test(store, customer, subscription, now).delivery_id != made.delivery_id


def test_tests_count_towards_the_clients_limit(
    store: Store, customer: Customer, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "PER_CLIENT", 3)
    for _ in range(4):
        subscription = subscribe(store, customer, now)
        with store.db.writing() as w:
            subscriptions.pause(w, None, subscription.subscription_id, "operator", now)
        send_test(store, customer, subscription, now)
    assert len(claim(store, now)) == 3


def fail_at(store: Store, customer: Customer, times: Sequence[datetime]) -> list[UUID]:
    """Create deliveries at these times, let them fail, and return their ids in that order."""
    for at in times:
        enqueue(store, an_event(customer, at))
    while taken := claim(store, times[0]):
        record(store, [end_attempt(each, times[0]) for each in taken])
    return [each.delivery_id for each in sorted(log(store), key=lambda each: each.created_at)]


def test_all_failed_deliveries_since_a_time_are_resent_once(store: Store, customer: Customer, now: datetime) -> None:
    subscription = subscribe(store, customer, now)
    ids = fail_at(store, customer, [now + n * SECOND for n in range(4)])
    since, ordered_at = now + SECOND, now + timedelta(hours=1)
    chosen: dict[str, Any] = {"until": now + 3 * SECOND, "subscription_id": subscription.subscription_id}
    for expected in ((2, False), (0, False)):
        with store.db.writing() as w:
            assert delivery_log.resend_all(w, since, ordered_at, **chosen) == expected
    assert [each.delivery_id for each in claim(store, now)] == ids[1:3]


def test_only_the_selected_failed_deliveries_are_resent(store: Store, customer: Customer, now: datetime) -> None:
    mine, gone = subscribe(store, customer, now), subscribe(store, customer, now)
    neighbour = a_customer(store, customer.client_id, now)
    enqueue(store, an_event(customer, now), an_event(neighbour, now))
    record(store, [end_attempt(each, now) for each in claim(store, now)])
    made = send_test(store, customer, mine, now)
    record(store, [end_attempt(each, now) for each in claim(store, now)])
    later = now + SECOND
    with store.db.writing() as w:
        subscriptions.delete(w, customer.client_id, gone.subscription_id)
        assert delivery_log.resend_all(w, now, later, client_id=uuid4()) == (0, False)
        assert delivery_log.resend_all(w, now, later, event_type=EventType.JOB_FAILED) == (0, False)
        assert delivery_log.resend_all(w, now, later, status=DeliveryStatus.RETRYING) == (0, False)
        assert delivery_log.resend_all(w, now, later, customer_number=neighbour.number) == (1, False)
        assert delivery_log.resend_all(w, now, later) == (1, False)
    assert {each.subscription_id for each in claim(store, later)} == {mine.subscription_id}
    assert {each.status for each in log(store) if each.delivery_id == made.delivery_id} == {DeliveryStatus.FAILED}


def test_one_request_resends_a_bounded_number(
    store: Store, customer: Customer, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_log, "RESENT_AT_ONCE", 3)
    subscribe(store, customer, now)
    fail_at(store, customer, [now] * 5)
    for expected in ((3, True), (2, False), (0, False)):
        with store.db.writing() as w:
            assert delivery_log.resend_all(w, now, now + SECOND) == expected


def test_deliveries_that_failed_again_are_resent_last(
    store: Store, customer: Customer, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_log, "RESENT_AT_ONCE", 3)
    subscribe(store, customer, now)
    fail_at(store, customer, [now] * 5)
    tried = set[UUID]()
    for order in (1, 2):
        with store.db.writing() as w:
            assert delivery_log.resend_all(w, now, now + order * SECOND) == (3, True)
        claimed = claim(store, now)
        tried |= {each.delivery_id for each in claimed}
        record(store, [end_attempt(each, now) for each in claimed])
    assert len(tried) == 5


def test_a_delivery_that_fails_again_is_not_resent_by_the_same_request(
    store: Store, customer: Customer, now: datetime
) -> None:
    subscribe(store, customer, now)
    fail_at(store, customer, [now])
    ordered_at = now + SECOND
    for expected in (1, 0):
        with store.db.writing() as w:
            assert delivery_log.resend_all(w, now, ordered_at)[0] == expected
        record(store, [end_attempt(each, now) for each in claim(store, now)])


@pytest.mark.slow  # inserts a hundred thousand rows
@pytest.mark.parametrize("status", [DeliveryStatus.DUE, DeliveryStatus.RETRYING])
def test_the_cost_of_a_claim_does_not_depend_on_the_queue_length(
    store: Store, customer: Customer, now: datetime, status: DeliveryStatus
) -> None:
    """The work to check and claim with many undelivered rows is a small multiple of that with 100.

    With some thousands PostgreSQL may read them all, because it estimates that indexes would cost more.
    """
    rows = 100_000
    subscription = subscribe(store, customer, now, max_retries=5)

    def flood(more: int) -> None:
        new = [an_event(customer, now) for _ in range(more)]
        waits = {"attempt_count": 1, "retry_at": now + SECOND} if status is DeliveryStatus.RETRYING else {}
        made = [outbox._due_row(event, subscription.subscription_id) | {"status": status, **waits} for event in new]
        with store.db.writing() as w:
            w.execute(insert(events), [vars(event) for event in new])
            w.execute(insert(deliveries), made)
        if not store.db.is_sqlite:
            with store.db.writing() as w:
                w.exec_driver_sql("ANALYZE")  # as autovacuum does

    def measure_claim(holder: int) -> int:
        with store.db.writing() as w, counting_work(w) as count_work:
            outbox.has_due(w)
            outbox.has_retry_due(w, now)
            outbox.make_retries_due(w, now)
            outbox.claim_due(w, UUID(int=holder), 4, LEASE_S, now)
            outbox._release(w, deliveries.c.lease_holder.is_not(None))
            return count_work()

    flood(100)
    few = measure_claim(9)
    flood(rows)
    many = measure_claim(10)
    with store.db.reading() as r:
        assert r.execute(select(func.count()).select_from(deliveries)).scalar_one() == rows + 100
    assert few > 0
    assert many < 4 * few


@contextmanager
def counting_work(w: Writing) -> Iterator[Callable[[], int]]:
    """Yield a function that returns the work done in this transaction: rows read by PostgreSQL, or steps of SQLite."""
    if w.dialect.name == "sqlite":
        steps: list[None] = []
        connection: Any = w.connection.driver_connection
        connection.set_progress_handler(lambda: steps.append(None), 10)
        yield lambda: len(steps)
        connection.set_progress_handler(None, 0)
    else:
        rows_read = text("SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_xact_user_tables")
        yield lambda: int(w.execute(rows_read).scalar_one())


def test_retries_that_are_not_due_are_not_scanned(store: Store, now: datetime) -> None:
    if not store.db.is_sqlite:
        pytest.skip("PostgreSQL chooses its plans by statistics")
    with store.db.reading() as r:
        query = outbox._retries_due().params(**outbox._retry_times(now), most=1)
        sql = str(query.compile(r.engine, compile_kwargs={"literal_binds": True}))
        plan = [row.detail for row in r.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}")]
    reads = [step for step in plan if "deliveries" in step]
    assert len(reads) == 2 * MAX_RETRIES
    assert all("SEARCH deliveries USING" in step and "ix_deliveries_retrying" in step for step in reads)
