"""Jobs over a client's portfolio and of no single customer: backtests and simulations.

Each has one run, which says when it begins and how it ends. No webhook tells of them.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import func, insert, update

from storage.core.database import Reading, Writing
from storage.core.models import Flow, JobStatus, jobs
from storage.jobs.jobs import Ending, Job, as_job, finish, get, select_jobs


def request(w: Writing, client_id: UUID, flow: Flow, now: datetime) -> Job:
    """Accept one."""
    job_id = uuid4()
    job: dict[str, Any] = {"job_id": job_id, "client_id": client_id, "flow": flow, "warnings": [], "created_at": now}
    w.execute(insert(jobs).values(**job, status=JobStatus.QUEUED))
    return get(w, client_id, job_id)


def waiting(r: Reading, flow: Flow) -> list[Job]:
    """Those that have not begun, in order of receipt."""
    mine = select_jobs().where(jobs.c.flow == flow, jobs.c.status == JobStatus.QUEUED)
    return [as_job(row) for row in r.execute(mine.order_by(jobs.c.received_seq))]


def begin(w: Writing, job_id: UUID, now: datetime) -> None:
    """Its run begins, perhaps after one that was interrupted."""
    begun = {"attempts": jobs.c.attempts + 1, "started_at": func.coalesce(jobs.c.started_at, now)}
    w.execute(update(jobs).where(jobs.c.job_id == job_id).values(status=JobStatus.RUNNING, **begun))


def end(w: Writing, client_id: UUID, job_id: UUID, failed: int, now: datetime) -> None:
    """It is done; `failed` customers are not in it."""
    status = JobStatus.COMPLETED_WITH_ERRORS if failed else JobStatus.COMPLETED
    finish(w, [Ending(get(w, client_id, job_id), status, None)], now)


def fail(w: Writing, client_id: UUID, job_id: UUID, error: Mapping[str, str], now: datetime) -> None:
    finish(w, [Ending(get(w, client_id, job_id), JobStatus.FAILED, None, error=error)], now)
