"""Paging of every list of the service."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest

from storage.core.store import Store
from tests.api.conftest import ABN, Client, belongings, new_client
from tests.api.core.operations import Operation, Paired, list_operations, paired

parametrize = pytest.mark.parametrize
NOT_IN_RANGE = ("0", "-1", "+1", "1.0", "1e3", "01", "", " 1", "x", "١", "NaN", "1000000000000000000", "9" * 5000)


@cache
def lists() -> Sequence[Operation]:
    paged = [operation for operation in list_operations() if "'page'" in str(operation.documented.get("parameters"))]
    return [operation for operation in paged if operation.path != "/v1/decision-policies"]  # it has `pageSize`


@pytest.fixture
def three(client: Client) -> Client:
    for number in range(3):
        client.new_customer(reference=f"number {number}")
    return client


@pytest.fixture(scope="module")
def owner(store: Store, base_url: str) -> tuple[Client, dict[str, str]]:
    """A client with one resource of each kind, for tests that only read."""
    client = new_client(store, base_url)
    return client, belongings(store, client)


def counts(data: dict[str, Any]) -> tuple[int, int | None, int, int]:
    return data["totalCount"], data["currentPage"], data["pageSize"], data["totalPages"]


@parametrize(
    ("query", "shown", "reported"),
    [
        ("", [0, 1, 2], (3, None, 3, 1)),
        ("?count=2", [0, 1, 2], (3, None, 3, 1)),
        ("?page=1", [0, 1, 2], (3, 1, 20, 1)),
        ("?page=1&count=2", [0, 1], (3, 1, 2, 2)),
        ("?page=2&count=2", [2], (3, 2, 2, 2)),
        ("?page=3&count=2", [], (3, 3, 2, 2)),
        ("?page=1000000000&count=1000", [], (3, 1_000_000_000, 1000, 1)),
        ("?unknown=1&unknown=2", [0, 1, 2], (3, None, 3, 1)),
    ],
)
def test_pages_start_at_one_and_no_page_returns_everything(
    three: Client, query: str, shown: list[int], reported: tuple[int, int | None, int, int]
) -> None:
    data = three.get(f"/v1/customers{query}").json()["data"]
    assert [customer["reference"] for customer in data["customers"]] == [f"number {number}" for number in shown]
    assert counts(data) == reported


def test_an_empty_list_has_no_pages(client: Client) -> None:
    assert counts(client.get("/v1/customers").json()["data"]) == (0, None, 0, 0)
    assert counts(client.get("/v1/customers?page=1").json()["data"]) == (0, 1, 20, 0)


@paired
def test_an_invalid_page_or_count_is_refused(
    subtests: pytest.Subtests, owner: tuple[Client, dict[str, str]], paired: Paired
) -> None:
    client, own = owner
    for operation, text in paired(lists(), NOT_IN_RANGE):
        with subtests.test(str(operation), text=text[:20]):
            answer = client.get(operation.path_for(own), params={"page": text, "count": text})
            assert answer.status_code == 400
            assert {fault["pointer"]: fault["code"] for fault in answer.json()["errors"]} == {
                "/page": "Pagination.InvalidPage",
                "/count": "Pagination.InvalidCount",
            }


@parametrize(
    "query", ["page=1&page=1", "page=1&page=2", "count=5&count=5", "page=1&count=1001", "count=1001", "count=0"]
)
def test_a_parameter_given_twice_or_out_of_range_is_refused(client: Client, query: str) -> None:
    assert client.get(f"/v1/customers?{query}").status_code == 400


def test_every_list_can_be_read_whole_and_by_pages(
    subtests: pytest.Subtests, owner: tuple[Client, dict[str, str]]
) -> None:
    client, own = owner
    for operation in lists():
        with subtests.test(str(operation)):
            path = operation.path_for(own)
            whole = client.get(path).json()["data"]
            page = client.get(path + "?page=1&count=1").json()["data"]
            assert whole["currentPage"] is None
            assert whole["pageSize"] == whole["totalCount"]
            assert counts(page) == (whole["totalCount"], 1, 1, whole["totalCount"])


@parametrize(
    ("query", "found"),
    [
        (f"abn={ABN}", 3),
        ("abn=51 824 753 556", 3),
        ("abn=12345678901", 0),
        ("reference=number 1", 1),
        ("reference=%25", 0),
        ("reference=number _", 0),
        ("reference=' OR 1=1 --", 0),
        (f"abn={ABN}&reference=number 2", 1),
    ],
)
def test_filters_are_exact_and_literal(three: Client, query: str, found: int) -> None:
    assert three.get(f"/v1/customers?{query}").json()["data"]["totalCount"] == found


@parametrize(
    ("query", "code"),
    [
        ("abn=x", "Customer.InvalidAbn"),
        ("reference=%00", "Customer.InvalidReference"),
        ("reference=a&reference=a", "Customer.InvalidReference"),
    ],
)
def test_a_malformed_filter_of_customers_is_refused(client: Client, query: str, code: str) -> None:
    answer = client.get(f"/v1/customers?{query}")
    assert (answer.status_code, answer.json()["code"]) == (400, code)
