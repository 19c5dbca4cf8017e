"""The memory that a customer's row takes is no more than is reserved for it."""

import re
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from uuid import UUID

import pytest

from api.core.derived import BYTES_PER_LISTED_ROW, BYTES_PER_ROW, BYTES_PER_ROW_OF_DIFF
from api.intake.transactions_json import in_slices
from benchmarks.filling import UNTIL, fill
from pipelines.figures.facts import Facts
from pipelines.reports import REPORTS
from pipelines.reports.diff import diff
from storage.access import keys
from storage.core.settings import Settings
from storage.core.store import Store
from storage.customers import customers
from storage.enrichment import transactions
from storage.enrichment.transactions import PART_ROWS, Location

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]  # 100,000 rows are enriched; each measure has a process

ROWS, READERS = 100_000, 8


def facts(store: Store, place: Location) -> Facts:
    return Facts(place.scan(store.lake).collect(), UNTIL)


def reports(store: Store, place: Location) -> int:
    of = facts(store, place)
    for each in REPORTS.values():
        each.compute(of)
    return ROWS


def compare_with_itself(store: Store, place: Location) -> int:
    diff(facts(store, place), facts(store, place))
    return ROWS


def list_concurrently(store: Store, place: Location) -> int:
    """List rows with eight readers at once; return how many rows they have in memory together."""

    def read(_: int) -> int:
        with store.db.reading() as r:
            customer = customers.get_of_any_client(
                r, customers.ids_of(r, [place.customer_number])[place.customer_number]
            )
            listing = transactions.list_transactions(r, store.lake, customer)
        return sum(map(len, in_slices(listing, lambda numbers: dict.fromkeys(numbers, UUID(int=1)))))

    with ThreadPoolExecutor(READERS) as readers:
        assert all(readers.map(read, range(READERS)))
    return READERS * PART_ROWS


WORK: Mapping[str, tuple[Callable[[Store, Location], int], int]] = {
    "reports": (reports, BYTES_PER_ROW),
    "diff": (compare_with_itself, BYTES_PER_ROW_OF_DIFF),
    "listing": (list_concurrently, BYTES_PER_LISTED_ROW),
}


def bytes_a_row(home: Path, what: str) -> float:
    """Return how much memory a new process takes for each of the rows that it reports."""
    store = Store.open(Settings(home=home))
    with store.db.reading() as r:
        [place] = transactions.current_locations_in_bucket(r, 1)
    before = most_bytes()
    rows = WORK[what][0](store, place)
    return (most_bytes() - before) / rows


def most_bytes() -> int:
    """Return this process's peak memory. `getrusage` would include that of its parent."""
    [kibibytes] = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(kibibytes) * 1024


def test_a_row_takes_no_more_memory_than_is_reserved(tmp_path: Path, subtests: pytest.Subtests) -> None:
    store = Store.open(Settings(home=tmp_path))
    with store.db.writing() as w:
        client = keys.create_client(w, "lender", decision_policies=False, now=datetime.now(UTC))
    fill(store, client.client_id, 1, ROWS)
    store.close()
    for what, (_, asked) in WORK.items():
        with subtests.test(what), ProcessPoolExecutor(1, get_context("spawn")) as process:
            measured = process.submit(bytes_a_row, tmp_path, what).result()
            assert asked / 3 < measured < asked
