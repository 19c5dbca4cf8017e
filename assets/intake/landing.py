"""Read landing files: the rows that clients sent, joined with the facts of each submission's job.

A submission of transactions concerns one account, which its job names. A submission of PDF statements may concern
several accounts: there each row names its account and statement.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

import polars as pl

from pipelines.vocabulary.errors import Corrupt
from pipelines.vocabulary.schemas import JOB_COLUMNS, LANDED, STATEMENT_COLUMNS, SUBMISSION
from storage.core.lake import Lake
from storage.core.models import Flow
from storage.jobs.jobs import Job


def separate_damaged(lake: Lake, submissions: Sequence[Job]) -> tuple[list[Job], list[tuple[Job, Corrupt]]]:
    """Return the submissions with an intact landing file, and those with a damaged one and the error."""
    good: list[Job] = []
    damaged: list[tuple[Job, Corrupt]] = []
    for job in submissions:
        try:
            lake.verified_path(job.landing_path or "", job.landing_sha256 or b"")
        except Corrupt as error:
            damaged.append((job, error))
        else:
            good.append(job)
    return good, damaged


def rows_of(lake: Lake, submissions: Sequence[Job]) -> pl.LazyFrame:
    """Return the rows of all submissions (SUBMISSION and LANDED)."""
    feeds = [job for job in submissions if job.flow is Flow.ENRICHMENT]
    statements = [job for job in submissions if job.flow is Flow.EXTRACTION]
    parts = [pl.LazyFrame(schema={**SUBMISSION, **LANDED})]
    if feeds:
        parts.append(_join_jobs(lake, feeds, pl.LazyFrame(map(_submission_facts, feeds), schema=SUBMISSION), LANDED))
    if statements:
        facts = pl.LazyFrame(map(_job_facts, statements), schema={name: SUBMISSION[name] for name in JOB_COLUMNS})
        parts.append(_join_jobs(lake, statements, facts, {**LANDED, **STATEMENT_COLUMNS}))
    return pl.concat(parts)


def _join_jobs(
    lake: Lake, submissions: Sequence[Job], facts: pl.LazyFrame, columns: Mapping[str, pl.DataType]
) -> pl.LazyFrame:
    """Return the rows of the landing files, each with its job's facts. Newer columns are null in older files."""
    paths = [str(lake.verified_path(job.landing_path or "", job.landing_sha256 or b"")) for job in submissions]
    rows = pl.scan_parquet(paths, include_file_paths="path", schema=columns, missing_columns="insert")
    joined = rows.join(facts.with_columns(pl.Series("path", paths)), on="path", validate="m:1")
    return joined.select(*SUBMISSION.names(), *LANDED.names())


def _submission_facts(job: Job) -> dict[str, Any]:
    account = dict(job.submission or {})
    identified, limit = account.pop("identified"), account.pop("credit_limit")
    return (
        account
        | _job_facts(job)
        | {
            "appended": account["appended"],
            "account_id": UUID(account["account_id"]).bytes,
            "account_identified": identified,
            "credit_limit": None if limit is None else Decimal(limit),
        }
    )


def _job_facts(job: Job) -> dict[str, Any]:
    return {
        "customer_number": job.customer_number,
        "job_id": job.job_id.bytes,
        "received_seq": job.received_seq,
        "received_at": job.received_at,
        "appended": False,
    }
