"""Sample events for testing a receiver: example values with the receiver's own ids."""

from datetime import datetime
from uuid import uuid4

import msgspec

from api.core.schemas.examples import example
from api.webhooks.events import EVENTS
from storage.webhooks.outbox import NewEvent
from storage.webhooks.subscriptions import Subscription


def build_sample_event(receiver: Subscription, now: datetime) -> NewEvent:
    """Return a sample event of the subscription's type, marked by `test`.

    Its customer is the first in the subscription's scope, or an example's if the scope is empty.
    """
    event_id = uuid4()
    shown = example(EVENTS[receiver.event_type])
    document = shown | {
        "eventId": event_id,
        "clientId": receiver.client_id,
        "customerId": next(iter(receiver.customer_ids), shown["customerId"]),
        "timestamp": now,
        "test": True,
    }
    return NewEvent(
        event_id=event_id,
        client_id=receiver.client_id,
        customer_number=None,
        job_id=None,
        event_type=receiver.event_type,
        body=msgspec.json.encode(document),
        created_at=now,
    )
