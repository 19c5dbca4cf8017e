"""The object store is cut off, fails, returns: nothing that was accepted is lost, and no attempt is counted."""

import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
import requests

from pipelines.synthetic import plain_rows
from tests.flows.service import Client, Service
from tests.network import Network, network
from tests.object_store import Emulator, emulate_bucket
from tests.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ROWS = plain_rows(30, seed=3, until=date(2026, 10, 31))
AWAY_S = 20  # several attempts


@pytest.fixture
def emulator() -> Iterator[Emulator]:
    with emulate_bucket() as running:
        yield running


@pytest.fixture
def line(emulator: Emulator) -> Iterator[Network]:
    with network(("127.0.0.1", int(emulator.endpoint.rpartition(":")[2]))) as between:
        yield between


@pytest.fixture
def service(emulator: Emulator, line: Network, tmp_path: Path) -> Iterator[Service]:
    """A service whose jobs fail at their first interrupted attempt."""
    settings = emulator.settings("away", timeout_s=2) | {"s3_endpoint": f"http://127.0.0.1:{line.port}"}
    environment = {f"TIDEMARK_{name.upper()}": str(value) for name, value in settings.items()}
    patience = {"TIDEMARK_JOB_MAX_ATTEMPTS": "1", "TIDEMARK_JOB_RETRY_PAUSE_S": "1"}
    made = Service(tmp_path / "home", **environment, **patience)
    yield made
    made.stop()


def test_jobs_wait_for_an_object_store_that_is_away(service: Service, line: Network, emulator: Emulator) -> None:
    service.start()
    client = service.client()
    customer = client.customer()
    client.wait_for_job(client.submit(customer, ROWS))

    accepted = client.submit(customer, ROWS, accountNumber="87654321")
    line.cut()
    until(lambda: is_ready(service) == 503)
    refused = client.call("POST", f"/v1/customer/{customer}/transactions", {"accountNumber": "1", "transactions": ROWS})
    assert (refused.status_code, refused.json()["code"]) == (503, "Service.Unavailable")
    assert "Retry-After" in refused.headers
    assert len(client.transactions(customer)) >= len(ROWS), "from the local copy"
    time.sleep(AWAY_S)
    line.mend()
    assert client.wait_for_job(accepted)["status"] == "Completed"
    service.wait_until_ready()

    emulator.faults.extend([500, 503] * 100)
    assert client.wait_for_job(submit_until_accepted(client, customer))["status"] == "Completed"
    assert len(client.transactions(customer)) == 3 * len(ROWS)


def submit_until_accepted(client: Client, customer: str) -> str:
    """Submit again and again, as a client does that is answered 503."""
    body = {"bsb": "062000", "accountNumber": "11111111", "transactions": ROWS}
    for _ in range(100):
        answer = client.call("POST", f"/v1/customer/{customer}/transactions", body)
        if answer.ok:
            return str(answer.json()["data"]["jobId"])
        assert answer.status_code == 503
    raise AssertionError("it was never accepted")


def is_ready(service: Service) -> int:
    return requests.get(f"{service.base_url}/health/ready", timeout=10).status_code
