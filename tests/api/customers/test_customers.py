"""Customers are created, found again by reference and ABN, and listed only for their own client."""

from uuid import UUID

import pytest

from tests.api.conftest import ABN, Client

parametrize = pytest.mark.parametrize


def test_a_created_customer_is_found_at_its_location(client: Client) -> None:
    made = client.post("/v1/customer", {"abn": "51 824 753 556", "name": "Harbour Coffee", "state": "NSW"})
    data = made.json()["data"]
    assert made.status_code == 201
    assert made.json()["message"] is None
    assert {key: data[key] for key in ("abn", "abnChecksumValid", "name", "reference", "state", "created")} == {
        "abn": ABN,
        "abnChecksumValid": True,
        "name": "Harbour Coffee",
        "reference": None,
        "state": "NSW",
        "created": True,
    }
    assert made.headers["Location"] == f"/v1/customer/{data['customerId']}"
    shown = client.get(made.headers["Location"]).json()["data"]
    assert shown == {key: value for key, value in data.items() if key != "created"}


def test_an_abn_with_wrong_check_digits_is_stored_and_marked(client: Client) -> None:
    made = client.post("/v1/customer", {"abn": "51824753557"})
    assert (made.status_code, made.json()["data"]["abnChecksumValid"]) == (201, False)


def test_the_same_reference_and_abn_find_the_first_customer(client: Client) -> None:
    first = client.new_customer(reference="A-1", name="first")
    again = client.post("/v1/customer", {"abn": ABN, "reference": "A-1", "name": "second"})
    assert again.status_code == 200
    assert (again.json()["data"]["customerId"], again.json()["data"]["name"]) == (first, "first")
    assert again.json()["data"]["created"] is False


def test_without_a_reference_each_post_creates_and_the_message_names_the_others(client: Client) -> None:
    first = client.new_customer()
    second = client.post("/v1/customer", {"abn": ABN})
    assert second.status_code == 201
    assert second.json()["data"]["customerId"] != first
    assert first in second.json()["message"]


def test_the_message_names_at_most_ten_other_customers(client: Client) -> None:
    made = [client.new_customer() for _ in range(12)]
    message = client.post("/v1/customer", {"abn": ABN}).json()["message"]
    assert [customer_id for customer_id in made if customer_id in message] == made[:10]
    assert message.endswith(", …")


def test_the_message_names_no_other_clients_customers(client: Client, other_client: Client) -> None:
    other_client.new_customer(reference="A-1")
    made = client.post("/v1/customer", {"abn": ABN, "reference": "A-1"})
    assert (made.status_code, made.json()["message"]) == (201, None)


def test_an_id_may_be_in_upper_or_lower_case(client: Client) -> None:
    assert client.get(f"/v1/customer/{client.new_customer().upper()}").status_code == 200


def test_names_in_any_script_come_back_as_they_were_sent(client: Client) -> None:
    name = "Ko\u0308ln \u202eevil\u202c ☕ 商店\u2028"
    customer_id = client.new_customer(name=name)
    assert client.get(f"/v1/customer/{customer_id}").json()["data"]["name"] == name


def test_a_list_contains_only_the_clients_own_customers(client: Client, other_client: Client) -> None:
    other_client.new_customer()
    mine = client.new_customer()
    listed = client.get("/v1/customers").json()["data"]
    assert [customer["customerId"] for customer in listed["customers"]] == [mine]


@parametrize("path", [f"/v1/customer/{UUID(int=7)}", "/v1/customer/x"])
def test_an_unknown_customer_has_its_own_error_code(client: Client, path: str) -> None:
    assert client.get(path).json()["code"] == "Customer.NotFound"
