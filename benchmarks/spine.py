"""Measure the time from a submission to the waiting client's `Completed`, alone and under load."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import requests

from api.service.commands.addresses import choose_port
from benchmarks.filling import UNTIL, submission_rows
from benchmarks.service import Service, new_home, running
from benchmarks.table import Row, percentile, seconds
from pipelines.synthetic import plain_rows

IDLE_JOBS, IDLE_ROWS = 60, 500
LOAD_JOBS, LOAD_ROWS, LOAD_CLIENTS = 1_000, 100, 8
PEER_RUNS = 20
TITLE = "From a submission to its result"
ABOUT = "Local files; customers without history. The peer stores Dagster's data in SQLite in both columns."

_LAUNCH = """mutation($config: RunConfigData!) { launchRun(executionParams: {
  selector: {repositoryLocationName: "peer", repositoryName: "__repository__", jobName: "naive_job"},
  runConfigData: $config}) { __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }"""
_STATUS = "query($id: ID!) { runOrError(runId: $id) { ... on Run { status } } }"


def measure(folder: Path, database: str) -> Sequence[Row]:
    with new_home(folder / "service", database) as home, running(home) as service:
        idle = measure_idle_latencies(service)
        elapsed = measure_load(service)
    peer_idle = _measure_peer(folder / "peer", IDLE_ROWS)
    peer_load = _measure_peer(folder / "peer-load", LOAD_ROWS)
    return [*_idle_rows(idle, peer_idle), *_load_rows(elapsed, peer_load)]


def _idle_rows(ours: Sequence[float], peers: Sequence[float]) -> list[Row]:
    ratio = median(peers) / median(ours)
    return [
        Row(f"submit {IDLE_ROWS} rows → `Completed` seen, idle, p50 of {len(ours)}", seconds(median(ours)), "≤ 1.0 s"),
        Row("the same, p95", seconds(percentile(ours, 0.95)), "≤ 2 s"),
        Row(f"peer: one stock Dagster run per job, p50 of {len(peers)}", seconds(median(peers)), ""),
        Row("ratio of the medians", f"{ratio:.1f} ×", "≥ 5 ×"),
    ]


def _load_rows(elapsed_s: float, peers: Sequence[float]) -> list[Row]:
    ours, peer = LOAD_JOBS / elapsed_s * 60, 60 / (sum(peers) / len(peers))
    what = f"{LOAD_JOBS:,} jobs of {LOAD_ROWS} rows, {LOAD_CLIENTS} clients, new customers, until all completed"
    return [
        Row(what, f"{seconds(elapsed_s)}, {ours:,.0f} jobs/min", ""),
        Row(f"peer: {len(peers)} stock runs one after another, extrapolated", f"{peer:,.1f} jobs/min", ""),
        Row("ratio", f"{ours / peer:,.0f} ×", "≥ 100 ×"),
    ]


def measure_idle_latencies(service: Service) -> list[float]:
    """Measure one job at a time on an idle system, each for a customer without history."""
    http = service.session()
    bodies = [_body(index, IDLE_ROWS) for index in range(IDLE_JOBS)]
    customers = [service.customer(http) for _ in bodies]
    latencies = []
    for customer_id, body in zip(customers, bodies, strict=True):
        started = time.perf_counter()
        _require_all_stored(service.wait_for_job(http, service.submit(http, customer_id, body)), IDLE_ROWS)
        latencies.append(time.perf_counter() - started)
        time.sleep(0.05)
    return latencies


def measure_load(service: Service) -> float:
    """Return the seconds from the first submission until all jobs were seen completed."""
    bodies = [_body(index, LOAD_ROWS) for index in range(LOAD_JOBS)]
    with ThreadPoolExecutor(LOAD_CLIENTS) as clients:
        customers = list(clients.map(lambda _: service.customer(service.session()), bodies))
        started = time.perf_counter()
        shares = [range(client, LOAD_JOBS, LOAD_CLIENTS) for client in range(LOAD_CLIENTS)]
        list(clients.map(lambda share: _run_client(service, share, customers, bodies), shares))
    return time.perf_counter() - started


def _run_client(service: Service, share: range, customers: list[str], bodies: list[dict[str, Any]]) -> None:
    http = service.session()
    jobs = [service.submit(http, customers[index], bodies[index]) for index in share]
    for job in jobs:
        _require_all_stored(service.wait_for_job(http, job), LOAD_ROWS)


def _require_all_stored(job: dict[str, Any], rows: int) -> None:
    if job["totalProcessedTransactions"] != rows:
        raise RuntimeError(f"a benchmark job lost rows: {job}")


def _body(seed: int, rows: int) -> dict[str, Any]:
    return {"accountNumber": str(10_000_000 + seed), "bsb": "062000", "transactions": plain_rows(rows, seed, UNTIL)}


def _measure_peer(folder: Path, rows: int) -> list[float]:
    """Return the seconds from launch to SUCCESS of each stock run, one after another."""
    folder.mkdir(parents=True)
    submission_rows(rows, seed=1).write_parquet(folder / "rows.parquet")
    inputs = {"rows": str(folder / "rows.parquet"), "enriched": str(folder / "enriched.parquet")}
    config = {"ops": {"naive_transactions": {"config": inputs}}}
    with _stock_dagster(folder / "home") as url:
        return [_time_run(url, config) for _ in range(PEER_RUNS)]


@contextmanager
def _stock_dagster(home: Path) -> Iterator[str]:
    """Run a stock web server over a stock instance: SQLite storage, default launcher, no queue."""
    home.mkdir()
    coordinator = "run_coordinator: {module: dagster._core.run_coordinator, class: DefaultRunCoordinator}\n"
    (home / "dagster.yaml").write_text(f"telemetry: {{enabled: false}}\n{coordinator}")
    (home / "workspace.yaml").write_text(
        "load_from: [{python_module: {module_name: benchmarks.peer, location_name: peer}}]\n"
    )
    port = choose_port(0)
    command = [sys.executable, "-m", "dagster_webserver", "-p", str(port), "-w", str(home / "workspace.yaml")]
    environment = os.environ | {"DAGSTER_HOME": str(home)}
    with (home / "webserver.log").open("wb") as sink:
        process = subprocess.Popen(command, env=environment, stdout=sink, stderr=subprocess.STDOUT)
    url = f"http://127.0.0.1:{port}/graphql"
    try:
        _wait_until_it_answers(url)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=60)


def _wait_until_it_answers(url: str) -> None:
    for _ in range(600):
        try:
            if requests.get(url.replace("graphql", "server_info"), timeout=5).ok:
                return
        except requests.ConnectionError:
            time.sleep(0.1)
    raise TimeoutError("the stock web server did not start within 60 s")


def _time_run(url: str, config: dict[str, Any]) -> float:
    started = time.perf_counter()
    launched = _graphql(url, _LAUNCH, {"config": config})["launchRun"]
    run_id = launched["run"]["runId"]
    for _ in range(3_000):
        status = _graphql(url, _STATUS, {"id": run_id})["runOrError"]["status"]
        if status == "SUCCESS":
            return time.perf_counter() - started
        if status in ("FAILURE", "CANCELED"):
            raise RuntimeError(f"the peer's run ended {status}")
        time.sleep(0.02)
    raise TimeoutError(run_id)


def _graphql(url: str, query: str, variables: dict[str, Any]) -> dict[str, Any]:
    response = requests.post(url, json={"query": query, "variables": variables}, timeout=60)
    response.raise_for_status()
    data: dict[str, Any] = response.json()["data"]
    return data
