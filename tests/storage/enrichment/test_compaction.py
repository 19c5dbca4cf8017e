"""Compaction brings scattered customers together while submissions and reads go on, and loses no row."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta

import polars as pl
import pytest
from sqlalchemy import select

from pipelines.vocabulary.errors import Unavailable
from storage.core.database import Writing
from storage.core.lake import Lake
from storage.core.models import JobStatus, customers
from storage.core.store import Store
from storage.customers.customers import get
from storage.enrichment import compaction, transactions
from storage.enrichment.compaction import (
    FILE_CUSTOMERS,
    FILE_ROWS,
    LOOSE_FILES,
    LiveValue,
    compact,
    divide_into_files,
    select_values_to_move,
)
from storage.enrichment.transactions import Location
from storage.operations import retention
from tests.storage import values
from tests.storage.examples import a_submission
from tests.storage.values import (
    BUCKET,
    commit,
    content,
    customers_of_a_bucket,
    interrupt_after_write,
    on_postgresql,
    on_sqlite,
    place_of,
)


def files_of_bucket(store: Store) -> set[str]:
    with store.db.reading() as r:
        return {place.path for place in transactions.current_locations_in_bucket(r, BUCKET)}


def create_scattered(store: Store, now: datetime, files: int = LOOSE_FILES + 1) -> list[int]:
    """Create customers of one bucket, each in a file of its own."""
    numbers = customers_of_a_bucket(store, files, now)
    for number in numbers:
        commit(store, {number: 3}, now)
    return numbers


def test_scattered_customers_are_brought_together_and_keep_their_rows(store: Store, now: datetime) -> None:
    numbers = create_scattered(store, now)
    done = compact(store, BUCKET, lambda: now)
    assert (done.moved, done.skipped, done.files) == (len(numbers), 0, 1)
    assert done.bytes_written > 0
    assert done.bytes_read > 0
    assert len(files_of_bucket(store)) == 1
    for number in numbers:
        assert values.read_place(store, place_of(store, number)) == content(number, 1, 3)


@on_sqlite
def test_compacting_again_moves_no_customer(store: Store, now: datetime) -> None:
    create_scattered(store, now)
    compact(store, BUCKET, lambda: now)
    before = files_of_bucket(store)
    assert compact(store, BUCKET, lambda: now).moved == 0
    assert files_of_bucket(store) == before


@on_sqlite
def test_a_few_loose_files_are_left_alone(store: Store, now: datetime) -> None:
    create_scattered(store, now, files=LOOSE_FILES)
    assert compact(store, BUCKET, lambda: now).moved == 0


@on_sqlite
def test_a_file_of_mostly_dead_rows_is_rewritten_at_once(store: Store, now: datetime) -> None:
    numbers = customers_of_a_bucket(store, 3, now)
    commit(store, dict.fromkeys(numbers, 2), now)
    commit(store, dict.fromkeys(numbers[:2], 2), now)
    left_behind = place_of(store, numbers[2]).path
    assert compact(store, BUCKET, lambda: now).moved == 3
    assert left_behind not in files_of_bucket(store)


@on_sqlite
def test_rows_are_sorted_by_customer_in_the_new_file(store: Store, now: datetime) -> None:
    numbers = create_scattered(store, now)
    compact(store, BUCKET, lambda: now)
    (path,) = files_of_bucket(store)
    assert pl.read_parquet(store.lake.root / path)["customer_number"].unique(maintain_order=True).to_list() == numbers


def test_a_customer_that_got_a_new_value_meanwhile_is_skipped(store: Store, now: datetime) -> None:
    numbers = create_scattered(store, now)
    racing = interrupt_after_write(store, lambda: commit(store, {numbers[0]: 5}, now))
    done = compact(racing, BUCKET, lambda: now)
    assert (done.moved, done.skipped) == (len(numbers) - 1, 1)
    assert values.read_place(store, place_of(store, numbers[0])) == content(numbers[0], 2, 5)
    for number in numbers[1:]:
        assert values.read_place(store, place_of(store, number)) == content(number, 1, 3)


def test_of_two_compactions_at_once_the_later_moves_no_customer(store: Store, now: datetime) -> None:
    numbers = create_scattered(store, now)
    done = compact(interrupt_after_write(store, lambda: compact(store, BUCKET, lambda: now)), BUCKET, lambda: now)
    assert (done.moved, done.skipped, done.files) == (0, len(numbers), 0)
    on_disk = {found.path for found in store.lake.files(f"transactions/bucket-{BUCKET:02}")}
    assert on_disk == files_of_bucket(store), "the loser removes its own file"


def test_a_batch_that_read_the_old_place_commits_all_the_same(store: Store, now: datetime) -> None:
    numbers = create_scattered(store, now)
    before = values.read_versions(store, numbers)
    compact(store, BUCKET, lambda: now)
    assert commit(store, {numbers[0]: 4}, now, read=before).replaced == {numbers[0]}
    assert values.read_place(store, place_of(store, numbers[0])) == content(numbers[0], 2, 4)


class Naming(Lake):
    """A lake in which something happens while a file is being named, before the commit."""

    def __init__(self, lake: Lake, then: Callable[[], object]) -> None:
        super().__init__(lake.root)
        self._then = then

    def require(self, w: Writing, path: str) -> None:
        super().require(w, path)
        self._then()


@on_postgresql
def test_a_submission_does_not_wait_for_compaction(store: Store, now: datetime) -> None:
    numbers = create_scattered(store, now)
    with store.db.reading() as r:
        client_id, customer_id = r.execute(select(customers.c.client_id, customers.c.customer_id).limit(1)).one()
        customer = get(r, client_id, customer_id)
    with ThreadPoolExecutor(1) as pool:

        def submit() -> None:
            assert pool.submit(a_submission, store, customer, now).result(timeout=3).status is JobStatus.QUEUED

        assert compact(replace(store, lake=Naming(store.lake, submit)), BUCKET, lambda: now).moved == len(numbers)


@on_sqlite
def test_a_reader_can_read_the_place_that_it_looked_up(store: Store, now: datetime) -> None:
    numbers = create_scattered(store, now)
    looked_up = place_of(store, numbers[0])
    compact(store, BUCKET, lambda: now)
    commit(store, {numbers[0]: 9}, now)
    retention.sweep(store, lambda: now)
    assert values.read_place(store, looked_up) == content(numbers[0], 1, 3)


@on_sqlite
def test_places_swept_since_the_run_began_are_not_read(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bucket may take longer than replaced versions are kept."""
    numbers = create_scattered(store, now)
    monkeypatch.setattr(compaction, "FILE_CUSTOMERS", len(numbers) - 1)
    monkeypatch.setattr(retention, "ORPHAN_AGE", timedelta(days=365))  # the new file is of today, by the disk's clock
    last = numbers[-1]
    later = now + store.settings.retention + timedelta(hours=1)

    def replace_and_sweep() -> None:
        if place_of(store, last).data_version == 1:
            commit(store, {last: 5}, now)
            assert retention.sweep(store, lambda: later, confirmed=True).versions == 1

    done = compact(interrupt_after_write(store, replace_and_sweep), BUCKET, lambda: now)
    assert (done.moved, done.skipped, done.unreadable, done.files) == (len(numbers) - 1, 1, 0, 1)
    assert values.read_place(store, place_of(store, last)) == content(last, 2, 5)


@on_sqlite
def test_a_customer_without_rows_moves_too(store: Store, now: datetime) -> None:
    numbers = create_scattered(store, now, files=LOOSE_FILES + 2)
    commit(store, dict.fromkeys(numbers[:2], 0), now)
    assert compact(store, BUCKET, lambda: now).moved == len(numbers)
    assert values.read_place(store, place_of(store, numbers[0])) == []


@on_sqlite
def test_a_damaged_file_does_not_stop_other_customers(store: Store, now: datetime) -> None:
    numbers = create_scattered(store, now, files=LOOSE_FILES + 2)
    damaged = place_of(store, numbers[0])
    (store.lake.root / damaged.path).write_bytes(b"rot")
    done = compact(store, BUCKET, lambda: now)
    assert (done.moved, done.unreadable) == (len(numbers) - 1, 1)
    assert place_of(store, numbers[0]) == damaged


@on_sqlite
def test_a_file_deleted_as_an_orphan_is_never_committed(store: Store, now: datetime) -> None:
    numbers = create_scattered(store, now)
    places = [place_of(store, number) for number in numbers]

    def collect() -> None:
        for found in store.lake.files(f"transactions/bucket-{BUCKET:02}"):
            store.lake.discard(found.path)

    with pytest.raises(Unavailable):
        compact(interrupt_after_write(store, collect), BUCKET, lambda: now)
    assert [place_of(store, number) for number in numbers] == places


def live(number: int, rows: int, file: str, file_rows: int, live_rows: int) -> LiveValue:
    return LiveValue(Location(number, 1, 1, file, b"", 0, rows), 54 * file_rows, file_rows, live_rows)


def test_a_well_filled_file_is_settled_however_many_loose_ones_there_are() -> None:
    settled = live(1, FILE_ROWS // 2, "a", FILE_ROWS // 2, FILE_ROWS // 2)
    loose = [live(2 + i, 10, f"b{i}", 10, 10) for i in range(LOOSE_FILES + 1)]
    assert select_values_to_move([settled, *loose]) == loose


def test_many_small_customers_fill_a_file_as_few_large_ones_do() -> None:
    many = [live(i, 1, "a", FILE_CUSTOMERS, FILE_CUSTOMERS) for i in range(FILE_CUSTOMERS // 2)]
    loose = [live(10_000 + i, 10, f"b{i}", 10, 10) for i in range(LOOSE_FILES + 1)]
    assert select_values_to_move([*many, *loose]) == loose


def test_files_hold_customers_in_order_up_to_a_bound() -> None:
    rows = [FILE_ROWS // 3] * 5 + [3 * FILE_ROWS] + [FILE_ROWS // 3] * 2
    moving = [live(number, count, "a", 1, 1) for number, count in enumerate(rows)]
    cut = [[each.location.customer_number for each in together] for together in divide_into_files(moving)]
    assert cut == [[0, 1, 2], [5], [3, 4, 6], [7]]


def test_all_new_files_but_the_last_are_settled() -> None:
    rows = [(i * 7919) % (FILE_ROWS // 2) for i in range(100)]
    moving = [live(number, count, "a", 1, 1) for number, count in enumerate(rows)]
    filled = [sum(each.share_of_a_file for each in together) for together in divide_into_files(moving)]
    assert sum(share < compaction.HALF for share in filled) <= 1
