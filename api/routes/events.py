"""What receivers get: the `webhooks` section of the OpenAPI document. Nothing here is ever called."""

from typing import Annotated

from fastapi import APIRouter, Header

from api.schemas.webhooks import EnrichmentCompletedEvent, FailedEvent, JobCompletedEvent
from pipelines.webhooks import SIGNATURE_HEADER

router = APIRouter(tags=["Events"])
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
    """A job ended as Completed or CompletedWithErrors."""


@router.post("job.failed", response_model=None)
def job_failed(signature: Signature, event: FailedEvent) -> None:
    """A job ended as Failed."""


@router.post("job.enrichment.completed", response_model=None)
def job_enrichment_completed(signature: Signature, event: EnrichmentCompletedEvent) -> None:
    """A job's enrichment ended."""


@router.post("job.enrichment.failed", response_model=None)
def job_enrichment_failed(signature: Signature, event: FailedEvent) -> None:
    """A job's enrichment could keep nothing."""
