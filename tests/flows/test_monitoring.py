"""Monitoring in a whole service: a rule triggers, its signed event arrives once, and the match is read by its id."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from api.webhooks.listen import Received, Receiver
from tests.flows.service import Client
from tests.waiting import until

pytestmark = pytest.mark.timeout(300)

HEARD_WITHIN_S = 30
EVALUATED_WITHIN_S = 90  # the portfolio's queue starts a process first, and may be busy
LONG = {"moreThan": [{"metric": "history_days"}, "30"]}
LOW_SCORE = {"lessThan": [{"attribute": "score"}, "500"]}
FIELDS = {"eventType", "eventId", "clientId", "customerId", "timestamp", "ruleset"}


def row(days_ago: int, text: str = "SALE") -> dict[str, Any]:
    day = datetime.now(UTC).date() - timedelta(days=days_ago)
    return {"date": day.isoformat(), "description": text, "amount": 812.4}


def watch(client: Client, **rules: object) -> str:
    """Create a ruleset with these conditions, and return its id."""
    document = {
        "slug": "early-warning",
        "name": "Early warning",
        "attributes": [{"name": "score", "kind": "decimal"}],
        "rules": [{"code": code, "message": code, "condition": condition} for code, condition in rules.items()],
    }
    ruleset_id: str = client.data("POST", "/v1/monitoring/rulesets", document)["rulesetId"]
    return ruleset_id


def subscribe(client: Client, receiver: Receiver, *customer_ids: str) -> None:
    body = {
        "eventType": "monitoring.rule.triggered",
        "webhookUrl": receiver.url,
        "customerIds": list(customer_ids),
    }
    receiver.learn(client.data("POST", "/v1/webhooks/subscriptions", body)["secret"])


def heard(receiver: Receiver, customer: str) -> list[Received]:
    """Return the received monitoring events of the customer in order of arrival."""
    reported = [each for each in receiver.received if each.json["customerId"] == customer]
    return [each for each in reported if each.json["eventType"] == "monitoring.rule.triggered"]


def matches(client: Client, customer: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.data("GET", "/v1/monitoring/matches", customerId=customer)["matches"]
    return found


def test_each_trigger_is_one_signed_delivery(client: Client, receiver: Receiver) -> None:
    customer, other = client.customer(), client.customer()
    ruleset_id = watch(client, LONG=LONG)
    subscribe(client, receiver, customer)
    client.wait_for_job(client.submit(customer, [row(1)]))
    assert matches(client, customer) == []

    long = client.submit(customer, [row(60), row(2)])
    client.wait_for_job(long)
    client.wait_for_job(client.submit(other, [row(60), row(2)]))
    until(lambda: len(heard(receiver, customer)) == 1, HEARD_WITHIN_S)
    [reported] = heard(receiver, customer)
    assert reported.verified
    assert reported.json.keys() == FIELDS
    assert reported.json["ruleset"] == {"id": ruleset_id, "slug": "early-warning", "name": "Early warning"}
    match = client.data("GET", f"/v1/monitoring/matches/{reported.json['eventId']}")
    assert (match["customerId"], match["cause"], match["dataVersion"]) == (customer, "data", 2)
    assert [rule["code"] for rule in match["rules"]] == ["LONG"]

    client.wait_for_job(client.submit(customer, [row(3, "COFFEE")]))
    assert [each["matchId"] for each in matches(client, customer)] == [reported.json["eventId"]]
    client.wait_for_job(client.data("DELETE", f"/v1/customer/{customer}/submissions/{long}")["jobId"])
    client.wait_for_job(client.submit(customer, [row(60), row(2)]))
    until(lambda: len(heard(receiver, customer)) == 2, HEARD_WITHIN_S)
    ids = [each.json["eventId"] for each in heard(receiver, customer)]
    assert [each["matchId"] for each in matches(client, customer)] == ids[::-1]
    assert len(matches(client, other)) == 1
    assert heard(receiver, other) == [], "the subscription is the other customer's"


def test_a_receiver_of_a_trigger_finds_its_transactions(client: Client, receiver: Receiver) -> None:
    """State, match and event are committed together with the transactions that they concern."""
    customer = client.customer()
    watch(client, LONG=LONG)
    subscribe(client, receiver)
    job = client.submit(customer, [row(60), row(2)])
    until(lambda: bool(heard(receiver, customer)), HEARD_WITHIN_S)
    assert client.data("GET", f"/v1/jobs/{job}/status")["status"] == "Completed"
    assert len(client.transactions(customer)) == 2


def test_a_rule_triggered_by_an_attribute_is_reported_before_the_nightly_run(
    client: Client, receiver: Receiver
) -> None:
    customer = client.customer()
    client.wait_for_job(client.submit(customer, [row(1)]))
    watch(client, LOW=LOW_SCORE)
    subscribe(client, receiver)
    client.data("PUT", f"/v1/customer/{customer}/attributes", {"attributes": {"score": 400}})
    until(lambda: bool(heard(receiver, customer)), EVALUATED_WITHIN_S)
    [match] = matches(client, customer)
    assert (match["matchId"], match["cause"]) == (heard(receiver, customer)[0].json["eventId"], "time")
