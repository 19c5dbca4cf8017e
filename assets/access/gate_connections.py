"""What connections may cost the process behind the gate, which also launches every run: uvicorn bounds neither how many
there are nor how long a head is, so whoever reaches the port could use up its files or its memory without any token.
"""

from asyncio import Transport
from itertools import count
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from assets.access.gate import ROLE
from assets.access.gate_tokens import Role

MOST_CONNECTIONS = 256  # a browser has about ten, the dispatcher one
ENDED_AT_ONCE = 16
MOST_OF_A_STRANGER = 64 * 1024  # bytes of a request: its head, and what comes before it is answered or behind it

_numbers = count()  # of connections, in the order of their coming


class Connection(HttpToolsProtocol):
    """uvicorn's connection, with limits. A stranger is whom the gate has not let in with the request under way."""

    def connection_made(self, transport: Transport) -> None:
        super().connection_made(transport)
        self.number = next(_numbers)
        self._received = 0
        self._end_silent()

    def _end_silent(self) -> None:
        """Of too many connections the oldest of strangers end, then the oldest of readers; an operator's never do."""
        if len(self.connections) <= MOST_CONNECTIONS:
            return
        others: list[Any] = [each for each in self.connections if each is not self and not each.transport.is_closing()]
        if len(others) < MOST_CONNECTIONS:
            return
        may_end = [each for each in others if _role(each) is not Role.OPERATOR]
        may_end.sort(key=lambda each: (_role(each) is not None, getattr(each, "number", 0)))
        for each in may_end[: len(others) - MOST_CONNECTIONS + ENDED_AT_ONCE]:
            each.transport.abort()

    def data_received(self, data: bytes) -> None:
        if self._received > MOST_OF_A_STRANGER and _role(self) is None:
            self.transport.abort()
            return
        self._received += len(data)
        super().data_received(data)

    def on_message_complete(self) -> None:
        self._received = 0
        super().on_message_complete()


def _role(connection: Any) -> Role | None:
    """As whom the gate let in what is under way, or was last: a request or, on the same line, a websocket."""
    scope = getattr(connection, "scope", None)
    return scope.get(ROLE) if scope else None
