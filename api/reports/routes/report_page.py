"""A customer's reports as an HTML page."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from api.http.dependencies import Allow, Caller, CustomerId
from api.http.documented import DAMAGED_FILE, Page, refuses
from api.http.route import Route, heavy
from api.reports.routes.reports import VERSIONS, read_bundle
from api.reports.schemas.reports import Moment
from pipelines.pages import CONTENT_POLICY
from pipelines.reports.page import About, page

router = APIRouter(route_class=Route, prefix="/v1/customer/{customerId}", tags=["Reports"])
Reader = Annotated[Caller, Depends(Allow("customer:reports"))]


@router.get("/reports.html", response_class=Page, responses=refuses(*VERSIONS, *DAMAGED_FILE))
@heavy
def get_report_page(caller: Reader, customer_id: CustomerId, query: Annotated[Moment, Query()]) -> Response:
    """Read the three reports as one printable page, which fetches nothing and runs no script."""
    customer, found = read_bundle(caller, customer_id, query)
    about = About(customer.name, customer.abn, customer.reference, str(customer.customer_id))
    return Page(page(found, about), headers={"Content-Security-Policy": CONTENT_POLICY})
