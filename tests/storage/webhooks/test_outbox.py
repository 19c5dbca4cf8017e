"""Deliveries are claimed fairly, in order and once, and every attempt is recorded."""

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, insert, select, update

from pipelines.vocabulary.errors import Conflict, NotFound
from pipelines.webhooks.events import EventType
from storage.core.models import DeliveryStatus, deliveries, events
from storage.core.models import subscriptions as subscriptions_table
from storage.core.paging import Page
from storage.core.store import Store
from storage.customers.customers import Customer
from storage.webhooks import delivery_log, outbox, subscriptions, turns
from storage.webhooks.delivery_log import Delivery, Filter
from storage.webhooks.outbox import Attempt, Claimed, Ended, NewEvent
from storage.webhooks.subscriptions import Subscription
from tests.storage.examples import a_client, a_customer
from tests.storage.values import on_postgresql

ME, ANOTHER = UUID(int=1), UUID(int=2)
LEASE_S = 45


def subscribe(
    store: Store,
    client: UUID,
    now: datetime,
    event_type: EventType = EventType.JOB_COMPLETED,
    customers: Sequence[UUID] = (),
) -> Subscription:
    url = "https://lender.example/hooks"
    with store.db.writing() as w:
        return subscriptions.create(w, client, event_type, url, customers, store.vault, now)[0]


def subscribe_often(store: Store, client: UUID, now: datetime, times: int) -> None:
    """Subscribe once and copy the row: no test here opens the secret, which is bound to the first."""
    first = subscribe(store, client, now)
    with store.db.writing() as w:
        query = select(subscriptions_table).where(subscriptions_table.c.subscription_id == first.subscription_id)
        row = w.execute(query).one()._asdict()
        w.execute(insert(subscriptions_table), [{**row, "subscription_id": uuid4()} for _ in range(times - 1)])


def an_event(customer: Customer, now: datetime, event_type: EventType = EventType.JOB_COMPLETED) -> NewEvent:
    body = b'{"amount":12.50,"name":"Caf\xc3\xa9 \xe2\x80\xa8"}'
    return NewEvent(uuid4(), customer.client_id, customer.number, uuid4(), event_type, body, now)


def enqueue(store: Store, *new: NewEvent) -> None:
    with store.db.writing() as w:
        outbox.enqueue(w, new)


def claim(
    store: Store, now: datetime, holder: UUID = ME, limit: int = turns.SLOTS, free: int = turns.SLOTS
) -> list[Claimed]:
    """Claim as a sender with this many free slots does, and check that `has_due` agrees."""
    with store.db.writing() as w:
        expected = limit > 0 and outbox.has_due(w, free)
        claimed = outbox.claim_due(w, holder, limit, LEASE_S, now, free)
    assert claimed == [] or expected
    return claimed


def end(
    store: Store, claimed: Claimed, now: datetime, status: DeliveryStatus = DeliveryStatus.FAILED, holder: UUID = ME
) -> None:
    attempt = Attempt(uuid4(), now, 84, 500, None, b"\x00\xff")
    with store.db.writing() as w:
        outbox.record(w, holder, [Ended(claimed.delivery_id, status, attempt)])


def record(store: Store, claimed: Sequence[Claimed], now: datetime) -> None:
    """Record that the deliveries have timed out."""
    ended = [
        Ended(each.delivery_id, DeliveryStatus.FAILED, Attempt(uuid4(), now, 30_000, None, "timeout", None))
        for each in claimed
    ]
    with store.db.writing() as w:
        outbox.record(w, ME, ended)


def log(store: Store) -> list[Delivery]:
    with store.db.reading() as r:
        return delivery_log.find_latest(r, 100)


def test_an_event_is_due_for_every_subscription_that_matches(store: Store, now: datetime) -> None:
    client = a_client(store, now)
    customer, other = (a_customer(store, client, now) for _ in range(2))
    catch_all, again = subscribe(store, client, now), subscribe(store, client, now)
    scoped = subscribe(store, client, now, customers=[customer.customer_id, other.customer_id])
    subscribe(store, client, now, customers=[other.customer_id])
    subscribe(store, client, now, EventType.JOB_FAILED)
    subscribe(store, a_client(store, now), now)
    event = an_event(customer, now)
    enqueue(store, event)
    claimed = claim(store, now)
    reported = {each.subscription_id for each in (catch_all, again, scoped)}
    assert {each.subscription_id for each in claimed} == reported
    assert len({each.delivery_id for each in claimed}) == 3
    assert {(each.event_id, each.body) for each in claimed} == {(event.event_id, event.body)}


def test_a_subscription_created_after_the_event_does_not_get_it(store: Store, now: datetime) -> None:
    customer = a_customer(store, a_client(store, now), now)
    enqueue(store, an_event(customer, now))
    subscribe(store, customer.client_id, now)
    assert claim(store, now) == []
    with store.db.reading() as r:
        assert r.execute(select(func.count()).select_from(events)).scalar_one() == 1


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_many_events_reach_the_same_subscriptions_as_a_plain_loop_finds(
    store: Store, now: datetime, data: st.DataObject
) -> None:
    types = (EventType.JOB_COMPLETED, EventType.JOB_FAILED)
    clients = [a_client(store, now) for _ in range(2)]
    customers = [a_customer(store, client, now) for client in clients for _ in range(3)]
    made = [
        subscribe(
            store,
            client := data.draw(st.sampled_from(clients)),
            now,
            data.draw(st.sampled_from(types)),
            data.draw(st.sets(st.sampled_from([each.customer_id for each in customers if each.client_id == client]))),  # pyrefly: ignore[bad-argument-type]  # a set is as good as a list here
        )
        for _ in range(data.draw(st.integers(0, 6)))
    ]
    new = [an_event(customers[n % len(customers)], now, types[n % 5 == 0]) for n in range(100)]
    by_number: dict[int | None, UUID] = {customer.number: customer.customer_id for customer in customers}
    expected = Counter(
        (event.event_id, each.subscription_id)
        for event in new
        for each in made
        if (each.client_id, each.event_type) == (event.client_id, event.event_type)
        and (not each.customer_ids or by_number[event.customer_number] in each.customer_ids)
    )
    enqueue(store, *new)
    ids = [event.event_id for event in new]
    with store.db.reading() as r:
        query = select(deliveries.c.event_id, deliveries.c.subscription_id).where(deliveries.c.event_id.in_(ids))
        assert Counter(tuple(row) for row in r.execute(query)) == expected


def test_a_claimed_delivery_is_not_claimed_again(store: Store, now: datetime) -> None:
    customer = a_customer(store, a_client(store, now), now)
    subscribe(store, customer.client_id, now)
    enqueue(store, an_event(customer, now))
    assert len(claim(store, now)) == 1
    assert claim(store, now, ANOTHER) == []
    with store.db.reading() as r:
        assert not outbox.has_due(r)


def test_many_senders_claim_each_delivery_once(store: Store, now: datetime) -> None:
    customer = a_customer(store, a_client(store, now), now)
    for _ in range(10):
        subscribe(store, customer.client_id, now)
    enqueue(store, *(an_event(customer, now) for _ in range(4)))
    with ThreadPoolExecutor(8) as senders:
        claims = list(senders.map(lambda n: claim(store, now, UUID(int=n + 10), limit=7), range(24)))
    claims.append(claim(store, now))  # what two senders tried to claim at once and both skipped
    claimed = [each.delivery_id for some in claims for each in some]
    assert len(claimed) == len(set(claimed)) == 40


def test_subscriptions_take_turns_and_have_few_deliveries_in_progress(store: Store, now: datetime) -> None:
    customer = a_customer(store, a_client(store, now), now)
    flooded = subscribe(store, customer.client_id, now)
    enqueue(store, *(an_event(customer, now) for _ in range(20)))
    quiet = subscribe(store, customer.client_id, now, EventType.JOB_FAILED)
    enqueue(store, *(an_event(customer, now, EventType.JOB_FAILED) for _ in range(2)))
    first = Counter(each.subscription_id for each in claim(store, now, limit=4))
    assert first == {flooded.subscription_id: 2, quiet.subscription_id: 2}
    rest = claim(store, now)
    assert Counter(each.subscription_id for each in rest) == {flooded.subscription_id: 2}
    assert claim(store, now) == []
    end(store, rest[0], now)
    assert len(claim(store, now)) == 1


def test_a_client_with_many_subscriptions_leaves_slots_to_others(store: Store, now: datetime) -> None:
    flooding, quiet = (a_customer(store, a_client(store, now), now) for _ in range(2))
    subscribe_often(store, flooding.client_id, now, turns.PER_CLIENT // turns.PER_SUBSCRIPTION + 1)
    enqueue(store, *(an_event(flooding, now) for _ in range(turns.PER_SUBSCRIPTION)))
    subscribe(store, quiet.client_id, now)
    enqueue(store, an_event(quiet, now))
    claimed = claim(store, now)
    assert Counter(each.client_id for each in claimed) == {
        flooding.client_id: turns.PER_CLIENT,
        quiet.client_id: 1,
    }
    assert claim(store, now, ANOTHER) == []
    end(store, next(each for each in claimed if each.client_id == flooding.client_id), now)
    assert [each.client_id for each in claim(store, now, ANOTHER)] == [flooding.client_id]


def enqueue_flood(store: Store, now: datetime, clients: int) -> None:
    """Enqueue for each client more deliveries than it may have in progress."""
    for _ in range(clients):
        customer = a_customer(store, a_client(store, now), now)
        subscribe_often(store, customer.client_id, now, turns.PER_CLIENT // turns.PER_SUBSCRIPTION + 1)
        enqueue(store, *(an_event(customer, now) for _ in range(turns.PER_SUBSCRIPTION)))


@pytest.mark.parametrize("clients", [4, 12])
def test_clients_whose_receivers_all_hang_leave_slots_to_a_healthy_one(
    store: Store, now: datetime, clients: int
) -> None:
    enqueue_flood(store, now, clients)
    hanging = claim(store, now)
    free = turns.SLOTS - len(hanging)
    assert free == turns.SLOTS // (clients + 1)
    assert claim(store, now, free=free) == claim(store, now, ANOTHER, free=0) == []
    customer = a_customer(store, a_client(store, now), now)
    subscribe(store, customer.client_id, now)
    enqueue(store, *(an_event(customer, now) for _ in range(turns.PER_SUBSCRIPTION)))
    healthy = claim(store, now, free=free)
    assert [each.client_id for each in healthy] == [customer.client_id] * turns.PER_SUBSCRIPTION


def test_hanging_clients_lose_their_surplus_slots_at_the_deadline(store: Store, now: datetime) -> None:
    """Ten clients that begin to hang one after the other can fill a sender, but only until their deadlines."""
    under_way: list[Claimed] = []
    for _ in range(10):
        enqueue_flood(store, now, 1)
        under_way += claim(store, now, free=turns.SLOTS - len(under_way))
    assert len(under_way) == turns.SLOTS
    for _ in range(2):
        first, under_way = under_way[:100], under_way[100:]
        record(store, first, now)
        under_way += claim(store, now, free=turns.SLOTS - len(under_way))
        assert len(under_way) < turns.SLOTS


def test_a_subscriptions_deliveries_are_sent_in_order(store: Store, now: datetime) -> None:
    customer = a_customer(store, a_client(store, now), now)
    subscribe(store, customer.client_id, now)
    new = [an_event(customer, now) for _ in range(3)]
    enqueue(store, *new)
    assert [each.event_id for each in claim(store, now)] == [event.event_id for event in new]


def test_a_delivery_with_an_expired_lease_is_claimed_again_with_the_same_bytes(store: Store, now: datetime) -> None:
    customer = a_customer(store, a_client(store, now), now)
    subscribe(store, customer.client_id, now)
    enqueue(store, an_event(customer, now))
    first = claim(store, now)
    soon, late = now + timedelta(seconds=LEASE_S - 1), now + timedelta(seconds=LEASE_S)
    with store.db.writing() as w:
        assert not outbox.has_expired(w, soon)
        assert outbox.release_expired(w, soon) == 0
        assert outbox.has_expired(w, late)
        assert outbox.release_expired(w, late) == 1
    assert claim(store, late, ANOTHER) == first


@on_postgresql
def test_an_expired_delivery_that_is_being_recorded_is_skipped(store: Store, now: datetime) -> None:
    customer = a_customer(store, a_client(store, now), now)
    subscribe(store, customer.client_id, now)
    enqueue(store, an_event(customer, now), an_event(customer, now))
    [recorded, lost], late = claim(store, now), now + timedelta(seconds=LEASE_S)
    with store.db.writing() as recording:
        outbox.record(recording, ME, [Ended(recorded.delivery_id, DeliveryStatus.CANCELLED, None)])
        with store.db.writing() as w:
            assert outbox.release_expired(w, late) == 1
    assert claim(store, late, ANOTHER) == [lost]


def test_a_lease_from_before_the_clock_was_set_back_expires(store: Store, now: datetime) -> None:
    customer = a_customer(store, a_client(store, now), now)
    subscribe(store, customer.client_id, now)
    enqueue(store, an_event(customer, now))
    claim(store, now + timedelta(hours=2))
    with store.db.writing() as w:
        assert outbox.release_expired(w, now) == 1


def test_the_attempt_of_a_late_sender_is_stored_but_decides_nothing(store: Store, now: datetime) -> None:
    customer = a_customer(store, a_client(store, now), now)
    subscribe(store, customer.client_id, now)
    enqueue(store, an_event(customer, now))
    (claimed,) = claim(store, now)
    with store.db.writing() as w:
        outbox.give_back(w, ME)
    claim(store, now, ANOTHER)
    end(store, claimed, now, DeliveryStatus.DELIVERED, holder=ME)
    assert log(store)[0].status is DeliveryStatus.SENDING
    end(store, claimed, now + timedelta(seconds=1), DeliveryStatus.FAILED, holder=ANOTHER)
    (delivery,) = log(store)
    assert (delivery.status, len(delivery.attempts)) == (DeliveryStatus.FAILED, 2)


def test_an_attempt_is_stored_byte_for_byte(store: Store, now: datetime) -> None:
    customer = a_customer(store, a_client(store, now), now)
    subscribe(store, customer.client_id, now)
    enqueue(store, an_event(customer, now))
    (claimed,) = claim(store, now)
    end(store, claimed, now)
    (attempt,) = log(store)[0].attempts
    assert (attempt.started_at, attempt.duration_ms, attempt.status_code) == (now, 84, 500)
    assert attempt.response_head == b"\x00\xff"


def test_an_end_recorded_twice_is_stored_once(store: Store, now: datetime) -> None:
    customer = a_customer(store, a_client(store, now), now)
    subscribe(store, customer.client_id, now)
    enqueue(store, an_event(customer, now))
    (claimed,) = claim(store, now)
    ended = [Ended(claimed.delivery_id, DeliveryStatus.DELIVERED, Attempt(uuid4(), now, 84, 204, None, b""))]
    for _ in range(2):
        with store.db.writing() as w:
            outbox.record(w, ME, ended)
    (delivery,) = log(store)
    assert (delivery.status, len(delivery.attempts)) == (DeliveryStatus.DELIVERED, 1)


def test_deleting_a_subscription_cancels_its_open_deliveries(store: Store, now: datetime) -> None:
    customer = a_customer(store, a_client(store, now), now)
    subscription = subscribe(store, customer.client_id, now)
    enqueue(store, an_event(customer, now))
    with store.db.writing() as w:
        subscriptions.delete(w, customer.client_id, subscription.subscription_id)
    assert [each.status for each in log(store)] == [DeliveryStatus.CANCELLED]
    assert claim(store, now) == []


def test_a_bounded_number_is_cancelled_at_once_retries_first(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "CANCELLED_AT_ONCE", 3)
    customer = a_customer(store, a_client(store, now), now)
    subscription = subscribe(store, customer.client_id, now)
    enqueue(store, *(an_event(customer, now) for _ in range(5)))
    with store.db.writing() as w:
        w.execute(update(deliveries).where(deliveries.c.number > 4).values(status=DeliveryStatus.RETRYING))
        subscriptions.delete(w, customer.client_id, subscription.subscription_id)
    due, cancelled = DeliveryStatus.DUE, DeliveryStatus.CANCELLED
    assert Counter(each.status for each in log(store)) == {due: 2, cancelled: 3}
    assert log(store)[0].status is cancelled
    assert [each.webhook_url for each in claim(store, now)] == [None, None]


def test_a_delivery_of_a_deleted_subscription_is_claimed_without_url_and_secret(store: Store, now: datetime) -> None:
    customer = a_customer(store, a_client(store, now), now)
    subscribe(store, customer.client_id, now)
    enqueue(store, an_event(customer, now))
    with store.db.writing() as w:
        w.execute(update(deliveries).values(subscription_id=uuid4()))
    (claimed,) = claim(store, now)
    assert (claimed.webhook_url, claimed.sealed_secret) == (None, None)


def test_a_failed_delivery_is_resent_with_the_same_bytes(store: Store, now: datetime) -> None:
    customer = a_customer(store, a_client(store, now), now)
    subscribe(store, customer.client_id, now)
    enqueue(store, an_event(customer, now))
    (first,) = claim(store, now)
    end(store, first, now)
    with store.db.writing() as w:
        delivery = delivery_log.resend(w, customer.client_id, first.delivery_id, now)
    assert (delivery.status, len(delivery.attempts)) == (DeliveryStatus.DUE, 1)
    assert claim(store, now) == [first]


def test_deliveries_that_can_not_be_resent(store: Store, now: datetime) -> None:
    customer = a_customer(store, a_client(store, now), now)
    subscription = subscribe(store, customer.client_id, now)
    enqueue(store, an_event(customer, now))
    (due,) = log(store)
    with store.db.writing() as w:
        with pytest.raises(NotFound):
            delivery_log.resend(w, a_client_of_somebody_else := uuid4(), due.delivery_id, now)
        with pytest.raises(NotFound):
            delivery_log.resend(w, None, a_client_of_somebody_else, now)
        with pytest.raises(Conflict, match="being sent"):
            delivery_log.resend(w, None, due.delivery_id, now)
        subscriptions.delete(w, customer.client_id, subscription.subscription_id)
        with pytest.raises(Conflict, match="deleted"):
            delivery_log.resend(w, None, due.delivery_id, now)


def test_a_resent_delivery_is_due_since_the_resend(store: Store, now: datetime) -> None:
    customer = a_customer(store, a_client(store, now), now)
    subscribe(store, customer.client_id, now)
    enqueue(store, an_event(customer, now))
    months_later = now + timedelta(days=90)
    with store.db.reading() as r:
        assert outbox.find_due_since(r) == now
    (claimed,) = claim(store, now)
    end(store, claimed, now)
    with store.db.writing() as w:
        assert outbox.find_due_since(w) is None
        delivery_log.resend(w, None, claimed.delivery_id, months_later)
        assert outbox.find_due_since(w) == months_later


def test_the_log_is_newest_first_and_filtered_by_subscription(store: Store, now: datetime) -> None:
    mine, theirs = (a_customer(store, a_client(store, now), now) for _ in range(2))
    subscription = subscribe(store, mine.client_id, now)
    subscribe(store, theirs.client_id, now)
    new = [an_event(mine, now) for _ in range(3)]
    enqueue(store, *new, an_event(theirs, now))
    its = Filter(subscription_id=subscription.subscription_id)
    with store.db.reading() as r:
        every, second = (delivery_log.find(r, its, page) for page in (None, Page(2, 2)))
        assert [each.event_id for each in delivery_log.read(r, every.items)] == [
            event.event_id for event in reversed(new)
        ]
        assert [each.event_id for each in delivery_log.read(r, second.items)] == [new[0].event_id]
        assert (every.total, second.total) == (3, 3)


def test_the_operator_sees_the_latest_deliveries_of_all_clients(store: Store, now: datetime) -> None:
    one, other = (a_customer(store, a_client(store, now), now) for _ in range(2))
    subscription = subscribe(store, one.client_id, now)
    subscribe(store, other.client_id, now)
    new = [an_event(each, now) for each in (one, one, other)]
    enqueue(store, *new)
    end(store, claim(store, now, limit=1)[0], now)
    with store.db.reading() as r:
        assert [each.event_id for each in delivery_log.find_latest(r, 2)] == [new[2].event_id, new[1].event_id]
        its = delivery_log.find_latest(r, 9, subscription.subscription_id)
        assert [each.event_id for each in its] == [new[1].event_id, new[0].event_id]
        assert [each.event_id for each in delivery_log.find_latest(r, 9, failed=True)] == [new[0].event_id]


def test_a_long_queue_is_not_searched(store: Store, now: datetime) -> None:
    """The plan jumps through the index of open deliveries, without a scan or a sort of the queue."""
    if not store.db.is_sqlite:
        pytest.skip("PostgreSQL chooses its plans by statistics")
    claim(store, now)
    with store.db.reading() as r:
        sql = str(turns.waiting_subscriptions().compile(r.engine, compile_kwargs={"literal_binds": True}))
        plan = [row.detail for row in r.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}")]
    reads = [step for step in plan if "deliveries" in step]
    assert reads
    assert all("USING COVERING INDEX ix_deliveries_open" in step for step in reads)


def test_outdated_statistics_of_a_queue_do_not_slow_a_claim(store: Store, now: datetime) -> None:
    """The statistics say that all deliveries are due and belong to one subscription."""
    if store.db.is_sqlite:
        pytest.skip("SQLite keeps no statistics by itself")
    customer = a_customer(store, a_client(store, now), now)
    subscribe(store, customer.client_id, now)
    enqueue(store, *(an_event(customer, now) for _ in range(2_000)))
    with store.db.writing() as w:
        w.exec_driver_sql("ANALYZE deliveries")
        w.execute(update(deliveries).values(status=DeliveryStatus.CANCELLED))
    with store.db.reading() as r:
        r.exec_driver_sql("SET LOCAL enable_bitmapscan = off")
        sql = str(turns.waiting_subscriptions().compile(r.engine, compile_kwargs={"literal_binds": True}))
        plan = [step for (step,) in r.exec_driver_sql(f"EXPLAIN {sql}") if " on deliveries" in step]
    assert plan
    assert all("Index Only Scan using ix_deliveries_open" in step for step in plan)


def test_open_tests_are_found_by_their_index(store: Store) -> None:
    """A partial index holds only open tests."""
    if not store.db.is_sqlite:
        pytest.skip("PostgreSQL chooses its plans by statistics")
    with store.db.reading() as r:
        for query in (outbox._open_test(uuid4()), turns.TESTS_OF_PAUSED):
            sql = str(query.compile(r.engine, compile_kwargs={"literal_binds": True}))
            plan = [row.detail for row in r.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}")]
            reads = [step for step in plan if "deliveries" in step]
            assert reads
            assert all("ix_deliveries_open_tests" in step for step in reads)


def test_failed_deliveries_are_found_by_their_index(store: Store) -> None:
    """A partial index holds only failed deliveries."""
    if not store.db.is_sqlite:
        pytest.skip("PostgreSQL chooses its plans by statistics")
    with store.db.reading() as r:
        query = select(deliveries.c.delivery_id).where(delivery_log._HAS_FAILED).order_by(deliveries.c.number.desc())
        plan = [row.detail for row in r.exec_driver_sql(f"EXPLAIN QUERY PLAN {query.compile(r.engine)}")]
    assert plan == ["SCAN deliveries USING INDEX ix_deliveries_failed"]
