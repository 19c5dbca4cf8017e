"""PostgreSQL is down at the start, is stopped, doesn't answer, returns: the service continues without a restart."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import date
from pathlib import Path

import psutil
import pytest
import requests
from sqlalchemy import update

from api.core.commands.console import now
from pipelines.synthetic import plain_rows
from storage.core.models import customers
from storage.core.store import Store
from storage.portfolio import maintenance
from storage.portfolio.maintenance import BucketProgress, Task
from tests.flows.service import Client, Service
from tests.network import Network, network
from tests.storage.values import renumber
from tests.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ROWS = plain_rows(30, seed=3, until=date(2026, 10, 31))
BUCKET, OUTDATED = 1, 6  # customers
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


def test_a_backfill_waits_for_the_database(service: Service, line: Network) -> None:
    gentle = {"TIDEMARK_PORTFOLIO_SLICE_ROWS": "1", "TIDEMARK_PORTFOLIO_SHARE": "0.2", "TIDEMARK_SCHEDULES": "off"}
    service.environment |= gentle
    service.start()
    with closing(service.store()) as store:
        fill_bucket(service.client(), store)
        with store.db.writing() as w:
            w.execute(update(customers).values(enrichment_version=0))
            maintenance.request(w, Task.BACKFILL, [BUCKET], now())
        until(lambda: 0 < progress(store).done < OUTDATED)
        line.cut()
        time.sleep(SILENT_S)
        line.mend()
        until(lambda: progress(store).completed_at is not None, within_s=180)
        ended = progress(store)
    assert (ended.total, ended.done, ended.failed, ended.error) == (OUTDATED, OUTDATED, 0, None)


def fill_bucket(client: Client, store: Store) -> None:
    """Create customers with transactions in one bucket."""
    ids = [client.customer() for _ in range(OUTDATED)]
    with store.db.writing() as w:
        for nth in range(1, OUTDATED):
            renumber(w, 1 + nth, BUCKET + 64 * nth)
    for job in [client.submit(each, ROWS) for each in ids]:
        client.wait_for_job(job)


def progress(store: Store) -> BucketProgress:
    with store.db.reading() as r:
        [found] = maintenance.read_progress(r, Task.BACKFILL, [BUCKET])
    return found


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
