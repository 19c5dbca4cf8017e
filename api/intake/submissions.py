"""Accept a submission: store its rows durably in a landing file, then the job that refers to it, then answer 202.

In this order an accepted submission survives a power cut. A landing file without a job belongs to a submission that was
never accepted.
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
    """Store the submission and answer with the accepted job.

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
