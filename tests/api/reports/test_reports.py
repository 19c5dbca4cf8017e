"""Reports over HTTP follow their statuses; a refresh is a job that may be refused; the report page is printed."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from api.reports import browser
from storage.core.store import Store
from tests.api.conftest import Client
from tests.api.worker import end_refreshes, end_submissions

DATA = {
    "completeness": '{"summary":{"completenessScore":91.50,"completenessTier":"complete","totalMissingness":0.0850}}',
    "risk": '{"value":0.3100,"rating":"B","pdConfidenceScore":74.00,"pdConfidenceRating":"high","errorCodes":[]}',
    "aggregate": '{"tables":[]}',
}


@pytest.fixture
def enriched_customer(store: Store, client: Client) -> str:
    """A customer with enriched transactions."""
    customer_id = client.new_customer()
    client.submit_transactions(customer_id)
    end_submissions(store)
    return customer_id


def test_reports_are_pending_ready_and_stale(store: Store, client: Client, enriched_customer: str) -> None:
    path = f"/v1/customer/{enriched_customer}/reports"
    pending = client.get(path).json()["data"]
    assert list(pending) == ["completeness", "risk", "aggregate"]
    assert {member["status"] for member in pending.values()} == {"pending"}
    assert {member["data"] for member in pending.values()} == {None}
    client.post(f"{path}/refresh")
    end_refreshes(store, DATA)
    ready = client.get(path)
    assert {member["status"] for member in ready.json()["data"].values()} == {"ready"}
    assert ready.json()["data"]["risk"]["dataThrough"] == "2026-06-30"
    for data in DATA.values():
        assert f'"data":{data}' in ready.text
    client.submit_transactions(enriched_customer)
    stale = client.get(path).json()["data"]["risk"]
    assert (stale["status"], stale["data"]["rating"]) == ("stale", "B")


def test_completeness_can_be_read_alone(store: Store, client: Client, enriched_customer: str) -> None:
    client.post(f"/v1/customer/{enriched_customer}/reports/refresh")
    end_refreshes(store, DATA)
    alone = client.get(f"/v1/customer/{enriched_customer}/reports/completeness").json()["data"]
    assert alone == client.get(f"/v1/customer/{enriched_customer}/reports").json()["data"]["completeness"]


def test_a_refresh_is_a_job_to_poll(client: Client, enriched_customer: str) -> None:
    answer = client.post(f"/v1/customer/{enriched_customer}/reports/refresh")
    data = answer.json()["data"]
    assert (answer.status_code, answer.json()["message"]) == (202, None)
    assert (data["flow"], data["status"]) == ("ReportRefresh", "Queued")
    assert answer.headers["Location"] == f"/v1/jobs/{data['jobId']}/status"
    assert client.get(answer.headers["Location"]).json()["data"]["stages"][0]["stage"] == "reports"


def test_a_second_refresh_is_a_conflict_while_one_is_live(store: Store, client: Client, enriched_customer: str) -> None:
    path = f"/v1/customer/{enriched_customer}/reports/refresh"
    assert client.post(path).status_code == 202
    second = client.post(path)
    assert (second.status_code, second.json()["code"]) == (409, "Report.RefreshRunning")
    end_refreshes(store, DATA)
    assert client.post(path).status_code == 202
    end_refreshes(store, DATA)


def test_a_refresh_without_enriched_transactions_is_refused(client: Client) -> None:
    customer_id = client.new_customer()
    client.submit_transactions(customer_id)
    answer = client.post(f"/v1/customer/{customer_id}/reports/refresh")
    assert (answer.status_code, answer.json()["code"]) == (422, "Report.NoEnrichedTransactions")


def test_report_page_is_printed(client: Client, enriched_customer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = f"/v1/customer/{enriched_customer}/reports.pdf"
    monkeypatch.setattr(browser, "find_browser", lambda: None)
    refused = client.get(path)
    assert (refused.status_code, refused.json()["code"]) == (422, "Browser.Missing")
    printed = list[str]()
    monkeypatch.setattr(browser, "print_pdf", lambda html: printed.append(html) or b"%PDF-")
    answer = client.get(path)
    assert (answer.status_code, answer.headers["content-type"], answer.content) == (200, "application/pdf", b"%PDF-")
    assert printed == [client.get(f"/v1/customer/{enriched_customer}/reports.html").text]


def test_few_pages_are_printed_at_once(client: Client, enriched_customer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    is_printing, may_end = Event(), Event()

    def print_slowly(_: str) -> bytes:
        is_printing.set()
        assert may_end.wait(10)
        return b"%PDF-"

    monkeypatch.setattr(browser, "print_pdf", print_slowly)
    path = f"/v1/customer/{enriched_customer}/reports.pdf"
    with ThreadPoolExecutor(1) as callers:
        first = callers.submit(client.get, path)
        assert is_printing.wait(10)
        refused = client.get(path)
        may_end.set()
    assert (refused.status_code, refused.json()["code"]) == (503, "Service.Busy")
    assert first.result().status_code == 200
