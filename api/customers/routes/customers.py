"""A client's customers."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from api.customers.cursors import cursor_text
from api.customers.schemas.customers import (
    CreatedCustomerView,
    CustomerListView,
    CustomersQuery,
    CustomerView,
    NewCustomer,
)
from api.customers.schemas.summaries import (
    CustomerSummaryListView,
    CustomerSummaryView,
    SummariesQuery,
    describe_summary,
)
from api.http.dependencies import READER_SCOPES, Allow, Caller, CustomerId
from api.http.documented import envelope
from api.http.idempotency import IDEMPOTENT
from api.http.responses import respond, respond_list, totals
from api.http.route import Route
from storage.core.database import Reading
from storage.core.paging import Page, Paged
from storage.customers import customers, summary_listing
from storage.customers.customers import Creation
from storage.customers.summary_listing import Place, Summary
from storage.jobs import jobs

router = APIRouter(route_class=Route, prefix="/v1", tags=["Customers"])
Reader = Annotated[Caller, Depends(Allow(*READER_SCOPES))]
SummaryReader = Annotated[Caller, Depends(Allow("customer:reports"))]
Submitter = Annotated[Caller, Depends(Allow("transactions:enrich", "transactions:extract"))]
MAX_NAMED = customers.MAX_OTHERS - 1  # one more is read, only to learn whether there are more


@router.post(
    "/customer",
    status_code=201,
    response_model=envelope(CreatedCustomerView),
    responses={200: {"model": envelope(CreatedCustomerView)}},
    dependencies=[IDEMPOTENT],
)
def create_customer(caller: Submitter, sent: NewCustomer) -> Response:
    """Create a customer, or find the existing one with this ABN and reference."""
    with caller.writing() as w:
        creation = customers.create(w, caller.client_id, sent.record(), caller.who, caller.now)
        if creation.created:
            caller.audit(w, "Customer.Created", customerId=creation.customer.customer_id)
        return caller.store_response(w, _creation_response(creation))


@router.get("/customer/{customerId}", response_model=envelope(CustomerView))
def get_customer(caller: Reader, customer_id: CustomerId) -> Response:
    """Read one customer."""
    with caller.reading() as r:
        return respond(CustomerView.of(caller.customer(r, customer_id)))


@router.get("/customers", response_model=envelope(CustomerListView))
def list_customers(caller: Reader, query: Annotated[CustomersQuery, Query()]) -> Response:
    """List customers in order of creation: all of them, or those with an ABN or a reference."""
    with caller.reading() as r:
        found = customers.find(r, caller.client_id, query.abn, query.reference, query.requested_page())
    return respond_list("customers", found, CustomerView)


@router.get("/customers/summaries", response_model=envelope(CustomerSummaryListView))
def list_customer_summaries(caller: SummaryReader, query: Annotated[SummariesQuery, Query()]) -> Response:
    """List customers with their rating, completeness, last decision and open alerts, and search them.

    Customers that are added or change meanwhile shift the pages, but not a cursor, and a late page takes longer than an
    early one. Every change shows at once, except that an alert counts again some seconds after its snooze has ended.
    Customers with the same value are in order of creation.
    """
    with caller.reading() as r:
        found, following = _find_summaries(r, caller.client_id, query)
        unfinished = jobs.find_with_unfinished_change(r, [each.number for each in found.items])
    shown = [describe_summary(each, unfinished) for each in found.items]
    also = {"hasMore": found.has_more, "nextCursor": following and cursor_text(query.order, following)}
    if query.cursor is not None:
        also["currentPage"] = None
    return respond({"customers": shown, **totals(found), **also})


def _find_summaries(r: Reading, client_id: UUID, query: SummariesQuery) -> tuple[Paged[Summary], Place | None]:
    """Return the summaries that are asked for, and their last place if others follow."""
    page = query.requested_page()
    if query.cursor is not None:
        _, place = query.cursor
        return summary_listing.find_page(r, client_id, query.filter, query.order, Page(1, query.count), place)
    if page is not None:
        return summary_listing.find_page(r, client_id, query.filter, query.order, page)
    return summary_listing.find(r, client_id, query.filter, query.order), None


@router.get("/customer/{customerId}/summary", response_model=envelope(CustomerSummaryView))
def get_customer_summary(caller: SummaryReader, customer_id: CustomerId) -> Response:
    """Read what is known of one customer, as the list of summaries shows it."""
    with caller.reading() as r:
        customer = caller.customer(r, customer_id)
        summary = summary_listing.get(r, customer)
        unfinished = jobs.find_with_unfinished_change(r, [customer.number])
    return respond(describe_summary(summary, unfinished))


def _creation_response(creation: Creation) -> Response:
    view = CreatedCustomerView.of(vars(creation.customer) | {"created": creation.created})
    location = {"Location": f"/v1/customer/{view.customer_id}"}
    return respond(view, _others(creation.others), 201 if creation.created else 200, location)


def _others(customer_ids: tuple[UUID, ...]) -> str | None:
    """Return a message that names other customers with this ABN. To have several may be intended or a mistake."""
    if not customer_ids:
        return None
    named = ", ".join(str(customer_id) for customer_id in customer_ids[:MAX_NAMED])
    return f"Other customers of yours have this ABN: {named}{', …' if len(customer_ids) > MAX_NAMED else '.'}"
