"""A job's status, counts, errors and warnings; waiting for its end; lists of jobs with filters."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from threading import Timer, active_count
from typing import Any
from uuid import uuid4

import pytest

from storage.core.settings import Settings
from storage.core.store import Store
from tests.api.conftest import ITEM, Client, new_client, serving
from tests.api.worker import end_submissions
from tests.conftest import open_store

parametrize = pytest.mark.parametrize
REJECTED = {"position": 1, "field": "date", "code": "Transaction.InvalidDate", "message": "There is no such date."}


@pytest.fixture
def queued_job(client: Client) -> str:
    return client.submit_transactions(client.new_customer())


def status(client: Client, job_id: str, query: str = "") -> dict[str, Any]:
    answer = client.get(f"/v1/jobs/{job_id}/status{query}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()["data"]
    return found


def test_a_queued_job_has_no_counts_yet(client: Client, queued_job: str) -> None:
    job = status(client, queued_job)
    assert (job["status"], job["flow"], job["jobType"]) == ("Queued", "Enrichment", "Enrichment")
    assert job["totalReceivedTransactions"] == 1
    counts = ("totalProcessedTransactions", "enrichedCount", "duplicateCount", "rejectedCount")
    assert [job[name] for name in counts] == [None] * 4
    of_pdfs = {"pagesDone": None, "pagesTotal": None}
    assert job["stages"] == [
        {"stage": "enrichment", "status": "Queued", "dateStarted": None, "dateCompleted": None} | of_pdfs
    ]
    assert job["errors"] == []


def test_an_ended_job_counts_the_outcome_of_every_row(store: Store, client: Client) -> None:
    job_id = client.submit_transactions(client.new_customer(), [ITEM] * 4)
    repeated = uuid4()
    end_submissions(store, [{}, {}], [REJECTED], [{"position": 3, "transaction_id": repeated.bytes}])
    job = status(client, job_id)
    assert job["status"] == "CompletedWithErrors"
    names = ("totalReceivedTransactions", "totalProcessedTransactions", "enrichedCount")
    assert [job[name] for name in (*names, "duplicateCount", "rejectedCount")] == [4, 3, 2, 1, 1]
    refused = {"index": 1, "field": "date", "code": "Transaction.InvalidDate", "message": "There is no such date."}
    assert job["errors"] == [refused]
    assert client.get(f"/v1/jobs/{job_id}/errors").json()["data"]["errors"] == [refused]
    duplicates = client.get(f"/v1/jobs/{job_id}/duplicates").json()["data"]["duplicates"]
    assert duplicates == [{"index": 3, "transactionId": str(repeated)}]


def test_status_of_a_job_is_shown_although_the_file_of_its_rejected_rows_is_damaged(
    client: Client, store: Store, queued_job: str
) -> None:
    end_submissions(store, [], [REJECTED])
    file = max((store.lake.root / "outcomes").rglob("*.parquet"), key=lambda each: each.stat().st_mtime_ns)
    file.write_bytes(b"?" + file.read_bytes()[1:])
    job = client.get(f"/v1/jobs/{queued_job}/status").json()["data"]
    assert (job["status"], job["rejectedCount"], job["errors"]) == ("CompletedWithErrors", 1, [])
    assert [warning["code"] for warning in job["warnings"]] == ["Lake.ChecksumMismatch"]
    assert client.get(f"/v1/jobs/{queued_job}/errors").json()["code"] == "Lake.ChecksumMismatch"


def test_status_shows_a_hundred_errors_and_the_list_shows_all(store: Store, client: Client) -> None:
    job_id = client.submit_transactions(client.new_customer())
    end_submissions(store, [{}], [REJECTED | {"position": position} for position in range(150)])
    assert len(status(client, job_id)["errors"]) == 100
    second = client.get(f"/v1/jobs/{job_id}/errors?page=2&count=100").json()["data"]
    assert [row["index"] for row in second["errors"]] == list(range(100, 150))
    assert (second["totalCount"], second["totalPages"]) == (150, 2)


def test_odd_account_details_are_warnings(client: Client) -> None:
    job_id = client.submit_transactions(client.new_customer(), bsb="12")
    assert [warning["code"] for warning in status(client, job_id)["warnings"]] == ["Account.OddBsb"]


def test_masked_numbers_are_warnings(client: Client) -> None:
    items = [{**ITEM, "transactionId": "4539120000041234"}, ITEM]
    job_id = client.submit_transactions(client.new_customer(), items, accountNumber="4539120000121234")
    warnings = status(client, job_id)["warnings"]
    assert [warning["code"] for warning in warnings] == ["Account.MaskedNumber", "Transaction.MaskedNumber"]
    assert "4539120000" not in str(warnings)


def test_waiting_ends_as_soon_as_the_job_does(store: Store, client: Client, queued_job: str) -> None:
    started = time.monotonic()
    worker = Timer(0.4, end_submissions, [store])
    worker.start()
    assert status(client, queued_job, "?wait=20")["status"] == "Completed"
    assert 0.3 < time.monotonic() - started < 5
    worker.join()


def test_waiting_ends_when_the_time_is_up(client: Client, queued_job: str) -> None:
    started = time.monotonic()
    assert status(client, queued_job, "?wait=1")["status"] == "Queued"
    assert 0.9 < time.monotonic() - started < 3


def test_status_of_an_ended_job_is_answered_at_once(store: Store, client: Client, queued_job: str) -> None:
    end_submissions(store)
    started = time.monotonic()
    assert status(client, queued_job, "?wait=20")["status"] == "Completed"
    assert time.monotonic() - started < 2


def test_many_waiting_requests_hold_no_threads_and_all_are_answered(store: Store, client: Client) -> None:
    jobs = [client.submit_transactions(client.new_customer()) for _ in range(3)]
    before = active_count()
    with ThreadPoolExecutor(60) as pool:
        waiting = [pool.submit(status, client, jobs[number % 3], "?wait=20") for number in range(60)]
        time.sleep(1)
        assert client.get("/health/live").elapsed.total_seconds() < 2
        server_threads = active_count() - before - 60
        end_submissions(store)
        assert {future.result()["status"] for future in waiting} == {"Completed"}
    assert server_threads <= 40


@parametrize("text", ["-1", "31", "1.5", "x", "", "10000000000000000000"])
def test_a_wait_out_of_range_is_refused(client: Client, queued_job: str, text: str) -> None:
    answer = client.get(f"/v1/jobs/{queued_job}/status?wait={text}")
    assert (answer.status_code, answer.json()["code"]) == (400, "Job.InvalidWait")


def test_jobs_are_listed_newest_first(client: Client) -> None:
    customer_id = client.new_customer()
    submitted = [client.submit_transactions(customer_id) for _ in range(3)]
    listed = client.get("/v1/jobs").json()["data"]["jobs"]
    assert [job["jobId"] for job in listed] == submitted[::-1]
    assert "errors" not in listed[0]


def test_jobs_are_filtered(store: Store, client: Client) -> None:
    first, second = client.new_customer(), client.new_customer()
    ended = client.submit_transactions(first)
    end_submissions(store)
    between = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    queued_job = client.submit_transactions(second)

    def find_ids(**filters: str) -> list[str]:
        data = client.get("/v1/jobs", params=filters).json()["data"]
        return [job["jobId"] for job in data["jobs"]]

    assert find_ids(status="Completed") == [ended]
    assert find_ids(status="Queued") == [queued_job]
    assert find_ids(flow="Enrichment") == [queued_job, ended]
    assert find_ids(flow="ReportRefresh") == []
    assert find_ids(customerId=first) == [ended]
    assert find_ids(createdAfter=between) == [queued_job]
    assert find_ids(createdBefore=between) == [ended]
    assert find_ids(createdAfter=between, status="Completed") == []


@parametrize(
    ("query", "code"),
    [
        ("status=Done", "Job.InvalidStatus"),
        ("status=queued", "Job.InvalidStatus"),
        ("flow=Erase", "Job.InvalidFlow"),
        ("customerId=x", "Job.InvalidCustomerId"),
        ("createdAfter=0", "Job.InvalidDate"),
        ("createdAfter=2026-07-01", "Job.InvalidDate"),
        ("createdAfter=2026-07-01T00:00:00", "Job.InvalidDate"),
        ("createdBefore=0001-01-01T00:00:00%2B14:00", "Job.InvalidDate"),
        ("createdBefore=2026-07-01T00:00:00Z&createdBefore=2026-07-01T00:00:00Z", "Job.InvalidDate"),
    ],
)
def test_a_malformed_filter_of_jobs_is_refused(client: Client, query: str, code: str) -> None:
    answer = client.get(f"/v1/jobs?{query}")
    assert (answer.status_code, answer.json()["code"]) == (400, code)


def test_a_foreign_customer_in_a_filter_is_not_found(client: Client, other_client: Client) -> None:
    answer = client.get("/v1/jobs", params={"customerId": other_client.new_customer()})
    assert (answer.status_code, answer.json()["code"]) == (404, "Customer.NotFound")


def test_a_stopping_service_answers_its_waiting_requests(tmp_path: Path) -> None:
    opened = open_store(Settings(home=tmp_path))
    with ThreadPoolExecutor() as pool:
        with serving(opened) as url:
            client = new_client(opened, url)
            job_id = client.submit_transactions(client.new_customer())
            waiting = pool.submit(status, client, job_id, "?wait=30")
            time.sleep(2)  # on a busy machine it takes a while until a request is heard
            stopped = time.monotonic()
        assert waiting.result()["status"] == "Queued"
        assert time.monotonic() - stopped < 5
    opened.close()
