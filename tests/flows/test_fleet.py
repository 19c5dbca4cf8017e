"""A fleet: workers in homes of their own, which share PostgreSQL, a broker, the lake and the master key."""

import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import date
from functools import partial
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import psutil
import pytest

from api.core.commands.console import now
from pipelines.enrichment.own_rules import parse_own_rules
from pipelines.reports import REPORTS
from pipelines.synthetic import plain_rows
from storage.core import leases
from storage.core.models import Queue, batches, customers, own_rule_uses
from storage.core.models import leases as lease_table
from storage.core.settings import Settings, key_text, new_key
from storage.core.store import Store
from storage.enrichment import own_rules
from storage.enrichment.transactions import current_locations_in_bucket, scan
from storage.portfolio.tables import read_reports
from tests.assets.lender import Lender, run_refreshes
from tests.brokers import RABBITMQ, broker
from tests.conftest import PostgresDatabases, new_database, url_of
from tests.flows.service import Client, Service, command_of
from tests.storage.examples import a_client
from tests.waiting import until

pytestmark = pytest.mark.timeout(300)

DAGSTER = "assets.dagster_internals.web_and_daemon"
BUCKETS = 8  # each with one customer
OWN_NAME = "Zorbly Fuels"
ROWS = plain_rows(30, seed=3, until=date(2026, 10, 31))


class Result(NamedTuple):
    file: bytes  # of the customer's rows
    has_own_name: bool  # whether a row has a name from the client's own rules
    reports: list[str]


class Fleet(NamedTuple):
    service: Service
    store: Store
    client: Client
    elsewhere: list[psutil.Process]  # workers in other homes

    def list_holders(self) -> list[str]:
        with self.store.db.reading() as r:
            return leases.list_held(r, leases.FLEET, leases.clock(self.store.db))

    def warm_processes(self, queue: Queue) -> list[psutil.Process]:
        """Return the processes of all workers that execute the runs of a queue."""
        of_others = [child for head in self.elsewhere for child in head.children(recursive=True)]
        family = [*self.service.processes("assets.dagster_internals.warm"), *of_others]
        return [process for process in family if queue.value in command_of(process)]

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


@contextmanager
def broker_and_key(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let all processes use a broker and a master key of this test."""
    with broker(RABBITMQ) as settings:
        for name, value in {**settings, "master_key": key_text(new_key()).decode()}.items():
            monkeypatch.setenv(f"TIDEMARK_{name.upper()}", value)
        yield


@contextmanager
def running(folder: Path, workers: int) -> Iterator[Fleet]:
    """Start a service, and further workers in homes of their own, on the database of the environment."""
    with pytest.MonkeyPatch.context() as patch, ExitStack() as started:
        patch.setenv("TIDEMARK_LAKE_URL", str(folder / "lake"))
        service = Service(folder / "home")
        started.callback(service.stop)
        service.start()
        others = [
            started.enter_context(service.another("worker", TIDEMARK_HOME=str(folder / f"elsewhere-{nth}")))
            for nth in range(1, workers)
        ]
        fleet = Fleet(service, started.enter_context(closing(service.store())), service.client(), others)
        until(lambda: len(fleet.list_holders()) == workers)
        yield fleet


@pytest.fixture
def fleet(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
    with broker_and_key(monkeypatch):
        monkeypatch.setenv("TIDEMARK_DATABASE_URL", new_database(request, "postgresql"))
        with running(tmp_path, workers=2) as fleet:
            yield fleet


def test_a_fleet_shares_jobs_replaces_a_killed_worker_within_ten_seconds_and_drains(fleet: Fleet) -> None:
    client, customer = fleet.client, fleet.client.customer()
    began = set()
    while len(began) < 2:  # the broker sends to both in turn
        assert client.wait_for_job(client.submit(client.customer(), ROWS))["status"] == "Completed"
        began.add(fleet.last_worker())

    suspended = fleet.warm_processes(Queue.ENRICHMENT)
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

    [other] = fleet.elsewhere
    head = other if other != head else fleet.service.processes("assets.service.worker")[0]
    until(lambda: any(is_of(head, lease) for lease in fleet.list_holders()))
    leaving = next(lease for lease in fleet.list_holders() if is_of(head, lease))
    head.terminate()
    assert psutil.wait_procs([head], timeout=30)[1] == []
    assert leaving not in fleet.list_holders()
    assert client.wait_for_job(client.submit(client.customer(), ROWS))["status"] == "Completed"
    homes = fleet.service.home.parent
    assert not [*homes.rglob("worker-*")], "a fleet has neither slots nor sockets"


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


@pytest.mark.slow  # two services one after the other, with five workers in all
@pytest.mark.timeout(900)
def test_four_workers_produce_what_one_produces(
    postgres_database: PostgresDatabases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Byte for byte: the files of customers that are enriched again, and the reports that are refreshed after it."""
    monkeypatch.setenv("TIDEMARK_SCHEDULES", "off")
    with broker_and_key(monkeypatch):
        filled, lake = postgres_database(), tmp_path / "lake"
        with closing(Store.open(Settings(home=tmp_path, database_url=url_of(filled), lake_url=str(lake)))) as store:
            outdate_one_in_each_bucket(store)
            before = read_results(store)
        results = dict[int, list[Result]]()
        for workers in (1, 4):
            monkeypatch.setenv("TIDEMARK_DATABASE_URL", url_of(postgres_database.copy(filled)))
            folder = tmp_path / f"of-{workers}"
            shutil.copytree(lake, folder / "lake")
            with running(folder, workers) as fleet:
                maintain_all_buckets(fleet)
                assert len(fleet.warm_processes(Queue.PORTFOLIO)) == workers, "all took part"
                results[workers] = read_results(fleet.store)
    assert results[4] == results[1]
    assert ([each.has_own_name for each in before], [each.has_own_name for each in results[4]]) == (
        [False] * BUCKETS,
        [True] * BUCKETS,
    ), "all were enriched again"
    assert all(old.reports != new.reports for old, new in zip(before, results[4], strict=True))


def outdate_one_in_each_bucket(store: Store) -> None:
    """Create customers with rows and reports, then let rules of their client wait for the next backfill."""
    client_id = a_client(store, now())
    for _ in range(BUCKETS):
        lender = Lender(store, client_id=client_id)
        lender.submit_and_end(*ROWS, {"date": "2026-10-30", "description": "ZORBLY 4711", "amount": "-10.00"})
        lender.ask_for_reports()
        run_refreshes(lender)
    rules = parse_own_rules({"counterparties/mine.yaml": f"fuel:\n  {OWN_NAME}: [ZORBLY]\n"})
    with store.db.writing() as w:
        version = own_rules.add(w, client_id, rules, "operator", now()).version
        use = {"client_id": client_id, "version": version, "used_from": now(), "who": "operator"}
        w.execute(own_rule_uses.insert().values(use))  # unlike `activate`, leaves the customers to the backfill
        w.execute(customers.update().values(enrichment_version=0))


def maintain_all_buckets(fleet: Fleet) -> None:
    """Enrich all buckets again and refresh their reports, as many at once as there are workers."""
    fleet.service.run("api.cli", "backfill", "--all")
    runs = [fleet.service.launch(bucket, "refreshed_reports") for bucket in range(1, BUCKETS + 1)]
    for run in runs:
        until(partial(fleet.service.has_succeeded, run))


def read_results(store: Store) -> list[Result]:
    """Return what is stored about each bucket's customer."""
    results = list[Result]()
    with store.db.reading() as r:
        for bucket in range(1, BUCKETS + 1):
            [place] = current_locations_in_bucket(r, bucket)
            reports = [read_reports(r, kind, bucket)["data"].item() for kind in REPORTS]
            names = scan(store.lake, [place]).collect()["counterparty_name"]
            results.append(Result((store.lake.root / place.path).read_bytes(), OWN_NAME in names, reports))
    return results
