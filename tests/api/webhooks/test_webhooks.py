"""Subscriptions over HTTP: their secrets, their scopes of customers, and their deliveries."""

import base64
from typing import Any
from uuid import uuid4

import pytest

from api.webhooks.routes import webhooks
from api.webhooks.schemas import MAX_CUSTOMERS
from pipelines.webhooks.events import EVENT_TYPES
from storage.core.store import Store
from tests.api.conftest import Client, belongings
from tests.api.worker import end_submissions, fail_deliveries

PATH = "/v1/webhooks/subscriptions"
HOOK = {"eventType": "job.completed", "webhookUrl": "https://lender.example/hook"}


def subscribe(client: Client, **fields: object) -> dict[str, Any]:
    made = client.post(PATH, HOOK | fields)
    assert made.status_code == 201, made.text
    found: dict[str, Any] = made.json()["data"]
    return found


def test_the_secret_is_shown_on_creation_and_never_again(client: Client) -> None:
    made = client.post(PATH, HOOK)
    data = made.json()["data"]
    secret = data.pop("secret")
    assert len(base64.b64decode(secret, validate=True)) == 32
    assert made.headers["Location"] == f"{PATH}/{data['webhookSubscriptionId']}"
    assert (data["eventType"], data["webhookUrl"]) == (HOOK["eventType"], HOOK["webhookUrl"])
    assert (data["customerIds"], data["isCatchAll"]) == ([], True)
    for path in (PATH, made.headers["Location"]):
        assert secret not in client.get(path).text
    assert client.get(made.headers["Location"]).json()["data"] == data


@pytest.mark.parametrize("event_type", EVENT_TYPES)
def test_every_event_type_can_be_subscribed_to(client: Client, event_type: str) -> None:
    assert subscribe(client, eventType=event_type)["eventType"] == event_type


def test_equal_subscriptions_are_two_with_a_secret_each(client: Client) -> None:
    one, two = subscribe(client), subscribe(client)
    assert one["webhookSubscriptionId"] != two["webhookSubscriptionId"]
    assert one["secret"] != two["secret"]
    assert client.get(PATH).json()["data"]["totalCount"] == 2


def test_customers_are_added_and_removed_and_an_empty_scope_means_all(client: Client) -> None:
    first, second = client.new_customer(), client.new_customer()
    path = f"{PATH}/{subscribe(client, customerIds=[first])['webhookSubscriptionId']}/customers"
    scope = client.post(path, {"customerIds": [second, first]}).json()["data"]
    assert (scope["customerIds"], scope["isCatchAll"]) == ([first, second], False)
    assert "secret" not in scope
    assert client.delete(path, {"customerIds": [first]}).json()["data"]["customerIds"] == [second]
    emptied = client.delete(path, {"customerIds": [second, first]}).json()["data"]
    assert (emptied["customerIds"], emptied["isCatchAll"]) == ([], True)


def test_foreign_and_unknown_customers_are_refused_with_pointers(client: Client, other_client: Client) -> None:
    ids = [client.new_customer(), other_client.new_customer(), str(uuid4())]
    subscription = subscribe(client)["webhookSubscriptionId"]
    for path, body in (
        (PATH, HOOK | {"customerIds": ids}),
        (f"{PATH}/{subscription}/customers", {"customerIds": ids}),
    ):
        problem = client.post(path, body).json()
        assert (problem["status"], problem["code"]) == (400, "Webhook.UnknownCustomer")
        assert [fault["pointer"] for fault in problem["errors"]] == ["/customerIds/1", "/customerIds/2"]
    assert client.get(PATH).json()["data"]["subscriptions"][0]["customerIds"] == []


@pytest.mark.parametrize("body", [{}, {"customerIds": []}, {"customerIds": None}])
def test_changing_a_scope_needs_customers(client: Client, body: dict[str, Any]) -> None:
    path = f"{PATH}/{subscribe(client)['webhookSubscriptionId']}/customers"
    assert client.post(path, body).status_code == 400
    assert client.delete(path, body).status_code == 400


@pytest.mark.parametrize("count", [0, MAX_CUSTOMERS + 1])
def test_the_customers_of_a_change_of_scope_are_limited(client: Client, count: int) -> None:
    path = f"{PATH}/{subscribe(client)['webhookSubscriptionId']}/customers"
    for answer in (client.post(path, {"customerIds": ids(count)}), client.delete(path, {"customerIds": ids(count)})):
        assert (answer.status_code, answer.json()["code"]) == (400, "Webhook.WrongCount")
        assert [fault["pointer"] for fault in answer.json()["errors"]] == ["/customerIds"]


def test_the_customers_of_a_new_subscription_are_limited(client: Client) -> None:
    refused = client.post(PATH, HOOK | {"customerIds": ids(MAX_CUSTOMERS + 1)})
    assert (refused.status_code, refused.json()["code"]) == (400, "Webhook.WrongCount")
    assert subscribe(client, customerIds=[])["isCatchAll"]
    assert subscribe(client, customerIds=None)["isCatchAll"]


def ids(count: int) -> list[str]:
    return [str(uuid4()) for _ in range(count)]


def test_a_forbidden_url_and_unknown_customers_are_reported_together(client: Client) -> None:
    hook = HOOK | {"webhookUrl": "https://10.0.0.1/hook", "customerIds": [client.new_customer(), str(uuid4())]}
    problem = client.post(PATH, hook).json()
    assert (problem["status"], problem["code"]) == (400, "Request.Invalid")
    assert [(fault["pointer"], fault["code"]) for fault in problem["errors"]] == [
        ("/webhookUrl", "Webhook.UrlForbidden"),
        ("/customerIds/1", "Webhook.UnknownCustomer"),
    ]


def test_rotation_answers_with_a_new_secret(client: Client) -> None:
    made = subscribe(client)
    rotated = client.post(f"{PATH}/{made['webhookSubscriptionId']}/secret/rotate")
    assert rotated.status_code == 200
    assert rotated.json()["data"].keys() == {"webhookSubscriptionId", "secret"}
    assert rotated.json()["data"]["secret"] != made["secret"]


def test_a_deleted_subscription_is_gone(client: Client) -> None:
    made = subscribe(client)
    path = f"{PATH}/{made['webhookSubscriptionId']}"
    deleted = client.delete(path)
    assert deleted.status_code == 200
    assert deleted.json()["data"] == {key: value for key, value in made.items() if key != "secret"}
    assert client.get(path).status_code == 404
    assert client.delete(path).status_code == 404


def test_deliveries_are_listed_and_resent_on_request(store: Store, client: Client) -> None:
    owned = belongings(store, client)
    path = f"{PATH}/{owned['subscriptionId']}/deliveries"
    delivery, _ = client.get(path).json()["data"]["deliveries"]
    assert (delivery["eventType"], delivery["status"], delivery["attempts"]) == ("job.completed", "due", [])
    resend = f"/v1/webhooks/deliveries/{delivery['deliveryId']}/resend"
    assert client.post(resend).json()["code"] == "Webhook.DeliveryInFlight"
    fail_deliveries(store)
    failed, _ = client.get(path).json()["data"]["deliveries"]
    assert (failed["deliveryId"], failed["status"]) == (delivery["deliveryId"], "failed")
    assert failed["attempts"][0]["response"] == "sorry \ufffd\ufffd"
    again = client.post(resend)
    assert (again.status_code, again.headers["Location"]) == (202, path)
    assert again.json()["data"]["status"] == "due"
    assert again.json()["data"]["eventId"] == delivery["eventId"]


def test_long_lists_of_deliveries_are_sent_in_slices(
    store: Store, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "DELIVERIES_PER_SLICE", 2)
    owned = belongings(store, client)
    for _ in range(3):  # beside the two of `belongings`
        client.submit_transactions(owned["customerId"])
        end_submissions(store)
    path = f"{PATH}/{owned['subscriptionId']}/deliveries"
    everything = client.get(path).json()["data"]
    listed = everything.pop("deliveries")
    assert everything == {"totalCount": 5, "currentPage": None, "pageSize": 5, "totalPages": 1}
    assert listed[-1]["deliveryId"] == owned["deliveryId"]
    assert [each["dateCreated"] for each in listed] == sorted((each["dateCreated"] for each in listed), reverse=True)
    page = client.get(path, params={"page": 2, "count": 3}).json()["data"]
    assert (page["deliveries"], page["totalCount"], page["totalPages"]) == (listed[3:], 5, 2)
    assert client.get(path, params={"page": 3, "count": 3}).json()["data"]["deliveries"] == []


def test_a_delivery_of_a_deleted_subscription_is_not_resent(store: Store, client: Client) -> None:
    owned = belongings(store, client)
    fail_deliveries(store)
    client.delete(f"{PATH}/{owned['subscriptionId']}")
    answer = client.post(f"/v1/webhooks/deliveries/{owned['deliveryId']}/resend")
    assert (answer.status_code, answer.json()["code"]) == (409, "Webhook.SubscriptionDeleted")
