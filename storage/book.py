"""The book's report tables: the customers' current reports of one kind and bucket, as Parquet for who reads the lake.

A table is written like every other file of the lake: durable first, then named, with its SHA-256, by the one
transaction that makes it the current one. What it replaces is kept for the retention time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import uuid4

import polars as pl
from sqlalchemy import insert, select, update

from pipelines.schemas import TIMESTAMP
from pipelines.schemas import UUID as UUID_TYPE
from storage.buckets import BUCKETS, in_bucket
from storage.commit import register
from storage.database import Reading
from storage.lake import Stored
from storage.models import book_tables, customers, reports, segments
from storage.reports import KINDS
from storage.store import Store

NAME_OF = {kind: f"{kind}_book" for kind in KINDS}

# One row for each customer that has the report, sorted by customer_number: each column's type and meaning.
COLUMNS: Mapping[str, tuple[pl.DataType, str]] = {
    "customer_number": (pl.Int64(), "internal number of the customer"),
    "customer_id": (UUID_TYPE, "16 bytes of the UUID"),
    "client_id": (UUID_TYPE, "16 bytes of the UUID"),
    "data_version": (pl.Int64(), "version of the customer's transactions that the report covers"),
    "is_current": (pl.Boolean(), "nothing newer was held, and the latest attempt succeeded, when this was written"),
    "report_version": (pl.Int32(), "version of the formulas"),
    "as_of": (pl.Date(), "the service's date of computation"),
    "data_through": (pl.Date(), "the last transaction's"),
    "generated_at": (TIMESTAMP, "UTC"),
    "data": (pl.String(), "the report's `data`: the exact JSON text that the API answers with"),
}
BOOK = pl.Schema({name: kind for name, (kind, _) in COLUMNS.items()})


@dataclass(frozen=True)
class BookTable:
    """A current table of one bucket."""

    name: str
    bucket: int
    path: str
    sha256: bytes
    rows: int


def reports_of(r: Reading, kind: str, bucket: int) -> pl.DataFrame:
    """The bucket's reports of one kind, in schema BOOK."""
    query = (
        select(
            customers.c.number,
            customers.c.customer_id,
            customers.c.client_id,
            reports.c.data_version,
            (reports.c.data_version == customers.c.data_version) & reports.c.failed.is_(False),
            reports.c.report_version,
            reports.c.as_of,
            reports.c.data_through,
            reports.c.generated_at,
            reports.c.data,
        )
        .join_from(reports, customers)
        .where(reports.c.kind == kind, reports.c.data.is_not(None), in_bucket(bucket))
        .order_by(customers.c.number)
    )
    rows = [(number, id_.bytes, client.bytes, *rest) for number, id_, client, *rest in r.execute(query)]
    return pl.DataFrame(rows, schema=BOOK, orient="row")


def put(store: Store, kind: str, bucket: int, table: pl.DataFrame, now: datetime) -> Stored:
    """Make `table` (schema BOOK) the current one of its kind and bucket."""
    name = NAME_OF[kind]
    stored = store.lake.put_frame(f"book/{name}/{bucket:02d}/{uuid4()}.parquet", table)
    with store.db.writing() as w:
        current = (book_tables.c.name == name, book_tables.c.bucket == bucket, book_tables.c.replaced_at.is_(None))
        w.execute(update(book_tables).where(*current).values(replaced_at=now))
        segment_id = register(w, (stored, table.height), now)
        w.execute(insert(book_tables).values(segment_id=segment_id, name=name, bucket=bucket, created_at=now))
        store.lake.require(stored.path)
    return stored


def current_tables(r: Reading) -> list[BookTable]:
    """All current tables, by name and bucket."""
    query = (
        select(book_tables.c.name, book_tables.c.bucket, segments.c.path, segments.c.sha256, segments.c.rows)
        .join_from(book_tables, segments)
        .where(book_tables.c.replaced_at.is_(None))
        .order_by(book_tables.c.name, book_tables.c.bucket)
    )
    return [BookTable(*row) for row in r.execute(query)]


def buckets_with_reports(r: Reading) -> list[int]:
    """The buckets whose tables would not be empty."""
    numbers = select(customers.c.number % BUCKETS).where(customers.c.number.in_(select(reports.c.customer_number)))
    return sorted(r.execute(numbers.distinct()).scalars())
