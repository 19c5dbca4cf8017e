"""Measure jobs through a broker beside those of a single machine, and what a second worker costs."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory
from uuid import uuid4

import psutil

from assets.workers.broker import make_app
from benchmarks.filling import UNTIL
from benchmarks.service import Home, Service, new_home, running
from benchmarks.spine import IDLE_ROWS, LOAD_CLIENTS, LOAD_JOBS, LOAD_ROWS, measure_idle_latencies, measure_load
from benchmarks.table import Row, milliseconds, percentile, seconds
from pipelines.synthetic import plain_rows
from storage.core import leases
from storage.core.brokers import queue_name
from storage.core.models import Queue
from storage.core.settings import Settings, key_text, new_key

RABBITMQ = "amqp://guest:guest@127.0.0.1:5672//"
WARM_WITHIN_S = 120.0
TITLE = "Through a broker"
ABOUT = (
    "PostgreSQL in all columns, everything on one machine; the lake is a folder. In the fleets, RabbitMQ carries the "
    "runs, and the second worker has a home of its own. A run takes at most 50 jobs, so that runs are equally large in "
    "all columns: otherwise those of two workers would have fewer jobs each. CPU is that of all processes of Tidemark, "
    "without the database and the broker. Two busy cores that share a cache or a pipeline each do less in a second; "
    "the peer shows how much CPU that costs without any of our code."
)
PARSED_TIMES = 2_000  # two seconds


@dataclass(frozen=True)
class Measured:
    idle_s: Sequence[float]
    load_s: float
    load_cpu_s: float

    @property
    def rows(self) -> Sequence[Row]:
        jobs = f"{LOAD_JOBS:,} jobs of {LOAD_ROWS} rows, {LOAD_CLIENTS} clients"
        return [
            Row(
                f"submit {IDLE_ROWS} rows → `Completed` seen, idle, p50 of {len(self.idle_s)}",
                seconds(median(self.idle_s)),
                "≤ 0.6 s through the broker",
            ),
            Row("the same, p95", seconds(percentile(self.idle_s, 0.95))),
            Row(jobs, f"{LOAD_JOBS / self.load_s * 60:,.0f} jobs/min"),
            Row("the same, CPU for each job", milliseconds(self.load_cpu_s / LOAD_JOBS), "two workers ≤ 1.1 × one"),
        ]


def measure() -> Mapping[str, Sequence[Row]]:
    columns: Mapping[str, tuple[Mapping[str, str], int]] = {
        "without a broker": ({}, 1),
        "fleet of one worker": (_broker_settings(), 1),
        "fleet of two workers": (_broker_settings(), 2),
    }
    return {name: [*_measure(*fleet).rows, _measure_peer(workers=fleet[1])] for name, fleet in columns.items()}


def _measure_peer(workers: int) -> Row:
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        list(pool.map(_parse, [1] * workers))  # now all have started
        cpu_s = mean(pool.map(_parse, [PARSED_TIMES] * workers))
    return Row("peer: JSON parsed by as many processes at once as there are workers, CPU of each", seconds(cpu_s))


def _parse(times: int) -> float:
    """Return the CPU seconds that parsing a submission so many times takes."""
    text = json.dumps({"transactions": plain_rows(IDLE_ROWS, 1, UNTIL)})
    began = time.process_time()
    for _ in range(times):
        json.loads(text)
    return time.process_time() - began


def _broker_settings() -> Mapping[str, str]:
    return {"TIDEMARK_BROKER_URL": RABBITMQ, "TIDEMARK_BROKER_PREFIX": f"bench-{uuid4().hex[:12]}"}


def _measure(broker: Mapping[str, str], workers: int) -> Measured:
    with TemporaryDirectory(prefix="tidemark-bench-", ignore_cleanup_errors=True) as folder:
        shared = {
            "TIDEMARK_LAKE_URL": f"{folder}/lake",
            "TIDEMARK_MASTER_KEY": key_text(new_key()).decode(),
            "TIDEMARK_BATCH_MAX_JOBS": "50",
            **broker,
        }
        with (
            _environment(shared),
            new_home(Path(folder) / "home", "PostgreSQL") as home,
            _delete_queues(home.settings) if broker else nullcontext(),
            running(home) as service,
            _further_workers(home, Path(folder), workers - 1) as others,
        ):
            idle_s = measure_idle_latencies(service)
            before_s = _cpu_s(service, others)
            load_s = measure_load(service)
            return Measured(idle_s, load_s, _cpu_s(service, others) - before_s)


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _delete_queues(settings: Settings) -> Iterator[None]:
    """Delete the broker's queues and their exchange at the end of the block."""
    try:
        yield
    finally:
        with make_app(settings).connection_for_write() as connection:
            for queue in Queue:
                connection.default_channel.queue_delete(queue_name(settings, queue))
            connection.default_channel.exchange_delete(settings.broker_prefix)


@contextmanager
def _further_workers(home: Home, folder: Path, count: int) -> Iterator[Sequence[psutil.Process]]:
    """Run further workers, each in a home of its own, for the duration of a block, from when they are warm."""
    started = []
    for number in range(count):
        environment = home.environment | {"TIDEMARK_HOME": str(folder / f"worker-{number}")}
        command = [sys.executable, "-m", "api.cli", "worker"]
        started.append(subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL))
    try:
        _wait_until_registered(home, count + 1)
        yield [psutil.Process(process.pid) for process in started]
    finally:
        for process in started:
            process.terminate()
            process.wait(timeout=60)


def _wait_until_registered(home: Home, workers: int) -> None:
    deadline = time.monotonic() + WARM_WITHIN_S
    with home.store() as store:
        while time.monotonic() < deadline:
            with store.db.reading() as r:
                if leases.count_holders(r, leases.WORKER, leases.clock(store.db)) == workers:
                    return
            time.sleep(0.1)
    raise TimeoutError(f"there were no {workers} warm workers within {WARM_WITHIN_S:.0f} s")


def _cpu_s(service: Service, others: Sequence[psutil.Process]) -> float:
    """Return the CPU seconds of all processes so far. Those that ended meanwhile don't count."""
    further = [process for other in others for process in (other, *other.children(recursive=True))]
    return service.cpu_s() + sum(sum(process.cpu_times()[:2]) for process in further)
