"""A customer's three reports, as of today or another day, and the transactions behind every figure."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from api.core.derived import BYTES_PER_ROW
from api.core.schemas.jobs import JobView
from api.http import unknown
from api.http.dependencies import Allow, Caller, CustomerId
from api.http.documented import DAMAGED_FILE, envelope, refuses, shows
from api.http.idempotency import IDEMPOTENT
from api.http.responses import respond, respond_accepted_job
from api.http.route import Route, heavy
from api.reports import replay
from api.reports.schemas.reports import (
    CompletenessReportView,
    DiffQuery,
    DiffView,
    LineageQuery,
    LineageView,
    Moment,
    ReportBundleView,
    member,
)
from pipelines.reports import REPORTS
from pipelines.reports.report_view import ReportView
from storage.customers.customers import Customer
from storage.jobs import jobs
from storage.reports import reports

router = APIRouter(route_class=Route, prefix="/v1/customer/{customerId}/reports", tags=["Reports"])
Refresher = Annotated[Caller, Depends(Allow("customer:riskscore"))]
Reader = Annotated[Caller, Depends(Allow("customer:reports"))]
REFUSALS = ("Report.RefreshRunning", "Report.NoEnrichedTransactions")
VERSIONS = ("Report.VersionExpired", "Report.VersionUnknown")
CompletenessReader = Annotated[Caller, Depends(Allow("customer:completeness", "customer:reports"))]


@router.post(
    "/refresh",
    status_code=202,
    response_model=envelope(JobView),
    responses=shows(202, "refresh") | refuses(*REFUSALS),
    dependencies=[IDEMPOTENT],
)
def refresh_reports(caller: Refresher, customer_id: CustomerId) -> Response:
    """Compute all three reports from the customer's enriched transactions; poll the job in the response."""
    unknown.forget()
    with caller.writing() as w:
        customer = caller.customer(w, customer_id)
        job = jobs.request_refresh(w, customer, caller.who, caller.now)
        caller.audit(w, "Reports.RefreshRequested", customerId=customer.customer_id, jobId=job.job_id)
        return caller.store_response(w, respond_accepted_job(job))


@router.get("", response_model=envelope(ReportBundleView), responses=refuses(*VERSIONS, *DAMAGED_FILE))
def get_reports(caller: Reader, customer_id: CustomerId, query: Annotated[Moment, Query()]) -> Response:
    """Read the three reports together. Check each one's `status` before its `data`.

    With any parameter they are computed for that moment and not stored: `generatedAt` is null. The same version, day
    and formulas give the same bytes.
    """
    _, found = read_bundle(caller, customer_id, query)
    return respond({kind: member(report) for kind, report in found.items()})


@router.get(
    "/completeness", response_model=envelope(CompletenessReportView), responses=refuses(*VERSIONS, *DAMAGED_FILE)
)
def get_completeness(
    caller: CompletenessReader, customer_id: CustomerId, query: Annotated[Moment, Query()]
) -> Response:
    """Read the completeness report alone."""
    _, found = read_bundle(caller, customer_id, query)
    return respond(member(found["completeness"]))


@router.get("/diff", response_model=envelope(DiffView), responses=refuses(*VERSIONS, *DAMAGED_FILE))
@heavy
def diff_reports(caller: Reader, customer_id: CustomerId, query: Annotated[DiffQuery, Query()]) -> Response:
    """List the figures that differ between two states of the customer's reports, and why.

    A state is chosen by a day and by the time at which its data were known, or by a version of the transactions.
    Without any parameter, the current version is compared with the one before it. `report` asks for the figures of one
    report, which takes less time.
    """
    with caller.reading() as r:
        customer = caller.customer(r, customer_id)
        moments = (query.earlier(customer.data_version), query.later)
        earlier, later = (replay.find_basis(r, caller, customer, moment) for moment in moments)
    kinds = tuple(REPORTS) if query.report is None else (query.report,)
    states = {
        "from": earlier.data_version,
        "to": later.data_version,
        "fromAsOf": earlier.as_of,
        "asOf": later.as_of,
        "fromKnownAt": query.from_known_at,
        "knownAt": query.known_at,
    }
    return respond({**states, **replay.compare(caller, customer, earlier, later, kinds)})


def _add_explanation(kind: str) -> None:
    """Add the route that explains the figures of one kind of report, or metrics."""

    @router.get(
        f"/{kind}/lineage",
        name=f"explain_{kind}",
        response_model=envelope(LineageView),
        responses=refuses("Report.FigureNotFound", *VERSIONS, *DAMAGED_FILE),
    )
    def explain(caller: Reader, customer_id: CustomerId, query: Annotated[LineageQuery, Query()]) -> Response:
        """List the transactions that a figure adds up or counts or, for a derived figure, its formula and inputs.

        Without a moment, the figure is that of the stored report.
        """
        with caller.reading() as r:
            customer = caller.customer(r, customer_id)
            figure = query.figure or replay.DEFAULT_FIGURES[kind]
            basis = replay.find_basis(r, caller, customer, query, kind)
        with caller.request.app.state.memory.reserve(caller.requester, customer.enriched_rows * BYTES_PER_ROW):
            facts = basis.facts(caller)
            trace = replay.trace_figure(kind, facts, figure, basis, replay.find_cache(caller))
            return replay.respond_lineage(caller, kind, figure, trace, facts, basis, customer, query.requested_page())


for _kind in replay.DEFAULT_FIGURES:
    _add_explanation(_kind)


def read_bundle(caller: Caller, customer_id: str, moment: Moment) -> tuple[Customer, dict[str, ReportView]]:
    """Return the stored reports or, if `moment` is given, reports computed for it."""
    with caller.reading() as r:
        customer = caller.customer(r, customer_id)
        if not moment.is_given:
            return customer, reports.read_bundle(r, customer)
        basis = replay.find_basis(r, caller, customer, moment)
    return customer, replay.read_reports(caller, customer, basis)
