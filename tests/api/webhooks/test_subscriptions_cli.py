"""The operator's commands for webhooks."""

import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest
from typer.testing import CliRunner

from api.cli import app
from storage.core import audit
from storage.core.models import DeliveryStatus
from storage.core.store import Store
from storage.webhooks import delivery_log, outbox
from storage.webhooks.outbox import Attempt, Ended
from storage.webhooks.subscriptions import Subscription
from tests.storage.examples import a_client, a_customer
from tests.storage.webhooks.test_outbox import an_event, claim, enqueue
from tests.storage.webhooks.test_retries import subscribe

NOW = datetime.now(UTC)


@pytest.fixture
def store(own_store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("TIDEMARK_HOME", str(own_store.settings.home))
    return own_store


@pytest.fixture
def subscription(store: Store) -> Subscription:
    """A subscription with two failed deliveries."""
    customer = a_customer(store, a_client(store, NOW), NOW)
    made = subscribe(store, customer, NOW)
    enqueue(store, an_event(customer, NOW), an_event(customer, NOW))
    failures = [
        Ended(each.delivery_id, DeliveryStatus.FAILED, Attempt(uuid4(), NOW, 7, 500, None, b""))
        for each in claim(store, NOW)
    ]
    with store.db.writing() as w:
        outbox.record(w, UUID(int=1), failures)
    return made


def run(*command: str, status: int = 0) -> str:
    ended = CliRunner().invoke(app, command)
    assert ended.exit_code == status, ended.output
    return ended.output


def run_as_json(*command: str) -> Any:
    return json.loads(run(*command, "--json"))


def test_a_subscription_is_paused_shown_and_resumed(store: Store, subscription: Subscription) -> None:
    this = str(subscription.subscription_id)
    assert run("subscriptions", "list", "--paused") == "No such subscriptions.\n"
    for _ in range(2):
        assert run_as_json("subscriptions", "pause", this)["pausedBy"] == "operator"
    [shown] = run_as_json("subscriptions", "list", "--paused", "--client", str(subscription.client_id))
    assert (shown["subscriptionId"], shown["failureStreak"]) == (this, 2)
    assert run_as_json("subscriptions", "list", "--client", str(uuid4())) == []
    for _ in range(2):
        assert run_as_json("subscriptions", "resume", this)["datePaused"] is None
    with store.db.reading() as r:
        done = [(entry.who, entry.action) for entry in audit.find(r, subscription.client_id)]
    assert done == [("operator", "Subscription.Resumed"), ("operator", "Subscription.Paused")]


def test_a_summary_is_shown(subscription: Subscription) -> None:
    this = str(subscription.subscription_id)
    found = run_as_json("subscriptions", "summary", this)
    assert [each["failed"] for each in found["periods"]] == [2, 2]
    assert found["periods"][0]["byStatusCode"] == {"500": 2}
    assert "500=2" in run("subscriptions", "summary", this)


def test_all_failed_deliveries_since_a_time_are_resent(store: Store, subscription: Subscription) -> None:
    this = str(subscription.subscription_id)
    assert run_as_json("deliveries", "resend", "--failed-since", "1h", "--subscription", this) == {"resent": 2}
    assert run_as_json("deliveries", "resend", "--failed-since", "2020-01-01T00:00:00Z") == {"resent": 0}
    assert {each["status"] for each in run_as_json("deliveries", "list")} == {"due"}
    with store.db.reading() as r:
        [entry] = audit.find(r, subscription.client_id)
    assert (entry.who, entry.action, entry.resource) == ("operator", "Delivery.AllResent", {"subscriptionId": this})


@pytest.mark.usefixtures("subscription")
def test_each_of_many_failed_deliveries_is_resent_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery_log, "RESENT_AT_ONCE", 1)
    assert run_as_json("deliveries", "resend", "--failed-since", "1h") == {"resent": 2}


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize(
    "words",
    [
        [],
        [str(uuid4()), "--failed-since", "1h"],
        ["--failed-since", "soon"],
        [str(uuid4()), "--customer", str(uuid4())],
    ],
)
def test_conflicting_arguments_are_refused(words: list[str]) -> None:
    run("deliveries", "resend", *words, status=2)
