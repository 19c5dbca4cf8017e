"""Measure reading a page of a customer's transactions in a large lake, before and after small batches and
compaction.
"""

import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from uuid import UUID

import polars as pl
import requests

from benchmarks.filling import UNTIL, fill
from benchmarks.service import Home, Service, new_home, running
from benchmarks.table import Row, milliseconds, percentile
from pipelines.synthetic import plain_rows
from pipelines.vocabulary.schemas import SORT_KEY, current

TITLE = "A page in a lake of ten million rows"
CUSTOMERS, ROWS_EACH = 5_000, 2_000
PAGES, PEER_PAGES = 400, 20
BATCHES, ROWS_PER_BATCH = 1_000, 5
ABOUT = (
    f"{CUSTOMERS:,} customers with {ROWS_EACH:,} rows each. A client on the same machine reads the first page, 20 "
    f"rows, of random customers. Each of the {BATCHES:,} batches added {ROWS_PER_BATCH} rows for one customer."
)


def measure(folder: Path, database: str) -> Sequence[Row]:
    with new_home(folder, database) as home:
        with home.store() as store:
            customers = fill(store, home.client_id, CUSTOMERS, ROWS_EACH)
        with running(home) as service:
            before = _measure_pages(service, customers)
            with _compact_repeatedly(home) as rounds:
                _submit_batches(service, customers)
                during = _measure_pages(service, customers)
            after = _measure_pages(service, customers)
        peer = _measure_scans(home, len(customers))
    return [
        Row(f"page of 20, freshly filled, p50 of {PAGES}", milliseconds(median(before)), "≤ 15 ms"),
        Row("the same, p95", milliseconds(percentile(before, 0.95))),
        Row(f"after {BATCHES:,} further batches, while `tidemark compact` runs, p50", milliseconds(median(during))),
        Row("afterwards, p50", milliseconds(median(after)), "≤ 15 ms"),
        Row("the same, p95", milliseconds(percentile(after, 0.95))),
        Row("finished rounds of compaction", str(len(rounds))),
        Row(f"peer: Polars over the folder without the catalogue, p50 of {PEER_PAGES}", milliseconds(median(peer))),
        Row("ratio of the medians", f"{median(peer) / median(after):,.0f} ×"),
    ]


def _measure_pages(service: Service, customers: Sequence[UUID]) -> list[float]:
    http, drawn = service.session(), random.Random(7)
    return [_measure_page(http, service.base_url, drawn.choice(customers)) for _ in range(PAGES)]


def _measure_page(http: requests.Session, base_url: str, customer_id: UUID) -> float:
    began = time.perf_counter()
    response = http.get(f"{base_url}/v1/customer/{customer_id}/transactions?page=1&count=20", timeout=60)
    took = time.perf_counter() - began
    if len(response.json()["data"]["transactions"]) != 20:
        raise RuntimeError(response.text)
    return took


def _submit_batches(service: Service, customers: Sequence[UUID]) -> None:
    http, drawn = service.session(), random.Random(8)
    for seed in range(BATCHES):
        rows = plain_rows(ROWS_PER_BATCH, 1_000 + seed, UNTIL)
        body = {"bsb": "062000", "accountNumber": "10000000", "transactions": rows}
        service.wait_for_job(http, service.submit(http, str(drawn.choice(customers)), body))


@contextmanager
def _compact_repeatedly(home: Home) -> Iterator[list[int]]:
    """Run `tidemark compact` repeatedly during the block. Yield a list that gets an entry for each finished round."""
    rounds: list[int] = []
    stop = threading.Event()

    def compact() -> None:
        while not stop.is_set():
            command = [sys.executable, "-m", "api.cli", "compact", "--json"]
            subprocess.run(command, env=home.environment, check=True, stdout=subprocess.DEVNULL)
            rounds.append(len(rounds))
            stop.wait(1)

    thread = threading.Thread(target=compact)
    thread.start()
    yield rounds
    stop.set()
    thread.join()


def _measure_scans(home: Home, customers: int) -> list[float]:
    """Measure the same page for a reader without the catalogue, which reads the statistics of every file, and also the
    rows that were replaced.
    """
    lake, drawn = home.settings.home / "lake" / "transactions", random.Random(9)
    took = []
    for _ in range(PEER_PAGES):
        wanted = pl.col("customer_number") == drawn.randint(1, customers)
        began = time.perf_counter()
        pl.scan_parquet(lake / "**/*.parquet").filter(wanted & current()).sort(SORT_KEY).head(20).collect()
        took.append(time.perf_counter() - began)
    return took
