"""Jobs: how far the work on a submission, a retraction or a refresh is."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from api.core.answers import answer, listing
from api.core.deferred import Query, QueryOf
from api.core.dependencies import READING, Allow, Caller, JobId
from api.core.in_turn import InTurn
from api.core.operations import DAMAGED_FILE, gives
from api.core.schemas.common import Paging
from api.core.schemas.jobs import (
    DuplicateRowListView,
    JobListView,
    JobsQuery,
    JobStatusView,
    JobView,
    RefusedRowListView,
    RefusedRowView,
    WaitQuery,
)
from api.jobs import waiting
from storage.customers import customers
from storage.jobs import jobs, outcomes

router = APIRouter(route_class=InTurn, prefix="/v1/jobs", tags=["Jobs"])
Reader = Annotated[Caller, Depends(Allow(*READING))]
WhichJobs = Annotated[Query[JobsQuery], Depends(QueryOf(JobsQuery))]
WhichPage = Annotated[Query[Paging], Depends(QueryOf(Paging))]
HowLong = Annotated[Query[WaitQuery], Depends(QueryOf(WaitQuery))]


@router.get("", **gives(JobListView, refuses=["Customer.NotFound"]))
def list_jobs(caller: Reader, query: WhichJobs) -> Response:
    """List jobs, newest first."""
    which = query.read()
    with caller.reading() as r:
        if which.customer_id is not None:
            customers.get(r, caller.client_id, which.customer_id)
        found = jobs.find(r, caller.client_id, **which.filters(), page=which.asked())
    return listing("jobs", found, JobView)


@router.get("/{jobId}/status", **gives(JobStatusView))
async def get_job_status(request: Request, caller: Reader, job_id: JobId, query: HowLong) -> Response:
    """Read a job; with `wait`, the answer is held until the job has ended or the time is up."""
    return answer(await waiting.for_end(request.app.state.watcher, caller, job_id, query))


@router.get("/{jobId}/errors", **gives(RefusedRowListView, refuses=DAMAGED_FILE))
def list_refused_rows(caller: Reader, job_id: JobId, query: WhichPage) -> Response:
    """Every refused row of a submission, in its order, each with its reason."""
    with caller.reading() as r:
        job = caller.job(r, job_id)
        found = outcomes.rejected(r, caller.store.lake, job, query.read().asked())
    return listing("errors", found, RefusedRowView)


@router.get("/{jobId}/duplicates", **gives(DuplicateRowListView, refuses=DAMAGED_FILE))
def list_duplicate_rows(caller: Reader, job_id: JobId, query: WhichPage) -> Response:
    """Every duplicate row of a submission, each with the transaction that it repeated when the submission ended."""
    with caller.reading() as r:
        job = caller.job(r, job_id)
        found = outcomes.duplicates(r, caller.store.lake, job, query.read().asked())
    return listing("duplicates", found)
