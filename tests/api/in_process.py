"""Requests answered by an application in this process: as over HTTP, but without server and socket."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from typing import Any, cast
from urllib.parse import unquote, urlsplit

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal
from fastapi import FastAPI
from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter
from starlette.types import Message, Scope
from urllib3 import HTTPHeaderDict, HTTPResponse

from storage.access.keys import Principal

PIECE_BYTES = 64 * 1024


class InProcess(HTTPAdapter):
    """A transport for `requests` that calls an application on its event loop, as a signed-in user if one is given."""

    def __init__(self, app: FastAPI, portal: BlockingPortal, user: Principal | None) -> None:
        super().__init__()
        self._app, self._portal, self._user = app, portal, user

    def send(self, request: PreparedRequest, *_args: object, **_options: object) -> Response:
        exchange = _Exchange(request)
        self._portal.call(self._app, _scope(request, self._user), exchange.receive, exchange.send)
        return self.build_response(request, exchange.answer())


class _Exchange:
    """One request as the application receives it, and the answer that it sends."""

    def __init__(self, request: PreparedRequest) -> None:
        self._method = request.method or ""
        self._pieces: Iterator[bytes] | None = _pieces(request.body)
        self._start: Message = {}
        self._content = bytearray()
        self._completed = anyio.Event()

    async def receive(self) -> Message:
        """Return the next piece of the body; after its end, wait for the answer, as a client would."""
        if self._pieces is not None:
            piece = next(self._pieces, None)
            if piece is not None:
                return {"type": "http.request", "body": piece, "more_body": True}
            self._pieces = None
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._completed.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
        else:
            self._content += message.get("body", b"")
            if not message.get("more_body", False):
                self._completed.set()

    def answer(self) -> HTTPResponse:
        assert self._completed.is_set(), "the answer has no end"
        headers = HTTPHeaderDict(
            [(name.decode("latin-1"), value.decode("latin-1")) for name, value in self._start["headers"]]
        )
        content = b"" if self._method == "HEAD" else bytes(self._content)
        return HTTPResponse(
            BytesIO(content), headers, self._start["status"], preload_content=False, request_method=self._method
        )


def _pieces(body: Any) -> Iterator[bytes]:
    """Split a body into pieces as a server would read them, or as an iterable yields them."""
    if body is None:
        return iter(())
    if isinstance(body, str | bytes):
        content = body.encode() if isinstance(body, str) else body
        return (content[at : at + PIECE_BYTES] for at in range(0, len(content), PIECE_BYTES))
    return iter(body)


def _scope(request: PreparedRequest, user: Principal | None) -> Scope:
    """Return the scope that uvicorn would make of a request."""
    address = urlsplit(cast("str", request.url))
    sent = cast("Mapping[str | bytes, str | bytes]", request.headers)
    headers = {"host": address.netloc} | {_text(name).lower(): value for name, value in sent.items()}
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": address.scheme,
        "server": (address.hostname, 80),
        "client": ("127.0.0.1", 50_000),
        "root_path": "",
        "path": unquote(address.path),
        "raw_path": address.path.encode(),
        "query_string": address.query.encode(),
        "headers": [(name.encode(), _text(value).strip(" \t").encode("latin-1")) for name, value in headers.items()],
        "state": {} if user is None else {"principal": user},
    }


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value


@contextmanager
def running(app: FastAPI, user: Principal | None = None) -> Iterator[InProcess]:
    """Run the application, with startup and shutdown, on an event loop of its own."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(app.router.lifespan_context(app)):
        yield InProcess(app, portal, user)
