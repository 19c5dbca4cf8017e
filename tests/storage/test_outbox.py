from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select, update

from pipelines.errors import Conflict, NotFound
from pipelines.webhooks import EventType
from storage import outbox, subscriptions
from storage.customers import Customer
from storage.models import DeliveryStatus, deliveries, events
from storage.outbox import Attempt, Claimed, Delivery, Ended, NewEvent
from storage.paging import Page
from storage.store import Store
from storage.subscriptions import Subscription
from tests.storage.examples import a_client, a_customer

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


def an_event(customer: Customer, now: datetime, event_type: EventType = EventType.JOB_COMPLETED) -> NewEvent:
    body = b'{"amount":12.50,"name":"Caf\xc3\xa9 \xe2\x80\xa8"}'
    return NewEvent(uuid4(), customer.client_id, customer.number, uuid4(), event_type, body, now)


def enqueue(store: Store, *new: NewEvent) -> None:
    with store.db.writing() as w:
        outbox.enqueue(w, new)


def claim(store: Store, now: datetime, holder: UUID = ME, limit: int = 250) -> list[Claimed]:
    with store.db.writing() as w:
        return outbox.claim_due(w, holder, limit, LEASE_S, now)


def end(
    store: Store, claimed: Claimed, now: datetime, status: DeliveryStatus = DeliveryStatus.FAILED, holder: UUID = ME
) -> None:
    attempt = Attempt(uuid4(), now, 84, 500, None, b"\x00\xff")
    with store.db.writing() as w:
        outbox.record(w, holder, [Ended(claimed.delivery_id, status, attempt)])


def log(store: Store, client: UUID | None = None, page: Page | None = None) -> list[Delivery]:
    with store.db.reading() as r:
        return list(outbox.find(r, client, page=page).items)


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
    told = {each.subscription_id for each in (catch_all, again, scoped)}
    assert {each.subscription_id for each in claimed} == told
    assert len({each.delivery_id for each in claimed}) == 3
    assert {(each.event_id, each.body) for each in claimed} == {(event.event_id, event.body)}


def test_a_subscription_made_after_the_event_hears_nothing_of_it(store: Store, now: datetime) -> None:
    customer = a_customer(store, a_client(store, now), now)
    enqueue(store, an_event(customer, now))
    subscribe(store, customer.client_id, now)
    assert claim(store, now) == []
    with store.db.reading() as r:
        assert r.execute(select(func.count()).select_from(events)).scalar_one() == 1


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_thousand_events_reach_whom_a_plain_loop_says(store: Store, now: datetime, data: st.DataObject) -> None:
    types = (EventType.JOB_COMPLETED, EventType.JOB_FAILED)
    clients = [a_client(store, now) for _ in range(2)]
    customers = [a_customer(store, client, now) for client in clients for _ in range(3)]
    made = [
        subscribe(
            store,
            client := data.draw(st.sampled_from(clients)),
            now,
            data.draw(st.sampled_from(types)),
            data.draw(st.sets(st.sampled_from([each.customer_id for each in customers if each.client_id == client]))),  # type: ignore[arg-type]  # a set is as good as a list here
        )
        for _ in range(data.draw(st.integers(0, 6)))
    ]
    new = [an_event(customers[n % len(customers)], now, types[n % 5 == 0]) for n in range(100)]
    by_number = {customer.number: customer.customer_id for customer in customers}
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


def test_a_claimed_delivery_is_nobody_elses(store: Store, now: datetime) -> None:
    customer = a_customer(store, a_client(store, now), now)
    subscribe(store, customer.client_id, now)
    enqueue(store, an_event(customer, now))
    assert len(claim(store, now)) == 1
    assert claim(store, now, ANOTHER) == []
    with store.db.reading() as r:
        assert not outbox.any_due(r)


def test_many_senders_claim_each_delivery_once(store: Store, now: datetime) -> None:
    customer = a_customer(store, a_client(store, now), now)
    for _ in range(10):
        subscribe(store, customer.client_id, now)
    enqueue(store, *(an_event(customer, now) for _ in range(4)))
    with ThreadPoolExecutor(8) as senders:
        claims = list(senders.map(lambda n: claim(store, now, UUID(int=n + 10), limit=7), range(24)))
    claims.append(claim(store, now))  # what two had wanted at the same moment, and neither waited for
    claimed = [each.delivery_id for some in claims for each in some]
    assert len(claimed) == len(set(claimed)) == 40


def test_subscriptions_take_turns_and_have_few_under_way_each(store: Store, now: datetime) -> None:
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


def test_a_subscriptions_deliveries_go_out_in_order(store: Store, now: datetime) -> None:
    customer = a_customer(store, a_client(store, now), now)
    subscribe(store, customer.client_id, now)
    new = [an_event(customer, now) for _ in range(3)]
    enqueue(store, *new)
    assert [each.event_id for each in claim(store, now)] == [event.event_id for event in new]


def test_a_lease_that_ran_out_frees_the_delivery_with_the_same_bytes(store: Store, now: datetime) -> None:
    customer = a_customer(store, a_client(store, now), now)
    subscribe(store, customer.client_id, now)
    enqueue(store, an_event(customer, now))
    first = claim(store, now)
    soon, late = now + timedelta(seconds=LEASE_S - 1), now + timedelta(seconds=LEASE_S)
    with store.db.writing() as w:
        assert not outbox.any_expired(w, soon)
        assert outbox.release_expired(w, soon) == 0
        assert outbox.any_expired(w, late)
        assert outbox.release_expired(w, late) == 1
    assert claim(store, late, ANOTHER) == first


def test_a_lease_given_before_the_clock_was_set_back_is_not_stuck(store: Store, now: datetime) -> None:
    customer = a_customer(store, a_client(store, now), now)
    subscribe(store, customer.client_id, now)
    enqueue(store, an_event(customer, now))
    claim(store, now + timedelta(hours=2))
    with store.db.writing() as w:
        assert outbox.release_expired(w, now) == 1


def test_a_sender_that_comes_back_late_leaves_a_trace_but_decides_nothing(store: Store, now: datetime) -> None:
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


def test_an_attempt_is_kept_byte_for_byte(store: Store, now: datetime) -> None:
    customer = a_customer(store, a_client(store, now), now)
    subscribe(store, customer.client_id, now)
    enqueue(store, an_event(customer, now))
    (claimed,) = claim(store, now)
    end(store, claimed, now)
    (attempt,) = log(store)[0].attempts
    assert (attempt.started_at, attempt.duration_ms, attempt.status_code) == (now, 84, 500)
    assert attempt.response_head == b"\x00\xff"


def test_deleting_a_subscription_cancels_what_it_has_yet_to_be_told(store: Store, now: datetime) -> None:
    customer = a_customer(store, a_client(store, now), now)
    subscription = subscribe(store, customer.client_id, now)
    enqueue(store, an_event(customer, now))
    with store.db.writing() as w:
        subscriptions.delete(w, customer.client_id, subscription.subscription_id)
    assert [each.status for each in log(store)] == [DeliveryStatus.CANCELLED]
    assert claim(store, now) == []


def test_a_delivery_whose_subscription_vanished_is_claimed_without_address_or_secret(
    store: Store, now: datetime
) -> None:
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
        delivery = outbox.resend(w, customer.client_id, first.delivery_id)
    assert (delivery.status, len(delivery.attempts)) == (DeliveryStatus.DUE, 1)
    assert claim(store, now) == [first]


def test_what_can_not_be_resent(store: Store, now: datetime) -> None:
    customer = a_customer(store, a_client(store, now), now)
    subscription = subscribe(store, customer.client_id, now)
    enqueue(store, an_event(customer, now))
    (due,) = log(store)
    with store.db.writing() as w:
        with pytest.raises(NotFound):
            outbox.resend(w, a_client_of_somebody_else := uuid4(), due.delivery_id)
        with pytest.raises(NotFound):
            outbox.resend(w, None, a_client_of_somebody_else)
        with pytest.raises(Conflict, match="being sent"):
            outbox.resend(w, None, due.delivery_id)
        subscriptions.delete(w, customer.client_id, subscription.subscription_id)
        with pytest.raises(Conflict, match="deleted"):
            outbox.resend(w, None, due.delivery_id)


def test_the_log_is_newest_first_and_each_client_sees_its_own(store: Store, now: datetime) -> None:
    mine, theirs = (a_customer(store, a_client(store, now), now) for _ in range(2))
    subscription = subscribe(store, mine.client_id, now)
    subscribe(store, theirs.client_id, now)
    new = [an_event(mine, now) for _ in range(3)]
    enqueue(store, *new, an_event(theirs, now))
    assert [each.event_id for each in log(store, mine.client_id)] == [event.event_id for event in reversed(new)]
    assert [each.event_id for each in log(store, mine.client_id, Page(2, 2))] == [new[0].event_id]
    assert len(log(store)) == 4
    end(store, claim(store, now, limit=1)[0], now)
    with store.db.reading() as r:
        assert outbox.find(r, subscription_id=subscription.subscription_id).total == 3
        assert [each.status for each in outbox.find(r, failed=True).items] == [DeliveryStatus.FAILED]


def test_a_long_queue_is_not_searched(store: Store, now: datetime) -> None:
    """The plan hops through the index of open deliveries: no scan, no sort of the queue."""
    if not store.db.is_sqlite:
        pytest.skip("PostgreSQL chooses its plans by statistics")
    claim(store, now)
    with store.db.reading() as r:
        sql = str(outbox._waiting().compile(r.engine, compile_kwargs={"literal_binds": True}))
        plan = [row.detail for row in r.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}")]
    looks = [step for step in plan if "deliveries" in step]
    assert looks
    assert all("USING COVERING INDEX ix_deliveries_open" in step for step in looks)
