"""A customer's reports as a page for people."""

from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import HTMLResponse, Response

from api.core.dependencies import Allow, Caller, CustomerId
from api.core.in_turn import InTurn
from api.core.operations import DAMAGED_FILE, shows_page
from api.reports.routes.reports import VERSIONS, WhichMoment, bundle_of
from pipelines.pages import CONTENT_POLICY
from pipelines.reports.page import About, page

router = APIRouter(route_class=InTurn, prefix="/v1/customer/{customerId}", tags=["Reports"])
Reader = Annotated[Caller, Depends(Allow("customer:reports"))]


@router.get("/reports.html", **shows_page([*VERSIONS, *DAMAGED_FILE]))
def get_report_page(caller: Reader, customer_id: CustomerId, query: WhichMoment) -> Response:
    """Read the three reports as one printable page, which fetches nothing and runs no script."""
    customer, found = bundle_of(caller, customer_id, query)
    about = About(customer.name, customer.abn, customer.reference, str(customer.customer_id))
    return HTMLResponse(page(found, about), headers={"Content-Security-Policy": CONTENT_POLICY})
