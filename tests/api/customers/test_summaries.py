"""The list of customers with what is known of each. `tests/storage/customers/test_summaries.py` has its order and
filters.
"""

from base64 import urlsafe_b64encode
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from storage.core.store import Store
from storage.customers.summary_listing import Sort
from storage.work import items
from tests.api.conftest import ABN, Belongings, Client
from tests.api.reports.test_reports import DATA
from tests.api.worker import end_refreshes, end_submissions

PATH = "/v1/customers/summaries"


def list_summaries(client: Client, query: str = "") -> list[dict[str, Any]]:
    data = client.get(f"{PATH}?{query}").json()["data"]
    assert data["hasMore"] is False
    found: list[dict[str, Any]] = data["customers"]
    return found


def test_summary_follows_the_customer(store: Store, client: Client) -> None:
    customer_id = client.new_customer(name="Harbour Coffee", reference="L-1")
    [new] = list_summaries(client)
    nothing = ("rating", "riskValue", "completenessScore", "dataThrough", "lastDecision", "lastSubmissionAt")
    assert [new[name] for name in nothing] == [None] * len(nothing)
    assert (new["customerId"], new["reportStatus"], new["openAlerts"]) == (customer_id, "pending", 0)
    assert (new["transactionCount"], new["unfinishedJobs"]) == (0, False)

    client.submit_transactions(customer_id)
    [submitted] = list_summaries(client)
    assert submitted["unfinishedJobs"] is True
    assert submitted["lastSubmissionAt"] is not None
    end_submissions(store)
    client.post(f"/v1/customer/{customer_id}/reports/refresh")
    end_refreshes(store, DATA)
    [ready] = list_summaries(client)
    assert (ready["rating"], ready["riskValue"]) == ("B", 0.31)
    assert (ready["completenessScore"], ready["completenessTier"]) == (91.5, "complete")
    assert (ready["reportStatus"], ready["dataThrough"], ready["transactionCount"]) == ("ready", "2026-06-30", 1)
    client.submit_transactions(customer_id)
    end_submissions(store, [{}, {}])
    [stale] = list_summaries(client)
    assert (stale["reportStatus"], stale["transactionCount"]) == ("stale", 2)
    assert client.get(f"/v1/customer/{customer_id}/summary").json()["data"] == stale


def test_decision_and_alerts_are_shown(store: Store, client: Client) -> None:
    own = Belongings(store, client)
    made = client.get(f"/v1/evaluations/{own['evaluationId']}").json()["data"]
    assert own["matchId"]
    [found] = list_summaries(client)
    shown = {name: made[name] for name in ("evaluationId", "slug", "at", "outcome")}
    assert (found["lastDecision"], found["openAlerts"]) == (shown, 1)
    override = {"outcome": "blocked", "reason": "A letter of the bank.", "decidedBy": "J. Citizen"}
    assert client.post(f"/v1/evaluations/{own['evaluationId']}/override", override).status_code == 201
    [found] = list_summaries(client, "outcome=blocked&openAlerts=true")
    assert found["lastDecision"] == {**shown, "outcome": "blocked"}
    assert client.post(f"/v1/monitoring/rulesets/{own['rulesetId']}/archive").ok
    assert len(list_summaries(client, "openAlerts=true")) == 1  # the alert waits for a person all the same


def test_open_alerts_are_those_of_the_list_of_alerts(store: Store, client: Client) -> None:
    own = Belongings(store, client)
    actions = f"/v1/alerts/{own['matchId']}/actions"
    for sent in (
        {"action": "acknowledge"},
        {"action": "reopen"},
        {"action": "close", "reason": "Seen."},
        {"action": "reopen"},
        {"action": "snooze", "until": "2036-01-01T00:00:00Z"},
    ):
        assert client.post(actions, sent).ok
        of_alerts = client.get("/v1/alerts?state=open&page=1").json()["data"]["totalCount"]
        [found] = list_summaries(client)
        assert found["openAlerts"] == of_alerts == (sent["action"] == "reopen")
    with store.db.writing() as w:  # as if the time had come, and the sensor had noticed
        items.end_snoozes(w, datetime(2036, 1, 1, tzinfo=UTC))
    [found] = list_summaries(client, "openAlerts=true")
    assert found["openAlerts"] == 1
    assert client.get(f"/v1/customer/{found['customerId']}/summary").json()["data"] == found


def test_search_finds_parts_in_any_case(client: Client, other_client: Client) -> None:
    other_client.new_customer(name="Harbour Coffee")
    mine = client.new_customer(name="HARBOUR Coffee (50%)", reference="L-777")
    client.new_customer(name="Bakery")
    for part in ("harbour", "r COF", "(50%)", "l-77"):
        assert [each["customerId"] for each in list_summaries(client, f"search={quote(part)}")] == [mine], part
    assert len(list_summaries(client, "search=51 824 753 556")) == 2
    assert len(list_summaries(client, f"search={ABN[3:9]}")) == 2
    assert list_summaries(client, "search=50_") == []


def test_a_cursor_leads_through_the_list(client: Client, other_client: Client) -> None:
    other_client.new_customer(name="Bakery")
    names = ["Österreich Café", "Bakery", None, "bakery", "A" * 200, "ΐ" * 200, None]
    made = {client.new_customer(**({} if name is None else {"name": name})): name for name in names}
    for sort in [sign + by for by in Sort for sign in ("", "-")]:
        whole = [each["customerId"] for each in list_summaries(client, f"sort={sort}")]
        walked, cursor = [], ""
        while cursor is not None:
            data = client.get(f"{PATH}?sort={sort}&count=3&cursor={cursor}").json()["data"]
            assert (data["totalCount"], data["currentPage"], data["pageSize"]) == (len(made), None, 3)
            walked, cursor = walked + [each["customerId"] for each in data["customers"]], data["nextCursor"]
        assert walked == whole, sort
    first = client.get(f"{PATH}?page=1&count=3").json()["data"]
    second = client.get(f"{PATH}?count=3&cursor={first['nextCursor']}").json()["data"]
    assert second["customers"] == client.get(f"{PATH}?page=2&count=3").json()["data"]["customers"]


def test_a_cursor_of_something_else_is_refused(client: Client, subtests: pytest.Subtests) -> None:
    def cursor(by: str, value: object, number: object = 1) -> str:
        return urlsafe_b64encode(msgspec.msgpack.encode((by, False, value, number))).decode().rstrip("=")

    wrong = {
        "another order": cursor("name", "bakery"),
        "another kind of value": cursor("created", "x"),
        "a number that is too large": cursor("created", 2**63),
        "a list in lists": urlsafe_b64encode(b"\x94\xa4name\xc2" + 2_000 * b"\x91" + b"\xc0\x01").decode().rstrip("="),
        "no list": urlsafe_b64encode(msgspec.msgpack.encode(1)).decode(),
        "no encoding": "x",
        "too long": "A" * 4_001,
    }
    queries = {name: f"cursor={text}" for name, text in wrong.items()} | {
        "with a page": "cursor=&page=1",
        "NUL": f"sort=name&cursor={cursor('name', chr(0))}",
        "no day": f"sort=dataThrough&cursor={cursor('dataThrough', '2026-02-30')}",
    }
    for name, query in queries.items():
        with subtests.test(name):
            answer = client.get(f"{PATH}?{query}")
            assert (answer.status_code, answer.json()["code"]) == (400, "Pagination.InvalidCursor")


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("search=ab", "Customer.InvalidSearch"),
        ("search=%20%20a", "Customer.InvalidSearch"),
        (f"search={'x' * 201}", "Customer.InvalidSearch"),
        ("rating=F", "Customer.InvalidRating"),
        ("outcome=maybe", "Customer.InvalidOutcome"),
        ("reportStatus=old", "Customer.InvalidReportStatus"),
        ("openAlerts=1", "Customer.InvalidOpenAlerts"),
        ("sort=abn", "Customer.InvalidSort"),
        ("sort=--name", "Customer.InvalidSort"),
    ],
)
def test_malformed_parameters_are_refused(client: Client, query: str, code: str) -> None:
    answer = client.get(f"{PATH}?{query}")
    assert (answer.status_code, answer.json()["code"]) == (400, code)
