"""Customers: the list with search and filters, new ones, and what is known of one."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query
from starlette.responses import Response

from api.console.calls import Refused
from api.console.routes import PageRoute
from api.console.visits import SignedIn

LISTED: Final = 50
FIELDS: Final = ("abn", "name", "reference", "state")
FILTERS: Final = ("search", "rating", "outcome", "reportStatus", "openAlerts", "sort")
NOBODY: Final[Mapping[str, Any]] = {"customers": [], "totalCount": 0, "currentPage": 1, "totalPages": 0}

PageOfList = Annotated[str, Query(alias="page")]  # the API refuses what isn't a number

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/customers")
async def list_customers(page: SignedIn, number: PageOfList = "1", after: Annotated[str, Query()] = "") -> Response:
    """Show a page of the list: by its number or, as fast for late pages as for the first, the one after a cursor."""
    filters = {name: page.request.query_params.get(name, "").strip() for name in FILTERS}
    which = {"cursor": after} if after else {"page": number}
    try:
        found = await page.get("customers", "summaries", **which, count=LISTED, **filters)
        if after and number.isdecimal():
            found["currentPage"] = int(number)
    except Refused as refused:
        if "/search" not in refused.faults:
            raise
        return page.show("customers.html", 400, found=NOBODY, filters=filters, faults=[refused.faults["/search"]])
    return page.show("customers.html", found=found, filters=filters, faults=[])


@router.get("/customers/new")
async def show_form(page: SignedIn) -> Response:
    return page.show("new-customer.html", sent=dict.fromkeys(FIELDS, ""), faults={})


@router.post("/customers")
async def create_customer(page: SignedIn) -> Response:
    form = await page.form()
    sent = {name: str(form.get(name, "")).strip() for name in FIELDS}
    try:
        made = await page.post("customer", json=sent)
    except Refused as refused:
        if not refused.faults:
            raise
        return page.show("new-customer.html", 400, sent=sent, faults=refused.faults)
    notice = "The customer is created." if made["created"] else "This customer exists already."
    return page.to(f"/customers/{made['customerId']}", notice)


@router.get("/customers/{customer_id}")
async def show_customer(page: SignedIn, customer_id: str) -> Response:
    summary = await page.get("customer", customer_id, "summary")
    reports = await page.get("customer", customer_id, "reports")
    decision = summary["lastDecision"]
    policy = "" if decision is None else (await page.get("decision-policies", decision["slug"]))["name"]
    shown = {"completeness": _data(reports, "completeness"), "risk": _data(reports, "risk"), "policy": policy}
    return page.show("customer.html", customer=summary, **shown)


def _data(reports: dict[str, Any], kind: str) -> dict[str, Any]:
    return reports[kind]["data"] or {}


@router.post("/customers/{customer_id}/refresh")
async def refresh_reports(page: SignedIn, customer_id: str) -> Response:
    """Request a refresh of the reports. It is no error if one is under way already."""
    await page.check_form()
    try:
        await page.post("customer", customer_id, "reports", "refresh")
    except Refused as refused:
        if refused.code not in ("Report.RefreshRunning", "Report.NoEnrichedTransactions"):
            raise
        return page.to(_overview(customer_id), refused.detail)
    return page.to(_overview(customer_id), "The reports are being computed. Reload the page in a moment.")


def _overview(customer_id: str) -> str:
    return f"/customers/{customer_id}"
