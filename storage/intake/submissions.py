"""Submissions: rows are stored durably in a landing file, then accepted as a job that refers to it.

Because of this order an accepted submission survives a power failure. A landing file without a job belongs to a
submission that was never accepted.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from uuid import UUID, uuid4

import polars as pl

from pipelines.intake import rows
from pipelines.intake.accounts import Account, Oddity
from storage.core.database import Writing
from storage.core.lake import StoredFile
from storage.core.store import Store
from storage.customers.customers import Customer
from storage.jobs import jobs
from storage.jobs.jobs import Job


@dataclass(frozen=True)
class Landing:
    """The stored rows of a submission that is not accepted yet."""

    job_id: UUID
    file: StoredFile
    row_count: int
    warnings: Sequence[Mapping[str, str]]


def land(store: Store, landed: pl.DataFrame, now: datetime) -> Landing:
    """Store rows, as `pipelines.intake.rows.land_lines` returns them."""
    job_id = uuid4()
    file = store.lake.put_frame(f"landing/{now:%Y-%m-%d}/{job_id}.parquet", landed)
    return Landing(job_id, file, landed.height, list(rows.masked_warnings(landed)))


def with_warnings(landing: Landing, more: Iterable[Mapping[str, str]]) -> Landing:
    """Return the landing with further warnings, which its job will have."""
    return replace(landing, warnings=[*landing.warnings, *more])


def accept(
    w: Writing,
    store: Store,
    customer: Customer,
    identified: tuple[Account, Sequence[Oddity]],
    landing: Landing,
    *,
    appended: bool,
    who: str | None,
    now: datetime,
) -> Job:
    """Accept the stored rows as a submission for an account, with warnings about the account's details.

    Args:
        who: the sender, as in the audit trail; None for the service.
    """
    account, oddities = identified
    job = jobs.submit_enrichment(
        w,
        customer,
        account,
        appended=appended,
        landing=landing.file,
        job_id=landing.job_id,
        rows=landing.row_count,
        warnings=[*map(asdict, oddities), *landing.warnings],
        who=who,
        now=now,
    )
    store.lake.require(w, landing.file.path)
    return job
