"""Send requests and open websockets to an ASGI application in this process, with exact headers."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Scope


@dataclass(frozen=True)
class Answer:
    """An answer. For a websocket the status is 101 if it was accepted, otherwise 403."""

    status: int
    headers: Headers
    body: bytes


def ask(
    app: ASGIApp, method: str, url: str, headers: Mapping[str, str], body: bytes = b"", scheme: str = "http"
) -> Answer:
    return asyncio.run(ask_async(app, method, url, headers, body, scheme))


async def ask_async(
    app: ASGIApp, method: str, url: str, headers: Mapping[str, str], body: bytes = b"", scheme: str = "http"
) -> Answer:
    sent = await _call_and_collect(app, _scope(url, headers, type="http", method=method, scheme=scheme), body)
    start = next(message for message in sent if message["type"] == "http.response.start")
    content = b"".join(message.get("body", b"") for message in sent if message["type"] == "http.response.body")
    return Answer(start["status"], Headers(raw=start["headers"]), content)


def open_websocket(app: ASGIApp, url: str, headers: Mapping[str, str]) -> Answer:
    sent = asyncio.run(
        _call_and_collect(app, _scope(url, headers, type="websocket", scheme="ws", subprotocols=[]), b"")
    )
    return Answer(101 if sent[0]["type"] == "websocket.accept" else 403, Headers(), b"")


def _scope(url: str, headers: Mapping[str, str], **of_its_kind: object) -> Scope:
    parts = urlsplit(url)
    raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
    where = {"path": unquote(parts.path), "raw_path": parts.path.encode(), "query_string": parts.query.encode()}
    return {"headers": raw, "server": ("127.0.0.1", 3000), "client": ("127.0.0.1", 5), **where, **of_its_kind}


async def _call_and_collect(app: ASGIApp, scope: Scope, body: bytes) -> list[Message]:
    sent: list[Message] = []
    if scope["type"] == "http":
        half = len(body) // 2
        received: list[Message] = [
            {"type": "http.request", "body": body[:half], "more_body": True},
            {"type": "http.request", "body": body[half:], "more_body": False},
            {"type": "http.disconnect"},
        ]
    else:
        received = [{"type": "websocket.connect"}, {"type": "websocket.disconnect", "code": 1000}]

    async def receive() -> Message:
        return received.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent
