"""Measure a lake in a bucket beside one in a folder: reading a page of a customer, and writing a submission's file."""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median
from uuid import UUID

import requests
from moto.server import ThreadedMotoServer

from api.core.commands.console import now
from benchmarks.filling import fill, submission_rows
from benchmarks.service import new_home
from benchmarks.table import Row, milliseconds
from storage.core import file_intents
from storage.core.lake import Lake
from storage.core.paging import Page
from storage.core.settings import Settings
from storage.core.store import Store
from storage.customers import customers
from storage.enrichment import transactions
from storage.operations import backup

TITLE = "A lake in a bucket"
CUSTOMERS, ROWS_EACH = 400, 2_000
PAGES, WRITES, SUBMITTED_ROWS = 200, 50, 500
ABOUT = (
    f"{CUSTOMERS} customers with {ROWS_EACH:,} rows each, in files of 200 customers. In process: the first page, 20 "
    "rows, of random customers, from the bucket's local copies and from a folder with the same files. The object store "
    "is an emulator written in Python (moto) on the same machine: requests to it say little about a real one."
)


def measure(folder: Path, database: str) -> Sequence[Row]:
    with _emulated_bucket() as endpoint, new_home(folder, database) as home:
        settings = Settings(
            home=home.settings.home,
            database_url=home.settings.database_url,
            lake_url="s3://bench/lake",
            s3_endpoint=endpoint,
            s3_region="us-east-1",
            s3_access_key_id="emulated",
            s3_secret_access_key="emulated",
            s3_path_style=True,
        )
        with closing(Store.open(settings)) as store:
            drawn = random.Random(7)
            filled = fill(store, home.client_id, CUSTOMERS, ROWS_EACH)
            chosen = [drawn.choice(filled) for _ in range(PAGES)]
            backup.back_up(store, folder / "backup")
            local = Lake(folder / "backup" / "lake")
            first_reads = _time_first_reads(store, home.client_id, filled[:: len(filled) // 2])
            from_bucket, from_folder = _time_alternately(
                lambda nth: _read_page(store, store.lake, home.client_id, chosen[nth]),
                lambda nth: _read_page(store, local, home.client_id, chosen[nth]),
                PAGES,
            )
            rows = submission_rows(SUBMITTED_ROWS, seed=1)
            to_bucket, to_folder = _time_alternately(
                lambda nth: store.lake.put_frame(f"landing/{nth}.parquet", rows),
                lambda nth: local.put_frame(f"landing/{nth}.parquet", rows),
                WRITES,
            )
            intents = _time_calls(lambda nth: file_intents.announce(store.db, f"timed/{nth}", 1, now()), WRITES)
    return [
        Row("page of 20, first read of its file, which is fetched, median", milliseconds(median(first_reads))),
        Row(f"page of 20, later reads from the local copy, p50 of {PAGES}", milliseconds(median(from_bucket))),
        Row("the same from a folder", milliseconds(median(from_folder))),
        Row("ratio of the medians", f"{median(from_bucket) / median(from_folder):.2f} ×", "≤ 1.2 ×"),
        Row(f"a submission's file of {SUBMITTED_ROWS} rows written, p50 of {WRITES}", milliseconds(median(to_bucket))),
        Row("the same into a folder", milliseconds(median(to_folder))),
        Row("of the bucket's time, the intent's commit, p50", milliseconds(median(intents))),
    ]


def _read_page(store: Store, lake: Lake, client_id: UUID, customer_id: UUID) -> None:
    with store.db.reading() as r:
        customer = customers.get(r, client_id, customer_id)
        listing = transactions.list_transactions(r, lake, customer, page=Page(1, 20))
    if sum(part.collect().height for part in listing.parts) != 20:
        raise RuntimeError(f"{customer_id} has no page of 20 rows")


def _time_first_reads(store: Store, client_id: UUID, customer_ids: Sequence[UUID]) -> list[float]:
    """Read a page of customers in different files, with an empty cache."""
    for copy in store.lake.root.iterdir():
        copy.unlink()
    return _time_calls(lambda nth: _read_page(store, store.lake, client_id, customer_ids[nth]), len(customer_ids))


def _time_alternately(
    one: Callable[[int], object], other: Callable[[int], object], count: int
) -> tuple[list[float], list[float]]:
    """Time two functions in turn, so that the machine's load is the same for both."""
    both = _time_calls(lambda nth: (one if nth % 2 == 0 else other)(nth // 2), 2 * count)
    return both[::2], both[1::2]


def _time_calls(work: Callable[[int], object], count: int) -> list[float]:
    taken: list[float] = []
    for nth in range(count):
        began = time.perf_counter()
        work(nth)
        taken.append(time.perf_counter() - began)
    return taken


@contextmanager
def _emulated_bucket() -> Iterator[str]:
    server = ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        requests.put(f"http://{host}:{port}/bench", timeout=60).raise_for_status()
        yield f"http://{host}:{port}"
    finally:
        server.stop()
