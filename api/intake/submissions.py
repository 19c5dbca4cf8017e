"""Accept a submission: store its rows durably, then the job that refers to them, then respond with 202."""

from starlette.responses import Response

from api.http.dependencies import Caller
from api.http.responses import respond_accepted_job
from api.intake.schemas.transactions import APPEND, Submission
from pipelines.intake import rows
from storage.core.database import Writing
from storage.customers.customers import Customer
from storage.intake import submissions
from storage.jobs.jobs import Job


def audit_submission(caller: Caller, w: Writing, customer: Customer, job: Job) -> None:
    """Append to the audit trail that the caller sent the submission."""
    caller.audit(w, "Submission.Accepted", customerId=customer.customer_id, jobId=job.job_id)


def submit(caller: Caller, customer_id: str, submission: Submission) -> Response:
    """Store the submission and respond with the accepted job.

    Raises:
        NotFound: the customer is not the caller's.
    """
    with caller.reading() as r:
        customer = caller.customer(r, customer_id)
    digest = caller.store.vault.digest
    identified = submission.account_of(customer.customer_id, digest)
    landing = submissions.land(caller.store, rows.land_lines(submission.lines, digest), caller.now)
    with caller.writing() as w:
        appended = submission.mode == APPEND
        job = submissions.accept(
            w, caller.store, customer, identified, landing, appended=appended, who=caller.who, now=caller.now
        )
        audit_submission(caller, w, customer, job)
        return caller.store_response(w, respond_accepted_job(job))
