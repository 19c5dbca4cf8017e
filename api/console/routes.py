"""`PageRoute`: a route whose refusals are pages, too; and a page for addresses that have none."""

from collections.abc import Callable, Coroutine
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.datastructures import URL
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from api.console import rendering
from api.console.calls import Refused
from api.console.visits import BeyondLastPage, Page, SignInNeeded, signed_in
from api.http import problems
from pipelines.vocabulary.errors import RateLimited, TidemarkError

API: Final = "/v1"
IN_PLACE: Final = {
    "HX-Reselect": "#refusal",
    "HX-Reswap": "innerHTML",
}  # for a part of a page: htmx shows the sentence there
UNROUTED: Final = {
    404: ("Request.UnknownPath", "There is no page at this address."),
    405: ("Request.MethodNotAllowed", "This address only takes a form. Go back to the page that has it."),
}


class PageRoute(APIRoute):
    """Sends people who aren't signed in to the sign-in page, and shows a refusal as a page. Adds HEAD to GET.

    Instead of a page after the last one of a list, it shows the last one.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        methods = self.methods or set()
        self.methods = methods | {"HEAD"} if "GET" in methods else methods

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_people(request: Request) -> Response:
            try:
                return await handle(request)
            except SignInNeeded:
                return _lead_to_sign_in(request)
            except BeyondLastPage as beyond:  # its last items are gone, such as work that was done
                return RedirectResponse(rendering.without_host(request.url.include_query_params(page=beyond.last)), 303)
            except (Refused, TidemarkError) as refusal:
                return refusal_page(request, refusal)

        return handle_people


def refusal_page(request: Request, refusal: Refused | TidemarkError) -> Response:
    """Show a refusal: within the frame of the console if somebody is signed in, else on a page of its own."""
    heading = {403: "Not allowed", 404: "Not found"}.get(refusal.status, "Not possible")
    values = {"heading": heading, "code": refusal.code, "detail": refusal.detail}
    page: Page | None = getattr(request.state, "page", None)
    if page is None:
        zone = request.app.state.store.settings.zone
        response = rendering.render_page("refusal.html", {"page": None, **values}, zone, refusal.status)
    else:
        response = page.show("refusal.html", refusal.status, **values)
    if isinstance(refusal, RateLimited):
        response.headers["Retry-After"] = str(refusal.retry_after_s)
    response.headers.update(IN_PLACE)
    return response


def install(app: FastAPI) -> None:
    """Show a page to people who open an address that has none, or that only takes a form."""
    app.add_exception_handler(HTTPException, _respond_to_unrouted)


async def _respond_to_unrouted(request: Request, error: Exception) -> Response:
    """Respond with a page to a browser outside the HTTP API, else with a problem."""
    assert isinstance(error, HTTPException)
    is_of_api = request.url.path.startswith(API)
    if is_of_api or error.status_code not in UNROUTED or "text/html" not in request.headers.get("accept", ""):
        return await problems.respond_to_unrouted(request, error)
    with suppress(SignInNeeded, TidemarkError):
        await signed_in(request)
    response = refusal_page(request, Refused(error.status_code, *UNROUTED[error.status_code], {}))
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        response.headers["Allow"] = ", ".join(problems.methods_of_path(request))
    return response


def _lead_to_sign_in(request: Request) -> Response:
    """Redirect to the page that signs people in.

    If htmx asked for a part of a page, let it reload the whole page, which then redirects. But don't reload when a form
    was sent, because what somebody typed would be lost.
    """
    if "hx-request" in request.headers:
        return Response(status_code=204, headers={"HX-Refresh": "true"} if request.method == "GET" else {})
    if request.method not in ("GET", "HEAD"):
        return RedirectResponse(f"/sign-in?next={quote(_page_of_form(request))}&unsent=yes", 303)
    query = request.url.query
    page = f"{request.url.path}?{query}" if query else request.url.path
    return RedirectResponse(f"/sign-in?next={quote(page)}", 303)


def _page_of_form(request: Request) -> str:
    """Return the page of this site that a form was sent from, or the start page."""
    page = URL(request.headers.get("referer", ""))
    return f"{page.path}?{page.query}".rstrip("?") if page.netloc == request.headers.get("host") else "/"
