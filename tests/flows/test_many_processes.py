"""Several API processes and several workers on one Tidemark: they share the work, and it is done once."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime

import psutil
import pytest

from api.service.commands.addresses import choose_port, is_ready
from assets.dagster_internals import dagster_home
from pipelines.synthetic import plain_rows
from storage.core import leases
from storage.core.store import Store
from tests.flows.service import Client, Service, command_of
from tests.waiting import until

pytestmark = pytest.mark.timeout(300)

ROWS = plain_rows(30, seed=3, until=date(2026, 10, 31))


@pytest.fixture(scope="module")
def store(service: Service) -> Iterator[Store]:
    opened = service.store()
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def second_worker(service: Service, store: Store) -> Iterator[psutil.Process]:
    with service.another("worker") as worker:
        until(lambda: warm_workers(store) == 2)
        yield worker


@pytest.fixture(scope="module")
def second_api(service: Service) -> Iterator[str]:
    port = choose_port(0)
    with service.another("api", "--port", str(port)):
        address = f"http://127.0.0.1:{port}"
        until(lambda: is_ready(address))
        yield address


@pytest.fixture
def other(client: Client, second_api: str) -> Client:
    """Return the same client's connection to the other API process."""
    return Client(second_api, str(client.http.headers["x-api-key"]))


def warm_workers(store: Store) -> int:
    with store.db.reading() as r:
        return leases.count_holders(r, dagster_home.worker_role(store.settings), datetime.now(UTC))


@pytest.mark.usefixtures("second_worker")
def test_a_free_worker_takes_runs_while_the_other_is_busy(service: Service, client: Client) -> None:
    slow, quick = client.customer(), client.customer()
    [busy] = [
        process for process in service.processes("assets.dagster_internals.warm") if "enrichment" in command_of(process)
    ]
    busy.suspend()
    try:
        stuck = client.submit(slow, ROWS)
        until(lambda: client.data("GET", f"/v1/jobs/{stuck}/status")["status"] == "Running")
        assert client.wait_for_job(client.submit(quick, ROWS))["status"] == "Completed"
        assert client.data("GET", f"/v1/jobs/{stuck}/status")["status"] == "Running"
    finally:
        busy.resume()
    assert client.wait_for_job(stuck)["status"] == "Completed"


def test_one_of_twenty_concurrent_refreshes_over_two_api_processes_is_accepted(client: Client, other: Client) -> None:
    customer = client.customer()
    client.wait_for_job(other.submit(customer, ROWS))
    with ThreadPoolExecutor(20) as threads:
        path = f"/v1/customer/{customer}/reports/refresh"
        asked = [threads.submit(api.call, "POST", path) for api in (client, other) * 10]
    assert Counter(answer.result().status_code for answer in asked) == {202: 1, 409: 19}


def test_jobs_of_two_api_processes_complete_although_a_worker_is_killed(
    client: Client, other: Client, second_worker: psutil.Process
) -> None:
    customers = [client.customer() for _ in range(12)]

    def submit(api: Client) -> list[tuple[str, str]]:
        return [(customer, api.submit(customer, ROWS)) for customer in customers]

    with ThreadPoolExecutor(2) as threads:
        accepted = [threads.submit(submit, api) for api in (client, other)]
        second_worker.kill()
    for customer, job in [pair for pairs in accepted for pair in pairs.result()]:
        ended = other.wait_for_job(job)
        assert ended["status"] == "Completed"
        assert ended["enrichedCount"] + ended["duplicateCount"] == len(ROWS)
        ids = [row["transactionId"] for row in other.transactions(customer)]
        assert len(ids) == len(set(ids)) == len(ROWS)
