"""Limits of a connection: the size of a request's head, one request at a time, and a minimum transfer rate.

uvicorn limits none of this. It buffers a head or the trailers of a body of any length. It waits for ever for the next
byte, and for a client that doesn't read. And when a Content-Length is too short, it takes the rest of the body for a
pipelined request. Here the server checks every connection once a second and cuts off those that make no progress. A
refused connection gets a problem as its response, where HTTP allows one.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Iterable
from http import HTTPStatus
from itertools import count
from typing import Any, cast
from uuid import uuid4

import msgspec
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from api.core.limits import MAX_HEAD_BYTES, Held, address
from api.http import problems
from storage.core.settings import Settings

MAX_FRAMING_BYTES = 512 * 1024  # of chunk sizes, extensions and trailers, in addition to FRAMING_PER_BYTE
FRAMING_PER_BYTE = 8  # for each byte of the body; a chunk of one byte takes six
MIN_BYTES_PER_S = 8 * 1024  # our judgement: slower than any usual line
HTTP_VERSIONS = ("1.0", "1.1")  # the parser also accepts 0.9
UPGRADE = re.compile(rb"\r\nupgrade:", re.IGNORECASE)
CONNECTIONS_PER_REQUEST = 2  # that `max_requests` allows; if there are more, idle ones are closed (our judgement)
CLOSED_SHARE = 1 / 16  # of the maximum, closed by one search for idle connections, because a search takes a millisecond
LINGER_S = 30.0  # for how long a closed connection's remaining input is read and thrown away
LONGEST_TICK_S = 2.0  # if the server itself was held up for longer, clients are not blamed for it

_numbers = count()  # of connections, in order of arrival


class _NoRequestError(Exception):
    """Not a request that can be answered: pipelined before the last response was sent, or in another HTTP version."""


class Transport:
    """A connection's transport that counts written bytes, and closes without losing the last response.

    Closing while the client still sends would reset the connection, and the client might never see its response. So
    only the writing half is closed, and for a while further input is read and thrown away.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.written = 0
        self.client_is_sending = False
        self.lingering = False
        self.aborted = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if not self.lingering:
            self.written += len(data)
            self._transport.write(data)

    def close(self) -> None:
        if not self.client_is_sending:
            self._transport.close()
        elif not self.is_closing():
            self.lingering = True
            self._transport.resume_reading()
            self._transport.write_eof()

    def abort(self) -> None:
        self.aborted = True
        self._transport.abort()

    def is_closing(self) -> bool:
        return self.lingering or self._transport.is_closing()


class Waited:
    """The seconds that a client has kept us waiting. Transferred bytes reduce them, but never below zero, because
    what the operating system buffers at once says nothing about how fast the client reads.
    """

    def __init__(self, grace_s: float) -> None:
        self._grace_s = grace_s
        self._waited_s = 0.0
        self._moved = 0

    def start(self, moved: int) -> None:
        """Start again from zero seconds, at `moved` bytes."""
        self._waited_s, self._moved = 0.0, moved

    def too_long(self, elapsed_s: float, moved: int) -> bool:
        earned_s = (moved - self._moved) / MIN_BYTES_PER_S
        self._waited_s = max(0.0, self._waited_s + elapsed_s - earned_s)
        self._moved = moved
        return self._waited_s > self._grace_s


class Connection(HttpToolsProtocol):
    """uvicorn's connection, with limits."""

    transport: Transport

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(cast("asyncio.Transport", Transport(transport)))
        settings: Settings = cast("FastAPI", self.config.app).state.store.settings
        grace_s = settings.client_timeout_s
        self._head, self._body, self._answer = Waited(grace_s), Waited(grace_s), Waited(grace_s)
        self._rest = Waited(LINGER_S)
        self._in_head, self._ignores_input = True, False
        self._head_bytes, self._message_bytes, self._body_bytes, self._messages = 0, 0, 0, 0
        self._number = next(_numbers)
        self._address = address({"client": self.client})
        self._close_idle(CONNECTIONS_PER_REQUEST * settings.max_requests)

    def _close_idle(self, most: int) -> None:
        """If there are more than `most` connections, close idle ones: the oldest of the requester that has the most.

        So a flood of idle connections locks nobody out and closes no connection of another client.
        """
        if len(self.connections) <= most:
            return
        idle = [(other.requester, other) for other in self.connections if isinstance(other, Connection) and other.idle]
        for crowd, _ in Counter(requester for requester, _ in idle).most_common(1):
            candidates = [other for requester, other in idle if requester == crowd]
            for other in sorted(candidates, key=lambda other: other._number)[: max(1, int(most * CLOSED_SHARE))]:
                other.transport.abort()
                self.connections.discard(other)  # at once: the event loop reports the end only later

    @property
    def requester(self) -> object:
        """The client of the connection's last request, or the address if there was none."""
        held: Held | None = None if self.cycle is None else self.cycle.scope["state"].get("held")
        return held.requester.client if held else self._address

    @property
    def answering(self) -> bool:
        """Whether a request is under way."""
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def idle(self) -> bool:
        """Whether it can be closed without losing work."""
        return not self.answering and not self.transport.aborted

    # Input

    def data_received(self, data: bytes) -> None:
        if self._ignores_input:
            return
        messages, was_in_head = self._messages, self._in_head
        super().data_received(_without_upgrade(data) if was_in_head else data)
        if messages != self._messages or self._ignores_input:
            return
        if not self._in_head:
            self._message_bytes += len(data)
            self._bound_framing()
        elif was_in_head:
            self._head_bytes += len(data)
            self._bound_head()

    def _bound_head(self) -> None:
        """End a head that is too long, as if it were complete: enough of it is parsed to refuse the request."""
        if self._head_bytes > MAX_HEAD_BYTES:
            super().data_received(b"\r\n\r\n")
            if self.answering:
                self.cycle.scope["state"]["head_too_large"] = True
            self._stop_reading()

    def _bound_framing(self) -> None:
        if self._message_bytes > MAX_FRAMING_BYTES + FRAMING_PER_BYTE * self._body_bytes:
            self._refuse(400, "Request.Malformed", "The body has too much chunk framing.")

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # otherwise it is a trailer, which is ignored
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if self.answering or self.parser.get_http_version() not in HTTP_VERSIONS:
            raise _NoRequestError
        self._in_head, self._message_bytes, self._body_bytes = False, 0, 0
        self._body.start(0)
        self._rest.start(0)
        super().on_headers_complete()
        self.transport.client_is_sending = True

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_head, self._head_bytes, self._messages = True, 0, self._messages + 1
        self._head.start(0)
        self.transport.client_is_sending = False
        super().on_message_complete()

    def _unsupported_upgrade_warning(self) -> None:
        """Answer in HTTP/1.1 and close, because the parser stops at a request for another protocol."""
        self._stop_reading()

    def send_400_response(self, msg: str) -> None:
        """Refuse input that isn't HTTP. If it follows a whole request, that request is still answered."""
        if self.answering and self._in_head:
            self._stop_reading()
        else:
            self._refuse(400, "Request.Malformed", "This is not a request in HTTP/1.1.")

    def _stop_reading(self) -> None:
        self._ignores_input = True
        self.transport.client_is_sending = True
        if self.cycle is not None:
            self.cycle.keep_alive = False
        if not self.answering:
            self.transport.close()

    def _refuse(self, status: int, code: str, detail: str) -> None:
        """Answer in place of the application, unless it has begun to answer, and close the connection."""
        if not (self.answering and self.cycle.response_started) and not self.transport.is_closing():
            self.transport.write(_raw_problem(status, code, detail))
        if self.answering:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self._ignores_input = self.transport.client_is_sending = True
        self.transport.close()

    # Once a second

    def check_progress(self, elapsed_s: float) -> None:
        """Cut off a client that has kept us waiting for too long."""
        pending = self.transport.get_write_buffer_size()
        if not pending:
            self._answer.start(self.transport.written)
        elif self._answer.too_long(elapsed_s, self.transport.written - pending):
            self.transport.abort()
        if not pending:
            self._check_input(elapsed_s)

    def _check_input(self, elapsed_s: float) -> None:
        if self.transport.is_closing() or (not self._in_head and not self.answering):
            if self._rest.too_long(elapsed_s, 0):
                self.transport.abort()
        elif not self._in_head:
            if not self.flow.read_paused and self._body.too_long(elapsed_s, self._body_bytes):
                self._refuse(408, "Request.TooSlow", "The request's body took too long.")
        elif not self.answering and self._head.too_long(elapsed_s, 0):
            if self._head_bytes:
                self._refuse(408, "Request.TooSlow", "The request took too long.")
            else:
                self.transport.close()


def _without_upgrade(data: bytes) -> bytes:
    """Rename the Upgrade header of a request, because the parser would take the body for the other protocol's data.

    Java's HTTP client sends such a header for HTTP/2 with its first request, even if that is a POST.
    """
    head, end, body = data.partition(b"\r\n\r\n")
    return UPGRADE.sub(b"\r\nX-Upgrade:", head) + end + body


def check_progress(connections: Iterable[object], elapsed_s: float) -> None:
    """Cut off every connection that makes no progress. The server calls this once a second."""
    for connection in list(connections):
        if isinstance(connection, Connection):
            connection.check_progress(min(elapsed_s, LONGEST_TICK_S))


def _raw_problem(status: int, code: str, detail: str) -> bytes:
    """Return a whole HTTP response with a problem, for a request that never reached the application."""
    request_id = str(uuid4())
    content = msgspec.json.encode(problems.body(status, code, detail, request_id))
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
        f"Content-Type: {problems.MEDIA_TYPE}\r\n"
        f"Content-Length: {len(content)}\r\n"
        f"X-Request-Id: {request_id}\r\n"
        "Cache-Control: no-store\r\n"
        "X-Content-Type-Options: nosniff\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + content
