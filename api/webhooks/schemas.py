"""Webhook subscriptions and deliveries as they are sent and shown, and the payloads that receivers get."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal
from uuid import UUID

from pydantic import (
    AfterValidator,
    AliasPath,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    computed_field,
    field_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import InitErrorDetails

from api.core.schemas.common import Counts, NoteView, Paging, Received, View
from api.core.schemas.rules import OneOfMany, Parameter, Rule, identifier, moment, one_of, or_null, refusal, text, whole
from pipelines.vocabulary.errors import InvalidRequest
from pipelines.vocabulary.strict_json import Number
from pipelines.webhooks.addresses import MAX_URL_CHARACTERS, check_webhook_url
from pipelines.webhooks.events import EVENT_TYPES, EventType
from pipelines.webhooks.retries import LONGEST_STREAK, MAX_RETRIES
from storage.core.models import DeliveryStatus
from storage.customers import customers
from storage.webhooks.delivery_log import CLASSES, RESENT_AT_ONCE
from storage.webhooks.subscriptions import Patience

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
    "maxRetries": 0,
    "pauseAfterFailures": None,
    "isPaused": False,
    "datePaused": None,
    "pausedBy": None,
    "failureStreak": 0,
    "dateLastDelivered": "2026-07-01T02:15:01.084000Z",
    "dateLastFailed": None,
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
    "dateOfRetry": None,
    "isTest": False,
    "attempts": [
        {
            "attemptId": "0f5d5a9e-58b4-4d07-8d0a-d7a2b8a9a0c3",
            "dateStarted": "2026-07-01T02:15:01Z",
            "durationMs": 84,
            "dnsMs": 3,
            "connectMs": 12,
            "tlsMs": 25,
            "firstByteMs": 41,
            "statusCode": 204,
            "error": None,
            "response": "",
        }
    ],
}


EXAMPLE_QUEUED_TEST = EXAMPLE_DELIVERY | {"status": "due", "isTest": True, "attempts": []}
EXAMPLE_PERIOD: dict[str, Any] = {
    "period": "24h",
    "since": "2026-06-30T02:15:00Z",
    "attempts": 480,
    "delivered": 471,
    "failed": 9,
    "byError": {"timeout": 6, "status": 3},
    "byStatusCode": {"503": 3},
    "durationP50Ms": 84,
    "durationP95Ms": 310,
}
EXAMPLE_SUMMARY: dict[str, Any] = {
    "webhookSubscriptionId": EXAMPLE_SUBSCRIPTION["webhookSubscriptionId"],
    "isPaused": False,
    "failureStreak": 0,
    "dateLastDelivered": EXAMPLE_SUBSCRIPTION["dateLastDelivered"],
    "dateLastFailed": "2026-06-30T21:40:12.500000Z",
    "waiting": 2,
    "retrying": 1,
    "dateOldestWaiting": "2026-07-01T02:15:01Z",
    "periods": [EXAMPLE_PERIOD, EXAMPLE_PERIOD | {"period": "7d", "since": "2026-06-24T02:15:00Z"}],
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
        OneOfMany(),
    ]
]


def _counted(least: int) -> Callable[[Any], Any]:
    """Refuses lists that are too long or too short before their items are looked at."""

    def check(given: Any) -> Any:
        if isinstance(given, list) and not least <= len(given) <= MAX_CUSTOMERS:
            raise refusal(WRONG_COUNT, f"{least} to {MAX_CUSTOMERS:,} customerIds.")
        return given

    return check


def _number(low: int, high: int) -> Callable[[Any], int]:
    """A whole JSON number."""

    def parse(value: Any) -> int:
        if not isinstance(value, Number):
            raise ValueError
        return whole(low, high)(value)

    return parse


def _number_or_null(low: int, high: int) -> Callable[[Any], int | None]:
    return lambda value: None if value is None else _number(low, high)(value)


Retries = Annotated[
    int,
    Rule(
        _number(0, MAX_RETRIES),
        "Webhook.InvalidMaxRetries",
        f"maxRetries must be a whole number from 0 to {MAX_RETRIES}.",
        {
            "type": "integer",
            "minimum": 0,
            "maximum": MAX_RETRIES,
            "description": "How often a failed delivery is tried again: after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, "
            "14 h, 20 h, 24 h and 24 h.",
        },
    ),
]
Failures = Annotated[
    int | None,
    Rule(
        _number_or_null(1, LONGEST_STREAK),
        "Webhook.InvalidPauseAfterFailures",
        f"pauseAfterFailures must be null or a whole number from 1 to {LONGEST_STREAK:,}.",
        {
            "type": ["integer", "null"],
            "minimum": 1,
            "maximum": LONGEST_STREAK,
            "description": "After how many failed attempts in a row the subscription is paused; null for never.",
        },
    ),
]


def _allowed_url(url: str, info: ValidationInfo) -> str:
    """Return the URL as it is stored, when the caller's service may send webhooks there."""
    assert info.context is not None
    try:
        return check_webhook_url(url, info.context["caller"].store.settings.webhook_reach)
    except InvalidRequest as error:
        raise refusal(error.code, error.detail) from None


def _of_the_caller(customer_ids: list[UUID] | None, info: ValidationInfo) -> list[UUID] | None:
    """Refuse customers who are not the caller's, together with whatever else is wrong with the body."""
    assert info.context is not None
    if not customer_ids:
        return customer_ids
    caller = info.context["caller"]
    with caller.reading() as r:
        known = customers.numbers(r, caller.client_id, customer_ids)
    fault = refusal(UNKNOWN_CUSTOMER, "There is no customer with this id.")
    faults = [
        InitErrorDetails(type=fault, loc=(index,), input=None)
        for index, customer_id in enumerate(customer_ids)
        if customer_id not in known
    ]
    if faults:
        raise ValidationError.from_exception_data("customerIds", faults)
    return customer_ids


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
        AfterValidator(_allowed_url),
    ]
    customer_ids: Annotated[CustomerIdsGiven | None, BeforeValidator(_counted(0)), AfterValidator(_of_the_caller)] = (
        Field(
            default=None,
            json_schema_extra={"maxItems": MAX_CUSTOMERS},
            description="The client's own customers whose events are wanted; empty or left out for everybody's.",
        )
    )
    max_retries: Retries = 0
    pause_after_failures: Failures = None

    @property
    def patience(self) -> Patience:
        return Patience(self.max_retries, self.pause_after_failures)


class ChangedSubscription(Received):
    EXAMPLE: ClassVar = {"maxRetries": 5, "pauseAfterFailures": 100}

    max_retries: Retries = 0
    pause_after_failures: Failures = None

    def changes(self) -> dict[str, int | None]:
        """What was sent, by the names of `storage.webhooks.subscriptions.Patience`."""
        names = {"max_retries": "max_retries", "pause_after_failures": "pause_after"}
        return {names[field]: getattr(self, field) for field in self.model_fields_set}


A_MOMENT = "A moment is an ISO 8601 date-time with its offset."
RESENDABLE = (DeliveryStatus.FAILED, DeliveryStatus.RETRYING)


class Resending(Received):
    EXAMPLE: ClassVar = {"since": "2026-07-01T00:00:00Z", "until": "2026-07-01T06:00:00Z"}

    since: Annotated[
        datetime,
        Rule(
            moment,
            "Webhook.InvalidSince",
            A_MOMENT,
            {"type": "string", "format": "date-time", "description": "Deliveries that were made then or later."},
        ),
    ]
    until: Annotated[
        datetime | None,
        Rule(
            or_null(moment),
            "Webhook.InvalidUntil",
            A_MOMENT,
            {"type": ["string", "null"], "format": "date-time", "description": "Only those made before."},
        ),
    ] = None
    customer_id: Annotated[
        UUID | None,
        Rule(
            or_null(identifier),
            UNKNOWN_CUSTOMER,
            "There is no customer with this id.",
            {"type": ["string", "null"], "format": "uuid", "description": "Only what this customer's events made."},
        ),
    ] = None
    status: Annotated[
        DeliveryStatus,
        Rule(
            one_of(*RESENDABLE),
            "Webhook.InvalidResendStatus",
            "status must be failed or retrying.",
            {"type": "string", "enum": list(RESENDABLE)},
        ),
    ] = DeliveryStatus.FAILED


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
    max_retries: int = Field(description="How often a failed delivery is tried again.")
    pause_after_failures: int | None = Field(
        validation_alias="pause_after", description="Failed attempts in a row that pause it; null for never."
    )
    date_paused: datetime | None = Field(validation_alias="paused_at")
    paused_by: str | None = Field(description="failures, client or operator; null while it isn't paused.")
    failure_streak: int = Field(description="Failed attempts since one succeeded, or since it was resumed.")
    date_last_delivered: datetime | None = Field(validation_alias="last_delivered_at")
    date_last_failed: datetime | None = Field(validation_alias="last_failed_at")

    @computed_field
    @property
    def is_catch_all(self) -> bool:
        """Whether every customer's events are sent."""
        return not self.customer_ids

    @computed_field
    @property
    def is_paused(self) -> bool:
        """Whether deliveries wait until it is resumed."""
        return self.date_paused is not None


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
    dns_ms: int | None = Field(
        description="For the name's look-up; null for a step that was not got through, or not needed: the connection "
        "had been kept."
    )
    connect_ms: int | None
    tls_ms: int | None
    first_byte_ms: int | None = Field(description="From the request to the answer's first byte.")
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
    date_of_retry: datetime | None = Field(validation_alias="retry_at", description="Of retrying: not before then.")
    is_test: bool
    attempts: Sequence[AttemptView]


class DeliveryListView(Counts):
    EXAMPLE: ClassVar = {"deliveries": [DeliveryView.EXAMPLE], **Counts.EXAMPLE}

    deliveries: list[DeliveryView]


class ResentView(View):
    EXAMPLE: ClassVar = {"resent": 412, "more": False}

    resent: int = Field(description="Deliveries that are due once more.")
    more: bool = Field(description=f"There may be more: one request sends {RESENT_AT_ONCE:,} at most. Ask again.")


class PeriodView(View):
    EXAMPLE: ClassVar = EXAMPLE_PERIOD

    period: Literal["24h", "7d"]
    since: datetime
    attempts: int
    delivered: int
    failed: int
    by_error: Mapping[str, int] = Field(description="Failed ones by class; status: answered, but not with 2xx.")
    by_status_code: Mapping[str, int] = Field(description="Failed ones that were answered, by the answer's status.")
    duration_p50_ms: int | None = Field(description="Half of the attempts took no longer; null without any.")
    duration_p95_ms: int | None

    @field_validator("by_status_code", mode="before")
    @classmethod
    def _named(cls, counts: Mapping[int, int]) -> dict[str, int]:
        return {str(code): count for code, count in counts.items()}


class SummaryView(View):
    """Of a subscription's deliveries, without tests."""

    EXAMPLE: ClassVar = EXAMPLE_SUMMARY

    webhook_subscription_id: UUID = Field(validation_alias=AliasPath("subscription", "subscription_id"))
    date_paused: datetime | None = Field(validation_alias=AliasPath("subscription", "paused_at"), exclude=True)
    failure_streak: int = Field(validation_alias=AliasPath("subscription", "failure_streak"))
    date_last_delivered: datetime | None = Field(validation_alias=AliasPath("subscription", "last_delivered_at"))
    date_last_failed: datetime | None = Field(validation_alias=AliasPath("subscription", "last_failed_at"))
    waiting: int = Field(description="Due or being sent.")
    retrying: int = Field(description="Failed, and waiting for their next try.")
    date_oldest_waiting: datetime | None = Field(
        validation_alias="oldest_waiting_at", description="Since when the oldest has been due."
    )
    periods: Sequence[PeriodView]

    @computed_field
    @property
    def is_paused(self) -> bool:
        """Whether what is due waits until the subscription is resumed."""
        return self.date_paused is not None


def _parameter(parse: Callable[[Any], object], code: str, says: str, schema: dict[str, Any]) -> Parameter:
    return Parameter(parse, code, f"{says}, given once.", schema)


def _since(what: str) -> Parameter:
    return _parameter(
        moment,
        "Webhook.InvalidDate",
        "A moment is an ISO 8601 date-time with its offset",
        {"type": "string", "format": "date-time", "description": f"Only deliveries made {what} this moment."},
    )


def _which(code: str, name: str, description: str) -> Parameter:
    schema = {"type": "string", "format": "uuid", "description": description}
    return _parameter(identifier, code, f"{name} must be one UUID", schema)


class DeliveriesQuery(Paging):
    """Filters of the delivery log, which hold together."""

    status: Annotated[
        DeliveryStatus | None,
        _parameter(
            DeliveryStatus,
            "Webhook.InvalidStatus",
            "status must be one status of deliveries",
            {"type": "string", "enum": list(DeliveryStatus), "description": "Only deliveries in this status."},
        ),
    ] = None
    event_type: Annotated[
        EventType | None,
        _parameter(
            EventType,
            "Webhook.InvalidEventType",
            "eventType must be one of the service's event types",
            {"type": "string", "enum": list(EVENT_TYPES), "description": "Only deliveries of events of this type."},
        ),
    ] = None
    customer_id: Annotated[
        UUID | None, _which("Webhook.InvalidCustomerId", "customerId", "Only deliveries of this customer's events.")
    ] = None
    event_id: Annotated[UUID | None, _which("Webhook.InvalidEventId", "eventId", "Only deliveries of this event.")] = (
        None
    )
    error: Annotated[
        str | None,
        _parameter(
            one_of(*CLASSES),
            "Webhook.InvalidError",
            "error must be one class of failures",
            {
                "type": "string",
                "enum": list(CLASSES),
                "description": "Only deliveries of which an attempt failed like this; status: answered, not with 2xx.",
            },
        ),
    ] = None
    created_after: Annotated[datetime | None, _since("after")] = None
    created_before: Annotated[datetime | None, _since("before")] = None
    before: Annotated[
        UUID | None,
        _which(
            "Webhook.InvalidBefore",
            "before",
            "Only deliveries older than this one. With the last delivery of each answer for the next one, what is "
            "added meanwhile shifts nothing.",
        ),
    ] = None

    def filters(self) -> dict[str, Any]:
        """What `storage.webhooks.delivery_log.Wanted` knows by the same names."""
        return self.model_dump(exclude={"page", "count", "customer_id"})


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
EXAMPLE_EXTRACTED = EXAMPLE_EVENT | {
    "eventType": "job.extraction.completed",
    "jobType": "Extraction",
    "extractedCount": 312,
    "duplicateCount": 28,
}
EXAMPLE_FAILED = EXAMPLE_EVENT | {
    "eventType": "job.failed",
    "error": {"code": "Job.AllRowsRejected", "message": "No row could be kept."},
}
EXAMPLE_NOT_ENRICHED = EXAMPLE_FAILED | {"eventType": "job.enrichment.failed"}
EXAMPLE_NOT_EXTRACTED = EXAMPLE_FAILED | {
    "eventType": "job.extraction.failed",
    "jobType": "Extraction",
    "error": {"code": "Job.AllFilesRefused", "message": "No file could be read: see the job's warnings."},
}
EXAMPLE_TRIGGERED = {name: EXAMPLE_EVENT[name] for name in ("clientId", "customerId", "timestamp")} | {
    "eventType": "monitoring.rule.triggered",
    "eventId": "4b8e6d1c-2f3a-4c5d-9e7f-8a9b0c1d2e3f",
    "ruleset": {"id": "d2c4b6a8-1e3f-4a5b-8c7d-9e0f1a2b3c4d", "slug": "after-the-loan", "name": "After the loan"},
}


class Event(BaseModel):
    """What every payload carries. Receivers ignore fields they don't know; `eventId` tells repeats apart."""

    model_config = ConfigDict(alias_generator=to_camel, extra="allow")

    event_type: str
    event_id: UUID = Field(description="Unique for each event, and the same in every delivery of it.")
    client_id: UUID
    customer_id: UUID
    timestamp: datetime = Field(description="When it happened.")


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


class ExtractionCompletedEvent(JobEvent):
    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE_EXTRACTED]})

    event_type: Literal["job.extraction.completed"]
    extracted_count: int
    duplicate_count: int


class FailedEvent(JobEvent):
    error: NoteView | None


class JobFailedEvent(FailedEvent):
    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE_FAILED]})

    event_type: Literal["job.failed"]


class ExtractionFailedEvent(FailedEvent):
    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE_NOT_EXTRACTED]})

    event_type: Literal["job.extraction.failed"]


class EnrichmentFailedEvent(FailedEvent):
    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE_NOT_ENRICHED]})

    event_type: Literal["job.enrichment.failed"]


class TriggeredRuleset(BaseModel):
    id: UUID
    slug: str
    name: str


class RuleTriggeredEvent(Event):
    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE_TRIGGERED]})

    event_type: Literal["monitoring.rule.triggered"]
    ruleset: TriggeredRuleset


EVENTS: Mapping[EventType, type[Event]] = {
    EventType.JOB_COMPLETED: JobCompletedEvent,
    EventType.JOB_FAILED: JobFailedEvent,
    EventType.EXTRACTION_COMPLETED: ExtractionCompletedEvent,
    EventType.EXTRACTION_FAILED: ExtractionFailedEvent,
    EventType.ENRICHMENT_COMPLETED: EnrichmentCompletedEvent,
    EventType.ENRICHMENT_FAILED: EnrichmentFailedEvent,
    EventType.RULE_TRIGGERED: RuleTriggeredEvent,
}
