"""Corrections over HTTP: previewed, made once, listed, revoked, and refused with the pointer of the fault."""

from typing import Any
from uuid import uuid4

import pytest

from storage.core import audit
from storage.core.store import Store
from storage.enrichment import corrections
from tests.api.conftest import Client
from tests.api.worker import Row, end_submissions

parametrize = pytest.mark.parametrize
MEALS: Row = {"description": "COFFEE CART", "counterparty_name": "Harbour Coffee"}
SALE: Row = {
    "description": "COFFEE CART SALE",
    "direction": "credit",
    "category": "customer_transfer",
    "category_group": "revenue",
}


@pytest.fixture
def customer_id(store: Store, client: Client) -> str:
    """A customer with two coffees and a sale."""
    return with_rows(store, client, MEALS, MEALS, SALE)


def with_rows(store: Store, client: Client, *rows: Row) -> str:
    customer_id = client.new_customer()
    client.submit_transactions(customer_id)
    end_submissions(store, rows)
    return customer_id


def path_of(customer_id: str) -> str:
    return f"/v1/customer/{customer_id}/transactions/corrections"


def correct(client: Client, customer_id: str, status: int = 202, **body: object) -> dict[str, Any]:
    """Make a correction; return the answer's data, or the problem."""
    answer = client.post(path_of(customer_id), body)
    assert answer.status_code == status, answer.text
    found: dict[str, Any] = answer.json()
    data: dict[str, Any] = found.get("data", found)
    return data


def list_corrections(client: Client, customer_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(path_of(customer_id)).json()["data"]["corrections"]
    return found


def faults(problem: dict[str, Any]) -> list[tuple[str, str]]:
    return [(fault["pointer"], fault["code"]) for fault in problem["errors"]]


def test_a_correction_is_a_job_to_poll(store: Store, client: Client, customer_id: str) -> None:
    answer = client.post(path_of(customer_id), {"pattern": "coffee cart", "category": "repairs"})
    made = answer.json()["data"]
    assert (answer.status_code, answer.headers["Retry-After"]) == (202, "1")
    assert answer.headers["Location"] == f"/v1/jobs/{made['jobId']}/status"
    assert (made["transactionCount"], made["changedCount"], made["customerCount"]) == (2, 2, 1)
    assert (made["byCategory"], made["examples"]) == ([{"category": "meals", "count": 2}], [])
    job = client.get(answer.headers["Location"]).json()["data"]
    assert (job["flow"], job["jobType"], job["withdraws"]) == ("Correction", "Correction", None)
    assert [stage["stage"] for stage in job["stages"]] == ["correction"]
    with store.db.reading() as r:
        entry = audit.find(r, client.client_id)[0]
    named_ids = {"customerId": customer_id, "correctionId": made["correctionId"]}
    assert (entry.action, entry.resource) == ("Correction.Made", named_ids)
    end_submissions(store, ())
    assert client.get(answer.headers["Location"]).json()["data"]["status"] == "Completed"


def test_a_preview_shows_the_changes_and_changes_nothing(client: Client, customer_id: str) -> None:
    reported = correct(client, customer_id, 200, counterparty="HARBOUR coffee", category="repairs", preview=True)
    assert (reported["preview"], reported["correctionId"], reported["jobId"]) == (True, None, None)
    assert (reported["transactionCount"], reported["changedCount"]) == (2, 2)
    shown = [(row["description"], row["category"], row["amount"], row["counterparty"]) for row in reported["examples"]]
    assert shown == [("COFFEE CART", "meals", -4.5, "Harbour Coffee")] * 2
    assert list_corrections(client, customer_id) == []


def test_a_preview_shows_at_most_twenty_rows(store: Store, client: Client) -> None:
    customer_id = with_rows(store, client, *[MEALS] * 25)
    reported = correct(client, customer_id, 200, pattern="coffee", counterpartyName="The Cart", preview=True)
    assert (reported["changedCount"], len(reported["examples"])) == (25, 20)


def test_one_transaction_is_corrected_by_its_id(client: Client, customer_id: str) -> None:
    rows = client.get(f"/v1/customer/{customer_id}/transactions").json()["data"]["transactions"]
    [sale] = [row["transactionId"] for row in rows if row["direction"] == "credit"]
    made = correct(client, customer_id, transactionId=sale, category="interest_received")
    assert (made["transactionCount"], made["byCategory"]) == (1, [{"category": "customer_transfer", "count": 1}])
    [shown] = list_corrections(client, customer_id)
    assert (shown["transactionId"], shown["direction"], shown["scope"]) == (sale, "credit", "customer")


def test_a_preview_of_one_transaction_offers_the_similar_ones(client: Client, customer_id: str) -> None:
    rows = client.get(f"/v1/customer/{customer_id}/transactions").json()["data"]["transactions"]
    coffee = next(row["transactionId"] for row in rows if row["description"] == "COFFEE CART")
    asked = {"transactionId": coffee, "category": "repairs"}
    reported = correct(client, customer_id, 200, **asked, preview=True)
    assert (reported["transactionCount"], [row["transactionId"] for row in reported["examples"]]) == (1, [coffee])
    offered = reported["similar"]
    assert (offered["counterparty"], offered["pattern"], offered["direction"]) == ("Harbour Coffee", None, "debit")
    assert (offered["transactionCount"], offered["changedCount"], len(offered["examples"])) == (1, 1, 1)
    assert coffee not in [row["transactionId"] for row in offered["examples"]]
    assert correct(client, customer_id, **asked)["similar"] is None, "only a preview offers them"
    sent = {name: offered[name] for name in ("counterparty", "direction")}
    assert correct(client, customer_id, category="repairs", **sent)["changedCount"] == 1


def test_rows_without_a_counterparty_are_similar_by_their_words(store: Store, client: Client) -> None:
    nameless = {"counterparty_name": None, "counterparty_group": None, "clean_description": "COFFEE CART"}
    customer_id = with_rows(store, client, *[{**MEALS, **nameless}] * 3, SALE)
    rows = client.get(f"/v1/customer/{customer_id}/transactions").json()["data"]["transactions"]
    asked = {"category": "repairs", "preview": True}
    coffee = next(row["transactionId"] for row in rows if row["direction"] == "debit")
    offered = correct(client, customer_id, 200, transactionId=coffee, **asked)["similar"]
    assert (offered["counterparty"], offered["pattern"], offered["changedCount"]) == (None, "COFFEE CART", 2)
    alone = with_rows(store, client, {**MEALS, **nameless})
    [row] = client.get(f"/v1/customer/{alone}/transactions").json()["data"]["transactions"]
    assert correct(client, alone, 200, transactionId=row["transactionId"], **asked)["similar"] is None


def test_corrections_are_listed_newest_first_and_revoked_ones_stay(client: Client, customer_id: str) -> None:
    first = correct(client, customer_id, pattern="coffee", category="repairs")["correctionId"]
    second = correct(client, customer_id, counterparty="Harbour Coffee", counterpartyName="Cart")["correctionId"]
    answer = client.delete(f"{path_of(customer_id)}/{first}")
    assert answer.status_code == 202
    job = answer.json()["data"]
    assert (job["flow"], answer.headers["Location"]) == ("Correction", f"/v1/jobs/{job['jobId']}/status")
    shown = list_corrections(client, customer_id)
    assert [each["correctionId"] for each in shown] == [second, first]
    assert [each["dateRevoked"] is None for each in shown] == [True, False]
    assert shown[1]["revokedBy"] == shown[1]["madeBy"] == shown[0]["madeBy"]
    assert client.delete(f"{path_of(customer_id)}/{first}").json()["data"]["jobId"] == job["jobId"]
    page = client.get(f"{path_of(customer_id)}?page=2&count=1").json()["data"]
    assert ([each["correctionId"] for each in page["corrections"]], page["totalCount"]) == ([first], 2)


def test_the_list_counts_the_rows_that_each_correction_decides(store: Store, client: Client) -> None:
    customer_id = client.new_customer()
    made = correct(client, customer_id, pattern="coffee", category="repairs")["correctionId"]
    client.submit_transactions(customer_id)
    end_submissions(store, [{"category_basis": f"correction {made}: words COFFEE"}, {}])
    assert [each["transactionCount"] for each in list_corrections(client, customer_id)] == [1]


def test_a_correction_for_all_customers_applies_to_each_and_is_in_every_list(
    store: Store, client: Client, other_client: Client, customer_id: str
) -> None:
    neighbour, idle = with_rows(store, client, MEALS), client.new_customer()
    foreign = with_rows(store, other_client, MEALS)
    made = correct(client, customer_id, pattern="coffee", category="repairs", scope="client")
    assert (made["transactionCount"], made["customerCount"]) == (3, 2)
    queued = client.get("/v1/jobs?flow=Correction").json()["data"]["jobs"]
    assert {job["customerId"] for job in queued} == {customer_id, neighbour}
    for each in (customer_id, neighbour, idle):
        assert [(shown["correctionId"], shown["scope"]) for shown in list_corrections(client, each)] == [
            (made["correctionId"], "client")
        ]
    assert list_corrections(other_client, foreign) == []
    assert client.delete(f"{path_of(idle)}/{made['correctionId']}").status_code == 202
    assert [each["dateRevoked"] is None for each in list_corrections(client, neighbour)] == [False]


def test_an_equal_correction_is_not_made_twice(client: Client, customer_id: str) -> None:
    correction: dict[str, Any] = {"pattern": "coffee", "category": "repairs"}
    first, again = correct(client, customer_id, **correction), correct(client, customer_id, **correction)
    assert first["correctionId"] == again["correctionId"]
    correct(client, customer_id, pattern="coffee", category="meals")
    third = correct(client, customer_id, **correction)
    assert third["correctionId"] != first["correctionId"]
    assert len(list_corrections(client, customer_id)) == 3


def test_a_repetition_with_its_key_gets_the_first_answer(client: Client, customer_id: str) -> None:
    correction, key = {"pattern": "coffee", "category": "repairs"}, {"Idempotency-Key": str(uuid4())}
    first, again = (client.post(path_of(customer_id), correction, headers=key) for _ in range(2))
    assert (first.json()["data"], first.headers["Location"]) == (again.json()["data"], again.headers["Location"])
    assert again.headers["Idempotency-Replayed"] == "true"
    preview, key = correction | {"preview": True}, {"Idempotency-Key": str(uuid4())}
    assert [client.post(path_of(customer_id), preview, headers=key).status_code for _ in range(2)] == [200, 200]


@parametrize(
    ("body", "expected"),
    [
        ({"category": "rent"}, [("", "Correction.WrongTarget")]),
        ({"pattern": "a", "counterparty": "b", "category": "rent"}, [("", "Correction.WrongTarget")]),
        ({"pattern": "a"}, [("", "Correction.ChangesNothing")]),
        ({}, [("", "Correction.WrongTarget"), ("", "Correction.ChangesNothing")]),
        ({"transactionId": str(uuid4()), "category": "rent", "scope": "client"}, [("/scope", "Correction.WrongScope")]),
        ({"pattern": "a", "category": "rent", "direction": "credit"}, [("/category", "Correction.WrongSide")]),
        ({"transactionId": "x", "category": "rent"}, [("/transactionId", "Correction.InvalidTransactionId")]),
        ({"pattern": "--", "category": "rent"}, [("/pattern", "Correction.InvalidPattern")]),
        ({"pattern": "a " * 11, "category": "rent"}, [("/pattern", "Correction.InvalidPattern")]),
        ({"pattern": "a" * 201, "category": "rent"}, [("/pattern", "Correction.InvalidPattern")]),
        ({"counterparty": "!", "category": "rent"}, [("/counterparty", "Correction.InvalidCounterparty")]),
        ({"pattern": "a", "category": "nonsense"}, [("/category", "Correction.InvalidCategory")]),
        ({"pattern": "a", "counterpartyName": 7}, [("/counterpartyName", "Correction.InvalidCounterpartyName")]),
        ({"pattern": "a", "category": "rent", "direction": "in"}, [("/direction", "Correction.InvalidDirection")]),
        ({"pattern": "a", "category": "rent", "scope": "all"}, [("/scope", "Correction.InvalidScope")]),
        ({"pattern": "a", "category": "rent", "preview": "yes"}, [("/preview", "Correction.InvalidPreview")]),
    ],
)
def test_a_fault_is_refused_with_its_pointer(
    client: Client, customer_id: str, body: dict[str, object], expected: list[tuple[str, str]]
) -> None:
    assert faults(correct(client, customer_id, 400, **body)) == expected
    assert list_corrections(client, customer_id) == []


def test_the_category_must_fit_the_transactions_direction(client: Client, customer_id: str) -> None:
    rows = client.get(f"/v1/customer/{customer_id}/transactions").json()["data"]["transactions"]
    [sale] = [row["transactionId"] for row in rows if row["direction"] == "credit"]
    problem = correct(client, customer_id, 400, transactionId=sale, category="rent")
    assert faults(problem) == [("/category", "Correction.WrongSide")]


def test_regular_expressions_are_taken_as_plain_text(client: Client, customer_id: str) -> None:
    made = correct(client, customer_id, 200, pattern="(CO+|.*)", category="repairs", preview=True)
    assert made["transactionCount"] == 0


def test_card_numbers_are_masked(client: Client, customer_id: str) -> None:
    correct(client, customer_id, pattern="card 4111111111111111", category="repairs")
    [shown] = list_corrections(client, customer_id)
    assert shown["pattern"] == "card 411111xxxxxx1111"


def test_the_number_of_corrections_is_limited(
    client: Client, customer_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corrections, "MAX_LIVE", 2)
    first = correct(client, customer_id, pattern="a", category="rent")["correctionId"]
    correct(client, customer_id, pattern="b", category="rent")
    assert correct(client, customer_id, 409, pattern="c", category="rent")["code"] == "Correction.TooMany"
    assert correct(client, customer_id, pattern="c", category="rent", scope="client")["transactionCount"] == 0
    client.delete(f"{path_of(customer_id)}/{first}")
    correct(client, customer_id, pattern="c", category="rent")


def test_foreign_transactions_and_corrections_are_not_found(
    client: Client, other_client: Client, customer_id: str
) -> None:
    rows = client.get(f"/v1/customer/{customer_id}/transactions").json()["data"]["transactions"]
    foreign_row, neighbours = rows[0]["transactionId"], client.new_customer()
    for who, customer, transaction in (
        (client, customer_id, str(uuid4())),
        (client, neighbours, foreign_row),
        (other_client, other_client.new_customer(), foreign_row),
    ):
        problem = correct(who, customer, 404, transactionId=transaction, category="rent")
        assert problem["code"] == "Transaction.NotFound"
    own = correct(client, customer_id, pattern="coffee", category="repairs")["correctionId"]
    neighbour, foreign = client.new_customer(), other_client.new_customer()
    for who, customer, correction, code in (
        (client, neighbour, own, "Correction.NotFound"),
        (client, customer_id, str(uuid4()), "Correction.NotFound"),
        (client, customer_id, "x", "Correction.NotFound"),
        (other_client, foreign, own, "Correction.NotFound"),
        (other_client, customer_id, own, "Customer.NotFound"),
    ):
        answer = who.delete(f"{path_of(customer)}/{correction}")
        assert (answer.status_code, answer.json()["code"]) == (404, code)
    wide = correct(client, customer_id, pattern="tea", category="repairs", scope="client")["correctionId"]
    assert other_client.delete(f"{path_of(foreign)}/{wide}").status_code == 404


def test_changed_related_parties_enrich_the_customer_once_more(client: Client, customer_id: str) -> None:
    path = f"/v1/customer/{customer_id}/related-parties"
    for _ in range(2):
        assert client.call("PUT", path, json=[{"name": "Alex Nguyen", "role": "director"}]).status_code == 200
    queued = client.get(f"/v1/jobs?flow=Reenrichment&customerId={customer_id}").json()["data"]["jobs"]
    assert [(job["jobType"], job["stages"][0]["stage"]) for job in queued] == [("Reenrichment", "reenrichment")]
