"""Landing files: what clients sent, row by row, beside what the job of each submission knows."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

import polars as pl

from pipelines.errors import Corrupt
from pipelines.schemas import LANDED, SUBMISSION
from storage.jobs import Job
from storage.lake import Lake


def readable(lake: Lake, submissions: Sequence[Job]) -> tuple[list[Job], list[tuple[Job, Corrupt]]]:
    """Submissions whose landing file is what was written, and those whose file is not, with what is wrong with it."""
    good: list[Job] = []
    damaged: list[tuple[Job, Corrupt]] = []
    for job in submissions:
        try:
            lake.verified(job.landing_path or "", job.landing_sha256 or b"")
        except Corrupt as error:
            damaged.append((job, error))
        else:
            good.append(job)
    return good, damaged


def rows_of(lake: Lake, submissions: Sequence[Job]) -> pl.LazyFrame:
    """All submissions' rows (SUBMISSION and LANDED)."""
    if not submissions:
        return pl.LazyFrame(schema={**SUBMISSION, **LANDED})
    paths = [str(lake.root / (job.landing_path or "")) for job in submissions]
    context = pl.LazyFrame([_context(job) for job in submissions], schema=SUBMISSION)
    rows = pl.scan_parquet(paths, include_file_paths="path")
    return rows.join(context.with_columns(pl.Series("path", paths)), on="path", validate="m:1").drop("path")


def _context(job: Job) -> dict[str, Any]:
    account = dict(job.submission or {})
    identified, limit = account.pop("identified"), account.pop("credit_limit")
    return account | {
        "customer_number": job.customer_number,
        "job_id": job.job_id.bytes,
        "received_seq": job.received_seq,
        "received_at": job.created_at,
        "account_id": UUID(account["account_id"]).bytes,
        "account_identified": identified,
        "credit_limit": None if limit is None else Decimal(limit),
    }
