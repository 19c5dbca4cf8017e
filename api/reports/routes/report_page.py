"""A customer's reports as an HTML page, and the same page printed to PDF."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from api.http.dependencies import Allow, Caller, CustomerId
from api.http.documented import DAMAGED_FILE, Page, Pdf, refuses, sends
from api.http.route import Route, heavy
from api.reports import browser
from api.reports.routes.reports import VERSIONS, read_bundle
from api.reports.schemas.reports import Moment
from pipelines.pages import CONTENT_POLICY
from pipelines.reports.page import About, page
from storage.customers.customers import Customer

router = APIRouter(route_class=Route, prefix="/v1/customer/{customerId}", tags=["Reports"])
Reader = Annotated[Caller, Depends(Allow("customer:reports"))]


@router.get("/reports.html", response_class=Page, responses=refuses(*VERSIONS, *DAMAGED_FILE))
@heavy
def get_report_page(caller: Reader, customer_id: CustomerId, query: Annotated[Moment, Query()]) -> Response:
    """Read the three reports as one printable page, which fetches nothing and runs no script."""
    _, html = _page(caller, customer_id, query)
    return Page(html, headers={"Content-Security-Policy": CONTENT_POLICY})


@router.get(
    "/reports.pdf",
    response_class=Pdf,
    responses=sends(Pdf) | refuses(*VERSIONS, *DAMAGED_FILE, "Browser.Missing", "Browser.Failed"),
)
def print_report_page(caller: Reader, customer_id: CustomerId, query: Annotated[Moment, Query()]) -> Response:
    """Read the page of the three reports as PDF, which a browser on the service's machine prints."""
    customer, html = _page(caller, customer_id, query)
    printed = browser.print_in_turn(caller, html)
    return Pdf(printed, headers={"Content-Disposition": f'inline; filename="reports-{customer.customer_id}.pdf"'})


def _page(caller: Caller, customer_id: str, moment: Moment) -> tuple[Customer, str]:
    customer, found = read_bundle(caller, customer_id, moment)
    about = About(
        customer.name, customer.abn, customer.reference, str(customer.customer_id), caller.store.settings.zone
    )
    return customer, page(found, about)
