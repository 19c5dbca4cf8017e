"""Waiting for a job that a command has queued for the running service."""

import time

from api.core.commands.console import err
from pipelines.vocabulary.errors import Unprocessable
from storage.core.models import LIVE, JobStatus
from storage.core.store import Store
from storage.jobs import jobs
from storage.jobs.jobs import Job

POLL_EVERY_S = 0.5


def wait_until_completed(store: Store, job: Job) -> None:
    """Wait until a job has ended.

    Raises:
        Unprocessable: The job failed; the error says why.
    """
    err.print(f"Waiting for job {job.job_id} of the running service …", style="dim", highlight=False)
    while job.status in LIVE:
        time.sleep(POLL_EVERY_S)
        with store.db.reading() as r:
            job = jobs.get(r, job.client_id, job.job_id)
    if job.status is JobStatus.FAILED:
        error = job.error or {"code": "Job.Failed", "message": "The job failed."}
        raise Unprocessable(error["code"], error["message"])
