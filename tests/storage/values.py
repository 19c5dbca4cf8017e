"""Customers of one bucket, with values in which every row states its customer and version."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any
from uuid import uuid4

import polars as pl
import pytest
from sqlalchemy import delete, event, func, insert, select, update

from pipelines.vocabulary.schemas import SORT_KEY, TRANSACTIONS
from storage.core.buckets import BUCKETS, bucket_of
from storage.core.database import Reading, Writing
from storage.core.lake import Lake, StoredFile
from storage.core.models import Queue, customer_summaries, customers
from storage.core.store import Store
from storage.customers import summaries
from storage.customers.customers import versions
from storage.enrichment import transactions
from storage.enrichment.commit import BatchResult, Committed, commit_values, locate_values
from storage.enrichment.transactions import Location
from storage.jobs import batches
from tests.storage.examples import ABN, a_client

BUCKET = 7
on_sqlite = pytest.mark.parametrize("store", ["sqlite"], indirect=True)  # where the database makes no difference
on_postgresql = pytest.mark.parametrize("store", ["postgresql"], indirect=True)  # where writers don't take turns


def renumber(w: Writing, number: int, new: int) -> None:
    """Give a customer without data another number, and with it another bucket."""
    w.execute(delete(customer_summaries).where(customer_summaries.c.customer_number == number))
    w.execute(update(customers).where(customers.c.number == number).values(number=new))
    summaries.add(w, [new])


def plans_of(r: Reading, read: Callable[[Reading], object]) -> list[list[str]]:
    """Return how SQLite finds what `read` reads: the steps of each query."""
    run = list[tuple[str, Any]]()

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        run.append((statement, parameters))

    event.listen(r, "before_cursor_execute", note)
    read(r)
    event.remove(r, "before_cursor_execute", note)
    return [[row.detail for row in r.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", given)] for sql, given in run]


def customers_of_a_bucket(store: Store, count: int, now: datetime) -> list[int]:
    """Create customers in BUCKET, and return their numbers."""
    client_id = a_client(store, now)
    with store.db.writing() as w:
        newest = w.execute(select(func.max(customers.c.number))).scalar() or 0
        first = (newest // BUCKETS + 1) * BUCKETS + BUCKET
        numbers = [first + BUCKETS * i for i in range(count)]
        shared = {"client_id": client_id, "abn": ABN, "abn_checksum_valid": True, "created_at": now}
        w.execute(insert(customers), [{"number": n, "customer_id": uuid4(), **shared} for n in numbers])
        summaries.add(w, numbers)
    assert {bucket_of(number) for number in numbers} == {BUCKET}
    return numbers


def content(number: int, version: int, rows: int) -> list[str]:
    return [f"{number} v{version} row {row}" for row in range(rows)]


def date_of(row: int) -> date:
    """Return a row's date: two rows share a day."""
    return date(2026, 6, 1) + timedelta(days=row // 2)


def value(number: int, version: int, rows: int) -> pl.DataFrame:
    """Return a value in schema TRANSACTIONS; columns that don't matter here are null."""
    reported = {
        "description": content(number, version, rows),
        "position": range(rows),
        "date": [date_of(row) for row in range(rows)],
        "transaction_id": [row.to_bytes(16, "big") for row in range(rows)],
    }
    same = {"customer_number": number, "received_seq": version}
    frame = pl.DataFrame(reported).with_columns(**{name: pl.lit(each) for name, each in same.items()})
    empty = [pl.lit(None, dtype).alias(name) for name, dtype in TRANSACTIONS.items() if name not in frame.columns]
    return frame.with_columns(empty).select(pl.col(name).cast(dtype) for name, dtype in TRANSACTIONS.items())


def read_versions(store: Store, numbers: Sequence[int]) -> dict[int, int]:
    with store.db.reading() as r:
        return versions(r, numbers)


def commit(store: Store, rows: Mapping[int, int], now: datetime, read: Mapping[int, int] | None = None) -> Committed:
    """Commit one batch: a new value for each customer, with this number of rows.

    Args:
        read: the versions that the batch has read; by default the current ones.
    """
    read = read_versions(store, list(rows)) if read is None else read
    with store.db.writing() as w:
        token = batches.open_without_jobs(w, Queue.ENRICHMENT, now.date(), store.settings, now)
    frame = pl.concat([value(number, read[number] + 1, count) for number, count in sorted(rows.items())])
    stored = store.lake.put_frame(f"transactions/{now.date()}/{uuid4()}.parquet", frame.sort(SORT_KEY))
    with store.db.writing() as w:
        result = a_result(token, {number: read[number] for number in rows}, stored, frame)
        return commit_values(w, store.lake, result, now)


def a_result(token: int, read: Mapping[int, int], stored: StoredFile, frame: pl.DataFrame, **more: Any) -> BatchResult:
    """Return the result of a batch that replaces the values of the customers in `read`."""
    segment = (stored, frame.height)
    return BatchResult(token=token, versions=read, segment=segment, values=locate_values(frame, sorted(read)), **more)


def place_of(store: Store, number: int) -> Location:
    with store.db.reading() as r:
        return transactions.current_locations(r, [number])[0]


def read_place(store: Store, place: Location) -> list[str]:
    """Return the rows of a place. Reading by its range and by its customer's number must give the same rows."""
    by_range = place.scan(store.lake).select("description").collect()["description"].to_list()
    by_number = transactions.scan(store.lake, [place]).sort(SORT_KEY).collect()["description"].to_list()
    assert by_range == by_number
    return by_range


class InterruptedLake(Lake):
    """A lake in which something happens right after a frame was written, before a row names its file."""

    def __init__(self, lake: Lake, then: Callable[[], object]) -> None:
        super().__init__(lake.root)
        self._then = then

    def put_frame(self, path: str, frame: pl.DataFrame) -> StoredFile:
        stored = super().put_frame(path, frame)
        self._then()
        return stored


def interrupt_after_write(store: Store, then: Callable[[], object]) -> Store:
    return replace(store, lake=InterruptedLake(store.lake, then))
