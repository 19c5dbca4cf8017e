"""Measure the reports of a whole portfolio: ten thousand refreshes, batched like submissions."""

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

import psutil

from benchmarks.filling import fill
from benchmarks.service import new_home, running
from benchmarks.table import Row, mebibytes, seconds

TITLE = "Refreshing a portfolio"
CUSTOMERS, ROWS_EACH = 10_000, 1_000
CLIENTS = 8
ABOUT = f"{CUSTOMERS:,} customers with {ROWS_EACH:,} rows each, refreshed over HTTP by {CLIENTS} clients."


def measure(folder: Path, database: str) -> Sequence[Row]:
    with new_home(folder, database) as home:
        with home.store() as store:
            customers = fill(store, home.client_id, CUSTOMERS, ROWS_EACH)
        with running(home) as service, peak_rss(service) as peak:
            cpu, began = service.cpu_s(), time.perf_counter()
            with ThreadPoolExecutor(CLIENTS) as clients:
                jobs = list(clients.map(lambda customer: service.refresh(service.session(), str(customer)), customers))
                list(clients.map(lambda job: service.wait_for_job(service.session(), job), jobs))
            elapsed, cpu = time.perf_counter() - began, service.cpu_s() - cpu
    return [
        Row("from the first request until every report was seen", seconds(elapsed)),
        Row("CPU of all processes of the service", seconds(cpu)),
        Row("rows reported on, all three reports", f"{CUSTOMERS * ROWS_EACH / elapsed:,.0f}/s"),
        Row("peak RSS of the largest process", mebibytes(max(peak)), "≤ 2 GiB"),
    ]


class Running(Protocol):
    """A service, or anything else with processes."""

    @property
    def processes(self) -> Sequence[psutil.Process]: ...


@contextmanager
def peak_rss(measured: Running) -> Iterator[list[int]]:
    """Sample the RSS of the largest process ten times a second, and yield the list of samples (bytes)."""
    samples: list[int] = []
    stop = threading.Event()

    def sample() -> None:
        while not stop.wait(0.1):
            with suppress(psutil.NoSuchProcess):  # a process may have ended since it was listed
                samples.append(max(int(process.memory_info().rss) for process in measured.processes))

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield samples
    finally:
        stop.set()
        thread.join()
