"""Sent events, their documentation and the contract agree for every type of event."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import jsonschema_rs
import pytest
from typer.testing import CliRunner

from api.cli import app
from api.webhooks import event_schemas
from pipelines.webhooks import events as webhooks
from pipelines.webhooks.events import EVENT_TYPES, Event, EventType, JobOutcome
from tests.api.core.operations import document
from tests.root import ROOT

parametrize = pytest.mark.parametrize
FOLDER = ROOT / "docs" / "reference" / "events"
NOW = datetime(2026, 11, 20, 3, 0, 0, 123000, tzinfo=UTC)
ENVELOPE = {"eventType", "eventId", "clientId", "customerId", "timestamp"}
OF_JOBS = ENVELOPE | {"jobId", "abn", "jobType"}
CONTRACT: Mapping[str, set[str]] = {
    "job.completed": OF_JOBS | {"totalProcessedTransactions", "totalReceivedTransactions"},
    "job.failed": OF_JOBS | {"error"},
    "job.extraction.completed": OF_JOBS | {"extractedCount", "duplicateCount"},
    "job.extraction.failed": OF_JOBS | {"error"},
    "job.enrichment.completed": OF_JOBS | {"enrichedCount", "duplicateCount"},
    "job.enrichment.failed": OF_JOBS | {"error"},
    "monitoring.rule.triggered": ENVELOPE | {"ruleset"},
}
OUTCOME = JobOutcome(
    client_id=UUID("0b51c1a4-4a52-4f6e-9b8e-6a3f1e6f8a01"),
    customer_id=UUID("c1a9d0e2-94f2-4b0b-8f8b-0a2f3a9f5d77"),
    job_id=UUID("3d3a1f5e-6c0a-4d5c-9f46-5f6f0d9e2b10"),
    abn="51824753556",
    job_type="Extraction",
    failed=False,
    received=12,
    processed=10,
    enriched=7,
    duplicates=3,
    error=None,
)
REASON = {"code": "Job.AllRowsRejected", "message": "Zeile für Zeile \u2028 🙂"}


def make_all_events() -> Iterator[Event]:
    """Yield every event that the service can make, and failures with and without a reason."""
    yield webhooks.extraction_completed(OUTCOME, NOW)
    yield from webhooks.job_events(OUTCOME, NOW)
    for error in (REASON, None):
        for extracting in (True, False):
            yield from webhooks.job_events(replace(OUTCOME, failed=True, error=error, extracting=extracting), NOW)
    yield webhooks.rule_triggered(
        OUTCOME.client_id,
        OUTCOME.customer_id,
        UUID("d2c4b6a8-1e3f-4a5b-8c7d-9e0f1a2b3c4d"),
        "after-the-loan",
        "Nach dem Kredit 🙂",
        event_id=UUID("4b8e6d1c-2f3a-4c5d-9e7f-8a9b0c1d2e3f"),
        timestamp=NOW,
    )


MADE = list(make_all_events())


def schema(event_type: str) -> dict[str, Any]:
    """Return the schema in the folder of the documentation."""
    found: dict[str, Any] = json.loads((FOLDER / f"{event_type}.schema.json").read_text("utf-8"))
    return found


def faults(event_type: str, payload: object) -> list[str]:
    validator = jsonschema_rs.Draft202012Validator(schema(event_type), validate_formats=True)
    return [str(error) for error in validator.iter_errors(payload)]


def test_every_type_is_of_the_contract_and_made_here() -> None:
    assert list(EVENT_TYPES) == list(CONTRACT)
    assert {event.event_type for event in MADE} == set(CONTRACT)


@parametrize("event", MADE, ids=lambda event: event.event_type)
def test_a_payload_has_exactly_the_contracts_fields_and_fits_its_schema(event: Event) -> None:
    payload = json.loads(event.body)
    assert payload["eventType"] == event.event_type
    assert payload.keys() == CONTRACT[event.event_type]
    assert faults(event.event_type, payload) == []


def test_a_rules_event_names_its_ruleset_by_the_contracts_fields() -> None:
    [event] = [each for each in MADE if each.event_type == EventType.RULE_TRIGGERED]
    payload = json.loads(event.body)
    assert payload["ruleset"].keys() == {"id", "slug", "name"}


@parametrize("event_type", CONTRACT)
def test_a_schema_requires_exactly_the_contracts_fields(event_type: str) -> None:
    reported = schema(event_type)
    assert jsonschema_rs.meta.is_valid(reported)
    assert set(reported["required"]) == set(reported["properties"]) == CONTRACT[event_type]
    assert reported["additionalProperties"] is True


@parametrize("event_type", CONTRACT)
def test_an_example_fits_its_schema_and_changed_ones_do_not(event_type: str) -> None:
    [example] = schema(event_type)["examples"]
    assert faults(event_type, example) == []
    assert example.keys() == CONTRACT[event_type]
    for name in example:
        assert faults(event_type, {key: value for key, value in example.items() if key != name}) != []
        assert faults(event_type, example | {name: 7 if isinstance(example[name], str) else "seven"}) != []
    other = next(each for each in CONTRACT if each != event_type)
    assert faults(event_type, example | {"eventType": other}) != []
    assert faults(event_type, example | {"customerId": "nobody"}) != []
    assert faults(event_type, example | {"timestamp": "yesterday"}) != []


@parametrize("event_type", CONTRACT)
def test_the_openapi_document_has_the_same_schemas(event_type: str) -> None:
    reported = document()["webhooks"][event_type]["post"]
    reference = reported["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
    shown = document()["components"]["schemas"][reference]
    written = schema(event_type)
    assert shown["required"] == written["required"]
    assert shown["examples"] == written["examples"]
    assert reported["description"] == written["description"]
    assert reported["responses"].keys() == {"2XX"}


def test_the_documented_files_are_up_to_date() -> None:
    found = {file.name: file.read_text("utf-8") for file in FOLDER.iterdir()}
    assert found == event_schemas.files(), "run `make generated`"


def test_the_command_prints_and_writes_them(tmp_path: Path) -> None:
    printed = CliRunner().invoke(app, ["events", "schema", EventType.RULE_TRIGGERED])
    assert json.loads(printed.stdout) == schema(EventType.RULE_TRIGGERED)
    assert CliRunner().invoke(app, ["events", "write", str(tmp_path / "new")]).exit_code == 0
    assert {file.name for file in (tmp_path / "new").iterdir()} == event_schemas.files().keys()
    listed = CliRunner().invoke(app, ["events", "list", "--json"])
    assert [each["eventType"] for each in json.loads(listed.stdout)] == list(EVENT_TYPES)
