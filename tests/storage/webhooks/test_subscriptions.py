"""Subscriptions are stored with sealed secrets, limited in number, and seen only by their own client."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from uuid import UUID, uuid4

import pytest
from sqlalchemy import select, update

from pipelines.vocabulary.errors import Conflict, Corrupt, InvalidRequest, NotFound
from pipelines.webhooks.events import EventType, decode_secret
from storage.core.models import subscriptions as table
from storage.core.paging import Page
from storage.core.store import Store
from storage.webhooks import subscriptions
from storage.webhooks.subscriptions import Subscription
from tests.storage.examples import a_client, a_customer

URL = "https://lender.example/hooks"


def subscribe(store: Store, client: UUID, now: datetime, customers: Sequence[UUID] = ()) -> tuple[Subscription, str]:
    with store.db.writing() as w:
        return subscriptions.create(w, client, EventType.JOB_COMPLETED, URL, customers, store.vault, now)


def stored_key(store: Store, subscription: Subscription) -> bytes:
    with store.db.reading() as r:
        query = select(table.c.secret).where(table.c.subscription_id == subscription.subscription_id)
        return subscriptions.open_secret(store.vault, subscription.subscription_id, r.execute(query).scalar_one())


def test_a_subscription_is_read_back_without_its_secret(store: Store, now: datetime) -> None:
    client = a_client(store, now)
    made, secret = subscribe(store, client, now)
    with store.db.reading() as r:
        assert subscriptions.get(r, client, made.subscription_id) == made
    assert (made.client_id, made.event_type, made.webhook_url, made.customer_ids) == (client, "job.completed", URL, ())
    assert len(decode_secret(secret)) == 32
    assert stored_key(store, made) == decode_secret(secret)


def test_two_subscriptions_with_the_same_url_have_separate_secrets(store: Store, now: datetime) -> None:
    client = a_client(store, now)
    (first, one), (second, other) = subscribe(store, client, now), subscribe(store, client, now)
    assert one != other
    with store.db.reading() as r:
        assert {each.subscription_id for each in subscriptions.find(r, client).items} == {
            first.subscription_id,
            second.subscription_id,
        }


def test_the_number_of_subscriptions_of_a_client_is_limited(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscriptions, "MAX_SUBSCRIPTIONS", 2)
    client = a_client(store, now)
    (first, _), _ = subscribe(store, client, now), subscribe(store, client, now)
    subscribe(store, a_client(store, now), now)
    with pytest.raises(Conflict) as refused:
        subscribe(store, client, now)
    assert refused.value.code == "Webhook.TooManySubscriptions"
    with store.db.writing() as w:
        subscriptions.delete(w, client, first.subscription_id)
    subscribe(store, client, now)


def test_concurrent_creations_can_not_exceed_the_limit(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscriptions, "MAX_SUBSCRIPTIONS", 3)
    client = a_client(store, now)

    def is_refused(_: int) -> bool:
        try:
            subscribe(store, client, now)
        except Conflict:
            return True
        return False

    with ThreadPoolExecutor(8) as at_once:
        assert sum(at_once.map(is_refused, range(8))) == 5


def test_rotation_replaces_the_secret_at_once(store: Store, now: datetime) -> None:
    client = a_client(store, now)
    made, old = subscribe(store, client, now)
    with store.db.writing() as w:
        new = subscriptions.rotate(w, client, made.subscription_id, store.vault)
    assert new != old
    assert stored_key(store, made) == decode_secret(new)


def test_a_secret_copied_to_another_subscription_does_not_open(store: Store, now: datetime) -> None:
    client = a_client(store, now)
    (mine, _), (theirs, _) = subscribe(store, client, now), subscribe(store, client, now)
    with store.db.writing() as w:
        copied = select(table.c.secret).where(table.c.subscription_id == mine.subscription_id).scalar_subquery()
        w.execute(update(table).where(table.c.subscription_id == theirs.subscription_id).values(secret=copied))
    with pytest.raises(Corrupt):
        stored_key(store, theirs)


def test_customers_are_added_and_removed_and_without_any_it_is_a_catch_all(store: Store, now: datetime) -> None:
    client = a_client(store, now)
    one, two = (a_customer(store, client, now).customer_id for _ in range(2))
    made, _ = subscribe(store, client, now, [one, one])
    assert made.customer_ids == (one,)
    with store.db.writing() as w:
        assert subscriptions.add_customers(w, client, made.subscription_id, [two, one]).customer_ids == (one, two)
        assert subscriptions.remove_customers(w, client, made.subscription_id, [one]).customer_ids == (two,)
        assert subscriptions.remove_customers(w, client, made.subscription_id, [one]).customer_ids == (two,)
        assert subscriptions.remove_customers(w, client, made.subscription_id, [two]).customer_ids == ()


def test_customers_must_be_the_clients_own_and_each_fault_has_its_pointer(store: Store, now: datetime) -> None:
    client = a_client(store, now)
    own, foreign = (a_customer(store, each, now).customer_id for each in (client, a_client(store, now)))
    with pytest.raises(InvalidRequest) as refused:
        subscribe(store, client, now, [foreign, own, uuid4()])
    assert refused.value.code == "Webhook.UnknownCustomer"
    assert [fault.pointer for fault in refused.value.faults] == ["/customerIds/0", "/customerIds/2"]
    made, _ = subscribe(store, client, now, [own])
    for change in (subscriptions.add_customers, subscriptions.remove_customers):
        with store.db.writing() as w, pytest.raises(InvalidRequest):
            change(w, client, made.subscription_id, [own, foreign])
    with store.db.reading() as r:
        assert [each.customer_ids for each in subscriptions.find(r, client).items] == [(own,)]


def test_another_clients_subscription_is_not_found(store: Store, now: datetime) -> None:
    made, _ = subscribe(store, a_client(store, now), now)
    stranger = a_client(store, now)
    with store.db.writing() as w:
        for attempt in (subscriptions.get, subscriptions.delete):
            with pytest.raises(NotFound, match="no webhook subscription"):
                attempt(w, stranger, made.subscription_id)
        for change in (subscriptions.add_customers, subscriptions.remove_customers):
            with pytest.raises(NotFound):
                change(w, stranger, made.subscription_id, [])
        with pytest.raises(NotFound):
            subscriptions.rotate(w, stranger, made.subscription_id, store.vault)
    with store.db.reading() as r:
        assert subscriptions.find(r, stranger).total == 0


def test_deleting_returns_the_subscription_and_removes_it(store: Store, now: datetime) -> None:
    client = a_client(store, now)
    made, _ = subscribe(store, client, now, [a_customer(store, client, now).customer_id])
    with store.db.writing() as w:
        assert subscriptions.delete(w, client, made.subscription_id) == made
    with store.db.reading() as r, pytest.raises(NotFound):
        subscriptions.get(r, client, made.subscription_id)


def test_subscriptions_are_listed_in_pages_with_their_customers(store: Store, now: datetime) -> None:
    client = a_client(store, now)
    customer = a_customer(store, client, now).customer_id
    made = [subscribe(store, client, now.replace(minute=minute), [customer])[0] for minute in range(3)]
    with store.db.reading() as r:
        page = subscriptions.find(r, client, Page(2, 2))
        assert (list(page.items), page.total, page.total_pages) == (made[2:], 3, 2)
        assert list(subscriptions.find(r, client).items) == made
