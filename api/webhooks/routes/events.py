"""Events for receivers, as the `webhooks` section of the OpenAPI document. These functions are never called."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Header

from api.webhooks.schemas import (
    EnrichmentCompletedEvent,
    EnrichmentFailedEvent,
    ExtractionCompletedEvent,
    ExtractionFailedEvent,
    JobCompletedEvent,
    JobFailedEvent,
    RuleTriggeredEvent,
)
from pipelines.webhooks.events import SIGNATURE_HEADER


def standard_headers(
    webhook_id: Annotated[UUID, Header(description="The `eventId`, the same whenever the event is sent again.")],
    webhook_timestamp: Annotated[int, Header(description="When this attempt was made, in Unix seconds.")],
    webhook_signature: Annotated[
        str,
        Header(
            description="`v1,` and the Base64 HMAC-SHA256 of id, timestamp and body, joined by full stops, with the "
            "same key, as in Standard Webhooks 1.0.0. Refuse what is more than five minutes old."
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


@router.post("job.completed", response_model=None)
def job_completed(signature: Signature, event: JobCompletedEvent) -> None:
    """Report that a job ended as Completed or CompletedWithErrors."""


@router.post("job.failed", response_model=None)
def job_failed(signature: Signature, event: JobFailedEvent) -> None:
    """Report that a job ended as Failed."""


@router.post("job.extraction.completed", response_model=None)
def job_extraction_completed(signature: Signature, event: ExtractionCompletedEvent) -> None:
    """Report that a job's PDF statements were read.

    `duplicateCount` counts rows that another statement of the job contains already.
    """


@router.post("job.extraction.failed", response_model=None)
def job_extraction_failed(signature: Signature, event: ExtractionFailedEvent) -> None:
    """Report that none of a job's PDF files could be read."""


@router.post("job.enrichment.completed", response_model=None)
def job_enrichment_completed(signature: Signature, event: EnrichmentCompletedEvent) -> None:
    """Report that a job's enrichment ended."""


@router.post("job.enrichment.failed", response_model=None)
def job_enrichment_failed(signature: Signature, event: EnrichmentFailedEvent) -> None:
    """Report that a job's enrichment failed, and nothing was stored."""


@router.post("monitoring.rule.triggered", response_model=None)
def monitoring_rule_triggered(signature: Signature, event: RuleTriggeredEvent) -> None:
    """Report that rules of a ruleset fired for a customer; `GET /v1/monitoring/matches/{eventId}` explains them."""
