"""Lists derived from all of a customer's transactions, computed for each request."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from api.core import derived
from api.core.derived import Derived
from api.core.schemas.common import Paging
from api.http.dependencies import ROW_READER_SCOPES, Allow, Caller, CustomerId
from api.http.documented import DAMAGED_FILE, envelope, refuses
from api.http.responses import stream_list, totals
from api.http.route import Route
from api.reports.schemas.derived import FacilityListView, MentionedAccountListView, SeriesListView
from storage.core.paging import Paged
from storage.enrichment import transactions

router = APIRouter(route_class=Route, prefix="/v1/customer/{customerId}", tags=["Transactions"])
Reader = Annotated[Caller, Depends(Allow(*ROW_READER_SCOPES))]


@router.get("/series", response_model=envelope(SeriesListView), responses=refuses(*DAMAGED_FILE))
def list_series(caller: Reader, customer_id: CustomerId, query: Annotated[Paging, Query()]) -> Response:
    """List a customer's recurring payments and receipts, by account."""
    return _respond_with_list(derived.SERIES, caller, customer_id, query)


@router.get("/facilities", response_model=envelope(FacilityListView), responses=refuses(*DAMAGED_FILE))
def list_facilities(caller: Reader, customer_id: CustomerId, query: Annotated[Paging, Query()]) -> Response:
    """List the credit facilities that a customer's transactions until today show, in order of their start."""
    return _respond_with_list(derived.FACILITIES, caller, customer_id, query)


@router.get("/mentioned-accounts", response_model=envelope(MentionedAccountListView), responses=refuses(*DAMAGED_FILE))
def list_mentioned_accounts(caller: Reader, customer_id: CustomerId, query: Annotated[Paging, Query()]) -> Response:
    """List the accounts that a customer's transfers mention and whose transactions were not supplied."""
    return _respond_with_list(derived.MENTIONED_ACCOUNTS, caller, customer_id, query)


def _respond_with_list(derivation: Derived, caller: Caller, customer_id: str, query: Paging) -> Response:
    with caller.reading() as r:
        customer = caller.customer(r, customer_id)
        page = query.requested_page()
        rows = transactions.posted_rows(r, caller.store.lake, customer, derivation.columns)
    with caller.request.app.state.memory.reserve(caller.requester, customer.enriched_rows * derived.BYTES_PER_ROW):
        items = derivation.compute(rows.collect(), caller.today)
    counts = totals(Paged(range(items.height), items.height, page))
    return stream_list(derivation.name, counts, derivation.as_json(items, page))
