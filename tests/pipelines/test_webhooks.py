"""Which events a job reports, their bodies, and the two signatures of a delivery."""

import base64
import hashlib
import hmac
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.webhooks import events as webhooks
from pipelines.webhooks.events import (
    Event,
    JobOutcome,
    decode_secret,
    job_events,
    new_secret,
    rule_triggered,
    sign,
    sign_attempt,
    sign_standard,
    verify,
    verify_standard,
)

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


def test_completed_job_reports_its_stage_and_itself() -> None:
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


def test_failed_job_reports_its_error() -> None:
    described = [json.loads(event.body) for event in job_events(FAILED, ENDED_AT)]
    assert [event["eventType"] for event in described] == ["job.enrichment.failed", "job.failed"]
    assert [event["error"] for event in described] == [FAILED.error, FAILED.error]


def test_job_with_failed_extraction_reports_nothing_about_enrichment() -> None:
    described = [json.loads(event.body) for event in job_events(replace(FAILED, extracting=True), ENDED_AT)]
    assert [event["eventType"] for event in described] == ["job.extraction.failed", "job.failed"]


def test_extracted_rows_are_reported_with_their_duplicates() -> None:
    described = json.loads(webhooks.extraction_completed(OUTCOME, ENDED_AT).body)
    assert described["eventType"] == "job.extraction.completed"
    assert (described["extractedCount"], described["duplicateCount"]) == (12, 3)


def test_an_error_may_be_null() -> None:
    assert json.loads(webhooks.job_failed(replace(FAILED, error=None), ENDED_AT).body)["error"] is None


def ids(outcome: JobOutcome) -> list[UUID]:
    return [event.event_id for event in job_events(outcome, ENDED_AT)]


def test_event_has_its_own_id_that_stays_when_it_is_reported_again() -> None:
    other_job = replace(OUTCOME, job_id=UUID(int=1))
    assert len({*ids(OUTCOME), *ids(other_job)}) == 4
    assert ids(OUTCOME) == ids(replace(OUTCOME, enriched=0))


def test_body_contains_the_events_id_and_type() -> None:
    event: Event = webhooks.job_completed(OUTCOME, ENDED_AT)
    body = json.loads(event.body)
    assert (body["eventId"], body["eventType"]) == (str(event.event_id), event.event_type)


def test_signature_of_githubs_documented_example() -> None:
    signature = sign(b"Hello, World!", b"It's a Secret to Everybody")
    assert signature == "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"


@given(body=st.binary(), secret=st.binary(min_size=32, max_size=32))
def test_a_signature_is_the_hmac_of_the_exact_bytes(body: bytes, secret: bytes) -> None:
    signature = sign(body, secret)
    assert signature == "sha256=" + hmac.digest(secret, body, "sha256").hex()
    assert verify(body, secret, signature)
    assert not verify(body + b" ", secret, signature)


def test_signature_of_the_standard_webhooks_test_vector() -> None:
    key = decode_secret("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    signature = sign_standard("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", b'{"test": 2432232314}', key)
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


EVENT_ID = UUID("2b8f9f6e-0d3c-5b1a-8f57-1d1f4f3a6c55")


def test_attempt_is_signed_by_the_contract_and_by_standard_webhooks() -> None:
    headers = sign_attempt(EVENT_ID, b"{}", b"secret", ENDED_AT)
    assert headers == {
        "X-Service-Webhook-Signature": sign(b"{}", b"secret"),
        "webhook-id": "2b8f9f6e-0d3c-5b1a-8f57-1d1f4f3a6c55",
        "webhook-timestamp": "1795143600",
        "webhook-signature": sign_standard(str(EVENT_ID), "1795143600", b"{}", b"secret"),
    }
    assert int(headers["webhook-timestamp"]) == int(ENDED_AT.timestamp())


def test_later_attempt_differs_only_in_its_time() -> None:
    first, second = (sign_attempt(EVENT_ID, b"{}", b"key", ENDED_AT + timedelta(hours=h)) for h in (0, 2))
    assert {name for name in first if first[name] != second[name]} == {"webhook-timestamp", "webhook-signature"}


@given(body=st.binary(), secret=st.binary(min_size=32, max_size=32))
def test_the_standard_signature_covers_id_time_and_body(body: bytes, secret: bytes) -> None:
    headers = sign_attempt(EVENT_ID, body, secret, ENDED_AT)
    assert verify_standard(headers, body, secret)
    assert verify_standard(
        headers | {"webhook-signature": "v1,other v1a,x " + headers["webhook-signature"]}, body, secret
    )
    assert not verify_standard(headers, body + b" ", secret)
    assert not verify_standard(headers, body, secret + b"\0\1")
    assert not verify_standard(headers | {"webhook-id": str(UUID(int=1))}, body, secret)
    assert not verify_standard(headers | {"webhook-timestamp": "1795143601"}, body, secret)


@pytest.mark.parametrize("value", ["", "v1,", "v1", "é", "\ud800", "v2,AAAA"])
def test_missing_or_garbled_standard_signature_is_invalid(value: str) -> None:
    good = sign_attempt(EVENT_ID, b"{}", b"secret", ENDED_AT)
    for name in ("webhook-id", "webhook-timestamp", "webhook-signature"):
        assert not verify_standard(good | {name: value}, b"{}", b"secret")
        assert not verify_standard({each: good[each] for each in good if each != name}, b"{}", b"secret")


@pytest.mark.parametrize("signature", ["", "sha256=", "sha1=00", "SHA256=" + "0" * 64, "sha256=é", "\ud800"])
def test_any_other_signature_is_invalid(signature: str) -> None:
    assert not verify(b"{}", b"secret", signature)


def test_key_is_the_decoded_secret() -> None:
    secret = new_secret(bytes(range(32)))
    assert decode_secret(secret) == bytes(range(32))
    assert not verify(b"{}", secret.encode(), sign(b"{}", decode_secret(secret)))


def test_a_secret_is_base64_of_32_bytes() -> None:
    assert base64.b64decode(new_secret(hashlib.sha256(b"random").digest())) == hashlib.sha256(b"random").digest()
    with pytest.raises(ValueError, match="32"):
        new_secret(b"short")
    with pytest.raises(ValueError, match="Base64"):
        decode_secret("not base64!")


def test_rule_event_has_envelope_and_ruleset_and_no_job() -> None:
    ruleset_id = UUID("7c0e7c1d-2b1f-4e57-a1f4-0f6c1f1f2a01")
    match_id = UUID("5e7b4ef2-8f0f-4a53-9d4e-2d8a6a3a1c02")
    described = rule_triggered(
        OUTCOME.client_id,
        OUTCOME.customer_id,
        ruleset_id,
        "early-warning",
        "Frühwarnung",
        event_id=match_id,
        timestamp=ENDED_AT,
    )
    assert (described.event_id, described.event_type) == (match_id, "monitoring.rule.triggered")
    assert json.loads(described.body) == {
        "eventType": "monitoring.rule.triggered",
        "eventId": str(match_id),
        "clientId": str(OUTCOME.client_id),
        "customerId": str(OUTCOME.customer_id),
        "timestamp": "2026-11-20T03:00:00.123000Z",
        "ruleset": {"id": str(ruleset_id), "slug": "early-warning", "name": "Frühwarnung"},
    }
