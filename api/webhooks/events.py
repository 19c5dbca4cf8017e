"""What webhook receivers get: the payload of each type of event, and the `webhooks` section of the OpenAPI document.

Each type is declared once: its payload, and a route that nothing ever calls, whose docstring says when the event
happens. Everything else about types (JSON Schemas, samples, pages) follows from `EVENTS` and `DESCRIPTIONS`.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Depends, Header
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from api.core.schemas.common import NoteView
from api.core.schemas.examples import show_example
from pipelines.webhooks.events import SIGNATURE_HEADER, EventType


def standard_headers(
    webhook_id: Annotated[UUID, Header(description="The `eventId`, the same whenever the event is sent again.")],
    webhook_timestamp: Annotated[int, Header(description="When this attempt was made, in Unix seconds.")],
    webhook_signature: Annotated[
        str,
        Header(
            description="`v1,` followed by the Base64 HMAC-SHA256 of id, timestamp and body, which are joined by full "
            "stops, as in Standard Webhooks 1.0.0. The key is the subscription's secret, decoded from Base64. Refuse "
            "deliveries older than five minutes."
        ),
    ],
) -> None:
    """Declare the headers of the standard signature, which also covers the time of the attempt."""


router = APIRouter(tags=["Events"], dependencies=[Depends(standard_headers)])
Signature = Annotated[
    str,
    Header(
        alias=SIGNATURE_HEADER,
        description="`sha256=` and the lowercase hex HMAC-SHA256 of the exact body, keyed by the subscription's secret "
        "decoded from Base64. Compare in constant time.",
    ),
]


class Event(BaseModel):
    """The fields of every payload. Receivers ignore unknown fields and recognise repeats by `eventId`."""

    model_config = ConfigDict(alias_generator=to_camel, extra="allow", json_schema_extra=show_example)

    event_type: str = Field(description="What happened.")
    event_id: UUID = Field(description="Unique for each event, and the same in all its deliveries.")
    client_id: UUID = Field(description="The client whose subscription this is.")
    customer_id: UUID = Field(description="The customer that the event is about.")
    timestamp: datetime = Field(description="When it happened.")


class JobEvent(Event):
    job_id: UUID = Field(description="The submission, as its response named it.")
    abn: str = Field(description="The customer's ABN.")
    job_type: str = Field(description="The job's `flow`.")


class JobCompletedEvent(JobEvent):
    event_type: Literal["job.completed"]
    total_processed_transactions: int = Field(description="Rows that were enriched or are duplicates.")
    total_received_transactions: int = Field(description="Processed and rejected rows.")


@router.post("job.completed", response_model=None)
def job_completed(signature: Signature, event: JobCompletedEvent) -> None:
    """Report that a job ended as Completed or CompletedWithErrors."""


class FailedEvent(JobEvent):
    error: NoteView | None = Field(description="Why it failed.")


class JobFailedEvent(FailedEvent):
    event_type: Literal["job.failed"]


@router.post("job.failed", response_model=None)
def job_failed(signature: Signature, event: JobFailedEvent) -> None:
    """Report that a job ended as Failed."""


class ExtractionCompletedEvent(JobEvent):
    event_type: Literal["job.extraction.completed"]
    extracted_count: int = Field(description="Rows that were read and will be enriched.")
    duplicate_count: int = Field(description="Rows left out, because another statement of the job contains them.")


@router.post("job.extraction.completed", response_model=None)
def job_extraction_completed(signature: Signature, event: ExtractionCompletedEvent) -> None:
    """Report that a job's PDF statements were read."""


class ExtractionFailedEvent(FailedEvent):
    event_type: Literal["job.extraction.failed"]


@router.post("job.extraction.failed", response_model=None)
def job_extraction_failed(signature: Signature, event: ExtractionFailedEvent) -> None:
    """Report that none of a job's PDF files could be read."""


class EnrichmentCompletedEvent(JobEvent):
    event_type: Literal["job.enrichment.completed"]
    enriched_count: int = Field(description="New or revised rows.")
    duplicate_count: int = Field(description="Rows that were stored already, and are not counted twice.")


@router.post("job.enrichment.completed", response_model=None)
def job_enrichment_completed(signature: Signature, event: EnrichmentCompletedEvent) -> None:
    """Report that a job's enrichment ended."""


class EnrichmentFailedEvent(FailedEvent):
    event_type: Literal["job.enrichment.failed"]


@router.post("job.enrichment.failed", response_model=None)
def job_enrichment_failed(signature: Signature, event: EnrichmentFailedEvent) -> None:
    """Report that a job's enrichment failed, so that nothing was stored."""


class TriggeredRuleset(BaseModel):
    id: UUID = Field(description="Id of the ruleset.")
    slug: str = Field(description="The name by which routes address it.")
    name: str = Field(description="The name that people read.")


class RuleTriggeredEvent(Event):
    event_type: Literal["monitoring.rule.triggered"]
    ruleset: TriggeredRuleset = Field(description="The ruleset, with `id`, `slug` and `name`.")


@router.post("monitoring.rule.triggered", response_model=None)
def monitoring_rule_triggered(signature: Signature, event: RuleTriggeredEvent) -> None:
    """Report that rules of a ruleset fired for a customer; `GET /v1/monitoring/matches/{eventId}` explains them."""


def _payload(route: APIRoute) -> type[Event]:
    """Return the model of the route's body."""
    [body] = route.dependant.body_params
    payload = body.field_info.annotation
    assert isinstance(payload, type)
    assert issubclass(payload, Event)
    return payload


ROUTES = {EventType(route.path): route for route in router.routes if isinstance(route, APIRoute)}
EVENTS: Mapping[EventType, type[Event]] = {event_type: _payload(route) for event_type, route in ROUTES.items()}
DESCRIPTIONS: Mapping[EventType, str] = {event_type: route.description for event_type, route in ROUTES.items()}
