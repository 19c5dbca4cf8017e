"""What follows from a customer's transactions together, computed when it is asked for."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from api.core import derived
from api.core.derived import Derived
from api.core.schemas.common import Paging
from api.http.answers import streamed, totals
from api.http.dependencies import READING_ROWS, Allow, Caller, CustomerId
from api.http.documented import DAMAGED_FILE, enveloped, refuses
from api.http.route import Route
from api.reports.schemas.derived import FacilityListView, MentionedAccountListView, SeriesListView
from storage.core.paging import Paged
from storage.enrichment import transactions

router = APIRouter(route_class=Route, prefix="/v1/customer/{customerId}", tags=["Transactions"])
Reader = Annotated[Caller, Depends(Allow(*READING_ROWS))]


@router.get("/series", response_model=enveloped(SeriesListView), responses=refuses(*DAMAGED_FILE))
def list_series(caller: Reader, customer_id: CustomerId, query: Annotated[Paging, Query()]) -> Response:
    """A customer's recurring payments and receipts, by account."""
    return _listing(derived.SERIES, caller, customer_id, query)


@router.get("/facilities", response_model=enveloped(FacilityListView), responses=refuses(*DAMAGED_FILE))
def list_facilities(caller: Reader, customer_id: CustomerId, query: Annotated[Paging, Query()]) -> Response:
    """A customer's credit as its transactions until today show it, by start."""
    return _listing(derived.FACILITIES, caller, customer_id, query)


@router.get("/mentioned-accounts", response_model=enveloped(MentionedAccountListView), responses=refuses(*DAMAGED_FILE))
def list_mentioned_accounts(caller: Reader, customer_id: CustomerId, query: Annotated[Paging, Query()]) -> Response:
    """Accounts that a customer's transfers speak of and whose transactions were not supplied."""
    return _listing(derived.MENTIONED_ACCOUNTS, caller, customer_id, query)


def _listing(what: Derived, caller: Caller, customer_id: str, query: Paging) -> Response:
    with caller.reading() as r:
        customer = caller.customer(r, customer_id)
        page = query.asked()
        rows = transactions.booked(r, caller.store.lake, customer, what.columns)
    with caller.request.app.state.memory.taken(caller.asker, customer.enriched_rows * derived.BYTES_A_ROW):
        found = what.compute(rows.collect(), caller.today)
    counts = totals(Paged(range(found.height), found.height, page))
    return streamed(what.name, counts, what.as_json(found, page))
