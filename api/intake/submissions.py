"""Accepting a submission: first its rows lie durable in the landing file, then a job names them, then comes the 202.

So an answered 202 survives a power cut, and a landing file without a job is an orphan that nobody was promised.
"""

from dataclasses import asdict
from uuid import uuid4

from starlette.responses import Response

from api.http.answers import accepted_job
from api.http.dependencies import Caller
from api.intake.schemas.transactions import APPEND, Submission
from pipelines.intake import rows
from storage.jobs import jobs


def submit(caller: Caller, customer_id: str, submission: Submission) -> Response:
    """The answer that names the accepted job.

    Raises:
        NotFound: the customer is not the caller's.
    """
    with caller.reading() as r:
        customer = caller.customer(r, customer_id)
    digest = caller.store.vault.digest
    account, oddities = submission.account_of(customer.customer_id, digest)
    job_id = uuid4()
    landed = rows.landed(submission.lines, digest)
    landing = caller.store.lake.put_frame(f"landing/{caller.now:%Y-%m-%d}/{job_id}.parquet", landed)
    with caller.writing() as w:
        job = jobs.submit_enrichment(
            w,
            customer,
            account,
            appended=submission.mode == APPEND,
            landing=landing,
            job_id=job_id,
            rows=landed.height,
            warnings=[*map(asdict, oddities), *rows.masked_warnings(landed)],
            now=caller.now,
        )
        caller.store.lake.require(landing.path)
        return caller.keep(w, accepted_job(job))
