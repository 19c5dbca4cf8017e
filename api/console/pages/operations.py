"""Admin: the client's jobs, and whether the service can do its work."""

from fastapi import APIRouter
from starlette.responses import Response

from api.console.routes import PageRoute
from api.console.visits import SignedIn

router = APIRouter(route_class=PageRoute, prefix="/admin", include_in_schema=False)
ROWS = 50  # of a table on one page


@router.get("/jobs")
async def show_jobs(page: SignedIn) -> Response:
    page.require("access:manage")
    query = page.request.query_params
    filters = {name: query.get(name, "") for name in ("status", "flow", "customerId")}
    found = await page.get("jobs", **filters, page=query.get("page", 1), count=ROWS)
    named = {job["customerId"] for job in found["jobs"]} - {None}
    customers = {customer_id: await page.get("customer", customer_id) for customer_id in named}
    return page.show("admin-jobs.html", found=found, filters=filters, customers=customers)


@router.get("/health")
async def show_health(page: SignedIn) -> Response:
    """Show what `GET /health/ready` answers."""
    page.require("access:manage")
    parts = await page.request.app.state.readiness.parts()
    return page.show("admin-health.html", parts=parts, version=page.request.app.version)
