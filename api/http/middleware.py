"""Handle what applies to every request: a request id, a log line, rate limit headers, no caching, no framing of pages,
a limit on requests in progress, and a response for every failure.

Plain ASGI, so that streamed responses stay streams. The log contains the route's template and never the path itself,
which may contain an ABN.
"""

import logging
import time
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.core.limits import MAX_HEAD_BYTES, Limits, unidentified_requester
from api.http import unknown
from api.http.dependencies import MAX_KEY_CHARACTERS
from api.http.problems import from_error, unexpected_failure
from pipelines.vocabulary.errors import HeadTooLarge, NotFound, TidemarkError
from storage.core import logs

POLLED = ("/health/", "/metrics")  # polled by monitoring, so logged at debug level only
MAX_REQUEST_ID_CHARACTERS = 128
FRAMED_BY_NOBODY = "frame-ancestors 'none'"  # has no effect in a page's own `meta` element, so pages don't have it
BYTES_AROUND_A_HEADER = len(": \r\n")

log = logging.getLogger("tidemark.api")


class EveryRequest:
    """The outermost middleware of the application."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        own_id = str(uuid4())
        response = _SentResponse(scope, send, request_id(Headers(scope=scope).get("x-request-id", ""), own_id))
        scope.setdefault("state", {}).update(request_id=response.request_id, own_request_id=own_id)
        started = time.perf_counter()
        with logs.add_fields(requestId=response.request_id, ownRequestId=own_id), unknown.collecting():
            try:
                await self._respond(scope, receive, response)
            finally:
                _log_request(scope, response, time.perf_counter() - started)

    async def _respond(self, scope: Scope, receive: Receive, response: "_SentResponse") -> None:
        try:
            await self._within_limits(scope, receive, response.send)
        except TidemarkError as refusal:
            await from_error(Request(scope), refusal)(scope, receive, response.send)
        except Exception:
            log.exception("a request failed")
            if response.status is not None:
                raise  # part of the response is sent: only cutting the connection can tell the client that it failed
            await unexpected_failure(Request(scope))(scope, receive, response.send)

    async def _within_limits(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the head, and let the request into the application.

        `Allow.admit` counts it against the limit on requests in progress, after it has checked the key. Requests that
        need no key, such as health checks, are never counted and so never refused.
        """
        limits: Limits = scope["app"].state.limits
        _require_small_head(scope)
        _require_whole_path(scope)
        with limits.requests.held(unidentified_requester(scope)) as held:
            scope["state"]["held"] = held
            await self.app(scope, receive, send)


class _SentResponse:
    """The response on its way out: adds our headers and remembers the status."""

    def __init__(self, scope: Scope, send: Send, request_id: str) -> None:
        self._scope = scope
        self._send = send
        self.request_id = request_id
        self.status: int | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["X-Request-Id"] = self.request_id
            headers["X-Content-Type-Options"] = "nosniff"
            headers.setdefault("Cache-Control", "no-store")
            _forbid_framing(headers)
            self._scope["app"].state.limits.limit_state(self._scope).write(headers)
        await self._send(message)


def _forbid_framing(headers: MutableHeaders) -> None:
    """Keep other sites from showing a page in a frame of theirs, where they could have its buttons clicked."""
    if headers.get("content-type", "").startswith("text/html"):
        headers["X-Frame-Options"] = "DENY"
        policy = headers.get("content-security-policy", "")
        if FRAMED_BY_NOBODY not in policy:
            headers["Content-Security-Policy"] = "; ".join(filter(None, (policy, FRAMED_BY_NOBODY)))


def _require_small_head(scope: Scope) -> None:
    """Raise HeadTooLarge, unless the key is too long: it is refused later, like any other wrong key."""
    size = len(scope["raw_path"]) + len(scope["query_string"])
    size += sum(len(name) + len(value) + BYTES_AROUND_A_HEADER for name, value in scope["headers"])
    longest_key = max((len(value) for name, value in scope["headers"] if name == b"x-api-key"), default=0)
    cut = "head_too_large" in scope["state"]
    if (cut or size > MAX_HEAD_BYTES) and longest_key <= MAX_KEY_CHARACTERS:
        raise HeadTooLarge("Request.HeadTooLarge", f"Address and headers may have {MAX_HEAD_BYTES:,} bytes at most.")


def _require_whole_path(scope: Scope) -> None:
    """Raise NotFound for a path that ends with a line feed.

    The router would ignore the line feed, but a proxy that blocks some paths would not recognise them.
    """
    if scope["path"].endswith("\n"):
        raise NotFound("Request.UnknownPath", "There is nothing at this path.")


def request_id(given: str, own: str) -> str:
    """Return the response's request id: the caller's if it is printable ASCII of a sane length, else our own.

    Logs and the audit trail contain our own id as well, which callers can't choose. It distinguishes requests that were
    sent with the same id.
    """
    usable = 0 < len(given) <= MAX_REQUEST_ID_CHARACTERS and given.isascii() and given.isprintable()
    return given if usable else own


def _log_request(scope: Scope, response: _SentResponse, took_s: float) -> None:
    template = getattr(scope.get("route"), "path", "(no route)")
    level = logging.DEBUG if template.startswith(POLLED) else logging.INFO
    fields = {"ms": round(took_s * 1000, 1)}
    log.log(level, "%s %s %s", scope["method"], template, response.status, extra={"fields": fields})
