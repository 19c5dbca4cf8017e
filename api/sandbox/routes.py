"""Synthetic customers, in a sandbox only."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from api.core.schemas.common import Paging
from api.http.dependencies import READER_SCOPES, Allow, Caller
from api.http.documented import envelope, refuses
from api.http.idempotency import IDEMPOTENT
from api.http.responses import respond, respond_list
from api.http.route import Route
from api.sandbox import creating
from api.sandbox.schemas import (
    NewSandboxCustomer,
    SandboxCustomerView,
    SandboxProfileListView,
    SandboxProfileView,
)
from pipelines.synthetic.sandbox import PROFILES
from storage.core.paging import Paged

router = APIRouter(route_class=Route, prefix="/v1/sandbox", tags=["Sandbox"])
Anybody = Annotated[Caller, Depends(Allow(*READER_SCOPES))]
Submitter = Annotated[Caller, Depends(Allow("transactions:enrich"))]


@router.post(
    "/customers",
    status_code=201,
    response_model=envelope(SandboxCustomerView),
    responses=refuses("Sandbox.CustomerExists"),
    dependencies=[IDEMPOTENT],
)
def create_sandbox_customer(caller: Submitter, sent: NewSandboxCustomer) -> Response:
    """Create a synthetic business as a customer, with attributes, related parties, and transactions until yesterday.

    Only in a sandbox. For a year, its transactions of the past day are submitted every night.
    """
    made = creating.make(caller.store, sent, caller.now)
    with caller.writing() as w:
        customer, jobs = creating.create(
            w, caller.store, caller.client_id, sent.reference, made, caller.actor.who, caller.now
        )
        caller.audit(w, "Sandbox.CustomerCreated", customerId=customer.customer_id)
        view = SandboxCustomerView.of(
            {
                **vars(customer),
                "profile": sent.profile,
                "job_ids": [job.job_id for job in jobs],
                "data_through": made.drawn.until,
            }
        )
        location = {"Location": f"/v1/customer/{customer.customer_id}"}
        return caller.store_response(w, respond(view, status=201, headers=location))


@router.get("/profiles", response_model=envelope(SandboxProfileListView))
def list_sandbox_profiles(_: Anybody, query: Annotated[Paging, Query()]) -> Response:
    """List the profiles of synthetic businesses. Only in a sandbox."""
    every = [{"profile": slug, "summary": each.summary} for slug, each in PROFILES.items()]
    page = query.requested_page()
    shown = every if page is None else every[page.offset :][: page.count]
    return respond_list("profiles", Paged(shown, len(every), page), SandboxProfileView)
