"""Sample events for receivers that are being tried out: example values under the receiver's own ids."""

from datetime import datetime
from typing import Any, cast
from uuid import UUID, uuid4

import msgspec

from api.webhooks.schemas import EVENTS, EXAMPLE_CUSTOMER
from pipelines.webhooks.events import EventType
from storage.webhooks.outbox import NewEvent
from storage.webhooks.subscriptions import Subscription


def event_for(receiver: Subscription, now: datetime) -> NewEvent:
    """An event of the subscription's type, of the first customer of its scope, or of an example's; `test` marks it."""
    event_id = uuid4()
    document = _example(receiver.event_type) | {
        "eventId": event_id,
        "clientId": receiver.client_id,
        "customerId": next(iter(receiver.customer_ids), UUID(EXAMPLE_CUSTOMER)),
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


def _example(event_type: EventType) -> dict[str, Any]:
    """As the OpenAPI document shows it."""
    extra = cast("dict[str, Any]", EVENTS[event_type].model_config["json_schema_extra"])
    example: dict[str, Any] = extra["examples"][0]
    return example
