"""PostgreSQL is down at the start, is stopped, doesn't answer, returns: the service continues without a restart."""

import time
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

import psutil
import pytest
import requests

from pipelines.synthetic import plain_rows
from tests.flows.service import Client, Service
from tests.network import Network, network
from tests.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ROWS = plain_rows(30, seed=3, until=date(2026, 10, 31))
AWAY_S, SILENT_S = 60, 20  # longer than every lease
PARTS = (
    "api.cli",
    "assets.service.worker",
    "assets.dagster_internals.warm",
    "assets.service.platform",
    "assets.dagster_internals.web_and_daemon",
)


@pytest.fixture
def line() -> Iterator[Network]:
    with network(("127.0.0.1", 5432)) as between:
        yield between


@pytest.fixture
def service(line: Network, postgres_database: Callable[[], str], tmp_path: Path) -> Iterator[Service]:
    url = f"postgresql://127.0.0.1:{line.port}/{postgres_database()}"
    made = Service(tmp_path / "home", TIDEMARK_DATABASE_URL=url, TIDEMARK_BATCH_LEASE_S="4")
    yield made
    made.stop()


def test_a_service_survives_an_unavailable_database(service: Service, line: Network) -> None:
    line.cut()
    service.begin()
    until(lambda: status(service, "/health/live") == 200)
    assert_unavailable(service)

    line.mend()
    service.wait_until_ready()
    client = service.client()
    assert works(client)
    before = processes(service)

    for trouble, lasting_s in ((line.cut, AWAY_S), (line.stall, SILENT_S)):
        trouble()
        until(lambda: status(service, "/health/ready") == 503)
        assert_unavailable(service)
        time.sleep(lasting_s)
        line.mend()
        service.wait_until_ready()
        assert works(client)
    assert processes(service) == before


def works(client: Client) -> bool:
    """Return whether a customer gets from a submission to a report."""
    customer = client.customer()
    ended = [client.wait_for_job(client.submit(customer, ROWS)), client.wait_for_job(client.refresh(customer))]
    return [job["status"] for job in ended] == ["Completed", "Completed"]


def assert_unavailable(service: Service) -> None:
    answer = requests.get(f"{service.base_url}/v1/customers", headers={"x-api-key": "tm_sandbox_x"}, timeout=10)
    assert (answer.status_code, answer.json()["code"]) == (503, "Service.Unavailable")
    assert "Retry-After" in answer.headers
    assert status(service, "/health/ready") == 503


def status(service: Service, path: str) -> int:
    try:
        return requests.get(service.base_url + path, timeout=10).status_code
    except requests.ConnectionError:
        return 0


def processes(service: Service) -> set[psutil.Process]:
    return {process for part in PARTS for process in service.processes(part)}
