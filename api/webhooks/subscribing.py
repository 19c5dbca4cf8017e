"""Subscriptions that exist only while a receiver of this machine listens, for `tidemark listen --subscribe`."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from uuid import UUID

from api.webhooks import samples
from api.webhooks.listen import Receiver
from pipelines.vocabulary.errors import NotFound
from pipelines.webhooks.events import EventType
from storage.core import audit
from storage.core.audit import OPERATOR
from storage.core.database import Writing
from storage.core.store import Store
from storage.webhooks import local_receiver, outbox, subscriptions
from storage.webhooks.local_receiver import LocalReceiver
from storage.webhooks.subscriptions import Subscription

REACHED_WITHIN_S = 10.0


@contextmanager
def temporary_subscriptions(
    store: Store, receiver: Receiver, client_id: UUID, event_types: Iterable[EventType]
) -> Iterator[Sequence[Subscription]]:
    """Subscribe the receiver to these types, and let the service reach it. At the end the subscriptions are deleted.

    Those of an earlier receiver that was killed are deleted first.
    """
    home, port = store.settings.home, receiver.port
    if (killed := local_receiver.find(store.settings)) is not None:
        _unsubscribe(store, killed.subscription_ids)
    with store.db.writing() as w:
        subscribed = [_subscribe(w, store, receiver, client_id, each) for each in event_types]
    ids = [each.subscription_id for each in subscribed]
    try:
        local_receiver.announce(home, LocalReceiver(port, ids))
        yield subscribed
    finally:
        _unsubscribe(store, ids)
        local_receiver.remove(home)


def is_reached(store: Store, receiver: Receiver, subscription: Subscription) -> bool:
    """Return whether a test event of the subscription arrives with a right signature, within REACHED_WITHIN_S."""
    event = samples.build_sample_event(subscription, datetime.now(UTC))
    with store.db.writing() as w:
        outbox.enqueue_test(w, event, subscription.subscription_id)
    arrived = receiver.wait_for(lambda each: each.verified is True and each.body == event.body, REACHED_WITHIN_S)
    return arrived is not None


def _subscribe(w: Writing, store: Store, receiver: Receiver, client_id: UUID, event_type: EventType) -> Subscription:
    now = datetime.now(UTC)
    subscription, secret = subscriptions.create(w, client_id, event_type, receiver.url, (), store.vault, now)
    receiver.learn(secret)
    _audit(w, "Subscription.Created", subscription, now)
    return subscription


def _unsubscribe(store: Store, subscription_ids: Iterable[UUID]) -> None:
    with store.db.writing() as w:
        for each in subscription_ids:
            with suppress(NotFound):  # deleted meanwhile
                known = subscriptions.get(w, None, each)
                subscriptions.delete(w, known.client_id, each)
                _audit(w, "Subscription.Deleted", known, datetime.now(UTC))


def _audit(w: Writing, action: str, subscription: Subscription, now: datetime) -> None:
    resource = {"subscriptionId": subscription.subscription_id}
    audit.append(w, OPERATOR, action, resource, now, client_id=subscription.client_id)
