"""A customer's list of related parties is replaced as a whole, and earlier lists stay in the history."""

from typing import Any

import pytest

from tests.api.conftest import ABN, Client

parametrize = pytest.mark.parametrize
DIRECTOR = {"name": "Alex Nguyen", "role": "director"}
COMPANY = {"name": "Harbour Roasters", "abn": "51 824 753 556", "role": "group_company"}


@pytest.fixture
def path(client: Client) -> str:
    return f"/v1/customer/{client.new_customer()}/related-parties"


def put(client: Client, path: str, parties: object) -> list[dict[str, Any]]:
    answer = client.call("PUT", path, json=parties)
    assert answer.status_code == 200, answer.text
    shown: list[dict[str, Any]] = answer.json()["data"]["relatedParties"]
    return shown


def test_the_list_is_returned_with_checked_abns(client: Client, path: str) -> None:
    shown = put(client, path, [DIRECTOR, COMPANY, DIRECTOR | {"role": "guarantor", "abn": "51824753557"}])
    assert [party["abn"] for party in shown] == [None, ABN, "51824753557"]
    assert [party["abnChecksumValid"] for party in shown] == [None, True, False]
    assert client.get(path).json()["data"]["relatedParties"] == shown


def test_a_new_list_replaces_the_previous_one_which_stays_in_the_history(client: Client, path: str) -> None:
    assert client.get(path).json()["data"]["relatedParties"] == []
    for parties in ([DIRECTOR], [DIRECTOR], [DIRECTOR, COMPANY], []):
        put(client, path, parties)
    data = client.get(path).json()["data"]
    assert data["relatedParties"] == []
    assert [[party["name"] for party in each["relatedParties"]] for each in data["history"]] == [
        [],
        ["Alex Nguyen", "Harbour Roasters"],
        ["Alex Nguyen"],
    ]
    assert all(each["setBy"] and each["dateSet"] for each in data["history"])
    page = client.get(f"{path}?page=2&count=2").json()["data"]
    assert (len(page["history"]), page["totalCount"]) == (1, 3)


@parametrize(
    ("parties", "pointer", "code"),
    [
        ({}, "", "Request.WrongType"),
        (None, "", "Request.WrongType"),
        ([7], "/0", "Request.WrongType"),
        ([DIRECTOR, {"role": "director"}], "/1/name", "Request.Missing"),
        ([DIRECTOR | {"name": ""}], "/0/name", "RelatedParty.InvalidName"),
        ([DIRECTOR | {"name": "x" * 201}], "/0/name", "RelatedParty.InvalidName"),
        ([{"name": "Alex"}], "/0/role", "Request.Missing"),
        ([DIRECTOR | {"role": "friend"}], "/0/role", "RelatedParty.InvalidRole"),
        ([DIRECTOR | {"abn": "123"}], "/0/abn", "Customer.InvalidAbn"),
        ([DIRECTOR | {"abn": 51824753556}], "/0/abn", "Customer.InvalidAbn"),
        ([DIRECTOR] * 101, "", "RelatedParty.TooMany"),
    ],
)
def test_a_malformed_list_is_refused_whole(client: Client, path: str, parties: object, pointer: str, code: str) -> None:
    answer = client.call("PUT", path, json=parties)
    if parties is None:
        answer = client.call("PUT", path, data=b"null", headers={"Content-Type": "application/json"})
    problem = answer.json()
    assert (answer.status_code, [(fault["pointer"], fault["code"]) for fault in problem["errors"]]) == (
        400,
        [(pointer, code)],
    )
    assert client.get(path).json()["data"]["history"] == []


def test_card_numbers_are_masked(client: Client, path: str) -> None:
    [shown] = put(client, path, [DIRECTOR | {"name": "Alex 4111111111111111"}])
    assert shown["name"] == "Alex 411111xxxxxx1111"


def test_a_list_that_was_changed_meanwhile_is_not_replaced(client: Client, path: str) -> None:
    """Of two callers who read the same list, the second one does not undo the first one's change."""

    def replace(parties: list[dict[str, str]], known: object) -> tuple[int, object]:
        answer = client.call("PUT", f"{path}?knownChanges={known}", json=parties)
        return answer.status_code, answer.json().get("code")

    assert client.get(path).json()["data"]["totalCount"] == 0
    assert replace([DIRECTOR], 0) == (200, None)
    assert replace([COMPANY], 0) == (409, "Customer.ChangedMeanwhile")
    assert [each["name"] for each in client.get(path).json()["data"]["relatedParties"]] == ["Alex Nguyen"]
    assert replace([DIRECTOR, COMPANY], 1) == (200, None)
    for wrong in ("-1", "x", "1&knownChanges=2"):
        assert replace([], wrong) == (400, "Customer.InvalidKnownChanges")
