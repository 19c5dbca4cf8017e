"""A signed-in user's request of a page, and what protects it: the session's cookie and the token of forms."""

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from http import HTTPStatus
from threading import Thread
from typing import Annotated, Any, Final
from urllib.parse import quote, unquote, urlsplit

import httpx
from fastapi import Depends
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from api.access.schemas import MAX_ACTORS
from api.console import rendering
from api.console.calls import Calls, Refused
from api.console.file_names import PassingForm
from api.core.limits import Limits
from pipelines import reports
from pipelines.pages import wording
from pipelines.vocabulary.errors import Forbidden, TooLarge
from storage.access import sessions
from storage.access.sessions import Session
from storage.core.memory import freeze_loaded
from storage.core.store import Store

FORM_BYTES: Final = 2_000_000  # a policy's document is the largest; uploads are streamed on
NOTICE_COOKIE: Final = "tidemark_notice"  # holds a sentence that the next page shows
NOTICE_FOR_S: Final = 60


class SignInNeeded(Exception):
    """There is no session, or it has ended."""


class BeyondLastPage(Exception):
    """The requested page of a list comes after the last one, whose number is `last`."""

    def __init__(self, last: int) -> None:
        super().__init__(last)
        self.last = last


@dataclass(frozen=True)
class Page:
    """One request of a signed-in user."""

    request: Request
    session: Session
    calls: Calls

    @property
    def csrf(self) -> str:
        """The token that each form sends back: only a page of this session can know it."""
        return hmac.new(self.session.token.encode(), b"csrf", hashlib.sha256).hexdigest()

    def may(self, scope: str) -> bool:
        """Return whether the user's role grants the scope."""
        return scope in self.session.principal.scopes

    def require(self, scope: str) -> None:
        """Raise Forbidden unless the user's role grants the scope, on a page that calls no route before it is shown."""
        if not self.may(scope):
            raise Forbidden("Authorization.MissingScope", f"The scope is missing: {scope}.")

    async def get(self, *segments: object, **query: Any) -> Any:
        """Return the `data` of `GET /v1/{segments}`.

        Raises:
            BeyondLastPage: it is a list that has items, but none on the requested page.
        """
        data = await self.calls.data("GET", segments, query)
        last = data.get("totalPages") or 0
        if 0 < last < (data.get("currentPage") or 0) and not any(
            isinstance(each, list) and each for each in data.values()
        ):
            raise BeyondLastPage(last)
        return data

    async def find(self, *segments: object) -> dict[str, Any] | None:
        """Return the `data` of `GET /v1/{segments}`; None if there is nothing."""
        try:
            found: dict[str, Any] = await self.get(*segments)
        except Refused as refusal:
            if refusal.status != HTTPStatus.NOT_FOUND:
                raise
            return None
        return found

    async def post(self, *segments: object, json: Any = None, **query: Any) -> Any:
        return await self.calls.data("POST", segments, query, {} if json is None else json)

    async def put(self, *segments: object, json: Any = None, **query: Any) -> Any:
        return await self.calls.data("PUT", segments, query, json)

    async def patch(self, *segments: object, json: Any = None, **query: Any) -> Any:
        return await self.calls.data("PATCH", segments, query, json)

    async def delete(self, *segments: object, json: Any = None, **query: Any) -> Any:
        return await self.calls.data("DELETE", segments, query, json)

    async def names(self, actors: Iterable[str | None]) -> Mapping[str | None, str]:
        """Return a name to show for each value of `who`, `madeBy` or `setBy` in responses; None is somebody unknown."""
        ids = sorted({who for who in actors if who})
        names: dict[str | None, str] = {None: wording.UNKNOWN}
        for start in range(0, len(ids), MAX_ACTORS):
            found = await self.get("actors", who=",".join(ids[start : start + MAX_ACTORS]))
            names |= {actor["who"]: actor["name"] for actor in found["actors"]}
        return names

    async def file(self, *segments: object, **query: Any) -> httpx.Response:
        """Return the whole response of a route that returns a file."""
        return await self.calls.request("GET", segments, query)

    async def pass_on(self, *segments: object, form: PassingForm | None = None) -> httpx.Response:
        """Send the body of this request, unchanged, to `POST /v1/{segments}`.

        Args:
            form: the body, for a page that needs the names of its files.

        Raises:
            Forbidden: the query has no valid CSRF token, or another site's page sent the request.
        """
        require_same_origin(self.request)
        self._check_token(self.request.query_params.get("csrf", ""))
        described = ("content-type", "content-length")
        headers = {name: value for name in described if (value := self.request.headers.get(name)) is not None}
        return await self.calls.request("POST", segments, {}, form or self.request.stream(), headers)

    async def form(self) -> FormData:
        """Return the fields of the form that was sent.

        Raises:
            Forbidden: it has no valid CSRF token.
            TooLarge: it has more than FORM_BYTES.
        """
        fields = await read_form(self.request)
        self._check_token(str(fields.get("csrf", "")))
        return fields

    async def check_form(self) -> None:
        """Check the CSRF token of a form whose other fields are not needed here, like that of a button.

        Raises:
            Forbidden, TooLarge: as `form`.
        """
        await self.form()

    def show(self, template: str, status: int = 200, **values: Any) -> Response:
        """Render a template with what every page shows: the user, their rights, and the notice of the last action."""
        notice = unquote(self.request.cookies.get(NOTICE_COOKIE, ""))
        frame = {"page": self, "user": self.session.user, "client_name": self.session.client_name, "notice": notice}
        store: Store = self.request.app.state.store
        response = rendering.render_page(template, frame | values, store.settings.zone, status)
        if notice:
            response.delete_cookie(NOTICE_COOKIE)
        return response

    def to(self, path: str, notice: str = "") -> Response:
        """Redirect to a page of the console, which shows what was done."""
        response = RedirectResponse(path, 303)
        if notice:
            response.set_cookie(NOTICE_COOKIE, quote(notice), max_age=NOTICE_FOR_S, httponly=True, samesite="lax")
        return response

    def _check_token(self, sent: str) -> None:
        if not hmac.compare_digest(sent.encode(), self.csrf.encode()):
            raise Forbidden("Console.StaleForm", "This form is from another session. Go back, reload it and try again.")


async def signed_in(request: Request) -> Page:
    """Return the page's request if a user is signed in.

    Raises:
        SignInNeeded: nobody is.
        RateLimited: the user has sent too many requests.
    """
    token, now = request.cookies.get(cookie_name(request), ""), datetime.now(UTC)
    session = await run_in_threadpool(_find, request.app.state.store, token, now) if token else None
    if session is None:
        raise SignInNeeded
    limits: Limits = request.app.state.limits
    limits.count_request(request.scope, session.user.user_id)
    _load_reports()
    page = Page(request, session, calls_of(request, session))
    request.state.page = page  # for a refusal
    return page


@cache
def _load_reports() -> None:
    """Load, once per process and in a thread, what reports of another day need, so that nobody waits for it."""

    def load() -> None:
        reports.load()
        freeze_loaded()

    Thread(target=load, name="load reports").start()


SignedIn = Annotated[Page, Depends(signed_in)]


def calls_of(request: Request, session: Session) -> Calls:
    address = ("unknown", 0) if request.client is None else (request.client.host, request.client.port)
    return Calls(request.app, session.principal, address, request.state.own_request_id)


def _find(store: Store, token: str, now: datetime) -> Session | None:
    with store.db.reading() as r:
        session = sessions.find(r, token, now)
    if session is not None and sessions.is_stale(session, now):
        with store.db.writing() as w:
            sessions.touch(w, session, now)
    return session


async def read_form(request: Request) -> FormData:
    """Return the fields of a form that this site sent.

    Raises:
        Forbidden: another site's page sent it.
        TooLarge: it has more than FORM_BYTES.
    """
    require_same_origin(request)
    if int(request.headers.get("content-length") or FORM_BYTES + 1) > FORM_BYTES:
        raise TooLarge("Request.TooLarge", f"A form may have {FORM_BYTES:,} bytes at most.")
    return await request.form(max_part_size=FORM_BYTES)


def require_same_origin(request: Request) -> None:
    """Raise Forbidden for a request that a browser says comes from another site, or whose origin it does not say."""
    origin = request.headers.get("origin", "")
    if not origin or urlsplit(origin).netloc != request.headers.get("host"):
        raise Forbidden("Console.OtherOrigin", "This form was not sent by a page of this site.")


def cookie_name(request: Request) -> str:
    """Return the name of the session's cookie. Over HTTPS its prefix makes browsers accept it from this host only."""
    return "__Host-tidemark_session" if request.url.scheme == "https" else "tidemark_session"


def local_path(text: str) -> str:
    """Return the path if it is on this site, else the start page's."""
    is_local = text.startswith("/") and not text.startswith(("//", "/\\")) and text.isascii() and text.isprintable()
    return text if is_local else "/"


def path_back(form: Mapping[str, Any], otherwise: str) -> str:
    """Return the path of the page to go back to after a form: the form's `back`, if it names one."""
    return local_path(str(form.get("back", otherwise)))


def with_session(response: Response, request: Request, token: str) -> Response:
    """Set the session's cookie."""
    is_https = request.url.scheme == "https"
    response.set_cookie(cookie_name(request), token, httponly=True, samesite="lax", secure=is_https, path="/")
    return response


def without_session(response: Response, request: Request) -> Response:
    response.delete_cookie(cookie_name(request), secure=request.url.scheme == "https", httponly=True, samesite="lax")
    return response
