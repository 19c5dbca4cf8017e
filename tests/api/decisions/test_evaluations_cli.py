"""`tidemark evaluations …`: list, show and replay decisions."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import delete, text
from typer.testing import CliRunner

from api.cli import app
from pipelines.vocabulary.errors import NotFound
from storage.core.models import locations
from storage.core.store import Store
from tests.api.conftest import Client, answering, new_client
from tests.api.core.test_evaluate import (
    DOCUMENT,
    INPUTS,
    WITHOUT_INPUTS,
    challenge,
    evaluate_successfully,
    save_policy,
    with_score,
)
from tests.api.worker import end_submissions


@pytest.fixture
def client(own_store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """A client of the Tidemark that the commands use."""
    monkeypatch.setenv("TIDEMARK_HOME", str(own_store.settings.home))
    with answering(own_store) as url:
        yield new_client(own_store, url)


def run(*arguments: object, exit_code: int = 0) -> Any:
    result = CliRunner().invoke(app, ["evaluations", *map(str, arguments), "--json"])
    assert result.exit_code == exit_code, result.output
    return json.loads(result.stdout)


def with_rows(store: Store, client: Client, days: int = 10) -> str:
    customer_id = client.new_customer()
    client.submit_transactions(customer_id)
    end_submissions(store, [{"date": date(2026, 6, 1) + timedelta(days=day)} for day in range(days)])
    return customer_id


def past_the_guard(store: Store, change: str) -> None:
    """Change a row that a trigger protects from changes."""
    with store.db.writing() as w:
        for (name,) in w.execute(text("SELECT name FROM sqlite_master WHERE type = 'trigger'")).all():
            w.execute(text(f'DROP TRIGGER "{name}"'))
        w.execute(text(change))


def test_evaluations_are_listed_and_shown(own_store: Store, client: Client) -> None:
    save_policy(own_store, client)
    customer_id = with_score(client)
    found = evaluate_successfully(client, customer_id, inputs=INPUTS)
    [listed] = run("list", "--client", client.client_id, "--customer", customer_id, "--policy", DOCUMENT["slug"])
    assert (listed["evaluationId"], listed["outcome"]) == (found["evaluationId"], "proceed")
    shown = run("show", found["evaluationId"])
    assert shown["record"]["answer"]["verdict"] == found["verdict"]
    assert run("list", "--client", client.client_id, "--customer", client.new_customer()) == []


def test_shadow_evaluations_are_listed_on_request(own_store: Store, client: Client) -> None:
    challenge(own_store, client, DOCUMENT | {"defaultOutcome": "blocked", "limits": []}, 100)
    evaluate_successfully(client, with_score(client), inputs=INPUTS)
    assert [each["outcome"] for each in run("list", "--client", client.client_id, "--shadows")] == [
        "blocked",
        "proceed",
    ]
    for each in run("list", "--client", client.client_id, "--shadows"):
        assert run("replay", each["evaluationId"])["reproduced"]


def test_an_override_is_shown_with_person_and_reason(own_store: Store, client: Client) -> None:
    save_policy(own_store, client)
    evaluation_id = evaluate_successfully(client, with_score(client), inputs=INPUTS)["evaluationId"]
    override = {"outcome": "blocked", "reason": "A call.", "decidedBy": "A. Person"}
    client.post(f"/v1/evaluations/{evaluation_id}/override", override)
    result = CliRunner().invoke(app, ["evaluations", "show", evaluation_id])
    assert "Overridden: blocked, by A. Person: A call." in result.stdout
    assert '"value": 684' in result.stdout
    assert '"value": "' not in result.stdout
    assert run("show", evaluation_id)["record"]["case"]["inputs"]["amount"] == 50000
    listed = CliRunner().invoke(app, ["evaluations", "list", "--client", str(client.client_id)]).stdout
    shown = dict(zip(*(line.split("\t") for line in listed.splitlines()), strict=True))
    assert (shown["evaluationId"], shown["slug"]) == (evaluation_id, DOCUMENT["slug"])
    assert (shown["outcome"], shown["overriddenOutcome"]) == ("proceed", "blocked")


def test_a_replay_is_identical_after_later_changes(own_store: Store, client: Client) -> None:
    """Another version of the policy, other attributes and later transactions must not matter."""
    save_policy(own_store, client, WITHOUT_INPUTS)
    customer_id = with_rows(own_store, client)
    evaluation_id = evaluate_successfully(client, customer_id, "plain", attributeOverrides={})["evaluationId"]
    save_policy(own_store, client, WITHOUT_INPUTS | {"steps": []})
    client.call("PUT", f"/v1/customer/{customer_id}/attributes", json={"attributes": {"score": 1}})
    client.submit_transactions(customer_id)
    end_submissions(own_store, [{"date": date(2024, 6, 1)}])
    assert evaluate_successfully(client, customer_id, "plain")["dataVersion"] == 2
    again = run("replay", evaluation_id)
    assert (again["reproduced"], again["differs"], again["sha256"]) == (True, [], again["replayedSha256"])


@pytest.mark.service  # starts another process
@pytest.mark.parametrize(("threads", "seed"), [("4", "0"), ("1", "1"), ("2", "77")])
def test_another_process_reproduces_a_decision(own_store: Store, client: Client, threads: str, seed: str) -> None:
    save_policy(own_store, client, WITHOUT_INPUTS)
    evaluation_id = evaluate_successfully(client, with_rows(own_store, client), "plain")["evaluationId"]
    command = [str(Path(sys.executable).with_name("tidemark")), "evaluations", "replay", evaluation_id, "--json"]
    environment = os.environ | {"POLARS_MAX_THREADS": threads, "PYTHONHASHSEED": seed}
    reported = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(reported.stdout)["reproduced"]


def test_a_replay_reports_data_that_are_no_longer_stored(own_store: Store, client: Client) -> None:
    save_policy(own_store, client, WITHOUT_INPUTS)
    customer_id = with_rows(own_store, client)
    evaluation_id = evaluate_successfully(client, customer_id, "plain")["evaluationId"]
    client.submit_transactions(customer_id)
    end_submissions(own_store)
    with own_store.db.writing() as w:
        w.execute(delete(locations).where(locations.c.data_version == 1))
    again = run("replay", evaluation_id)
    assert again["reproduced"]
    assert "no longer stored" in again["notes"][0]


def test_a_replay_reports_a_changed_policy(own_store: Store, client: Client) -> None:
    save_policy(own_store, client, WITHOUT_INPUTS)
    evaluation_id = evaluate_successfully(client, with_rows(own_store, client), "plain")["evaluationId"]
    past_the_guard(own_store, "UPDATE policy_versions SET document = replace(document, 'SHORT', 'OTHER')")
    again = run("replay", evaluation_id, exit_code=1)
    assert (again["reproduced"], again["differs"]) == (False, ["policy"])


def test_a_changed_record_is_refused(own_store: Store, client: Client) -> None:
    save_policy(own_store, client, WITHOUT_INPUTS)
    evaluation_id = evaluate_successfully(client, with_rows(own_store, client), "plain")["evaluationId"]
    past_the_guard(own_store, "UPDATE evaluations SET record = x'7B7D'")
    result = CliRunner().invoke(app, ["evaluations", "replay", evaluation_id])
    assert getattr(result.exception, "code", None) == "Evaluation.Corrupt"
    assert client.get(f"/v1/evaluations/{evaluation_id}").json()["code"] == "Evaluation.Corrupt"


@pytest.mark.usefixtures("client")
def test_an_unknown_evaluation_is_not_found() -> None:
    result = CliRunner().invoke(app, ["evaluations", "replay", str(uuid4())])
    assert isinstance(result.exception, NotFound)
