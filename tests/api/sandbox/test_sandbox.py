"""Synthetic customers of the sandbox, through the API and on the command line."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from stdnum.au import abn
from typer.testing import CliRunner

from api.cli import app
from pipelines.decisions import examples
from pipelines.synthetic.sandbox import PROFILES
from storage.core.settings import Environment, Settings
from storage.core.store import Store
from storage.customers import customers
from storage.sandbox import sandbox_customers
from tests.api.conftest import Client, answering, new_client
from tests.conftest import open_store
from tests.storage.examples import a_client

CUSTOMERS = "/v1/sandbox/customers"


def make_customer(client: Client, **fields: object) -> dict[str, Any]:
    answer = client.post(CUSTOMERS, {"profile": "healthy", "months": 9} | fields)
    assert answer.status_code == 201, answer.text
    data: dict[str, Any] = answer.json()["data"]
    assert answer.headers["Location"] == f"/v1/customer/{data['customerId']}"
    return data


def test_a_customer_has_everything_that_a_decision_needs(client: Client, store: Store) -> None:
    data = make_customer(client, profile="dressed_up")
    here = f"/v1/customer/{data['customerId']}"
    assert abn.is_valid(data["abn"])
    assert client.get(here).json()["data"]["name"] == data["name"]
    assert len(data["jobIds"]) >= 1
    rows = 0
    for job_id in data["jobIds"]:
        job = client.get(f"/v1/jobs/{job_id}/status").json()["data"]
        assert (job["status"], job["flow"], job["customerId"]) == ("Queued", "Enrichment", data["customerId"])
        rows += job["totalReceivedTransactions"]
    assert rows > 300
    stated = client.get(f"{here}/attributes").json()["data"]["attributes"]
    for policy in examples.load().values():
        assert {each["name"] for each in policy["attributes"]} <= stated.keys()
    assert {each["source"] for each in stated.values()} == {"synthetic"}
    parties = client.get(f"{here}/related-parties").json()["data"]["relatedParties"]
    assert {each["role"] for each in parties} == {"group_company"}
    yesterday = datetime.now(UTC).astimezone(store.settings.zone).date() - timedelta(days=1)
    assert data["dataThrough"] == yesterday.isoformat()


def test_details_can_be_given(client: Client) -> None:
    given = {"name": "Harbour Coffee Pty Ltd", "abn": "51 824 753 556", "reference": "S-1"}
    data = make_customer(client, **given)
    assert {name: data[name] for name in given} == given | {"abn": "51824753556"}
    again = client.post(CUSTOMERS, {"profile": "new", **given})
    assert (again.status_code, again.json()["code"]) == (409, "Sandbox.CustomerExists")
    named = client.post(CUSTOMERS, {"profile": "new", **given, "reference": "S-2"})
    assert named.status_code == 201


def test_two_customers_of_a_profile_differ(client: Client) -> None:
    assert make_customer(client)["abn"] != make_customer(client)["abn"]


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("profile", "rich", "Sandbox.InvalidProfile"),
        ("profile", None, "Sandbox.InvalidProfile"),
        ("months", 8, "Sandbox.InvalidMonths"),
        ("months", 25, "Sandbox.InvalidMonths"),
        ("abn", "1", "Customer.InvalidAbn"),
        ("name", "A" * 201, "Customer.InvalidName"),
    ],
)
def test_wrong_fields_are_refused(client: Client, field: str, value: object, code: str) -> None:
    answer = client.post(CUSTOMERS, {"profile": "healthy"} | {field: value})
    assert (answer.status_code, [each["code"] for each in answer.json()["errors"]]) == (400, [code])


def test_the_profiles_are_listed_with_a_sentence_each(client: Client) -> None:
    listed = client.get("/v1/sandbox/profiles").json()["data"]
    assert [each["profile"] for each in listed["profiles"]] == list(PROFILES)
    assert all(each["summary"].endswith(".") for each in listed["profiles"])
    assert len(client.get("/v1/sandbox/profiles", params={"page": 2, "count": 3}).json()["data"]["profiles"]) == 3


@contextmanager
def in_production(tmp_path: Path) -> Iterator[Store]:
    master = Settings(home=tmp_path / "other").prepare().key_file.read_text().strip()
    settings = Settings(home=tmp_path / "home", environment=Environment.PRODUCTION, master_key=master)
    opened = open_store(settings)
    yield opened
    opened.close()


def test_production_has_no_sandbox(tmp_path: Path) -> None:
    with in_production(tmp_path) as store, answering(store) as url:
        client = new_client(store, url)
        for answer in (client.post(CUSTOMERS, {"profile": "healthy"}), client.get("/v1/sandbox/profiles")):
            assert (answer.status_code, answer.json()["code"]) == (404, "Request.UnknownPath")


def run(*arguments: str) -> Any:
    ended = CliRunner().invoke(app, ["sandbox", *arguments, "--json"])
    assert ended.exit_code == 0, ended.output
    return json.loads(ended.stdout)


def test_the_command_creates_a_customer(own_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_HOME", str(own_store.settings.home))
    client_id = a_client(own_store, datetime.now(UTC))
    of_client = ("create", "--client", str(client_id), "--months", "9")
    shown = run(*of_client, "--profile", "new", "--name", "Harbour Coffee")
    with own_store.db.reading() as r:
        [customer] = customers.find(r, client_id).items
        [behind] = sandbox_customers.find_behind(r, datetime.now(UTC).date() + timedelta(days=3), 366)
    assert (shown["customerId"], shown["name"]) == (str(customer.customer_id), "Harbour Coffee")
    assert (behind.customer_number, behind.profile, behind.sent_through) == (customer.number, "new", behind.until)
    assert [each["profile"] for each in run("profiles")] == list(PROFILES)
    refused = CliRunner().invoke(app, ["sandbox", *of_client, "--profile", "rich"])
    assert refused.exit_code == 2
    assert "healthy, stacked" in " ".join(refused.output.replace("│", "").split())
    unknown = CliRunner().invoke(app, ["sandbox", "create", "--client", str(uuid4()), "--profile", "new"])
    assert unknown.exit_code == 1
    monkeypatch.setenv("TIDEMARK_ENVIRONMENT", "production")
    monkeypatch.setenv("TIDEMARK_MASTER_KEY", own_store.settings.key_file.read_text().strip())
    assert CliRunner().invoke(app, ["sandbox", *of_client, "--profile", "new"]).exit_code == 1
