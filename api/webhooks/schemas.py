"""Webhook subscriptions and deliveries as they are sent and shown, and the payloads of events."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import (
    AfterValidator,
    AliasPath,
    BeforeValidator,
    Field,
    ValidationError,
    ValidationInfo,
    computed_field,
    field_validator,
)
from pydantic_core import InitErrorDetails

from api.core.schemas.common import Counts, Paging, Received, View
from api.core.schemas.rules import (
    MOMENT,
    ListItem,
    Rule,
    choice_parameter,
    count_between,
    identifier,
    identifier_parameter,
    moment,
    moment_parameter,
    number,
    number_rule,
    one_of,
    or_null,
    refusal,
    text,
)
from pipelines.vocabulary.errors import InvalidRequest
from pipelines.webhooks.addresses import MAX_URL_CHARACTERS, check_webhook_url
from pipelines.webhooks.events import EVENT_TYPES, EventType
from pipelines.webhooks.retries import LONGEST_STREAK, MAX_RETRIES
from storage.core.models import DeliveryStatus
from storage.customers import customers
from storage.webhooks.delivery_log import CLASSES, RESENT_AT_ONCE
from storage.webhooks.subscriptions import FailureHandling

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
        ListItem(),
    ]
]


def _customer_count(low: int) -> BeforeValidator:
    return count_between(low, MAX_CUSTOMERS, WRONG_COUNT, f"{low} to {MAX_CUSTOMERS:,} customerIds.")


Retries = Annotated[
    int,
    number_rule(
        "maxRetries",
        "Webhook.InvalidMaxRetries",
        0,
        MAX_RETRIES,
        "How often a failed delivery is retried: after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h, 24 h and 24 h.",
    ),
]
Failures = Annotated[
    int | None,
    Rule(
        or_null(number(1, LONGEST_STREAK)),
        "Webhook.InvalidPauseAfterFailures",
        f"pauseAfterFailures must be null or a whole number from 1 to {LONGEST_STREAK:,}.",
        {
            "type": ["integer", "null"],
            "minimum": 1,
            "maximum": LONGEST_STREAK,
            "description": "Number of failed attempts in a row that pauses the subscription; null for never.",
        },
    ),
]


def _allowed_url(url: str, info: ValidationInfo) -> str:
    """Return the URL to store, if the caller's service may send webhooks there."""
    assert info.context is not None
    try:
        return check_webhook_url(url, info.context["caller"].store.settings.webhook_reach)
    except InvalidRequest as error:
        raise refusal(error.code, error.detail) from None


def _allowed_customers(customer_ids: list[UUID] | None, info: ValidationInfo) -> list[UUID] | None:
    """Refuse customers of other clients, and report this together with all other faults of the body."""
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
    event_type: Annotated[
        EventType,
        Rule(
            EventType,
            "Webhook.InvalidEventType",
            f"eventType must be one of {', '.join(EVENT_TYPES)}.",
            {
                "type": "string",
                "enum": list(EVENT_TYPES),
                "description": "The one type of event that the subscription receives.",
            },
        ),
    ]
    webhook_url: Annotated[
        str,
        Rule(
            text(MAX_URL_CHARACTERS),
            "Webhook.UrlInvalid",
            f"webhookUrl must be text of 1 to {MAX_URL_CHARACTERS} characters.",
            {
                "type": "string",
                "format": "uri",
                "pattern": "^https://",
                "maxLength": MAX_URL_CHARACTERS,
                "description": "Receives each event as a POST request.",
            },
        ),
        AfterValidator(_allowed_url),
    ]
    customer_ids: Annotated[CustomerIdsGiven | None, _customer_count(0), AfterValidator(_allowed_customers)] = Field(
        default=None,
        json_schema_extra={"maxItems": MAX_CUSTOMERS},
        description="Customers whose events are sent. Default, also for an empty list: all customers of the client.",
    )
    max_retries: Retries = 0
    pause_after_failures: Failures = None

    @property
    def on_failure(self) -> FailureHandling:
        return FailureHandling(self.max_retries, self.pause_after_failures)


class ChangedSubscription(Received):
    max_retries: Retries = 0
    pause_after_failures: Failures = None

    def changes(self) -> dict[str, int | None]:
        """Return the given fields, by the names of `storage.webhooks.subscriptions.FailureHandling`."""
        names = {"max_retries": "max_retries", "pause_after_failures": "pause_after"}
        return {names[field]: getattr(self, field) for field in self.model_fields_set}


RESENDABLE = (DeliveryStatus.FAILED, DeliveryStatus.RETRYING)


class Resending(Received):
    since: Annotated[
        datetime,
        Rule(
            moment,
            "Webhook.InvalidSince",
            f"since must be {MOMENT}.",
            {"type": "string", "format": "date-time", "description": "Deliveries created at this moment or later."},
        ),
    ]
    until: Annotated[
        datetime | None,
        Rule(
            or_null(moment),
            "Webhook.InvalidUntil",
            f"until must be null or {MOMENT}.",
            {
                "type": ["string", "null"],
                "format": "date-time",
                "description": "Only deliveries created before this moment.",
            },
        ),
    ] = None
    customer_id: Annotated[
        UUID | None,
        Rule(
            or_null(identifier),
            UNKNOWN_CUSTOMER,
            "There is no customer with this id.",
            {"type": ["string", "null"], "format": "uuid", "description": "Only deliveries of this customer's events."},
        ),
    ] = None
    status: Annotated[
        DeliveryStatus,
        Rule(
            one_of(*RESENDABLE),
            "Webhook.InvalidResendStatus",
            "status must be failed or retrying.",
            {
                "type": "string",
                "enum": list(RESENDABLE),
                "description": "failed: after the last retry; retrying: without waiting for the next retry.",
            },
        ),
    ] = DeliveryStatus.FAILED


class ScopedCustomers(Received):
    customer_ids: Annotated[CustomerIdsGiven, _customer_count(1)] = Field(
        description="Customers to add to the subscription or to remove from it.",
        json_schema_extra={"minItems": 1, "maxItems": MAX_CUSTOMERS},
    )


class SubscriptionView(View):
    webhook_subscription_id: UUID = Field(validation_alias="subscription_id")
    event_type: str = Field(description="The one type of event that it receives.")
    webhook_url: str = Field(description="Receives each event as a POST request.")
    customer_ids: Sequence[UUID] = Field(description="Events of these customers only; empty: of all.")
    date_created: datetime = Field(validation_alias="created_at")
    max_retries: int = Field(description="How often a failed delivery is retried.")
    pause_after_failures: int | None = Field(
        validation_alias="pause_after", description="Number of failed attempts in a row that pauses it; null for never."
    )
    date_paused: datetime | None = Field(validation_alias="paused_at", description="Null while it is not paused.")
    paused_by: str | None = Field(description="failures, client or operator; null while it is not paused.")
    failure_streak: int = Field(description="Failed attempts since the last success, or since it was resumed.")
    date_last_delivered: datetime | None = Field(
        validation_alias="last_delivered_at", description="Null if nothing was delivered yet."
    )
    date_last_failed: datetime | None = Field(
        validation_alias="last_failed_at", description="Null if nothing failed yet."
    )

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
    secret: str = Field(description="The signing secret in Base64. It is not shown again.")


class RotatedSecretView(View):
    webhook_subscription_id: UUID
    secret: str = Field(description="The new signing secret in Base64. The old one is no longer used.")


class SubscriptionListView(Counts):
    subscriptions: list[SubscriptionView] = Field(description="In order of creation.")


class AttemptView(View):
    attempt_id: UUID
    date_started: datetime = Field(validation_alias="started_at")
    duration_ms: int = Field(description="Milliseconds from the start to the end of the attempt.")
    dns_ms: int | None = Field(
        description="Time of the DNS lookup. Like the next two, null if the step was not completed or not needed "
        "because the connection was reused."
    )
    connect_ms: int | None = Field(description="Milliseconds to connect.")
    tls_ms: int | None = Field(description="Milliseconds of the TLS handshake.")
    first_byte_ms: int | None = Field(description="Time from the request to the first byte of the response.")
    status_code: int | None = Field(description="Status of the receiver's response; null if there was none.")
    error: str | None = Field(description="Class of the failure: dns, connect, tls, timeout, refused, reset, …")
    response: str | None = Field(
        validation_alias="response_head", description="First 16 KiB of the receiver's response, as text."
    )

    @field_validator("response", mode="before")
    @classmethod
    def _as_text(cls, head: bytes | None) -> str | None:
        return None if head is None else head.decode(errors="replace").replace("\0", "\ufffd")


class DeliveryView(View):
    delivery_id: UUID
    event_id: UUID = Field(description="The same in all deliveries of the event.")
    event_type: str = Field(description="As in the subscription.")
    webhook_subscription_id: UUID = Field(validation_alias="subscription_id")
    status: DeliveryStatus = Field(
        description="due, sending, delivered, retrying, failed, or cancelled with its subscription."
    )
    date_created: datetime = Field(validation_alias="created_at", description="When the event happened.")
    date_of_retry: datetime | None = Field(
        validation_alias="retry_at", description="When retrying: time of the next attempt."
    )
    is_test: bool = Field(description="Whether a test of the subscription sent it.")
    attempts: Sequence[AttemptView] = Field(description="Oldest first; empty until the first one.")


class DeliveryListView(Counts):
    deliveries: list[DeliveryView] = Field(description="Newest first.")


class ResentView(View):
    resent: int = Field(description="Deliveries that are due again.")
    more: bool = Field(description=f"Whether to repeat the request: each resends at most {RESENT_AT_ONCE:,}.")


class PeriodView(View):
    period: Literal["24h", "7d"] = Field(description="The last 24 hours, or the last 7 days.")
    since: datetime = Field(description="Start of the period, which ends now.")
    attempts: int = Field(description="Attempts that started in the period.")
    delivered: int = Field(description="Attempts that succeeded.")
    failed: int = Field(description="Attempts that failed.")
    by_error: Mapping[str, int] = Field(description="Failed attempts by class. status: the response was not 2xx.")
    by_status_code: Mapping[str, int] = Field(description="Failed attempts that had a response, by its status.")
    duration_p50_ms: int | None = Field(description="Median duration; null without attempts.")
    duration_p95_ms: int | None = Field(description="95th percentile of durations; null without attempts.")

    @field_validator("by_status_code", mode="before")
    @classmethod
    def _status_codes_as_text(cls, counts: Mapping[int, int]) -> dict[str, int]:
        return {str(code): count for code, count in counts.items()}


class SummaryView(View):
    """Summary of a subscription's deliveries, without tests."""

    webhook_subscription_id: UUID = Field(validation_alias=AliasPath("subscription", "subscription_id"))
    date_paused: datetime | None = Field(validation_alias=AliasPath("subscription", "paused_at"), exclude=True)
    failure_streak: int = Field(
        validation_alias=AliasPath("subscription", "failure_streak"),
        description="Failed attempts since the last success, or since it was resumed.",
    )
    date_last_delivered: datetime | None = Field(
        validation_alias=AliasPath("subscription", "last_delivered_at"),
        description="Null if nothing was delivered yet.",
    )
    date_last_failed: datetime | None = Field(
        validation_alias=AliasPath("subscription", "last_failed_at"), description="Null if nothing failed yet."
    )
    waiting: int = Field(description="Due or being sent.")
    retrying: int = Field(description="Failed, and waiting for the next attempt.")
    date_oldest_waiting: datetime | None = Field(
        validation_alias="oldest_waiting_at", description="When the oldest waiting delivery became due."
    )
    periods: Sequence[PeriodView] = Field(description="The last 24 hours, then the last 7 days.")

    @computed_field
    @property
    def is_paused(self) -> bool:
        """Whether deliveries wait until the subscription is resumed."""
        return self.date_paused is not None


class DeliveriesQuery(Paging):
    """Filters of the delivery log, which all apply."""

    status: Annotated[
        DeliveryStatus | None,
        choice_parameter("status", "Webhook.InvalidStatus", DeliveryStatus, "Only deliveries in this status."),
    ] = None
    event_type: Annotated[
        EventType | None,
        choice_parameter("eventType", "Webhook.InvalidEventType", EventType, "Only deliveries of this type of event."),
    ] = None
    customer_id: Annotated[
        UUID | None,
        identifier_parameter("customerId", "Webhook.InvalidCustomerId", "Only deliveries of this customer's events."),
    ] = None
    event_id: Annotated[
        UUID | None, identifier_parameter("eventId", "Webhook.InvalidEventId", "Only deliveries of this event.")
    ] = None
    error: Annotated[
        str | None,
        choice_parameter(
            "error",
            "Webhook.InvalidError",
            CLASSES,
            "Only deliveries with an attempt that failed in this way. status: the response was not 2xx.",
        ),
    ] = None
    created_after: Annotated[
        datetime | None,
        moment_parameter("createdAfter", "Webhook.InvalidDate", "Only deliveries created after this moment."),
    ] = None
    created_before: Annotated[
        datetime | None,
        moment_parameter("createdBefore", "Webhook.InvalidDate", "Only deliveries created before this moment."),
    ] = None
    before: Annotated[
        UUID | None,
        identifier_parameter(
            "before",
            "Webhook.InvalidBefore",
            "Only deliveries older than this one. Give the last delivery of each response to get the next ones, "
            "however many are added meanwhile.",
        ),
    ] = None

    def filters(self) -> dict[str, Any]:
        """Return the filters of `storage.webhooks.delivery_log.Filter`."""
        return self.model_dump(exclude={"page", "count", "customer_id"})
