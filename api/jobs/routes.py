"""Jobs: the progress of submissions, retractions, refreshes and other work."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from api.core.schemas.common import Paging
from api.core.schemas.jobs import (
    DuplicateRowListView,
    JobListView,
    JobsQuery,
    JobStatusView,
    JobView,
    RejectedRowListView,
    RejectedRowView,
    WaitQuery,
)
from api.http.dependencies import READER_SCOPES, Allow, Caller, JobId
from api.http.documented import DAMAGED_FILE, envelope, refuses
from api.http.responses import respond, respond_list
from api.http.route import Route
from api.jobs import waiting
from storage.customers import customers
from storage.jobs import jobs, outcomes

router = APIRouter(route_class=Route, prefix="/v1/jobs", tags=["Jobs"])
Reader = Annotated[Caller, Depends(Allow(*READER_SCOPES))]


@router.get("", response_model=envelope(JobListView), responses=refuses("Customer.NotFound"))
def list_jobs(caller: Reader, query: Annotated[JobsQuery, Query()]) -> Response:
    """List jobs, newest first."""
    with caller.reading() as r:
        if query.customer_id is not None:
            customers.get(r, caller.client_id, query.customer_id)
        found = jobs.find(r, caller.client_id, **query.filters(), page=query.requested_page())
    return respond_list("jobs", found, JobView)


@router.get("/{jobId}/status", response_model=envelope(JobStatusView))
async def get_job_status(caller: Reader, job_id: JobId, query: Annotated[WaitQuery, Query()]) -> Response:
    """Read a job. With `wait`, the response comes when the job has ended or the time is up."""
    watcher = caller.request.app.state.watcher
    return respond(await waiting.wait_for_end(watcher, caller, job_id, query.wait))


@router.get("/{jobId}/errors", response_model=envelope(RejectedRowListView), responses=refuses(*DAMAGED_FILE))
def list_rejected_rows(caller: Reader, job_id: JobId, query: Annotated[Paging, Query()]) -> Response:
    """List the rejected rows of a submission in its order, each with its reason."""
    with caller.reading() as r:
        job = caller.job(r, job_id)
        found = outcomes.find_rejected(r, caller.store.lake, job, query.requested_page())
    return respond_list("errors", found, RejectedRowView)


@router.get("/{jobId}/duplicates", response_model=envelope(DuplicateRowListView), responses=refuses(*DAMAGED_FILE))
def list_duplicate_rows(caller: Reader, job_id: JobId, query: Annotated[Paging, Query()]) -> Response:
    """List the duplicate rows of a submission, each with the transaction that it repeated when the submission ended."""
    with caller.reading() as r:
        job = caller.job(r, job_id)
        found = outcomes.find_duplicates(r, caller.store.lake, job, query.requested_page())
    return respond_list("duplicates", found)
