"""Events as receivers get them: which happen at a job's end, their exact bytes, and the signature over those bytes.

A body is serialised once, when the event happens. The same bytes are stored, signed and sent, on a resend too: a
signature covers bytes, and serialising anew may change them.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final
from uuid import UUID, uuid5

import msgspec

SIGNATURE_HEADER: Final = "X-Service-Webhook-Signature"
SIGNATURE_SCHEME: Final = "sha256="
SECRET_BYTES: Final = 32


class EventType(StrEnum):
    JOB_COMPLETED = "job.completed"
    JOB_FAILED = "job.failed"
    EXTRACTION_COMPLETED = "job.extraction.completed"
    EXTRACTION_FAILED = "job.extraction.failed"
    ENRICHMENT_COMPLETED = "job.enrichment.completed"
    ENRICHMENT_FAILED = "job.enrichment.failed"
    RULE_TRIGGERED = "monitoring.rule.triggered"


EVENT_TYPES: Final = tuple(EventType)


@dataclass(frozen=True)
class JobOutcome:
    """How a job ended, as far as its events tell. The counts are rows; `error` is `{code, message}` or None."""

    client_id: UUID
    customer_id: UUID
    job_id: UUID
    abn: str
    job_type: str
    failed: bool
    received: int
    processed: int
    enriched: int
    duplicates: int
    error: Mapping[str, str] | None


@dataclass(frozen=True)
class Event:
    """One thing that happened, with the bytes that tell it."""

    event_id: UUID
    event_type: EventType
    body: bytes


def job_events(outcome: JobOutcome, timestamp: datetime) -> list[Event]:
    """What an enrichment job's end tells, in order: how its stage ended, then how the job did."""
    if outcome.failed:
        return [enrichment_failed(outcome, timestamp), job_failed(outcome, timestamp)]
    return [enrichment_completed(outcome, timestamp), job_completed(outcome, timestamp)]


def job_completed(outcome: JobOutcome, timestamp: datetime) -> Event:
    """For the statuses Completed and CompletedWithErrors."""
    counts = {
        "totalProcessedTransactions": outcome.processed,
        "totalReceivedTransactions": outcome.received,
    }
    return _event(EventType.JOB_COMPLETED, outcome, counts, timestamp)


def job_failed(outcome: JobOutcome, timestamp: datetime) -> Event:
    """For the status Failed."""
    return _event(EventType.JOB_FAILED, outcome, {"error": outcome.error}, timestamp)


def enrichment_completed(outcome: JobOutcome, timestamp: datetime) -> Event:
    """The enrichment stage accepted rows, be they new or duplicates."""
    counts = {"enrichedCount": outcome.enriched, "duplicateCount": outcome.duplicates}
    return _event(EventType.ENRICHMENT_COMPLETED, outcome, counts, timestamp)


def enrichment_failed(outcome: JobOutcome, timestamp: datetime) -> Event:
    """The enrichment stage accepted nothing."""
    return _event(EventType.ENRICHMENT_FAILED, outcome, {"error": outcome.error}, timestamp)


def _event(event_type: EventType, outcome: JobOutcome, extras: Mapping[str, object], timestamp: datetime) -> Event:
    event_id = _event_id(outcome.job_id, event_type)
    document = {
        "eventType": event_type,
        "eventId": event_id,
        "clientId": outcome.client_id,
        "customerId": outcome.customer_id,
        "timestamp": timestamp,
        "jobId": outcome.job_id,
        "abn": outcome.abn,
        "jobType": outcome.job_type,
        **extras,
    }
    return Event(event_id, event_type, msgspec.json.encode(document))


def _event_id(job_id: UUID, event_type: EventType) -> UUID:
    """A job tells each type once, so the two make the id: telling it again could not look like a second event."""
    return uuid5(job_id, event_type)


def sign(body: bytes, secret: bytes) -> str:
    """The signature header's value: `sha256=` and the lowercase hex HMAC-SHA256 of the exact body.

    Source: the contract, "Signature"; the same scheme as GitHub's X-Hub-Signature-256.
    """
    return SIGNATURE_SCHEME + hmac.new(secret, body, hashlib.sha256).hexdigest()


def verify(body: bytes, secret: bytes, signature: str) -> bool:
    """Whether `signature` is this body's, compared in constant time."""
    return hmac.compare_digest(sign(body, secret).encode(), signature.encode(errors="replace"))


def new_secret(random: bytes) -> str:
    """A signing secret as it is shown to the client: Base64 of 32 random bytes."""
    if len(random) != SECRET_BYTES:
        raise ValueError(f"a secret is made of {SECRET_BYTES} random bytes")
    return base64.b64encode(random).decode()


def key_of(secret: str) -> bytes:
    """The HMAC key of a secret's Base64 text.

    Raises:
        ValueError: not Base64.
    """
    try:
        return base64.b64decode(secret, validate=True)
    except binascii.Error as error:
        raise ValueError("the secret is not Base64") from error
