"""Webhook subscriptions and deliveries as they are sent and shown, and the payloads that receivers get."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, computed_field, field_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from api.schemas.common import Counts, NoteView, Received, View
from api.schemas.rules import Rule, identifier, text
from pipelines.addresses import MAX_URL_CHARACTERS
from pipelines.webhooks import EVENT_TYPES, EventType
from storage.models import DeliveryStatus

MAX_CUSTOMERS = 1_000
UNKNOWN_CUSTOMER = "Webhook.UnknownCustomer"
WRONG_COUNT = "Webhook.WrongCount"
EXAMPLE_CUSTOMER = "0b51c1a4-4a52-4f6e-9b8e-6a3f1e6f8a01"
EXAMPLE_SUBSCRIPTION: dict[str, Any] = {
    "webhookSubscriptionId": "c1a9d0e2-94f2-4b0b-8f8b-0a2f3a9f5d77",
    "eventType": "job.completed",
    "webhookUrl": "https://lender.example/hooks/tidemark",
    "customerIds": [EXAMPLE_CUSTOMER],
    "isCatchAll": False,
    "dateCreated": "2026-07-01T02:15:00Z",
}
EXAMPLE_SECRET = "cGxlYXNlLWtlZXAtdGhpcy1zb21ld2hlcmUtc2FmZSE="
EXAMPLE_NEW = {key: EXAMPLE_SUBSCRIPTION[key] for key in ("eventType", "webhookUrl")} | {"customerIds": []}
EXAMPLE_ROTATED = {
    "webhookSubscriptionId": EXAMPLE_SUBSCRIPTION["webhookSubscriptionId"],
    "secret": EXAMPLE_SECRET,
}
EXAMPLE_DELIVERY: dict[str, Any] = {
    "deliveryId": "3d3a1f5e-6c0a-4d5c-9f46-5f6f0d9e2b10",
    "eventId": "a5e5f0cc-2a3f-4a39-9d0f-4a8f8f6e2c55",
    "eventType": "job.completed",
    "webhookSubscriptionId": EXAMPLE_SUBSCRIPTION["webhookSubscriptionId"],
    "status": "delivered",
    "dateCreated": "2026-07-01T02:15:01Z",
    "attempts": [
        {
            "attemptId": "0f5d5a9e-58b4-4d07-8d0a-d7a2b8a9a0c3",
            "dateStarted": "2026-07-01T02:15:01Z",
            "durationMs": 84,
            "statusCode": 204,
            "error": None,
            "response": "",
        }
    ],
}


CustomerIdsGiven = list[
    Annotated[
        UUID,
        Rule(
            identifier,
            UNKNOWN_CUSTOMER,
            "There is no customer with this id.",
            {"type": "string", "format": "uuid"},
        ),
    ]
]


def _counted(least: int) -> Callable[[Any], Any]:
    """Refuses lists that are too long or too short before their items are looked at."""

    def check(given: Any) -> Any:
        if isinstance(given, list) and not least <= len(given) <= MAX_CUSTOMERS:
            raise PydanticCustomError(WRONG_COUNT, f"{least} to {MAX_CUSTOMERS:,} customerIds.")
        return given

    return check


class NewSubscription(Received):
    EXAMPLE: ClassVar = EXAMPLE_NEW

    event_type: Annotated[
        EventType,
        Rule(
            EventType,
            "Webhook.InvalidEventType",
            "eventType must be one of the service's event types.",
            {"type": "string", "enum": list(EVENT_TYPES)},
        ),
    ]
    webhook_url: Annotated[
        str,
        Rule(
            text(MAX_URL_CHARACTERS),
            "Webhook.UrlInvalid",
            f"webhookUrl must be text of 1 to {MAX_URL_CHARACTERS} characters.",
            {"type": "string", "format": "uri", "pattern": "^https://", "maxLength": MAX_URL_CHARACTERS},
        ),
    ]
    customer_ids: Annotated[CustomerIdsGiven | None, BeforeValidator(_counted(0))] = Field(
        default=None,
        json_schema_extra={"maxItems": MAX_CUSTOMERS},
        description="The client's own customers whose events are wanted; empty or left out for everybody's.",
    )


class ScopedCustomers(Received):
    EXAMPLE: ClassVar = {"customerIds": [EXAMPLE_CUSTOMER]}

    customer_ids: Annotated[CustomerIdsGiven, BeforeValidator(_counted(1))] = Field(
        json_schema_extra={"minItems": 1, "maxItems": MAX_CUSTOMERS}
    )


class SubscriptionView(View):
    EXAMPLE: ClassVar = EXAMPLE_SUBSCRIPTION

    webhook_subscription_id: UUID = Field(validation_alias="subscription_id")
    event_type: str
    webhook_url: str
    customer_ids: Sequence[UUID]
    date_created: datetime = Field(validation_alias="created_at")

    @computed_field  # type: ignore[prop-decorator]  # pydantic's own way to show a property
    @property
    def is_catch_all(self) -> bool:
        """Whether every customer's events are sent."""
        return not self.customer_ids


class CreatedSubscriptionView(SubscriptionView):
    EXAMPLE: ClassVar = EXAMPLE_SUBSCRIPTION | {"secret": EXAMPLE_SECRET}

    secret: str = Field(description="The signing secret in Base64. It is shown this once.")


class RotatedSecretView(View):
    EXAMPLE: ClassVar = EXAMPLE_ROTATED

    webhook_subscription_id: UUID
    secret: str = Field(description="The new signing secret in Base64. Nothing is signed with the old one any more.")


class SubscriptionListView(Counts):
    EXAMPLE: ClassVar = {"subscriptions": [SubscriptionView.EXAMPLE], **Counts.EXAMPLE}

    subscriptions: list[SubscriptionView]


class AttemptView(View):
    attempt_id: UUID
    date_started: datetime = Field(validation_alias="started_at")
    duration_ms: int
    status_code: int | None = Field(description="Of the receiver's answer; null when there was none.")
    error: str | None = Field(description="Class of the failure: dns, connect, tls, timeout, refused, reset, …")
    response: str | None = Field(
        validation_alias="response_head", description="First 16 KiB of the receiver's answer, as text."
    )

    @field_validator("response", mode="before")
    @classmethod
    def _as_text(cls, head: bytes | None) -> str | None:
        return None if head is None else head.decode(errors="replace").replace("\0", "\ufffd")


class DeliveryView(View):
    EXAMPLE: ClassVar = EXAMPLE_DELIVERY

    delivery_id: UUID
    event_id: UUID
    event_type: str
    webhook_subscription_id: UUID = Field(validation_alias="subscription_id")
    status: DeliveryStatus
    date_created: datetime = Field(validation_alias="created_at")
    attempts: Sequence[AttemptView]


class DeliveryListView(Counts):
    EXAMPLE: ClassVar = {"deliveries": [DeliveryView.EXAMPLE], **Counts.EXAMPLE}

    deliveries: list[DeliveryView]


EXAMPLE_EVENT: dict[str, Any] = {
    "eventType": "job.completed",
    "eventId": EXAMPLE_DELIVERY["eventId"],
    "clientId": "9f0a6f0e-0a0f-4f19-8a51-6d9b8a3d4c21",
    "customerId": EXAMPLE_CUSTOMER,
    "timestamp": "2026-07-01T02:15:00.640000Z",
    "jobId": "5f0c8e55-3c0e-4f4e-8f43-0f7f6c1b2d10",
    "abn": "51824753556",
    "jobType": "Enrichment",
}
EXAMPLE_COMPLETED = EXAMPLE_EVENT | {"totalProcessedTransactions": 499, "totalReceivedTransactions": 500}
EXAMPLE_ENRICHED = EXAMPLE_EVENT | {
    "eventType": "job.enrichment.completed",
    "enrichedCount": 480,
    "duplicateCount": 19,
}
EXAMPLE_FAILED = EXAMPLE_EVENT | {
    "eventType": "job.failed",
    "error": {"code": "Job.AllRowsRejected", "message": "No row could be kept."},
}


class Event(BaseModel):
    """What every payload carries. Receivers ignore fields they don't know; `eventId` tells repeats apart."""

    model_config = ConfigDict(alias_generator=to_camel, extra="allow")

    event_type: str
    event_id: UUID
    client_id: UUID
    customer_id: UUID
    timestamp: datetime


class JobEvent(Event):
    job_id: UUID
    abn: str
    job_type: str


class JobCompletedEvent(JobEvent):
    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE_COMPLETED]})

    event_type: Literal["job.completed"]
    total_processed_transactions: int
    total_received_transactions: int


class EnrichmentCompletedEvent(JobEvent):
    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE_ENRICHED]})

    event_type: Literal["job.enrichment.completed"]
    enriched_count: int
    duplicate_count: int


class FailedEvent(JobEvent):
    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE_FAILED]})

    event_type: Literal["job.failed", "job.enrichment.failed"]
    error: NoteView | None
