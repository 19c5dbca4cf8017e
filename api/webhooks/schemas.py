"""Webhook subscriptions and deliveries as they are sent and shown, and the payloads that receivers get."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import (
    AfterValidator,
    AliasPath,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    computed_field,
    field_validator,
)
from pydantic.alias_generators import to_camel

from api.core.schemas.common import Counts, NoteView, Paging, Received, View
from api.core.schemas.examples import show_example
from api.core.schemas.rules import OneOfMany, Parameter, Rule, identifier, moment, one_of, or_null, refusal, text, whole
from pipelines.vocabulary.errors import InvalidRequest
from pipelines.vocabulary.strict_json import Number
from pipelines.webhooks.addresses import MAX_URL_CHARACTERS, check_webhook_url
from pipelines.webhooks.events import EVENT_TYPES, EventType
from pipelines.webhooks.retries import LONGEST_STREAK, MAX_RETRIES
from storage.core.models import DeliveryStatus
from storage.webhooks.delivery_log import CLASSES, RESENT_AT_ONCE
from storage.webhooks.subscriptions import Patience

MAX_CUSTOMERS = 1_000
UNKNOWN_CUSTOMER = "Webhook.UnknownCustomer"
WRONG_COUNT = "Webhook.WrongCount"


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
    """The URL as it is stored, when webhooks may be sent there: `reach` in the context says so."""
    try:
        return check_webhook_url(url, (info.context or {})["reach"])
    except InvalidRequest as error:
        raise refusal(error.code, error.detail) from None


class SubscribedCustomers(Received):
    """The one part of a new subscription that is checked against what is stored."""

    customer_ids: Annotated[CustomerIdsGiven | None, BeforeValidator(_counted(0))] = None


class NewSubscription(Received):
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
    customer_ids: Annotated[CustomerIdsGiven | None, BeforeValidator(_counted(0))] = Field(
        default=None,
        json_schema_extra={"maxItems": MAX_CUSTOMERS},
        description="The client's own customers whose events are wanted; empty or left out for everybody's.",
    )
    max_retries: Retries = 0
    pause_after_failures: Failures = None

    @property
    def patience(self) -> Patience:
        return Patience(self.max_retries, self.pause_after_failures)


class ChangedSubscription(Received):
    max_retries: Retries = 0
    pause_after_failures: Failures = None

    def changes(self) -> dict[str, int | None]:
        """What was sent, by the names of `storage.webhooks.subscriptions.Patience`."""
        names = {"max_retries": "max_retries", "pause_after_failures": "pause_after"}
        return {names[field]: getattr(self, field) for field in self.model_fields_set}


A_MOMENT = "A moment is an ISO 8601 date-time with its offset."
RESENDABLE = (DeliveryStatus.FAILED, DeliveryStatus.RETRYING)


class Resending(Received):
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
    customer_ids: Annotated[CustomerIdsGiven, BeforeValidator(_counted(1))] = Field(
        json_schema_extra={"minItems": 1, "maxItems": MAX_CUSTOMERS}
    )


class SubscriptionView(View):
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
    secret: str = Field(description="The signing secret in Base64. It is shown this once.")


class RotatedSecretView(View):
    webhook_subscription_id: UUID
    secret: str = Field(description="The new signing secret in Base64. Nothing is signed with the old one any more.")


class SubscriptionListView(Counts):
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
    deliveries: list[DeliveryView]


class ResentView(View):
    resent: int = Field(description="Deliveries that are due once more.")
    more: bool = Field(description=f"There may be more: one request sends {RESENT_AT_ONCE:,} at most. Ask again.")


class PeriodView(View):
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


class Event(BaseModel):
    """What every payload carries. Receivers ignore fields they don't know; `eventId` tells repeats apart."""

    model_config = ConfigDict(alias_generator=to_camel, extra="allow", json_schema_extra=show_example)

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
    event_type: Literal["job.completed"]
    total_processed_transactions: int
    total_received_transactions: int


class EnrichmentCompletedEvent(JobEvent):
    event_type: Literal["job.enrichment.completed"]
    enriched_count: int
    duplicate_count: int


class ExtractionCompletedEvent(JobEvent):
    event_type: Literal["job.extraction.completed"]
    extracted_count: int
    duplicate_count: int


class FailedEvent(JobEvent):
    error: NoteView | None


class JobFailedEvent(FailedEvent):
    event_type: Literal["job.failed"]


class ExtractionFailedEvent(FailedEvent):
    event_type: Literal["job.extraction.failed"]


class EnrichmentFailedEvent(FailedEvent):
    event_type: Literal["job.enrichment.failed"]


class TriggeredRuleset(BaseModel):
    id: UUID
    slug: str
    name: str


class RuleTriggeredEvent(Event):
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
