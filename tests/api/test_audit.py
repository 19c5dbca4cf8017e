"""Actions of callers and the operator, and refused requests, are in the audit trail."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Event
from uuid import UUID, uuid4

import pytest
from sqlalchemy.exc import OperationalError
from typer.testing import CliRunner

from api.cli import app
from api.core import refusals as api_refusals
from api.core.refusals import MAX_KINDS, MAX_STORED, Refusal, Refusals
from storage.access import keys
from storage.core import audit
from storage.core.audit import ANONYMOUS, Actor, Entry, Outcome
from storage.core.store import Store
from storage.decisions import policies
from tests.api.conftest import HTTP, Client, answering, belongings, new_client
from tests.api.worker import fail_deliveries
from tests.conftest import prepare_home

HOOKS = "/v1/webhooks/subscriptions"
NAMED = {"X-Request-Id": "lender-7"}
WITHIN_S = 10


def entries(store: Store, client_id: UUID | None = None) -> Sequence[Entry]:
    with store.db.reading() as r:
        return audit.find(r, client_id)


def wait_for_entry(store: Store, request_id: str) -> Entry:
    """Wait for the entry of a refused request, which a thread writes."""
    deadline = time.monotonic() + WITHIN_S
    while time.monotonic() < deadline:
        for entry in entries(store):
            if entry.request_id == request_id:
                return entry
        time.sleep(0.01)
    raise AssertionError("nothing was written down")


def test_actions_of_a_caller_are_in_the_audit_trail(store: Store, client: Client) -> None:
    ids = belongings(store, client)
    fail_deliveries(store)
    hook, customer = f"{HOOKS}/{ids['subscriptionId']}", ids["customerId"]
    client.post(f"/v1/webhooks/deliveries/{ids['deliveryId']}/resend", headers=NAMED)
    client.post(f"{hook}/secret/rotate", headers=NAMED)
    client.post(f"{hook}/customers", {"customerIds": [customer]}, headers=NAMED)
    client.delete(f"{hook}/customers", {"customerIds": [customer]}, headers=NAMED)
    client.delete(hook, headers=NAMED)
    refresh = client.post(f"/v1/customer/{customer}/reports/refresh", headers=NAMED).json()["data"]["jobId"]
    newest_first = entries(store, client.client_id)
    subscription, ruleset = ({name: ids[name]} for name in ("subscriptionId", "rulesetId"))
    with store.db.reading() as r:
        policy = {"policyId": str(policies.get(r, client.client_id, ids["slug"]).policy_id)}
    submissions = [entry.resource for entry in reversed(newest_first) if entry.action == "Submission.Accepted"]
    assert submissions[0] == {"customerId": customer, "jobId": ids["jobId"]}
    assert [(entry.action, entry.resource) for entry in reversed(newest_first)] == [
        ("Customer.Created", {"customerId": customer}),
        ("Subscription.Created", subscription),
        ("Submission.Accepted", submissions[0]),
        ("Correction.Made", {name: ids[name] for name in ("customerId", "correctionId")}),
        ("Submission.Accepted", submissions[1]),
        ("Policy.Saved", policy | {"version": "1"}),
        ("Policy.Published", policy | {"version": "1"}),
        ("Policy.Saved", policy | {"version": "2"}),
        ("Policy.BacktestRequested", policy | {"jobId": ids["backtestId"]}),
        ("Policy.Evaluated", {name: ids[name] for name in ("customerId", "evaluationId")}),
        ("Approval.Requested", {name: ids[name] for name in ("approvalId", "evaluationId", "customerId")}),
        ("Ruleset.Created", ruleset),
        ("Ruleset.SimulationRequested", ruleset | {"jobId": ids["simulationId"]}),
        ("Note.Added", {name: ids[name] for name in ("customerId", "noteId")}),
        ("Attachment.Added", {name: ids[name] for name in ("customerId", "attachmentId")}),
        ("Delivery.Resent", {"deliveryId": ids["deliveryId"]}),
        ("Subscription.SecretRotated", subscription),
        ("Subscription.CustomersAdded", subscription | {"customerIds": [customer]}),
        ("Subscription.CustomersRemoved", subscription | {"customerIds": [customer]}),
        ("Subscription.Deleted", subscription),
        ("Reports.RefreshRequested", {"customerId": customer, "jobId": refresh}),
    ]
    with store.db.reading() as r:
        key = keys.find_keys(r, client.client_id)[0]  # the first, which makes the requests
    assert {entry.who for entry in newest_first} == {str(key.key_id)}
    assert {entry.outcome for entry in newest_first} == {Outcome.DONE}
    assert {entry.request_id for entry in newest_first[:5]} == {"lender-7"}


def test_failed_actions_are_not_in_the_audit_trail(store: Store, client: Client) -> None:
    client.delete(f"{HOOKS}/{uuid4()}")
    assert entries(store, client.client_id) == []


def test_a_missing_scope_is_in_the_audit_trail(own_store: Store) -> None:
    request_id = str(uuid4())
    with answering(own_store) as url:  # one that other tests share has counted too many kinds of refusals
        reader = new_client(own_store, url, ["transactions:enrich"])
        assert reader.get(HOOKS, headers={"X-Request-Id": request_id}).status_code == 403
        entry = wait_for_entry(own_store, request_id)
    assert (entry.client_id, entry.action, entry.outcome) == (reader.client_id, "Authorization.Denied", Outcome.REFUSED)
    assert entry.resource == {"operation": "listSubscriptions"}


def test_a_wrong_key_is_in_the_audit_trail_without_key_and_address(own_store: Store) -> None:
    request_id = str(uuid4())
    headers = {"x-api-key": "tm_sandbox_wrong", "X-Request-Id": request_id}
    with answering(own_store) as url:
        assert HTTP.get(f"{url}/v1/jobs", headers=headers, timeout=10).status_code == 401
        entry = wait_for_entry(own_store, request_id)
    assert (entry.who, entry.client_id, entry.action) == (ANONYMOUS, None, "Authentication.Failed")
    assert entry.resource == {"addressHash": own_store.vault.pseudonym("127.0.0.1")}
    assert "127.0.0.1" not in str(entry)
    assert "wrong" not in str(entry)


def test_an_ended_key_is_identified_in_the_audit_trail(own_store: Store) -> None:
    request_id = str(uuid4())
    with answering(own_store) as url:
        client = new_client(own_store, url)
        with own_store.db.writing() as w:
            [key] = keys.find_keys(w, client.client_id)
            keys.revoke(w, key.key_id, key.created_at)
        assert client.get("/v1/jobs", headers={"X-Request-Id": request_id}).status_code == 401
        entry = wait_for_entry(own_store, request_id)
    assert (entry.who, entry.client_id, entry.action) == (str(key.key_id), client.client_id, "Authentication.Failed")


def refusal(number: int) -> Refusal:
    return Refusal(Actor(ANONYMOUS, None, f"request-{number}"), "Authentication.Failed", "addressHash", "here")


def test_a_flood_of_refusals_is_two_entries(own_store: Store) -> None:
    refusals = Refusals(own_store.db)
    for number in range(1_000):
        refusals.note(refusal(number))
    refusals.stop()
    assert [(entry.times, entry.request_id) for entry in entries(own_store)] == [(999, None), (1, "request-0")]


def test_entries_for_refusals_from_many_addresses_are_bounded(own_store: Store) -> None:
    refusals = Refusals(own_store.db)
    for number in range(10 * MAX_KINDS):
        refusals.note(Refusal(Actor(ANONYMOUS), "Authentication.Failed", "addressHash", f"{number}"))
    refusals.stop()
    found = entries(own_store)
    assert len(found) == MAX_KINDS + 2
    assert sum(entry.times for entry in found) == 10 * MAX_KINDS
    assert found[0].resource == {"addressHash": "others"}


def away(_w: object, *_: object, **__: object) -> None:
    raise OperationalError("INSERT", None, Exception("the database is away"))


def test_refusals_are_written_after_the_database_is_back(own_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = Event()

    def append(*arguments: object, **named: object) -> None:
        tried.set()
        away(*arguments, **named)

    refusals = Refusals(own_store.db)
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(audit, "append", append)
        refusals.note(refusal(1))
        assert tried.wait(5)
        time.sleep(0.1)  # until the thread has noticed the failure
    refusals.stop()
    assert [(entry.times, entry.request_id) for entry in entries(own_store)] == [(1, "request-1")]


def test_refusals_that_wait_for_the_database_are_bounded(own_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_refusals, "WINDOW_S", 0.02)
    refusals = Refusals(own_store.db)
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(audit, "append", away)
        for number in range(5 * MAX_STORED):
            refusals.note(Refusal(Actor(ANONYMOUS), "Authentication.Failed", "addressHash", f"{number}"))
            if number % MAX_KINDS == 0:
                time.sleep(0.05)
    refusals.stop()
    assert MAX_KINDS < len(entries(own_store)) <= MAX_STORED + MAX_KINDS + 2


def test_an_error_with_one_refusal_does_not_stop_others(own_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = Event()

    def append(*_: object, **__: object) -> None:
        tried.set()
        raise ValueError("nobody thought of this")

    refusals = Refusals(own_store.db)
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(audit, "append", append)
        refusals.note(refusal(1))
        assert tried.wait(5)
        time.sleep(0.1)
    refusals.note(Refusal(Actor(ANONYMOUS), "Authentication.Failed", "addressHash", "elsewhere"))
    refusals.stop()
    assert [entry.resource for entry in entries(own_store)] == [{"addressHash": "elsewhere"}]


def test_the_operators_actions_are_in_the_audit_trail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_HOME", str(prepare_home(tmp_path / "home")))

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(app, [*arguments, "--json"], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.stdout

    client_id = json.loads(run("clients", "create", "Harbour Lending"))["clientId"]
    run("clients", "create", "Another")
    key_id = json.loads(run("keys", "create", "--client", client_id, "--all-scopes"))["keyId"]
    run("keys", "revoke", key_id)
    for actions, stored in (("override,publish", ["publish", "override"]), ("", [])):
        assert json.loads(run("clients", "set", client_id, "--four-eyes", actions))["fourEyes"] == stored
    assert CliRunner().invoke(app, ["clients", "set", client_id, "--four-eyes", "lift"]).exit_code == 2
    listed = json.loads(run("audit", "list", "--client", client_id, "--since", "24h"))
    assert [(entry["action"], entry["resource"]) for entry in listed] == [
        ("Client.FourEyesSet", {"fourEyes": "none"}),
        ("Client.FourEyesSet", {"fourEyes": "publish,override"}),
        ("Key.Revoked", {"keyId": key_id}),
        ("Key.Created", {"keyId": key_id}),
        ("Client.Created", {}),
    ]
    assert {(entry["who"], entry["outcome"], entry["requestId"]) for entry in listed} == {("operator", "done", None)}
    assert "operator" in CliRunner().invoke(app, ["audit", "list"]).output
