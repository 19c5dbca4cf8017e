"""The portfolio in a whole service: buckets are materialised as from Dagster's pages, and a backfill is killed midway
while clients continue to work.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import psutil
import pytest
from sqlalchemy import update

from pipelines.metrics import METRICS
from pipelines.synthetic import plain_rows
from storage.core.models import customers
from storage.core.store import Store
from storage.portfolio import maintenance
from storage.portfolio.maintenance import BucketProgress, Task
from tests.conftest import DATABASES, new_database
from tests.flows.service import Client, Service, command_of
from tests.flows.test_main_job import count_as_documented, query_as_documented
from tests.storage.values import renumber
from tests.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

BUCKET = 1
OF_THE_BUCKET = 4


@pytest.fixture(scope="module", params=DATABASES)
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Start a service whose backfill is slow enough to be observed: one customer per slice, with pauses between."""
    gentle = {"TIDEMARK_PORTFOLIO_SLICE_ROWS": "1", "TIDEMARK_PORTFOLIO_SHARE": "0.25"}
    where = {"TIDEMARK_DATABASE_URL": new_database(request, request.param)}
    running = Service(tmp_path_factory.mktemp("portfolio"), TIDEMARK_SCHEDULES="off", **where, **gentle)
    running.start()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def store(service: Service) -> Iterator[Store]:
    opened = service.store()
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def client(service: Service) -> Client:
    return service.client()


@pytest.fixture(scope="module")
def bucket(client: Client, store: Store) -> list[str]:
    """Return the customers of one bucket. All have transactions, and all but the last have reports."""
    ids = [client.customer() for _ in range(OF_THE_BUCKET)]
    with store.db.writing() as w:
        for nth in range(1, OF_THE_BUCKET):  # so that their numbers fall into the first one's bucket
            renumber(w, 1 + nth, BUCKET + 64 * nth)
    jobs = [client.submit(each, rows(seed)) for seed, each in enumerate(ids, start=1)]
    for job in jobs:
        client.wait_for_job(job)
    for job in [client.refresh(each) for each in ids[:-1]]:
        client.wait_for_job(job)
    return ids


def rows(seed: int) -> list[dict[str, Any]]:
    return plain_rows(20, seed=seed, until=date(2026, 10, 31))


def portfolio_processes(service: Service) -> list[psutil.Process]:
    return [
        process for process in service.processes("assets.dagster_internals.warm") if "portfolio" in command_of(process)
    ]


def test_a_bucket_materialised_by_hand_is_refreshed_in_the_portfolio_queue_and_listed_in_the_manifest(
    service: Service, client: Client, bucket: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert portfolio_processes(service) == [], "started only when there is work"
    client.wait_for_job(client.submit(bucket[0], rows(seed=9), accountNumber="999"))
    assert report_status(client, bucket[0]) == "stale"

    tags = service.materialise(
        BUCKET, "compacted_transactions", "refreshed_reports", "risk_portfolio", "metrics_portfolio"
    )
    assert tags["tidemark/queue"] == "portfolio"
    [process] = portfolio_processes(service)
    assert process.nice() > psutil.Process().nice()
    assert report_status(client, bucket[0]) == "ready"
    assert report_status(client, bucket[-1]) == "pending", "nobody asked for its first"

    manifest = service.manifest()
    [table] = [entry for entry in manifest if entry["dataset"] == "risk_portfolio"]
    assert (table["bucket"], table["rows"]) == (BUCKET, OF_THE_BUCKET - 1)
    held = pl.read_parquet(table["path"])
    assert held["is_current"].to_list() == [True] * (OF_THE_BUCKET - 1)
    answered = client.data("GET", f"/v1/customer/{bucket[0]}/reports")["risk"]["data"]
    assert json.loads(held["data"][0]) == answered
    monkeypatch.chdir(tmp_path)
    assert count_as_documented(service) == 20 * (OF_THE_BUCKET + 1), "tables of reports do not count as transactions"
    [metrics_table] = [entry for entry in manifest if entry["dataset"] == "metrics_portfolio"]
    assert metrics_table["rows"] == OF_THE_BUCKET * len(METRICS), "of customers without reports, too"
    assert sum(count for _, count, _ in query_as_documented(service, 1)) == OF_THE_BUCKET - 1


def report_status(client: Client, customer: str) -> str:
    status: str = client.data("GET", f"/v1/customer/{customer}/reports")["risk"]["status"]
    return status


def test_a_live_job_ends_while_a_backfill_runs(
    service: Service, client: Client, store: Store, bucket: list[str]
) -> None:
    before = {each: client.transactions(each) for each in bucket}
    with store.db.writing() as w:
        w.execute(update(customers).values(enrichment_version=0))
    with start_backfill(service) as command:
        until(lambda: is_in_progress(store))
        live = client.wait_for_job(client.submit(client.customer(), rows(seed=7)))
        assert live["status"] == "Completed"
        assert is_in_progress(store), "the live job ended first"
        printed, _ = command.communicate(timeout=120)
    assert command.returncode == 0
    [ended] = json.loads(printed)["buckets"]
    assert (ended["bucket"], ended["customers"], ended["failed"]) == (BUCKET, OF_THE_BUCKET, 0)
    assert {each: client.transactions(each) for each in bucket} == before
    again = json.loads(service.run("api.cli", "backfill", "--bucket", str(BUCKET), "--json"))
    assert again["buckets"] == [], "everyone is under the current version already"


@pytest.mark.parametrize("killed", ["the portfolio's process", "everything"])
def test_a_killed_backfill_continues_by_itself_where_it_stopped(
    service: Service, store: Store, bucket: list[str], killed: str
) -> None:
    with store.db.writing() as w:
        w.execute(update(customers).values(enrichment_version=0))
    with start_backfill(service) as command:
        until(lambda: is_in_progress(store))
        if killed == "everything":
            service.kill_everything()
            service.start()
        else:
            [process] = portfolio_processes(service)
            process.kill()
        assert command.poll() is None, "the command only follows"
        printed, _ = command.communicate(timeout=180)
    [ended] = json.loads(printed)["buckets"]
    assert (ended["customers"], ended["error"]) == (len(bucket), None), "nobody twice"


def is_in_progress(store: Store) -> bool:
    """Return whether some of the bucket's customers are done, but not all."""
    return any(each.done and each.completed_at is None and each.done < each.total for each in progress(store))


def progress(store: Store) -> list[BucketProgress]:
    with store.db.reading() as r:
        return maintenance.read_progress(r, Task.BACKFILL, [BUCKET])


def start_backfill(service: Service) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "api.cli", "backfill", "--bucket", str(BUCKET), "--json"]
    return subprocess.Popen(command, env=service.environment, stdout=subprocess.PIPE, text=True)
