"""A customer's three reports."""

from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import Response

from api.answers import accepted_job, answer
from api.dependencies import Allow, Caller, CustomerId
from api.once import once
from api.operations import gives
from api.schemas.jobs import EXAMPLE_REFRESH, JobView
from api.schemas.reports import CompletenessReportView, ReportBundleView, member
from storage import jobs, reports

router = APIRouter(prefix="/v1/customer/{customerId}/reports", tags=["Reports"])
Refresher = Annotated[Caller, Depends(Allow("customer:riskscore"))]
Reader = Annotated[Caller, Depends(Allow("customer:reports"))]
REFUSALS = ("Report.RefreshRunning", "Report.NoEnrichedTransactions")
CompletenessReader = Annotated[Caller, Depends(Allow("customer:completeness", "customer:reports"))]


@router.post("/refresh", **gives(JobView, 202, refuses=REFUSALS, example=EXAMPLE_REFRESH))
@once
def refresh_reports(caller: Refresher, customer_id: CustomerId) -> Response:
    """Compute all three reports over the customer's enriched transactions; poll the job that the answer names."""
    with caller.writing() as w:
        job = jobs.request_refresh(w, caller.customer(w, customer_id), caller.now)
        return caller.keep(w, accepted_job(job))


@router.get("", **gives(ReportBundleView))
def get_reports(caller: Reader, customer_id: CustomerId) -> Response:
    """Read the three reports together. Check each one's `status` before its `data`."""
    with caller.reading() as r:
        bundle = reports.bundle(r, caller.customer(r, customer_id))
    return answer({kind: member(report) for kind, report in bundle.items()})


@router.get("/completeness", **gives(CompletenessReportView))
def get_completeness(caller: CompletenessReader, customer_id: CustomerId) -> Response:
    """Read the completeness report alone."""
    with caller.reading() as r:
        bundle = reports.bundle(r, caller.customer(r, customer_id))
    return answer(member(bundle["completeness"]))
