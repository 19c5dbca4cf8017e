"""A fleet: workers in homes of their own, which share PostgreSQL, a broker, the lake and the master key."""

import time
from collections.abc import Iterator
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import psutil
import pytest

from pipelines.synthetic import plain_rows
from storage.core import leases
from storage.core.models import batches
from storage.core.models import leases as lease_table
from storage.core.settings import key_text, new_key
from storage.core.store import Store
from tests.brokers import RABBITMQ, broker
from tests.conftest import new_database
from tests.flows.service import Client, Service, command_of
from tests.waiting import until

pytestmark = pytest.mark.timeout(300)

DAGSTER = "assets.dagster_internals.web_and_daemon"
ROWS = plain_rows(30, seed=3, until=date(2026, 10, 31))


class Fleet(NamedTuple):
    service: Service
    store: Store
    client: Client
    elsewhere: psutil.Process  # a worker in another home

    def list_holders(self) -> list[str]:
        with self.store.db.reading() as r:
            return leases.list_held(r, leases.FLEET, leases.clock(self.store.db))

    def warm_processes(self) -> list[psutil.Process]:
        """Return the processes of both workers that execute enrichment."""
        family = [*self.service.processes("assets.dagster_internals.warm"), *self.elsewhere.children(recursive=True)]
        return [process for process in family if "enrichment" in command_of(process)]

    def last_worker(self) -> UUID | None:
        """Return the worker that began the newest batch."""
        with self.store.db.reading() as r:
            return r.execute(batches.select().order_by(batches.c.token.desc()).limit(1)).one().worker

    def head_of(self, worker: UUID) -> psutil.Process:
        with self.store.db.reading() as r:
            [lease] = r.execute(lease_table.select().where(lease_table.c.holder == worker)).all()
        return head_named(lease.name)


def head_named(lease: str) -> psutil.Process:
    """Return the process with this lease, whose name ends with `/<process id>-<digits>`."""
    return psutil.Process(int(lease.rpartition("/")[2].partition("-")[0]))


def is_of(head: psutil.Process, lease: str) -> bool:
    """Return whether a lease is this process's; leases of killed processes are held until they end."""
    return lease.rpartition("/")[2].startswith(f"{head.pid}-")


@pytest.fixture
def fleet(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
    with broker(RABBITMQ) as settings:
        shared = {
            **settings,
            "database_url": new_database(request, "postgresql"),
            "lake_url": str(tmp_path / "lake"),
            "master_key": key_text(new_key()).decode(),
        }
        for name, value in shared.items():
            monkeypatch.setenv(f"TIDEMARK_{name.upper()}", value)
        service = Service(tmp_path / "home")
        try:
            service.start()
            with (
                service.another("worker", TIDEMARK_HOME=str(tmp_path / "elsewhere")) as elsewhere,
                closing(service.store()) as store,
            ):
                fleet = Fleet(service, store, service.client(), elsewhere)
                until(lambda: len(fleet.list_holders()) == 2)
                yield fleet
        finally:
            service.stop()


def test_a_fleet_shares_jobs_replaces_a_killed_worker_within_ten_seconds_and_drains(fleet: Fleet) -> None:
    client, customer = fleet.client, fleet.client.customer()
    began = set()
    while len(began) < 2:  # the broker sends to both in turn
        assert client.wait_for_job(client.submit(client.customer(), ROWS))["status"] == "Completed"
        began.add(fleet.last_worker())

    suspended = fleet.warm_processes()
    assert len(suspended) == 2
    for process in suspended:
        process.suspend()
    try:
        job = client.submit(customer, ROWS)
        until(lambda: client.data("GET", f"/v1/jobs/{job}/status")["status"] == "Running")
        until(lambda: fleet.last_worker() is not None)
        first = fleet.last_worker()
        assert first is not None
        head = fleet.head_of(first)
        orphans = [process for process in suspended if process.ppid() == head.pid]
        killed_at = time.monotonic()
        head.kill()
    finally:
        for process in suspended:
            process.resume()
    until(lambda: fleet.last_worker() not in (first, None))
    assert time.monotonic() - killed_at < 10
    ended = client.wait_for_job(job)
    assert (ended["status"], ended["enrichedCount"] + ended["duplicateCount"]) == ("Completed", len(ROWS))
    ids = [row["transactionId"] for row in client.transactions(customer)]
    assert len(ids) == len(set(ids)) == len(ROWS)
    assert psutil.wait_procs(orphans, timeout=30)[1] == [], "a warm process ends with its head"

    head = fleet.elsewhere if fleet.elsewhere != head else fleet.service.processes("assets.service.worker")[0]
    until(lambda: any(is_of(head, lease) for lease in fleet.list_holders()))
    leaving = next(lease for lease in fleet.list_holders() if is_of(head, lease))
    head.terminate()
    assert psutil.wait_procs([head], timeout=30)[1] == []
    assert leaving not in fleet.list_holders()
    assert client.wait_for_job(client.submit(client.customer(), ROWS))["status"] == "Completed"
    homes = (fleet.service.home, fleet.service.home.parent / "elsewhere")
    assert not [path for home in homes for path in home.rglob("worker-*")], "a fleet has neither slots nor sockets"


def test_another_machines_dagster_takes_over_from_a_machine_that_is_gone(fleet: Fleet, tmp_path: Path) -> None:
    reserve = Service(tmp_path / "reserve")
    try:
        reserve.start()
        client = reserve.client()
        assert client.wait_for_job(client.submit(client.customer(), ROWS))["status"] == "Completed"
        assert len(fleet.service.processes(DAGSTER)) == 1
        assert reserve.processes(DAGSTER) == []

        fleet.service.kill_everything()
        assert client.wait_for_job(client.submit(client.customer(), ROWS))["status"] == "Completed"
        assert len(reserve.processes(DAGSTER)) == 1
    finally:
        reserve.stop()
