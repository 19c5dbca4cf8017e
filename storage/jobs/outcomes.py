"""Rows of submissions that added no transaction: they were rejected, with a reason, or are duplicates of a transaction.

A batch writes them as one Parquet file sorted by job, so that even 50,000 of them do not slow down the commit.
"""

from typing import Any
from uuid import UUID

import polars as pl
from sqlalchemy import select

from pipelines.vocabulary.schemas import UUID as UUID_TYPE
from storage.core.database import Reading
from storage.core.lake import Lake
from storage.core.models import segments
from storage.core.paging import Page, Paged
from storage.jobs.jobs import Job

OUTCOMES = pl.Schema(
    {
        "job_id": UUID_TYPE,
        "position": pl.UInt32(),
        "field": pl.String(),
        "code": pl.String(),  # null: a duplicate
        "message": pl.String(),
        "transaction_id": UUID_TYPE,  # null: rejected
    }
)


def combine_outcomes(rejected: pl.DataFrame, duplicates: pl.DataFrame) -> pl.DataFrame:
    """Return rejected and duplicate rows together, in schema OUTCOMES, sorted by job and position."""
    both = pl.concat([rejected, duplicates], how="diagonal")
    return both.match_to_schema(OUTCOMES, missing_columns="insert").sort("job_id", "position")


def find_rejected(r: Reading, lake: Lake, job: Job, page: Page | None = None) -> Paged[dict[str, Any]]:
    """Return the job's rejected rows: `index` in the submission, `field`, `code`, `message`."""
    rows = _read_outcomes(r, lake, job).filter(pl.col("code").is_not_null())
    return _slice_page(rows.select(pl.col("position").alias("index"), "field", "code", "message"), page)


def find_rejected_places(r: Reading, lake: Lake, job: Job) -> pl.DataFrame:
    """Return `job_id` and `position` of all rejected rows of the job."""
    return _read_outcomes(r, lake, job).filter(pl.col("code").is_not_null()).select("job_id", "position")


def find_duplicates(r: Reading, lake: Lake, job: Job, page: Page | None = None) -> Paged[dict[str, Any]]:
    """Return the job's duplicate rows: `index` in the submission and the `transactionId` that the row repeats."""
    rows = _read_outcomes(r, lake, job).filter(pl.col("transaction_id").is_not_null())
    found = _slice_page(rows.select(pl.col("position").alias("index"), pl.col("transaction_id")), page)
    items = [{"index": row["index"], "transactionId": UUID(bytes=row["transaction_id"])} for row in found.items]
    return Paged(items, found.total, found.page)


def _read_outcomes(r: Reading, lake: Lake, job: Job) -> pl.DataFrame:
    if job.outcomes_path is None:
        return pl.DataFrame(schema=OUTCOMES)
    sha256 = r.execute(select(segments.c.sha256).where(segments.c.path == job.outcomes_path)).scalar_one()
    found = pl.scan_parquet(lake.verified_path(job.outcomes_path, sha256))
    return found.filter(pl.col("job_id") == job.job_id.bytes).sort("position").collect()


def _slice_page(rows: pl.DataFrame, page: Page | None) -> Paged[dict[str, Any]]:
    shown = rows if page is None else rows.slice(page.offset, page.count)
    return Paged(shown.to_dicts(), rows.height, page)
