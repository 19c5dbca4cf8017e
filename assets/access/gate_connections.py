"""Limits on connections to the web server. uvicorn limits neither their number nor the length of a request's head, so
anybody who reaches the port, even without a token, could use up the files or the memory of this process, which also
launches every run.
"""

from asyncio import Transport
from itertools import count
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from assets.access.gate import ROLE
from assets.access.gate_tokens import Role

MAX_CONNECTIONS = 256  # a browser has about ten, the dispatcher four
ALSO_ENDED = 16  # connections ended besides those above the limit, so that not every new one starts a search
MAX_STRANGER_BYTES = 64 * 1024  # that a connection may send of a request that the gate has not allowed

_numbers = count()  # of connections, in the order in which they were opened


class Connection(HttpToolsProtocol):
    """uvicorn's connection, with limits. It counts as a stranger's until the gate allows its current request."""

    def connection_made(self, transport: Transport) -> None:
        super().connection_made(transport)
        self.number = next(_numbers)
        self._received = 0
        self.role_before: Role | None = None  # of the request before, until the gate has answered the current one
        self._end_oldest()

    def _end_oldest(self) -> None:
        """End the oldest connections if there are too many: strangers' first, then readers', but never operators'."""
        if len(self.connections) <= MAX_CONNECTIONS:
            return
        others: list[Any] = [other for other in self.connections if other is not self]
        others = [other for other in others if not other.transport.is_closing()]
        if len(others) < MAX_CONNECTIONS:
            return
        may_end = [other for other in others if _latest_role(other) is not Role.OPERATOR]
        may_end.sort(key=lambda other: (_latest_role(other) is not None, getattr(other, "number", 0)))
        for connection in may_end[: len(others) - MAX_CONNECTIONS + ALSO_ENDED]:
            connection.transport.abort()

    def data_received(self, data: bytes) -> None:
        if self._received > MAX_STRANGER_BYTES and _role(self) is None:
            self.transport.abort()
            return
        self._received += len(data)
        super().data_received(data)

    def on_message_begin(self) -> None:
        self.role_before = _role(self)
        super().on_message_begin()

    def on_response_complete(self) -> None:
        self.role_before = None
        super().on_response_complete()

    def on_message_complete(self) -> None:
        self._received = 0
        super().on_message_complete()


def _latest_role(connection: Any) -> Role | None:
    """Return the role of the current request, or of the one before while the gate has not decided on the current."""
    return _role(connection) or getattr(connection, "role_before", None)


def _role(connection: Any) -> Role | None:
    """Return the role with which the gate allowed the connection's current or last request or websocket."""
    scope = getattr(connection, "scope", None)
    return scope.get(ROLE) if scope else None


# How uvicorn serves Dagster behind the gate.
SERVER: dict[str, Any] = {
    "http": Connection,
    "ws_max_size": 64 * 1024,  # bytes of a message: parsing a subscription blocks all other requests
    "log_config": None,
    "log_level": "warning",
    "timeout_graceful_shutdown": 2,
    "timeout_notify": 2,  # seconds between calls of `callback_notify`
}
