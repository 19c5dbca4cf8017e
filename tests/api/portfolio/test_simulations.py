"""Simulations over HTTP: requested, computed by their run, and read as JSON, as a list and as a page."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest

from api.portfolio.portfolio_jobs import SHOWN_ON_THE_PAGE
from assets.portfolio import portfolio_jobs as work
from storage.core.store import Store
from tests.api.conftest import Client, new_client
from tests.api.worker import end_submissions, request_at

parametrize = pytest.mark.parametrize
SPENT: dict[str, Any] = {
    "slug": "spent_10d",
    "name": "Spent",
    "meaning": "What went out.",
    "unit": "AUD",
    "format": "currency",
    "direction": "neutral",
    "definition": {"source": "transactions", "window": {"days": 10}, "measure": "money_out", "aggregate": "sum"},
}


def document(slug: str, more_than: str = "100") -> dict[str, Any]:
    condition = {"moreThan": [{"metric": "spent_10d"}, more_than]}
    rule = {"code": "SPENT", "message": "Much <went> out.", "severity": "critical", "condition": condition}
    return {"slug": slug, "name": "Spending & <more>", "active": False, "metrics": [SPENT], "rules": [rule]}


class Portfolio:
    """A ruleset, and two customers: one spends 150 twice, half a year apart, and little between; one spends little."""

    def __init__(self, store: Store, client: Client) -> None:
        self.store, self.client = store, client
        self.today = datetime.now(store.settings.zone).date()
        self.customers = [client.new_customer() for _ in range(2)]
        self.submit(0, (200, "-150"), (190, "-20"), (100, "-20"), (20, "-150"))
        self.submit(1, (200, "-20"), (20, "-20"))
        made = client.post("/v1/monitoring/rulesets", document(f"spending-{uuid4()}"))
        assert made.status_code == 201, made.text
        self.ruleset_id = made.json()["data"]["rulesetId"]
        self.path = f"/v1/monitoring/rulesets/{self.ruleset_id}"

    def day(self, ago: int) -> str:
        return str(self.today - timedelta(days=ago))

    def submit(self, nth: int, *rows: tuple[int, str]) -> None:
        self.client.submit_transactions(self.customers[nth])
        days = [self.today - timedelta(days=ago) for ago, _ in rows]
        brought = zip(days, rows, strict=True)
        end_submissions(self.store, [{"date": day, "amount": Decimal(amount)} for day, (_, amount) in brought])

    def request(self, **body: Any) -> str:
        answer = self.client.post(f"{self.path}/simulate", body)
        assert answer.status_code == 202, answer.text
        job_id: str = answer.json()["data"]["jobId"]
        assert answer.headers["location"] == f"/v1/jobs/{job_id}/status"
        return job_id

    def request_and_run(self, **body: Any) -> str:
        job_id = self.request(**body)
        work.run(self.store, UUID(job_id), lambda: datetime.now(UTC))
        return job_id

    def read(self, job_id: str, rest: str = "") -> Any:
        answer = self.client.get(f"/v1/monitoring/simulations/{job_id}{rest}")
        assert answer.status_code == 200, answer.text
        return json.loads(answer.text, parse_float=Decimal)["data"]

    def read_refusal(self, **body: Any) -> tuple[int, str, Sequence[str]]:
        answer = self.client.post(f"{self.path}/simulate", body)
        reported = answer.json()
        return answer.status_code, reported["code"], [each["pointer"] for each in reported.get("errors") or ()]


@pytest.fixture
def portfolio(store: Store, base_url: str) -> Portfolio:
    return Portfolio(store, new_client(store, base_url))


def test_the_result_of_the_past_year(portfolio: Portfolio) -> None:
    found = portfolio.read(portfolio.request_and_run())
    assert (found["status"], found["from"] < portfolio.day(360), found["to"]) == ("Completed", True, portfolio.day(0))
    assert (found["customersTotal"], found["customersDone"], found["customersFailed"]) == (2, 2, 0)
    result = found["result"]
    assert (result["customers"], result["customersFired"], result["events"], result["firings"]) == (2, 1, 2, 2)
    assert result["atSwitchOn"] == {"customers": 0, "rules": [{"code": "SPENT", "customers": 0}]}
    [rule] = result["rules"]
    assert (rule["fired"], rule["customers"], rule["severity"]) == (2, 1, "critical")
    assert rule["daysObserved"] == 2 * 201
    # The window ends at the last row. It holds the first large row until the small one 10 days later, the second until
    # today.
    assert rule["daysHeld"] == 10 + 21
    assert sum(each["events"] for each in result["months"]) == 2
    [customer] = result["byCustomer"]
    assert (customer["customerId"], customer["events"]) == (portfolio.customers[0], 2)
    assert (customer["lastFired"], customer["rules"]) == (portfolio.day(20), [{"code": "SPENT", "fired": 2}])


def test_only_the_requested_days_are_simulated(portfolio: Portfolio) -> None:
    found = portfolio.read(portfolio.request_and_run(**{"from": portfolio.day(195), "to": portfolio.day(50)}))
    assert (found["from"], found["to"]) == (portfolio.day(195), portfolio.day(50))
    result = found["result"]
    assert result["atSwitchOn"] == {"customers": 1, "rules": [{"code": "SPENT", "customers": 1}]}
    assert (result["events"], result["rules"][0]["daysObserved"]) == (1, 2 * 146)


def test_firings_name_customers_with_what_matched(portfolio: Portfolio) -> None:
    job_id = portfolio.request_and_run()
    found = portfolio.read(job_id, "/firings")
    assert (found["totalCount"], [each["date"] for each in found["firings"]]) == (
        2,
        [portfolio.day(200), portfolio.day(20)],
    )
    first = found["firings"][0]
    assert (first["customerId"], first["code"]) == (portfolio.customers[0], "SPENT")
    [value] = first["values"]
    assert (value["kind"], value["name"], value["value"], value["cause"]) == ("metric", "spent_10d", Decimal(150), None)
    [second] = portfolio.read(job_id, "/firings?page=2&count=1")["firings"]
    assert second == found["firings"][1]


def test_a_sent_document_is_tried_and_changes_nothing(portfolio: Portfolio) -> None:
    job_id = portfolio.request_and_run(document=document("another", more_than="10"))
    found = portfolio.read(job_id)
    assert (found["ofDocument"], found["result"]["customersFired"]) == (True, 2)
    stored = portfolio.client.get(portfolio.path).json()["data"]
    assert (stored["version"], stored["document"]["rules"][0]["condition"]["moreThan"][1]) == (1, "100")


def test_only_the_named_customers_are_simulated(portfolio: Portfolio) -> None:
    found = portfolio.read(portfolio.request_and_run(customerIds=[portfolio.customers[1]]))
    assert (found["customersNamed"], found["customersTotal"], found["result"]["events"]) == (1, 1, 0)


def test_only_customers_that_the_document_lists_are_simulated(portfolio: Portfolio) -> None:
    listed = document("another", more_than="10") | {"appliesTo": {"customers": [portfolio.customers[1]]}}
    result = portfolio.read(portfolio.request_and_run(document=listed))["result"]
    assert [each["customerId"] for each in result["byCustomer"]] == [portfolio.customers[1]]


def test_the_page_loads_nothing_else(portfolio: Portfolio) -> None:
    job_id = portfolio.request_and_run()
    answer = portfolio.client.get(f"/v1/monitoring/simulations/{job_id}/page.html")
    assert answer.status_code == 200
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "Spending &amp; &lt;more&gt;" in answer.text
    assert "<more>" not in answer.text
    assert portfolio.customers[0] in answer.text
    assert portfolio.customers[1] not in answer.text
    assert "Spent: $150.00" in answer.text
    assert "Much &lt;went&gt; out." in answer.text
    assert SHOWN_ON_THE_PAGE >= 2


def test_the_page_has_the_day_of_the_service(portfolio: Portfolio) -> None:
    job_id = portfolio.request_and_run()
    request_at(portfolio.store, job_id, datetime(2024, 2, 29, 20, tzinfo=UTC))  # already 1 March in Sydney
    page = portfolio.client.get(f"/v1/monitoring/simulations/{job_id}/page.html").text
    assert "1 Mar 2024" in page
    assert "29 Feb 2024" not in page


def test_a_simulation_is_listed_with_its_job(portfolio: Portfolio) -> None:
    job_id = portfolio.request()
    waiting = portfolio.read(job_id)
    assert (waiting["status"], waiting["result"], waiting["customersTotal"]) == ("Queued", None, None)
    job = portfolio.client.get(f"/v1/jobs/{job_id}/status").json()["data"]
    assert (job["flow"], job["customerId"], job["stages"][0]["stage"]) == ("RulesetSimulation", None, "simulation")
    listed = portfolio.client.get(f"{portfolio.path}/simulations").json()["data"]
    assert ([each["jobId"] for each in listed["simulations"]], listed["totalCount"]) == ([job_id], 1)


@parametrize("rest", ["/firings", "/page.html"])
def test_an_unfinished_simulation_has_no_firings_and_no_page(portfolio: Portfolio, rest: str) -> None:
    answer = portfolio.client.get(f"/v1/monitoring/simulations/{portfolio.request()}{rest}")
    assert (answer.status_code, answer.json()["code"]) == (409, "Simulation.Unfinished")


def test_invalid_requests_are_refused(portfolio: Portfolio) -> None:
    unknown = str(uuid4())
    assert portfolio.read_refusal(to=portfolio.day(-1)) == (400, "Simulation.DayToCome", [])
    assert portfolio.read_refusal(**{"from": portfolio.day(1), "to": portfolio.day(2)}) == (
        400,
        "Simulation.InvalidDays",
        [],
    )
    assert portfolio.read_refusal(**{"from": portfolio.day(740)}) == (400, "Simulation.TooManyDays", [])
    for long_ago in ({"to": "0001-01-01"}, {"to": "0002-01-01"}, {"from": "0001-01-01"}, {"from": "1969-12-31"}):
        assert portfolio.read_refusal(**long_ago) == (400, "Simulation.InvalidDays", [])
    assert portfolio.read_refusal(**{"from": "yesterday"}) == (400, "Simulation.InvalidDay", ["/from"])
    assert portfolio.read_refusal(customerIds=[]) == (400, "Simulation.InvalidCustomers", ["/customerIds"])
    assert portfolio.read_refusal(customerIds=[unknown]) == (400, "Simulation.UnknownCustomer", ["/customerIds/0"])
    assert portfolio.read_refusal(document=[]) == (400, "Simulation.InvalidDocument", ["/document"])
    status, code, pointers = portfolio.read_refusal(document={**document("x"), "rules": [], "odd": 1})
    assert (status, code) == (400, "Ruleset.Invalid")
    assert set(pointers) == {"/document/rules", "/document/odd"}
    listed = document("x") | {"appliesTo": {"customers": [unknown]}}
    assert portfolio.read_refusal(document=listed) == (
        400,
        "Ruleset.UnknownCustomer",
        ["/document/appliesTo/customers/0"],
    )


def test_a_repeated_request_makes_one_simulation(portfolio: Portfolio) -> None:
    headers = {"Idempotency-Key": str(uuid4())}
    first, second = (portfolio.client.post(f"{portfolio.path}/simulate", {}, headers=headers).json() for _ in range(2))
    assert first["data"]["jobId"] == second["data"]["jobId"]
    assert portfolio.client.get(f"{portfolio.path}/simulations").json()["data"]["totalCount"] == 1
