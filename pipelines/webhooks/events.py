"""Webhook events: which events are sent when a job ends, their exact bytes, and the signatures over these bytes.

A body is serialised once, when the event happens. The same bytes are stored, signed, sent and sent again: a signature
covers bytes, and serialising again may change them.
"""

import base64
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
STANDARD_ID: Final = "webhook-id"
STANDARD_TIMESTAMP: Final = "webhook-timestamp"
STANDARD_SIGNATURE: Final = "webhook-signature"
STANDARD_SCHEME: Final = "v1,"
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
    """How a job or its first stage ended, for its events. Counts are rows; `error` is `{code, message}` or None."""

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
    extracting: bool = False  # the job ended before anything was extracted


@dataclass(frozen=True)
class Event:
    """An event and the bytes of its body."""

    event_id: UUID
    event_type: EventType
    body: bytes


def job_events(outcome: JobOutcome, timestamp: datetime) -> list[Event]:
    """Return the events at a submission's end: how its last stage ended, then how the job ended.

    A stage that was never reached has no event.
    """
    if outcome.failed:
        stage_failed = extraction_failed if outcome.extracting else enrichment_failed
        return [stage_failed(outcome, timestamp), job_failed(outcome, timestamp)]
    return [enrichment_completed(outcome, timestamp), job_completed(outcome, timestamp)]


def job_completed(outcome: JobOutcome, timestamp: datetime) -> Event:
    """Build the event for the statuses Completed and CompletedWithErrors."""
    counts = {
        "totalProcessedTransactions": outcome.processed,
        "totalReceivedTransactions": outcome.received,
    }
    return _event(EventType.JOB_COMPLETED, outcome, counts, timestamp)


def job_failed(outcome: JobOutcome, timestamp: datetime) -> Event:
    """Build the event for the status Failed."""
    return _event(EventType.JOB_FAILED, outcome, {"error": outcome.error}, timestamp)


def extraction_completed(outcome: JobOutcome, timestamp: datetime) -> Event:
    """Build the event for rows that were read from PDFs and will be enriched.

    Duplicates, which another statement of the same submission already contains, are not enriched.
    """
    counts = {"extractedCount": outcome.received, "duplicateCount": outcome.duplicates}
    return _event(EventType.EXTRACTION_COMPLETED, outcome, counts, timestamp)


def extraction_failed(outcome: JobOutcome, timestamp: datetime) -> Event:
    """Build the event for a submission without a readable file."""
    return _event(EventType.EXTRACTION_FAILED, outcome, {"error": outcome.error}, timestamp)


def enrichment_completed(outcome: JobOutcome, timestamp: datetime) -> Event:
    """Build the event for an enrichment stage that accepted rows, new ones or duplicates."""
    counts = {"enrichedCount": outcome.enriched, "duplicateCount": outcome.duplicates}
    return _event(EventType.ENRICHMENT_COMPLETED, outcome, counts, timestamp)


def enrichment_failed(outcome: JobOutcome, timestamp: datetime) -> Event:
    """Build the event for an enrichment stage that accepted no rows."""
    return _event(EventType.ENRICHMENT_FAILED, outcome, {"error": outcome.error}, timestamp)


def rule_triggered(
    client_id: UUID,
    customer_id: UUID,
    ruleset_id: UUID,
    slug: str,
    name: str,
    event_id: UUID,
    timestamp: datetime,
) -> Event:
    """Build the event for rules of a ruleset that triggered for a customer. Its id is also the match's id."""
    document = {
        "eventType": EventType.RULE_TRIGGERED,
        "eventId": event_id,
        "clientId": client_id,
        "customerId": customer_id,
        "timestamp": timestamp,
        "ruleset": {"id": ruleset_id, "slug": slug, "name": name},
    }
    return Event(event_id, EventType.RULE_TRIGGERED, msgspec.json.encode(document))


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
    """Derive the id from job and type. A job has each type at most once, so reporting it again gives the same event."""
    return uuid5(job_id, event_type)


def sign(body: bytes, secret: bytes) -> str:
    """Return the signature header's value: `sha256=` and the lowercase hex HMAC-SHA256 of the exact body.

    Source: the contract, "Signature"; the same scheme as GitHub's X-Hub-Signature-256.
    """
    return SIGNATURE_SCHEME + hmac.new(secret, body, hashlib.sha256).hexdigest()


def sign_standard(event_id: str, timestamp: str, body: bytes, secret: bytes) -> str:
    """Return the value of `webhook-signature`: `v1,` and the Base64 HMAC-SHA256 of id, timestamp and body.

    The timestamp is in Unix seconds.

    Source: Standard Webhooks 1.0.0, "Signature scheme".
    """
    signed = b".".join((event_id.encode(), timestamp.encode(), body))
    return STANDARD_SCHEME + base64.b64encode(hmac.digest(secret, signed, hashlib.sha256)).decode()


def sign_attempt(event_id: UUID, body: bytes, secret: bytes, now: datetime) -> dict[str, str]:
    """Return the headers that sign one attempt.

    The contract's header covers the body. The others also cover the event's id and the time of the attempt, so that a
    receiver can refuse a replayed request.
    """
    timestamp = str(int(now.timestamp()))
    return {
        SIGNATURE_HEADER: sign(body, secret),
        STANDARD_ID: str(event_id),
        STANDARD_TIMESTAMP: timestamp,
        STANDARD_SIGNATURE: sign_standard(str(event_id), timestamp, body, secret),
    }


def verify_standard(headers: Mapping[str, str], body: bytes, secret: bytes) -> bool:
    """Return whether one of the signatures in `webhook-signature` is valid. Names in `headers` are in lower case."""
    event_id, timestamp = (_read_header(headers, name) for name in (STANDARD_ID, STANDARD_TIMESTAMP))
    right = sign_standard(event_id, timestamp, body, secret).encode()
    given = _read_header(headers, STANDARD_SIGNATURE).split(" ")
    return any(hmac.compare_digest(right, each.encode()) for each in given)


def _read_header(headers: Mapping[str, str], name: str) -> str:
    """Return a header, empty if it is missing. Non-ASCII characters become `?`, which no signature contains."""
    return headers.get(name, "").encode("ascii", errors="replace").decode()


def verify(body: bytes, secret: bytes, signature: str) -> bool:
    """Return whether `signature` is this body's, compared in constant time."""
    return hmac.compare_digest(sign(body, secret).encode(), signature.encode(errors="replace"))


def new_secret(random: bytes) -> str:
    """Return a signing secret as shown to the client: Base64 of 32 random bytes."""
    if len(random) != SECRET_BYTES:
        raise ValueError(f"a secret needs {SECRET_BYTES} random bytes")
    return base64.b64encode(random).decode()


def decode_secret(secret: str) -> bytes:
    """Decode a secret's Base64 text to the HMAC key.

    Raises:
        ValueError: not Base64.
    """
    try:
        return base64.b64decode(secret, validate=True)
    except ValueError as error:
        raise ValueError("the secret is not Base64") from error
