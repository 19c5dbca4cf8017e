"""A client's customers."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends
from starlette.responses import Response

from api.core.answers import answer, listing
from api.core.deferred import Body, JsonBody, Query, QueryOf
from api.core.dependencies import READING, Allow, Caller, CustomerId
from api.core.idempotency import idempotent
from api.core.in_turn import InTurn
from api.core.operations import gives
from api.customers.schemas.customers import (
    CreatedCustomerView,
    CustomerListView,
    CustomersQuery,
    CustomerView,
    NewCustomer,
)
from storage.customers import customers
from storage.customers.customers import Creation

router = APIRouter(route_class=InTurn, prefix="/v1", tags=["Customers"])
Reader = Annotated[Caller, Depends(Allow(*READING))]
Submitter = Annotated[Caller, Depends(Allow("transactions:enrich", "transactions:extract"))]
CustomerBody = Annotated[Body[NewCustomer], Depends(JsonBody(NewCustomer))]
WhichCustomers = Annotated[Query[CustomersQuery], Depends(QueryOf(CustomersQuery))]
MOST_NAMED = customers.MOST_OTHERS - 1  # the last one only tells that there are more


@router.post("/customer", **gives(CreatedCustomerView, 201, also=200))
@idempotent
def create_customer(caller: Submitter, body: CustomerBody) -> Response:
    """Create a customer, or find the one that bears this ABN and reference already."""
    new = body.read().record()
    with caller.writing() as w:
        creation = customers.create(w, caller.client_id, new, caller.now)
        return caller.keep(w, _created(creation))


@router.get("/customer/{customerId}", **gives(CustomerView))
def get_customer(caller: Reader, customer_id: CustomerId) -> Response:
    """Read one customer."""
    with caller.reading() as r:
        return answer(CustomerView.of(caller.customer(r, customer_id)))


@router.get("/customers", **gives(CustomerListView))
def list_customers(caller: Reader, query: WhichCustomers) -> Response:
    """List customers in order of creation: all of them, or those with an ABN or a reference."""
    which = query.read()
    with caller.reading() as r:
        found = customers.find(r, caller.client_id, which.abn, which.reference, which.asked())
    return listing("customers", found, CustomerView)


def _created(creation: Creation) -> Response:
    view = CreatedCustomerView.of(vars(creation.customer) | {"created": creation.created})
    location = {"Location": f"/v1/customer/{view.customer_id}"}
    return answer(view, _others(creation.others), 201 if creation.created else 200, location)


def _others(customer_ids: tuple[UUID, ...]) -> str | None:
    """Two customers with one ABN may be meant or a slip, so the answer names them."""
    if not customer_ids:
        return None
    named = ", ".join(str(customer_id) for customer_id in customer_ids[:MOST_NAMED])
    return f"Other customers of yours have this ABN: {named}{', …' if len(customer_ids) > MOST_NAMED else '.'}"
