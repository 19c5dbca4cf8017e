import base64
import hashlib
import hmac
import json
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines import webhooks
from pipelines.webhooks import EVENT_TYPES, Event, JobOutcome, job_events, key_of, new_secret, sign, verify

ENDED_AT = datetime(2026, 11, 20, 3, 0, 0, 123000, tzinfo=UTC)
OUTCOME = JobOutcome(
    client_id=UUID("0b51c1a4-4a52-4f6e-9b8e-6a3f1e6f8a01"),
    customer_id=UUID("c1a9d0e2-94f2-4b0b-8f8b-0a2f3a9f5d77"),
    job_id=UUID("3d3a1f5e-6c0a-4d5c-9f46-5f6f0d9e2b10"),
    abn="51824753556",
    job_type="Enrichment",
    failed=False,
    received=12,
    processed=10,
    enriched=7,
    duplicates=3,
    error=None,
)
FAILED = replace(OUTCOME, failed=True, error={"code": "Submission.AllRejected", "message": "Zeile für Zeile \u2028 🙂"})


def test_the_event_types_are_the_contracts() -> None:
    assert list(EVENT_TYPES) == [
        "job.completed",
        "job.failed",
        "job.extraction.completed",
        "job.extraction.failed",
        "job.enrichment.completed",
        "job.enrichment.failed",
        "monitoring.rule.triggered",
    ]


def test_a_completed_job_tells_how_its_stage_and_how_it_ended() -> None:
    stage, job = (json.loads(event.body) for event in job_events(OUTCOME, ENDED_AT))
    shared = {
        "clientId": "0b51c1a4-4a52-4f6e-9b8e-6a3f1e6f8a01",
        "customerId": "c1a9d0e2-94f2-4b0b-8f8b-0a2f3a9f5d77",
        "timestamp": "2026-11-20T03:00:00.123000Z",
        "jobId": "3d3a1f5e-6c0a-4d5c-9f46-5f6f0d9e2b10",
        "abn": "51824753556",
        "jobType": "Enrichment",
    }
    assert stage == shared | {
        "eventType": "job.enrichment.completed",
        "eventId": stage["eventId"],
        "enrichedCount": 7,
        "duplicateCount": 3,
    }
    assert job == shared | {
        "eventType": "job.completed",
        "eventId": job["eventId"],
        "totalProcessedTransactions": 10,
        "totalReceivedTransactions": 12,
    }


def test_a_failed_job_tells_its_error() -> None:
    told = [json.loads(event.body) for event in job_events(FAILED, ENDED_AT)]
    assert [event["eventType"] for event in told] == ["job.enrichment.failed", "job.failed"]
    assert [event["error"] for event in told] == [FAILED.error, FAILED.error]


def test_an_error_may_be_null() -> None:
    assert json.loads(webhooks.job_failed(replace(FAILED, error=None), ENDED_AT).body)["error"] is None


def ids(outcome: JobOutcome) -> list[UUID]:
    return [event.event_id for event in job_events(outcome, ENDED_AT)]


def test_an_event_has_an_id_of_its_own_that_stays_when_it_is_told_again() -> None:
    other_job = replace(OUTCOME, job_id=UUID(int=1))
    assert len({*ids(OUTCOME), *ids(other_job)}) == 4
    assert ids(OUTCOME) == ids(replace(OUTCOME, enriched=0))


def test_the_body_bears_the_events_own_id_and_type() -> None:
    event: Event = webhooks.job_completed(OUTCOME, ENDED_AT)
    body = json.loads(event.body)
    assert (body["eventId"], body["eventType"]) == (str(event.event_id), event.event_type)


def test_the_signature_that_github_documents() -> None:
    signature = sign(b"Hello, World!", b"It's a Secret to Everybody")
    assert signature == "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"


@given(body=st.binary(), secret=st.binary(min_size=32, max_size=32))
def test_a_signature_is_the_hmac_of_the_exact_bytes(body: bytes, secret: bytes) -> None:
    signature = sign(body, secret)
    assert signature == "sha256=" + hmac.digest(secret, body, "sha256").hex()
    assert verify(body, secret, signature)
    assert not verify(body + b" ", secret, signature)


@pytest.mark.parametrize("signature", ["", "sha256=", "sha1=00", "SHA256=" + "0" * 64, "sha256=é", "\ud800"])
def test_anything_else_is_no_signature(signature: str) -> None:
    assert not verify(b"{}", b"secret", signature)


def test_the_key_is_the_decoded_secret_and_not_its_text() -> None:
    secret = new_secret(bytes(range(32)))
    assert key_of(secret) == bytes(range(32))
    assert not verify(b"{}", secret.encode(), sign(b"{}", key_of(secret)))


def test_a_secret_is_base64_of_32_bytes() -> None:
    assert base64.b64decode(new_secret(hashlib.sha256(b"random").digest())) == hashlib.sha256(b"random").digest()
    with pytest.raises(ValueError, match="32"):
        new_secret(b"short")
    with pytest.raises(ValueError, match="Base64"):
        key_of("not base64!")
