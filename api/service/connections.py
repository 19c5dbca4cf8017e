"""What one connection may cost: a head of bounded size, one request at a time, and a client that keeps moving.

uvicorn bounds none of this. It collects a head, or the trailers of a body, of any length; it waits for ever for the
next byte and for a reader that doesn't read; and it answers a pipelined request that a wrong Content-Length made out
of a body's rest. Here the server asks every connection once a second whether it still moves, and whoever doesn't is cut
off. What a connection is refused for is told as a problem where HTTP allows to tell.
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

MAX_FRAMING_BYTES = 512 * 1024  # of chunk sizes, extensions and trailers, beside what FRAMING_PER_BYTE allows
FRAMING_PER_BYTE = 8  # a chunk of one byte costs six
LEAST_BYTES_PER_S = 8 * 1024
HTTP_VERSIONS = ("1.0", "1.1")  # the parser takes 0.9, too
UPGRADE = re.compile(rb"\r\nupgrade:", re.IGNORECASE)
CONNECTIONS_PER_REQUEST = 2
ENDED_AT_ONCE = 16  # this part of all connections: looking for whom to end takes a millisecond
LINGER_S = 30.0  # how long what nobody reads any more is still taken off the wire
LONGEST_TICK_S = 2.0  # a server that was itself held up doesn't bill its clients for it

_numbers = count()  # of connections, in the order of their coming


class _NoRequestError(Exception):
    """What came is nothing to answer: too early, before the last answer was out, or of another time."""


class Transport:
    """The way out of a connection: counts what is written, and closes without losing the last answer.

    To close while the client still sends resets the connection, and the client may never see its answer. So the writing
    half is closed, and what still comes is thrown away for a while.
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
    """Seconds that a client let us wait. Bytes it moves make up for them, but nothing can be saved up: what the
    operating system takes at once says nothing about who reads it.
    """

    def __init__(self, grace_s: float) -> None:
        self._grace_s = grace_s
        self._waited_s = 0.0
        self._moved = 0

    def start(self, moved: int) -> None:
        """A new account, from `moved` bytes on."""
        self._waited_s, self._moved = 0.0, moved

    def too_long(self, elapsed_s: float, moved: int) -> bool:
        earned_s = (moved - self._moved) / LEAST_BYTES_PER_S
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
        self._in_head, self._deaf = True, False
        self._head_bytes, self._message_bytes, self._body_bytes, self._messages = 0, 0, 0, 0
        self._number = next(_numbers)
        self._address = address({"client": self.client})
        self._end_silent(CONNECTIONS_PER_REQUEST * settings.max_requests)

    def _end_silent(self, most: int) -> None:
        """Of too many connections, some with nothing under way end, the oldest of whoever has most of these: a flood of
        silent ones shuts nobody out, and closes no connection that another client keeps."""
        if len(self.connections) <= most:
            return
        idle = [(other.asker, other) for other in self.connections if isinstance(other, Connection) and other.idle]
        for crowd, _ in Counter(asker for asker, _ in idle).most_common(1):
            silent = [other for asker, other in idle if asker == crowd]
            for other in sorted(silent, key=lambda other: other._number)[: max(1, most // ENDED_AT_ONCE)]:
                other.transport.abort()
                self.connections.discard(other)  # not only once the event loop says that it is gone

    @property
    def asker(self) -> object:
        """Whose connection it is: the client's of its last request, or an address."""
        held: Held | None = None if self.cycle is None else self.cycle.scope["state"].get("held")
        return held.asker.client if held else self._address

    @property
    def answering(self) -> bool:
        """Whether a request is under way."""
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def idle(self) -> bool:
        """Whether it can end with no work lost."""
        return not self.answering and not self.transport.aborted

    # What comes in

    def data_received(self, data: bytes) -> None:
        if self._deaf:
            return
        messages, was_in_head = self._messages, self._in_head
        super().data_received(_without_upgrade(data) if was_in_head else data)
        if messages != self._messages or self._deaf:
            return
        if not self._in_head:
            self._message_bytes += len(data)
            self._bound_framing()
        elif was_in_head:
            self._head_bytes += len(data)
            self._bound_head()

    def _bound_head(self) -> None:
        """A head that is too long ends here: what is known of it by now is enough to refuse it."""
        if self._head_bytes > MAX_HEAD_BYTES:
            super().data_received(b"\r\n\r\n")
            if self.answering:
                self.cycle.scope["state"]["head_too_large"] = True
            self._listen_no_more()

    def _bound_framing(self) -> None:
        if self._message_bytes > MAX_FRAMING_BYTES + FRAMING_PER_BYTE * self._body_bytes:
            self._refuse(400, "Request.Malformed", "The body is wrapped in too much.")

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # else it is a trailer, which nobody reads
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
        """The parser stops where it sees another protocol begin, all the same: answer in this one, and close."""
        self._listen_no_more()

    def send_400_response(self, msg: str) -> None:
        """What isn't HTTP. After a whole request, that one is still answered, and nothing behind it is read."""
        if self.answering and self._in_head:
            self._listen_no_more()
        else:
            self._refuse(400, "Request.Malformed", "This is not a request in HTTP/1.1.")

    def _listen_no_more(self) -> None:
        self._deaf = True
        self.transport.client_is_sending = True
        if self.cycle is not None:
            self.cycle.keep_alive = False
        if not self.answering:
            self.transport.close()

    def _refuse(self, status: int, code: str, detail: str) -> None:
        """Answer for the application, if it hasn't begun to, and end the connection."""
        if not (self.answering and self.cycle.response_started) and not self.transport.is_closing():
            self.transport.write(_raw_problem(status, code, detail))
        if self.answering:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self._deaf = self.transport.client_is_sending = True
        self.transport.close()

    # Once a second

    def look_after(self, elapsed_s: float) -> None:
        """Cut off a client that has let us wait for too long."""
        pending = self.transport.get_write_buffer_size()
        if not pending:
            self._answer.start(self.transport.written)
        elif self._answer.too_long(elapsed_s, self.transport.written - pending):
            self.transport.abort()
        if not pending:
            self._check_what_comes(elapsed_s)

    def _check_what_comes(self, elapsed_s: float) -> None:
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
    """A head in which nobody asks for another protocol: the parser would take the body for that protocol's first words.

    Java's client asks for HTTP/2 in this way with every first request, a POST too.
    """
    head, end, body = data.partition(b"\r\n\r\n")
    return UPGRADE.sub(b"\r\nX-Upgrade:", head) + end + body


def look_after(connections: Iterable[object], elapsed_s: float) -> None:
    """What the server does once a second: see to it that every connection moves."""
    for connection in list(connections):
        if isinstance(connection, Connection):
            connection.look_after(min(elapsed_s, LONGEST_TICK_S))


def _raw_problem(status: int, code: str, detail: str) -> bytes:
    """A whole answer for a client that never got as far as the application."""
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
