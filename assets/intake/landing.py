"""Landing files: what clients sent, row by row, beside what the job of each submission knows.

A submission of transactions is of one account, which its job names. One of PDF statements may bring several: there each
row says itself of which account and which statement it is.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

import polars as pl

from pipelines.vocabulary.errors import Corrupt
from pipelines.vocabulary.schemas import LANDED, OF_JOB, OF_STATEMENT, SUBMISSION
from storage.core.lake import Lake
from storage.core.models import Flow
from storage.jobs.jobs import Job


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
    of_accounts = [job for job in submissions if job.flow is Flow.ENRICHMENT]
    of_statements = [job for job in submissions if job.flow is Flow.EXTRACTION]
    parts = [pl.LazyFrame(schema={**SUBMISSION, **LANDED})]
    if of_accounts:
        parts.append(_joined(lake, of_accounts, pl.LazyFrame(map(_context, of_accounts), schema=SUBMISSION), LANDED))
    if of_statements:
        known = pl.LazyFrame(map(_of_job, of_statements), schema={name: SUBMISSION[name] for name in OF_JOB})
        parts.append(_joined(lake, of_statements, known, {**LANDED, **OF_STATEMENT}))
    return pl.concat(parts)


def _joined(
    lake: Lake, submissions: Sequence[Job], known: pl.LazyFrame, columns: Mapping[str, pl.DataType]
) -> pl.LazyFrame:
    """The rows of their landing files, each beside what is known of its job. Columns that came later are null in those
    written before."""
    paths = [str(lake.root / (job.landing_path or "")) for job in submissions]
    rows = pl.scan_parquet(paths, include_file_paths="path", schema=columns, missing_columns="insert")
    joined = rows.join(known.with_columns(pl.Series("path", paths)), on="path", validate="m:1")
    return joined.select(*SUBMISSION.names(), *LANDED.names())


def _context(job: Job) -> dict[str, Any]:
    account = dict(job.submission or {})
    identified, limit = account.pop("identified"), account.pop("credit_limit")
    return (
        account
        | _of_job(job)
        | {
            "appended": account["appended"],
            "account_id": UUID(account["account_id"]).bytes,
            "account_identified": identified,
            "credit_limit": None if limit is None else Decimal(limit),
        }
    )


def _of_job(job: Job) -> dict[str, Any]:
    return {
        "customer_number": job.customer_number,
        "job_id": job.job_id.bytes,
        "received_seq": job.received_seq,
        "received_at": job.received_at,
        "appended": False,
    }
