"""Resolutions of findings of window dressing and of events that cap the rating."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from api.core.schemas.common import Paging
from api.http.dependencies import Allow, Caller, CustomerId
from api.http.documented import envelope, refuses
from api.http.responses import respond, totals
from api.http.route import Route
from api.reports.schemas.resolutions import ResolutionHistoryView, ResolutionsView, ResolutionView, SentResolution
from storage.reports import resolutions

router = APIRouter(route_class=Route, prefix="/v1/customer/{customerId}/resolutions", tags=["Reports"])
Resolver = Annotated[Caller, Depends(Allow("transactions:enrich"))]
Reader = Annotated[Caller, Depends(Allow("customer:reports"))]


@router.put(
    "",
    response_model=envelope(ResolutionsView),
    responses=refuses("Resolution.NothingFound", "Report.RefreshRunning"),
)
def resolve_finding(caller: Resolver, customer_id: CustomerId, sent: SentResolution) -> Response:
    """Resolve a finding or an event of the risk report with a reason, or revoke a resolution.

    Reports are computed again. A resolved finding or event is still shown, marked as resolved, but neither reduces
    revenue nor caps the rating.
    """
    with caller.writing() as w:
        customer = caller.customer(w, customer_id)
        resolutions.put(w, customer, sent.kind, sent.key, sent.reason, caller.actor.who, caller.now)
        caller.audit(w, "Customer.ResolutionSet", customerId=customer.customer_id, key=sent.key)
        found = resolutions.read_current(w, customer)
    return respond(ResolutionsView(resolutions=[ResolutionView.of(each) for each in found]))


@router.get("", response_model=envelope(ResolutionHistoryView))
def list_resolutions(caller: Reader, customer_id: CustomerId, query: Annotated[Paging, Query()]) -> Response:
    """Read the resolutions in force, and the history of all changes."""
    with caller.reading() as r:
        customer = caller.customer(r, customer_id)
        changes = resolutions.find_history(r, customer, query.requested_page())
        found = [ResolutionView.of(each) for each in resolutions.read_current(r, customer)]
    history = [ResolutionView.of(each) for each in changes.items]
    return respond({"resolutions": found, "history": history, **totals(changes)})
