"""The portfolio's tables: customers' current reports, and their metrics, as Parquet files for readers of the lake.

A table is written one bucket at a time. As with every file of the lake, it is stored durably first, and then the
transaction that makes it current records its path and SHA-256. Replaced tables are kept for the retention time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from uuid import uuid4

import polars as pl
from sqlalchemy import insert, select, update

from pipelines.vocabulary.schemas import TIMESTAMP
from pipelines.vocabulary.schemas import UUID as UUID_TYPE
from storage.core.buckets import in_bucket
from storage.core.database import AnySelect, Reading
from storage.core.lake import StoredFile
from storage.core.models import REPORT_KINDS, customers, portfolio_tables, reports, segments
from storage.core.segments import register
from storage.core.store import Store

METRICS = "metrics_portfolio"
FIGURE = pl.Decimal(38, 4)

Columns = Mapping[str, tuple[pl.DataType, str]]  # each column's type and meaning

_CUSTOMER: Columns = {
    "customer_number": (pl.Int64(), "internal number of the customer"),
    "customer_id": (UUID_TYPE, "16 bytes of the UUID"),
    "client_id": (UUID_TYPE, "16 bytes of the UUID"),
    "data_version": (pl.Int64(), "version of the customer's transactions that it covers"),
}
_REPORT: Columns = {
    **_CUSTOMER,
    "is_current": (pl.Boolean(), "when this was written, it covered the newest data and the latest attempt succeeded"),
    "report_version": (pl.Int32(), "version of the formulas"),
    "as_of": (pl.Date(), "the service's date of computation"),
    "data_through": (pl.Date(), "date of the last transaction"),
    "generated_at": (TIMESTAMP, "UTC"),
    "data": (pl.String(), "the report's `data`: the exact JSON text that the API answers with"),
}
# The most important figures of a report as columns of their own, with their paths in its data.
_HEADLINES: Mapping[str, Mapping[str, str]] = {
    "completeness": {
        "completeness_score": "$.summary.completenessScore",
        "completeness_tier": "$.summary.completenessTier",
        "total_missingness": "$.summary.totalMissingness",
    },
    "risk": {
        "value": "$.value",
        "rating": "$.rating",
        "pd_confidence_score": "$.pdConfidenceScore",
        "pd_confidence_rating": "$.pdConfidenceRating",
        "calibration": "$.calibration",
    },
    "aggregate": {},
}
_TEXTS = ("completeness_tier", "rating", "pd_confidence_rating", "calibration")


def _headline(name: str, path: str) -> tuple[pl.DataType, str]:
    return (pl.String() if name in _TEXTS else FIGURE, f"{path.removeprefix('$.')} of the data")


# One row for each customer that has the report, sorted by customer_number.
REPORT_COLUMNS: Mapping[str, Columns] = {
    kind: {**_REPORT, **{name: _headline(name, path) for name, path in _HEADLINES[kind].items()}}
    for kind in REPORT_KINDS
}
# One row for each metric of each customer with transactions, sorted by `customer_number` and `metric`.
METRIC_COLUMNS: Columns = {
    **_CUSTOMER,
    "as_of": (pl.Date(), "the service's date of computation"),
    "metric": (pl.String(), "slug in the registry"),
    "value": (FIGURE, "in the metric's unit; null if it is unavailable"),
    "cause": (pl.String(), "why it is unavailable"),
}


def make_schema(columns: Columns) -> pl.Schema:
    return pl.Schema({name: kind for name, (kind, _) in columns.items()})


@dataclass(frozen=True)
class PortfolioTable:
    """A current table of one bucket."""

    name: str
    bucket: int
    path: str
    sha256: bytes
    rows: int


def read_reports(r: Reading, kind: str, bucket: int) -> pl.DataFrame:
    """Return the bucket's reports of one kind, with REPORT_COLUMNS of the kind."""
    query: AnySelect = (
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
    kinds = REPORT_COLUMNS[kind]
    headlines = (
        pl.col("data").str.json_path_match(path).cast(kinds[name][0], strict=False).alias(name)
        for name, path in _HEADLINES[kind].items()
    )
    return pl.DataFrame(rows, schema=make_schema(_REPORT), orient="row").with_columns(headlines)


def combine_metrics(r: Reading, readings: pl.DataFrame, versions: Mapping[int, int], as_of: date) -> pl.DataFrame:
    """Return readings (`customer_number, metric, value, cause`) with METRIC_COLUMNS, sorted."""
    query = select(customers.c.number, customers.c.customer_id, customers.c.client_id)
    selected = query.where(customers.c.number.in_(list(versions)))
    reported = [(number, id_.bytes, client.bytes, versions[number]) for number, id_, client in r.execute(selected)]
    about = pl.DataFrame(reported, schema=make_schema(_CUSTOMER), orient="row")
    joined = readings.join(about, on="customer_number", validate="m:1").with_columns(as_of=pl.lit(as_of))
    shown = joined.select(pl.col(name).cast(kind) for name, (kind, _) in METRIC_COLUMNS.items())
    return shown.sort("customer_number", "metric")


def put(store: Store, name: str, bucket: int, table: pl.DataFrame, now: datetime) -> StoredFile:
    """Store `table` and make it the current one of its name and bucket."""
    stored = store.lake.put_frame(f"portfolio/{name}/{bucket:02d}/{uuid4()}.parquet", table)
    with store.db.writing() as w:
        current = (
            portfolio_tables.c.name == name,
            portfolio_tables.c.bucket == bucket,
            portfolio_tables.c.replaced_at.is_(None),
        )
        w.execute(update(portfolio_tables).where(*current).values(replaced_at=now))
        segment_id = register(w, store.lake, (stored, table.height), now)
        w.execute(insert(portfolio_tables).values(segment_id=segment_id, name=name, bucket=bucket, created_at=now))
    return stored


def find_current_tables(r: Reading) -> list[PortfolioTable]:
    """Return all current tables, by name and bucket."""
    query = (
        select(portfolio_tables.c.name, portfolio_tables.c.bucket, segments.c.path, segments.c.sha256, segments.c.rows)
        .join_from(portfolio_tables, segments)
        .where(portfolio_tables.c.replaced_at.is_(None))
        .order_by(portfolio_tables.c.name, portfolio_tables.c.bucket)
    )
    return [PortfolioTable(*row) for row in r.execute(query)]
