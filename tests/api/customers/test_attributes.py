"""Attributes come back as they were sent, are merged, expire, keep their history, and belong to one customer."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from storage.access import keys
from storage.core import audit
from storage.core.store import Store
from tests.api.conftest import Client

parametrize = pytest.mark.parametrize


@pytest.fixture
def customer_id(client: Client) -> str:
    return client.new_customer()


def put(client: Client, customer_id: str, attributes: object) -> dict[str, Any]:
    """Put attributes and return the current ones."""
    answer = client.call("PUT", f"/v1/customer/{customer_id}/attributes", json={"attributes": attributes})
    assert answer.status_code == 200, answer.text
    held: dict[str, Any] = answer.json()["data"]["attributes"]
    return held


def get_attributes(client: Client, customer_id: str, query: str = "") -> dict[str, Any]:
    answer = client.get(f"/v1/customer/{customer_id}/attributes{query}")
    assert answer.status_code == 200, answer.text
    data: dict[str, Any] = answer.json()["data"]
    return data


def values(attributes: dict[str, Any]) -> dict[str, Any]:
    return {name: attribute["value"] for name, attribute in attributes.items()}


def refusal(client: Client, customer_id: str, attributes: object) -> tuple[int, list[tuple[str, str]]]:
    answer = client.call("PUT", f"/v1/customer/{customer_id}/attributes", json={"attributes": attributes})
    return answer.status_code, [(fault["pointer"], fault["code"]) for fault in answer.json().get("errors", [])]


def test_values_of_every_kind_come_back_as_they_were_sent(client: Client, customer_id: str) -> None:
    sent = {"score": 684, "ratio": 0.1, "trading_name": "Café ☕", "guaranteed": False}
    assert values(put(client, customer_id, sent)) == sent
    assert values(get_attributes(client, customer_id)["attributes"]) == sent


@parametrize(
    ("sent", "shown"),
    [
        ("12345678901234567.890123456789012345", "12345678901234567.890123456789012345"),
        ("0.30000000000000004", "0.30000000000000004"),
        ("1.10", "1.10"),
        ("1e3", "1000"),
        ("-25E-1", "-2.5"),
        ("-0.0", "0"),
        ("9007199254740993", "9007199254740993"),
    ],
)
def test_numbers_are_exact(client: Client, customer_id: str, sent: str, shown: str) -> None:
    body = f'{{"attributes": {{"x": {sent}, "y": {{"value": {sent}}}}}}}'
    path, headers = f"/v1/customer/{customer_id}/attributes", {"Content-Type": "application/json"}
    assert client.call("PUT", path, data=body, headers=headers).status_code == 200
    assert client.get(path).text.count(f'"value":{shown},') == 4  # two current values, two in the history


def test_sent_attributes_are_merged_and_null_removes_one(client: Client, customer_id: str) -> None:
    put(client, customer_id, {"a": 1, "b": 2})
    assert values(put(client, customer_id, {"b": 3, "c": "x"})) == {"a": 1, "b": 3, "c": "x"}
    assert values(put(client, customer_id, {"a": None, "never_set": None})) == {"b": 3, "c": "x"}
    assert values(put(client, customer_id, {})) == {"b": 3, "c": "x"}


def test_every_change_stays_in_the_history_with_who_and_when(store: Store, client: Client, customer_id: str) -> None:
    whole = {"value": 684, "source": "bureau", "evidenceDate": "2026-06-28", "expiresAt": "2036-09-28T10:00:00+10:00"}
    put(client, customer_id, {"score": 650})
    put(client, customer_id, {"score": whole})
    put(client, customer_id, {"score": whole})  # no change
    put(client, customer_id, {"score": None})
    data = get_attributes(client, customer_id)
    assert data["attributes"] == {}
    assert [change["value"] for change in data["history"]] == [None, 684, 650]
    change = data["history"][1]
    with store.db.reading() as r:
        [key] = keys.find_keys(r, client.client_id)
    assert (change["setBy"], change["name"]) == (str(key.key_id), "score")
    assert (change["source"], change["evidenceDate"], change["expiresAt"]) == (
        "bureau",
        "2026-06-28",
        "2036-09-28T00:00:00Z",
    )
    assert [each["dateSet"] for each in data["history"]] == sorted(
        (each["dateSet"] for each in data["history"]), reverse=True
    )
    page = get_attributes(client, customer_id, "?page=2&count=1")
    assert ([each["value"] for each in page["history"]], page["totalCount"]) == ([684], 3)


def test_an_expired_value_is_not_available(client: Client, customer_id: str) -> None:
    past = (datetime.now(UTC) - timedelta(seconds=1)).isoformat()
    held = put(client, customer_id, {"score": {"value": 684, "expiresAt": past}, "other": 1})
    assert (held["score"]["value"], held["score"]["available"]) == (None, False)
    assert (held["other"]["value"], held["other"]["available"]) == (1, True)
    assert get_attributes(client, customer_id)["history"][-1]["value"] == 684


@parametrize(
    "number", ["1e9999999999999999999", "-1e-9999999999999999999", "0e9999999999999999999", "1e" + "9" * 4_000]
)
def test_a_number_with_an_exponent_beyond_reason_is_refused(client: Client, customer_id: str, number: str) -> None:
    body = f'{{"attributes": {{"x": {number}, "y": {{"value": {number}}}}}}}'
    url, headers = f"/v1/customer/{customer_id}/attributes", {"content-type": "application/json"}
    refused = client.call("PUT", url, data=body, headers=headers)
    assert refused.status_code == 400
    assert [fault["code"] for fault in refused.json()["errors"]] == ["Attribute.InvalidValue"] * 2


@parametrize(
    ("value", "code"),
    [
        ("", "InvalidValue"),
        ("x" * 1_001, "InvalidValue"),
        ([], "InvalidValue"),
        (10**18, "InvalidValue"),
        (1e-19, "InvalidValue"),
        (10**400, "InvalidValue"),
    ],
)
def test_an_invalid_value_is_refused_with_its_pointer(
    client: Client, customer_id: str, value: object, code: str
) -> None:
    assert refusal(client, customer_id, {"x": value}) == (400, [("/attributes/x", f"Attribute.{code}")])
    assert refusal(client, customer_id, {"x": {"value": value}}) == (
        400,
        [("/attributes/x/value", f"Attribute.{code}")],
    )
    assert get_attributes(client, customer_id)["history"] == []


@parametrize(
    ("whole", "pointer", "code"),
    [
        ({}, "value", "InvalidValue"),
        ({"source": "bureau"}, "value", "InvalidValue"),
        ({"value": None}, "value", "InvalidValue"),
        ({"value": {}}, "value", "InvalidValue"),
        ({"value": 1, "source": 7}, "source", "InvalidSource"),
        ({"value": 1, "source": "x" * 201}, "source", "InvalidSource"),
        ({"value": 1, "evidenceDate": "2026-02-30"}, "evidenceDate", "InvalidEvidenceDate"),
        ({"value": 1, "evidenceDate": "20260228"}, "evidenceDate", "InvalidEvidenceDate"),
        ({"value": 1, "evidenceDate": 0}, "evidenceDate", "InvalidEvidenceDate"),
        ({"value": 1, "expiresAt": "2026-02-28"}, "expiresAt", "InvalidExpiry"),
        ({"value": 1, "expiresAt": "2026-02-28T00:00:00"}, "expiresAt", "InvalidExpiry"),
    ],
)
def test_faults_of_an_attribute_have_pointers(
    client: Client, customer_id: str, whole: object, pointer: str, code: str
) -> None:
    assert refusal(client, customer_id, {"x": whole}) == (400, [(f"/attributes/x/{pointer}", f"Attribute.{code}")])


@parametrize("name", ["", "1st", "with space", "naïve", "x" * 65, "a/b", "_hidden"])
def test_an_invalid_name_is_refused_without_repeating_it(client: Client, customer_id: str, name: str) -> None:
    assert refusal(client, customer_id, {name: 1, "good": 1}) == (400, [("/attributes", "Attribute.InvalidName")])


@parametrize("attributes", [None, [], "x", 7])
def test_attributes_must_be_an_object(client: Client, customer_id: str, attributes: object) -> None:
    assert refusal(client, customer_id, attributes) == (400, [("/attributes", "Request.WrongType")])


def test_the_number_of_attributes_is_limited(client: Client, customer_id: str) -> None:
    many = {f"a{number}": number for number in range(200)}
    assert refusal(client, customer_id, many | {"one_more": 1}) == (400, [("/attributes", "Attribute.InvalidCount")])
    put(client, customer_id, many)
    answer = client.call("PUT", f"/v1/customer/{customer_id}/attributes", json={"attributes": {"one_more": 1}})
    assert (answer.status_code, answer.json()["code"]) == (409, "Attribute.TooMany")
    assert "one_more" in put(client, customer_id, {"a0": None, "one_more": 1})


def test_card_numbers_are_masked(client: Client, customer_id: str) -> None:
    held = put(client, customer_id, {"x": {"value": "card 4111 1111 1111 1111", "source": "4111111111111111"}})
    assert "41111111" not in str(held).replace(" ", "")


def test_attributes_belong_to_one_customer(store: Store, client: Client, customer_id: str) -> None:
    put(client, customer_id, {"x": 1})
    assert get_attributes(client, client.new_customer())["attributes"] == {}
    with store.db.reading() as r:
        entries = audit.find(r, client.client_id)
    changes = [entry.resource for entry in entries if entry.action == "Customer.AttributesSet"]
    assert changes == [{"customerId": str(UUID(customer_id))}]


def test_attributes_that_were_changed_meanwhile_are_not_set(client: Client, customer_id: str) -> None:
    put(client, customer_id, {"a": 1})
    known = get_attributes(client, customer_id, "?page=1&count=1")["totalCount"]
    put(client, customer_id, {"b": 2})
    path, sent = f"/v1/customer/{customer_id}/attributes", {"attributes": {"a": None}}
    refused = client.call("PUT", f"{path}?knownChanges={known}", json=sent)
    assert (refused.status_code, refused.json()["code"]) == (409, "Customer.ChangedMeanwhile")
    assert values(get_attributes(client, customer_id)["attributes"]) == {"a": 1, "b": 2}
    assert client.call("PUT", f"{path}?knownChanges={known + 1}", json=sent).ok
    assert values(get_attributes(client, customer_id)["attributes"]) == {"b": 2}
