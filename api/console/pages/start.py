"""The start page."""

from fastapi import APIRouter
from starlette.responses import RedirectResponse, Response

from api.console.routes import PageRoute
from api.console.visits import SignedIn

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/")
async def show_start(page: SignedIn) -> Response:
    """Redirect users who work on the queue to it, and all others to the list of customers."""
    return RedirectResponse("/work" if page.may("customer:work") else "/customers", 303)
