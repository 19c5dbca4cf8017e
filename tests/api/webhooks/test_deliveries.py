"""The delivery log: filters, pages, resending, tests, summaries, retries and pauses."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import jsonschema_rs
import pytest

from api.webhooks.event_schemas import as_json_schema
from assets.webhooks.sending import Failure
from pipelines.webhooks.events import EventType
from storage.core import audit
from storage.core.models import DeliveryStatus
from storage.core.store import Store
from storage.customers import customers
from storage.webhooks import delivery_log, outbox
from storage.webhooks.outbox import Attempt, Claimed, Ended, NewEvent
from tests.api.conftest import Client

HOOKS = "/v1/webhooks/subscriptions"
LOG = "/v1/webhooks/deliveries"
parametrize = pytest.mark.parametrize


def subscribe(client: Client, event_type: str = "job.completed", **fields: object) -> str:
    body = {"eventType": event_type, "webhookUrl": "https://lender.example/hook"} | fields
    made = client.post(HOOKS, body)
    assert made.status_code == 201, made.text
    return str(made.json()["data"]["webhookSubscriptionId"])


def happen(store: Store, client: Client, customer_id: str, event_type: str = "job.completed", count: int = 1) -> None:
    now = datetime.now(UTC)
    with store.db.writing() as w:
        number = customers.get(w, client.client_id, UUID(customer_id)).number
        outbox.enqueue(
            w,
            [
                NewEvent(uuid4(), client.client_id, number, uuid4(), EventType(event_type), b"{}", now)
                for _ in range(count)
            ],
        )


def answer_all(store: Store, client: Client, status_code: int | None = 500, error: str | None = None) -> list[Claimed]:
    """Send all due deliveries of the client, and record this answer or error for each."""
    now, holder, mine = datetime.now(UTC), uuid4(), list[Claimed]()
    fine = status_code is not None and status_code < 300
    while True:
        with store.db.writing() as w:
            claimed = outbox.claim_due(w, holder, 250, 60, now)
            ours = [each for each in claimed if each.client_id == client.client_id]
            ends = [
                Ended(
                    each.delivery_id,
                    DeliveryStatus.DELIVERED if fine else DeliveryStatus.FAILED,
                    Attempt(uuid4(), now, 84, status_code, error, b"so", 1, 2, 3, None),
                )
                for each in ours
            ]
            outbox.record(w, holder, ends)
        if not ours:
            break
        mine += ours
    with store.db.writing() as w:
        outbox.give_back(w, holder)
    return mine


def list_deliveries(client: Client, path: str = LOG, **query: object) -> list[dict[str, Any]]:
    answer = client.get(path, params=query)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["data"]["deliveries"]
    return found


def ids(found: Sequence[dict[str, Any]]) -> list[str]:
    return [each["deliveryId"] for each in found]


def test_the_log_of_all_holds_every_subscriptions_deliveries(
    store: Store, client: Client, other_client: Client
) -> None:
    one, two = subscribe(client), subscribe(client)
    subscribe(other_client)
    happen(store, client, client.new_customer())
    happen(store, other_client, other_client.new_customer())
    found = list_deliveries(client)
    assert {each["webhookSubscriptionId"] for each in found} == {one, two}
    client.delete(f"{HOOKS}/{one}")
    assert ids(list_deliveries(client)) == ids(found)
    assert list_deliveries(client, f"{HOOKS}/{two}/deliveries") == [
        each for each in found if each["webhookSubscriptionId"] == two
    ]


def test_deliveries_are_filtered_by_each_filter_and_by_all(store: Store, client: Client) -> None:
    mine = subscribe(client)
    subscribe(client, "job.failed")
    one, other = client.new_customer(), client.new_customer()
    happen(store, client, one)
    answer_all(store, client, None, "timeout")
    happen(store, client, other)
    answer_all(store, client, 503)
    happen(store, client, other, "job.failed")
    answer_all(store, client, 200)
    happen(store, client, one)
    due, fine, unwell, silent = list_deliveries(client)
    for query, expected in (
        ({"status": "due"}, [due]),
        ({"status": "failed"}, [unwell, silent]),
        ({"eventType": "job.failed"}, [fine]),
        ({"customerId": one}, [due, silent]),
        ({"eventId": silent["eventId"]}, [silent]),
        ({"error": "timeout"}, [silent]),
        ({"error": "status"}, [unwell]),
        ({"error": "dns"}, []),
        ({"createdAfter": unwell["dateCreated"]}, [due, fine]),
        ({"createdBefore": unwell["dateCreated"]}, [silent]),
        ({"before": fine["deliveryId"]}, [unwell, silent]),
        ({"customerId": one, "status": "failed", "error": "timeout", "eventType": "job.completed"}, [silent]),
        ({"customerId": other, "error": "timeout"}, []),
    ):
        assert ids(list_deliveries(client, **query)) == ids(expected), query
    assert ids(list_deliveries(client, f"{HOOKS}/{mine}/deliveries", status="failed")) == ids([unwell, silent])
    [attempt] = silent["attempts"]
    assert (attempt["dnsMs"], attempt["connectMs"], attempt["tlsMs"], attempt["firstByteMs"]) == (1, 2, 3, None)
    assert (attempt["error"], attempt["durationMs"], attempt["response"]) == ("timeout", 84, "so")


@parametrize(
    ("parameter", "value", "code"),
    [
        ("status", "gone", "Webhook.InvalidStatus"),
        ("eventType", "job.begun", "Webhook.InvalidEventType"),
        ("customerId", "7", "Webhook.InvalidCustomerId"),
        ("eventId", "7", "Webhook.InvalidEventId"),
        ("error", "oops", "Webhook.InvalidError"),
        ("createdAfter", "2026-07-01", "Webhook.InvalidDate"),
        ("createdBefore", "2026-07-01T00:00:00", "Webhook.InvalidDate"),
        ("before", "last", "Webhook.InvalidBefore"),
    ],
)
def test_an_invalid_filter_of_deliveries_is_refused(client: Client, parameter: str, value: str, code: str) -> None:
    answer = client.get(LOG, params={parameter: value})
    assert (answer.status_code, answer.json()["code"]) == (400, code)
    assert [fault["pointer"] for fault in answer.json()["errors"]] == [f"/{parameter}"]


def test_a_filter_by_a_foreign_customer_or_delivery_is_not_found(
    store: Store, client: Client, other_client: Client
) -> None:
    theirs = other_client.new_customer()
    subscribe(other_client)
    happen(store, other_client, theirs)
    [delivery] = list_deliveries(other_client)
    for query, code in (
        ({"customerId": theirs}, "Customer.NotFound"),
        ({"before": delivery["deliveryId"]}, "Webhook.DeliveryNotFound"),
        ({"eventId": delivery["eventId"]}, "Webhook.EventNotFound"),
    ):
        answer = client.get(LOG, params=query)
        assert (answer.status_code, answer.json()["code"]) == (404, code)


def test_the_documented_failure_classes_are_all_that_exist() -> None:
    assert set(delivery_log.CLASSES) == {*Failure, delivery_log.ANSWERED}


def test_paging_during_writes_skips_and_repeats_nothing(store: Store, client: Client) -> None:
    subscribe(client)
    customer = client.new_customer()
    happen(store, client, customer, count=10)
    there = ids(list_deliveries(client))
    seen: list[str] = []
    query: dict[str, Any] = {"page": 1, "count": 3}
    while page := ids(list_deliveries(client, **query)):
        happen(store, client, customer, count=4)
        seen += page
        query["before"] = page[-1]
    assert seen == there


def test_retries_and_pause_are_set_by_the_subscription(client: Client) -> None:
    path = f"{HOOKS}/{subscribe(client)}"
    plain = client.get(path).json()["data"]
    assert (plain["maxRetries"], plain["pauseAfterFailures"], plain["isPaused"]) == (0, None, False)
    changed = client.call("PATCH", path, json={"maxRetries": 5})
    assert changed.status_code == 200
    changed = client.call("PATCH", path, json={"pauseAfterFailures": 100})
    assert (changed.json()["data"]["maxRetries"], changed.json()["data"]["pauseAfterFailures"]) == (5, 100)
    assert client.call("PATCH", path, json={"pauseAfterFailures": None}).json()["data"]["pauseAfterFailures"] is None
    assert client.call("PATCH", path, json={}).json()["data"]["maxRetries"] == 5
    chosen = client.get(f"{HOOKS}/{subscribe(client, maxRetries=10, pauseAfterFailures=1)}").json()["data"]
    assert (chosen["maxRetries"], chosen["pauseAfterFailures"]) == (10, 1)


@parametrize(
    ("body", "codes"),
    [
        ({"maxRetries": 11}, ["Webhook.InvalidMaxRetries"]),
        ({"maxRetries": -1}, ["Webhook.InvalidMaxRetries"]),
        ({"maxRetries": "1"}, ["Webhook.InvalidMaxRetries"]),
        ({"maxRetries": None}, ["Webhook.InvalidMaxRetries"]),
        (
            {"maxRetries": True, "pauseAfterFailures": 0},
            ["Webhook.InvalidMaxRetries", "Webhook.InvalidPauseAfterFailures"],
        ),
        ({"pauseAfterFailures": 1_001}, ["Webhook.InvalidPauseAfterFailures"]),
    ],
)
def test_retries_and_pause_have_bounds(client: Client, body: dict[str, object], codes: list[str]) -> None:
    hook = {"eventType": "job.completed", "webhookUrl": "https://lender.example/hook"}
    path = f"{HOOKS}/{subscribe(client)}"
    for answer in (client.call("PATCH", path, json=body), client.post(HOOKS, hook | body)):
        assert answer.status_code == 400
        assert [fault["code"] for fault in answer.json()["errors"]] == codes


def test_a_pause_holds_deliveries_until_resumed(store: Store, client: Client) -> None:
    path = f"{HOOKS}/{subscribe(client)}"
    paused = client.post(f"{path}/pause").json()["data"]
    assert (paused["isPaused"], paused["pausedBy"]) == (True, "client")
    happen(store, client, client.new_customer(), count=2)
    assert answer_all(store, client) == []
    assert client.get(f"{path}/summary").json()["data"]["waiting"] == 2
    resumed = client.post(f"{path}/resume").json()["data"]
    assert (resumed["isPaused"], resumed["datePaused"], resumed["pausedBy"]) == (False, None, None)
    assert [str(each.delivery_id) for each in answer_all(store, client, 204)] == ids(list_deliveries(client))[::-1]


def test_only_an_effective_pause_is_in_the_audit_trail(store: Store, client: Client) -> None:
    path = f"{HOOKS}/{subscribe(client)}"
    for _ in range(2):
        assert client.post(f"{path}/pause").status_code == 200
    for _ in range(2):
        assert client.post(f"{path}/resume").status_code == 200
    with store.db.reading() as r:
        done = [each.action for each in audit.find(r, client.client_id)]
    assert done[:3] == ["Subscription.Resumed", "Subscription.Paused", "Subscription.Created"]


def test_a_subscription_pauses_after_failures_in_a_row(store: Store, client: Client) -> None:
    path = f"{HOOKS}/{subscribe(client, pauseAfterFailures=2)}"
    happen(store, client, client.new_customer(), count=2)
    answer_all(store, client, 500)
    reported = client.get(path).json()["data"]
    assert (reported["isPaused"], reported["pausedBy"], reported["failureStreak"]) == (True, "failures", 2)
    assert reported["dateLastFailed"] is not None
    assert client.post(f"{path}/resume").json()["data"]["failureStreak"] == 0


def test_a_retrying_delivery_shows_its_next_attempt(store: Store, client: Client) -> None:
    subscribe(client, maxRetries=1)
    happen(store, client, client.new_customer())
    answer_all(store, client)
    [delivery] = list_deliveries(client, status="retrying")
    assert delivery["dateOfRetry"] > delivery["dateCreated"]


def test_all_failed_deliveries_since_a_time_are_resent(store: Store, client: Client) -> None:
    subscription = subscribe(client)
    one, other = client.new_customer(), client.new_customer()
    for customer in (one, one, other):
        happen(store, client, customer)
    sent = answer_all(store, client)
    path, an_hour_ago = f"{HOOKS}/{subscription}/resend", datetime.now(UTC) - timedelta(hours=1)
    ask = {"since": an_hour_ago.isoformat()}
    of_one = client.post(path, ask | {"customerId": one})
    assert (of_one.status_code, of_one.json()["data"]) == (202, {"resent": 2, "more": False})
    assert of_one.headers["Location"] == f"{HOOKS}/{subscription}/deliveries"
    assert client.post(path, ask | {"until": ask["since"]}).json()["data"]["resent"] == 0
    assert client.post(path, ask | {"status": "retrying"}).json()["data"]["resent"] == 0
    assert client.post(path, ask).json()["data"]["resent"] == 1
    assert client.post(path, ask).json()["data"]["resent"] == 0
    assert sorted(each.body for each in answer_all(store, client, 200)) == sorted(each.body for each in sent)


@parametrize(
    ("body", "code", "pointer"),
    [
        ({}, "Webhook.InvalidSince", "/since"),
        ({"since": "yesterday"}, "Webhook.InvalidSince", "/since"),
        ({"since": "2026-07-01T00:00:00Z", "until": 7}, "Webhook.InvalidUntil", "/until"),
        ({"since": "2026-07-01T00:00:00Z", "status": "delivered"}, "Webhook.InvalidResendStatus", "/status"),
        ({"since": "2026-07-01T00:00:00Z", "customerId": str(uuid4())}, "Webhook.UnknownCustomer", "/customerId"),
        ({"since": "2026-07-01T00:00:00Z", "customerId": 7}, "Webhook.UnknownCustomer", "/customerId"),
    ],
)
def test_an_invalid_resend_is_refused(client: Client, body: dict[str, object], code: str, pointer: str) -> None:
    answer = client.post(f"{HOOKS}/{subscribe(client)}/resend", body)
    assert (answer.status_code, answer.json()["code"]) == (400, code)
    assert [fault["pointer"] for fault in answer.json()["errors"]] == [pointer]


@parametrize("event_type", list(EventType))
def test_a_test_sends_a_sample_of_the_subscriptions_type(store: Store, client: Client, event_type: EventType) -> None:
    customer = client.new_customer()
    subscription = subscribe(client, event_type, customerIds=[customer])
    client.post(f"{HOOKS}/{subscription}/pause")
    asked = client.post(f"{HOOKS}/{subscription}/test")
    assert (asked.status_code, asked.json()["data"]["status"]) == (202, "due")
    again = client.post(f"{HOOKS}/{subscription}/test")
    assert (again.status_code, again.json()["code"]) == (409, "Webhook.TestUnderWay")
    [sent] = answer_all(store, client, 500)
    payload = json.loads(sent.body)
    assert (payload["eventType"], payload["test"]) == (event_type, True)
    assert (payload["clientId"], payload["customerId"]) == (str(client.client_id), customer)
    assert payload["eventId"] == asked.json()["data"]["eventId"] == str(sent.event_id)
    assert jsonschema_rs.is_valid(as_json_schema(event_type), payload)
    [logged] = list_deliveries(client)
    assert (logged["isTest"], logged["status"]) == (True, "failed")
    summary = client.get(f"{HOOKS}/{subscription}/summary").json()["data"]
    assert (summary["failureStreak"], summary["periods"][0]["attempts"]) == (0, 0)


def test_a_summary_counts_deliveries_and_failures(store: Store, client: Client) -> None:
    subscription = subscribe(client, maxRetries=1)
    customer = client.new_customer()
    for status_code in (200, 503):
        happen(store, client, customer)
        answer_all(store, client, status_code)
    summary = client.get(f"{HOOKS}/{subscription}/summary").json()["data"]
    day, week = summary["periods"]
    assert (summary["waiting"], summary["retrying"], summary["failureStreak"]) == (0, 1, 1)
    assert (day["attempts"], day["delivered"], day["failed"]) == (2, 1, 1)
    assert (day["byError"], day["byStatusCode"]) == ({"status": 1}, {"503": 1})
    assert (day["durationP50Ms"], day["durationP95Ms"], week["attempts"]) == (84, 84, 2)
    assert summary["dateLastDelivered"] is not None
