"""`PageRoute`: a route whose refusals are pages, too."""

from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import quote

from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from api.console import rendering
from api.console.calls import Refused
from api.console.visits import SignInNeeded
from pipelines.vocabulary.errors import RateLimited, TidemarkError


class PageRoute(APIRoute):
    """Sends people who aren't signed in to the sign-in page, and shows a refusal as a page."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_people(request: Request) -> Response:
            try:
                return await handle(request)
            except SignInNeeded:
                return RedirectResponse(f"/sign-in?next={quote(_return_address(request))}", 303)
            except (Refused, TidemarkError) as refusal:
                return refusal_page(request, refusal)

        return handle_people


def refusal_page(request: Request, refusal: Refused | TidemarkError) -> Response:
    values = {"status": refusal.status, "code": refusal.code, "detail": refusal.detail}
    response = rendering.render_page("refusal.html", values, request.app.state.store.settings.zone, refusal.status)
    if isinstance(refusal, RateLimited):
        response.headers["Retry-After"] = str(refusal.retry_after_s)
    return response


def _return_address(request: Request) -> str:
    """Return where to come back to: the page, unless the request was to change something."""
    if request.method != "GET":
        return "/"
    query = request.url.query
    return f"{request.url.path}?{query}" if query else request.url.path
