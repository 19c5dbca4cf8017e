"""Backtests over HTTP: requested, computed by their run, and read as JSON, as a list and as a page."""

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest

from assets.portfolio import portfolio_jobs as work
from storage.core.store import Store
from tests.api.conftest import Client, new_client
from tests.api.worker import request_at

parametrize = pytest.mark.parametrize
DOCUMENT: dict[str, Any] = {
    "name": "Line of <credit>",
    "defaultOutcome": "proceed",
    "declaredInputs": [{"name": "amount", "kind": "decimal"}, {"name": "secured", "kind": "boolean"}],
    "attributes": [{"name": "score", "kind": "decimal"}],
    "products": [{"slug": "line", "name": "Line"}],
    "steps": [
        {
            "name": "Knock-outs",
            "outcome": "blocked",
            "match": "any",
            "rules": [
                {
                    "code": "SCORE",
                    "message": "The score is low.",
                    "customerMessage": "The score is low.",
                    "condition": {"lessThan": [{"attribute": "score"}, "500"]},
                }
            ],
        }
    ],
    "limits": [{"product": "line", "amount": {"input": "amount"}}],
}
INPUTS: dict[str, Any] = {"amount": "50000", "secured": True}


def stricter(least: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(DOCUMENT))
    document["steps"][0]["rules"][0]["condition"]["lessThan"][1] = least
    return document


class Portfolio:
    """A client with a policy of two versions, the first published, and customers with scores 400, 600 and none."""

    def __init__(self, store: Store, client: Client) -> None:
        self.store, self.client, self.slug = store, client, f"line-{uuid4()}"
        self.path = f"/v1/decision-policies/{self.slug}"
        for document in (DOCUMENT, stricter("700")):
            saved = client.call("PUT", self.path, json=document)
            assert saved.status_code == 201, saved.text
            client.post(f"{self.path}/publish", {"version": 1})
        self.customers = [client.new_customer() for _ in range(3)]
        for customer, score in zip(self.customers, (400, 600), strict=False):
            sent = {"attributes": {"score": score}}
            assert client.call("PUT", f"/v1/customer/{customer}/attributes", json=sent).status_code == 200

    def request(self, **body: Any) -> str:
        answer = self.client.post(f"{self.path}/backtest", {"inputs": INPUTS} | body)
        assert answer.status_code == 202, answer.text
        job_id: str = answer.json()["data"]["jobId"]
        assert answer.headers["location"] == f"/v1/jobs/{job_id}/status"
        return job_id

    def request_and_run(self, **body: Any) -> str:
        job_id = self.request(**body)
        work.run(self.store, UUID(job_id), lambda: datetime.now(UTC))
        return job_id

    def read(self, job_id: str, rest: str = "") -> Any:
        answer = self.client.get(f"{self.path}/backtests/{job_id}{rest}")
        assert answer.status_code == 200, answer.text
        return json.loads(answer.text, parse_float=Decimal)["data"]

    def read_refusal(self, **body: Any) -> tuple[int, str, list[str]]:
        answer = self.client.post(f"{self.path}/backtest", {"inputs": INPUTS} | body)
        reported = answer.json()
        return answer.status_code, reported["code"], [each["pointer"] for each in reported.get("errors") or ()]


@pytest.fixture
def portfolio(store: Store, base_url: str) -> Portfolio:
    return Portfolio(store, new_client(store, base_url))


def test_the_result_has_each_day(portfolio: Portfolio) -> None:
    job_id = portfolio.request_and_run(outcomes=[{"customerId": portfolio.customers[1], "defaulted": True}])
    found = portfolio.read(job_id)
    assert (found["status"], found["version"], found["againstVersion"]) == ("Completed", 2, 1)
    assert (found["customersTotal"], found["customersDone"], found["customersFailed"]) == (3, 3, 0)
    [day] = found["days"]
    moves = {(each["before"], each["after"]): each["customers"] for each in day["transitions"]}
    assert moves == {("blocked", "blocked"): 1, ("proceed", "blocked"): 1, ("indeterminate", "indeterminate"): 1}
    assert day["changedBy"] == [{"code": "SCORE", "customers": 1}]
    [cause] = day["causes"]["after"]
    assert (cause["name"], cause["cause"], cause["customers"]) == ("score", "not_set", 1)
    [limits] = day["limits"]
    assert (limits["before"]["amount"], limits["after"]["amount"]) == (Decimal("50000.00"), Decimal("0"))
    proceed = next(each for each in day["outcomes"] if each["outcome"] == "proceed")
    assert (proceed["before"]["badRate"], proceed["after"]["badRate"]) == (Decimal(1), None)


def test_coverage_of_a_version_is_that_of_its_newest_backtest(portfolio: Portfolio) -> None:
    def read(version: int) -> Any:
        answer = portfolio.client.get(f"{portfolio.path}/coverage?version={version}")
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]

    assert read(1) == {"version": 1, "backtestId": None, "asOf": [], "coverage": None}
    portfolio.request()  # not finished: it doesn't count
    job_id = portfolio.request_and_run(asOf=["2026-06-30", datetime.now(UTC).date().isoformat()], knowledge="now")
    found = portfolio.read(job_id)["coverage"]
    for version, side, matched in ((1, "before", 1), (2, "after", 2)):
        covered = read(version)
        assert covered["backtestId"] == job_id
        assert len(covered["asOf"]) == 2
        assert covered["coverage"] == found[side]
        counts = {"reached": 6, "matched": 2 * matched, "decisive": 2 * matched, "undecidable": 2}
        assert found[side]["rules"] == [{"step": "Knock-outs", "code": "SCORE", **counts}]
        assert (found[side]["decisions"], found[side]["byDefault"]) == (6, 4 - 2 * matched)
    newer = portfolio.request_and_run(version=1, against="recorded")
    assert read(1)["backtestId"] == newer
    assert read(2)["backtestId"] == job_id
    assert portfolio.read(newer)["coverage"]["before"] is None


def test_coverage_is_for_authors_of_the_client(portfolio: Portfolio, store: Store, base_url: str) -> None:
    path = f"{portfolio.path}/coverage"
    assert portfolio.client.get(f"{path}?version=3").json()["code"] == "DecisionPolicy.VersionNotFound"
    assert portfolio.client.get(f"{path}?version=0").status_code == 400
    assert new_client(store, base_url).get(path).status_code == 404


def test_changed_customers_are_listed_by_pages(portfolio: Portfolio) -> None:
    job_id = portfolio.request_and_run()
    found = portfolio.read(job_id, "/customers")
    [changed] = found["customers"]
    assert found["totalCount"] == 1
    assert changed["customerId"] == portfolio.customers[1]
    assert (changed["before"], changed["after"], changed["changedBy"]) == ("proceed", "blocked", ["SCORE"])
    assert changed["limits"] == [{"product": "line", "before": Decimal("50000.00"), "after": Decimal("0.00")}]
    assert portfolio.read(job_id, "/customers?page=2&count=1") == {
        "customers": [],
        "totalCount": 1,
        "currentPage": 2,
        "pageSize": 1,
        "totalPages": 1,
    }
    assert portfolio.read(job_id, "/customers?change=limits")["totalCount"] == 0


def test_the_page_escapes_names_and_allows_nothing_but_its_style(portfolio: Portfolio) -> None:
    answer = portfolio.client.get(f"{portfolio.path}/backtests/{portfolio.request_and_run()}/page.html")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; style-src 'sha256-")
    assert "Line of &lt;credit&gt;: version 2 against version 1" in answer.text
    assert "<credit>" not in answer.text
    assert portfolio.customers[1] in answer.text
    assert "<dt>Amount</dt><dd><bdi>50,000</bdi></dd>" in answer.text
    assert "Score: it is not set" in answer.text


def test_the_page_has_the_day_of_the_service(portfolio: Portfolio) -> None:
    job_id = portfolio.request_and_run()
    request_at(portfolio.store, job_id, datetime(2026, 6, 30, 20, tzinfo=UTC))  # already 1 July in Sydney
    page = portfolio.client.get(f"{portfolio.path}/backtests/{job_id}/page.html").text
    assert "1 Jul 2026" in page
    assert "30 Jun 2026" not in page


def test_the_job_has_no_customer_and_is_in_the_list(portfolio: Portfolio) -> None:
    job_id = portfolio.request()
    job = portfolio.client.get(f"/v1/jobs/{job_id}/status").json()["data"]
    assert (job["flow"], job["customerId"], job["status"]) == ("PolicyBacktest", None, "Queued")
    assert job["stages"][0]["stage"] == "backtest"
    listed = portfolio.client.get(f"{portfolio.path}/backtests").json()["data"]
    assert [each["jobId"] for each in listed["backtests"]] == [job_id]
    assert portfolio.read(job_id)["days"] is None
    assert [each["jobId"] for each in portfolio.client.get("/v1/jobs?flow=PolicyBacktest").json()["data"]["jobs"]] == [
        job_id
    ]


@parametrize("rest", ["/customers", "/page.html"])
def test_an_unfinished_backtest_has_no_customers_and_no_page(portfolio: Portfolio, rest: str) -> None:
    answer = portfolio.client.get(f"{portfolio.path}/backtests/{portfolio.request()}{rest}")
    assert (answer.status_code, answer.json()["code"]) == (409, "Backtest.Unfinished")


def test_customers_are_filtered_by_attributes_in_both_directions(portfolio: Portfolio) -> None:
    job_id = portfolio.request_and_run(
        version=1, against=2, customerIds=portfolio.customers[:2], attributes={"score": 600}
    )
    [day] = portfolio.read(job_id)["days"]
    assert day["customers"] == 1
    assert [(each["before"], each["after"]) for each in day["transitions"]] == [("blocked", "proceed")]


def test_against_recorded_decisions_inputs_may_be_left_out(portfolio: Portfolio) -> None:
    path = f"/v1/customer/{portfolio.customers[1]}/decision-policies/{portfolio.slug}/evaluate"
    assert portfolio.client.post(path, {"inputs": INPUTS}).status_code == 200
    [day] = portfolio.read(portfolio.request_and_run(against="recorded", inputs={}))["days"]
    assert day["customers"] == 1
    assert day["rules"]["before"] is None
    assert [(each["before"], each["after"]) for each in day["transitions"]] == [("proceed", "blocked")]


def test_a_challenger_is_compared_with_the_recorded_decisions(portfolio: Portfolio) -> None:
    challenger = {"version": 2, "percent": 100}
    assert portfolio.client.call("PUT", f"{portfolio.path}/challenger", json=challenger).status_code == 200
    path = f"/v1/customer/{portfolio.customers[1]}/decision-policies/{portfolio.slug}/evaluate"
    assert portfolio.client.post(path, {"inputs": INPUTS}).json()["data"]["verdict"]["outcome"] == "proceed"
    [day] = portfolio.read(portfolio.request_and_run(against="challenger", inputs={}))["days"]
    assert [(each["before"], each["after"]) for each in day["transitions"]] == [("proceed", "blocked")]


TOMORROW = (datetime.now(UTC) + timedelta(days=2)).date().isoformat()  # or later, in every time zone
DAY = "2026-03-31"


@parametrize(
    ("body", "status", "code", "pointers"),
    [
        ({"version": 9}, 404, "DecisionPolicy.VersionNotFound", []),
        ({"against": 2}, 400, "Backtest.SameVersion", []),
        ({"against": "best"}, 400, "Backtest.InvalidAgainst", ["/against"]),
        ({"asOf": [TOMORROW]}, 400, "Backtest.DayToCome", []),
        ({"asOf": [DAY, DAY]}, 400, "Backtest.InvalidAsOf", ["/asOf"]),
        ({"asOf": []}, 400, "Backtest.InvalidAsOf", ["/asOf"]),
        ({"inputs": {"amount": "1"}}, 400, "DecisionPolicy.MissingInputs", ["/inputs/secured"]),
        ({"inputs": INPUTS | {"rate": 1}}, 400, "DecisionPolicy.UnknownInputs", ["/inputs/rate"]),
        ({"inputs": INPUTS | {"amount": "1,000"}}, 400, "DecisionPolicy.InvalidInputs", ["/inputs/amount"]),
        ({"knowledge": "never"}, 400, "Backtest.InvalidKnowledge", ["/knowledge"]),
        ({"customerIds": [str(uuid4())]}, 400, "Backtest.UnknownCustomer", ["/customerIds/0"]),
        ({"attributes": {"score": []}}, 400, "Backtest.InvalidFilter", []),
    ],
)
def test_invalid_requests_are_refused(
    portfolio: Portfolio, body: dict[str, Any], status: int, code: str, pointers: list[str]
) -> None:
    assert portfolio.read_refusal(**body) == (status, code, pointers)


def test_unknown_and_repeated_customers_of_outcomes_are_refused(portfolio: Portfolio) -> None:
    unknown = {"customerId": str(uuid4()), "defaulted": True}
    reported = {"customerId": portfolio.customers[0], "defaulted": False}
    assert portfolio.read_refusal(outcomes=[reported, unknown]) == (
        400,
        "Backtest.UnknownCustomer",
        ["/outcomes/1/customerId"],
    )
    assert portfolio.read_refusal(outcomes=[reported, reported]) == (400, "Backtest.CustomerTwice", [])


def test_a_repeated_request_makes_one_backtest(portfolio: Portfolio) -> None:
    headers = {"Idempotency-Key": str(uuid4())}
    first, second = (
        portfolio.client.post(f"{portfolio.path}/backtest", {"inputs": INPUTS}, headers=headers).json()
        for _ in range(2)
    )
    assert first == second
    assert portfolio.client.get(f"{portfolio.path}/backtests").json()["data"]["totalCount"] == 1
