"""An HTTPS receiver for development: it verifies the signature of what it gets, shows it, and answers 204.

It is what `tidemark listen` runs, and what the demo and the tests receive with.
"""

import json
import logging
import ssl
import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import socket
from threading import Condition, Thread
from types import TracebackType
from typing import Any, Final, Self, cast

from rich.console import Console, Group
from rich.json import JSON
from rich.panel import Panel
from rich.text import Text

from api.certificates import for_this_machine
from pipelines.errors import Unavailable
from pipelines.webhooks import SIGNATURE_HEADER, key_of, verify

LOOPBACK: Final = "127.0.0.1"
MAX_BODY_BYTES: Final = 2**20
KEPT: Final = 10_000  # deliveries that are remembered
PATIENCE_S: Final = 10.0  # with a sender that says nothing
STOP_WITHIN_S: Final = 0.05

_Receive = Callable[[str, Mapping[str, str], bytes], None]

log = logging.getLogger("tidemark.listen")


@dataclass(frozen=True)
class Received:
    """One POST as it came. `verified` is None as long as no secret is known."""

    received_at: datetime
    path: str
    headers: Mapping[str, str]  # names in lower case
    body: bytes
    verified: bool | None

    @property
    def json(self) -> dict[str, Any]:
        """The event.

        Raises:
            ValueError: the body is not JSON.
        """
        return cast(dict[str, Any], json.loads(self.body))


class Receiver:
    """Listens from construction on, answers while it is entered.

    Args:
        home: where authority and certificate are kept, and taken from while they are valid.
        port: 0 takes a free one.
        secrets: Base64 texts of the secrets that are known from the start; `learn` adds others.
        told: called with each delivery, one at a time.
    """

    def __init__(
        self,
        home: Path,
        port: int = 0,
        secrets: Iterable[str] = (),
        told: Callable[[Received], None] = lambda _: None,
    ) -> None:
        self._keys = [key_of(secret) for secret in secrets]
        self._told = told
        self._kept: deque[Received] = deque(maxlen=KEPT)
        self._arrival = Condition()
        self.ca_path, certificate = for_this_machine(home / "listen")
        self._server = _Server((LOOPBACK, port), _tls(certificate), self._receive)
        self._thread = Thread(
            target=self._server.serve_forever, args=(STOP_WITHIN_S,), name="tidemark-listen", daemon=True
        )

    @property
    def url(self) -> str:
        """Where to send webhooks."""
        return f"https://{LOOPBACK}:{self._server.server_port}/"

    @property
    def received(self) -> list[Received]:
        """What has arrived so far, oldest first."""
        with self._arrival:
            return list(self._kept)

    def learn(self, secret: str) -> None:
        """Verify with this secret (Base64), too."""
        self._keys.append(key_of(secret))

    def wait_for(self, predicate: Callable[[Received], bool], timeout_s: float) -> Received | None:
        """The first delivery that fits, now or within `timeout_s` seconds."""

        def first() -> Received | None:
            return next((each for each in self._kept if predicate(each)), None)

        with self._arrival:
            return self._arrival.wait_for(first, timeout_s)

    def join(self) -> None:
        """Stay until something ends the receiver."""
        self._thread.join()

    def _receive(self, path: str, headers: Mapping[str, str], body: bytes) -> None:
        signature = headers.get(SIGNATURE_HEADER.lower(), "")
        verified = any(verify(body, key, signature) for key in self._keys) if self._keys else None
        received = Received(datetime.now(UTC), path, headers, body, verified)
        with self._arrival:
            self._kept.append(received)
            self._arrival.notify_all()
            self._told(received)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def listen(home: Path, port: int, secrets: Iterable[str], console: Console) -> None:
    """Receive and show until interrupted: what `tidemark listen` does.

    Raises:
        Unavailable: the port is taken.
    """
    try:
        new = Receiver(home, port, secrets, lambda received: console.print(shown(received)))
    except OSError as error:
        raise Unavailable("Listen.PortTaken", f"can't listen on port {port}: {error.strerror}") from error
    with new as receiver:
        console.print(f"Listening on [b]{receiver.url}[/]", highlight=False)
        console.print("Let the service call this machine and trust this receiver:", highlight=False)
        console.print("  TIDEMARK_WEBHOOK_ALLOW_CIDRS=127.0.0.0/8", highlight=False)
        console.print(f"  TIDEMARK_WEBHOOK_CA_BUNDLE={receiver.ca_path}", highlight=False, soft_wrap=True, markup=False)
        with suppress(KeyboardInterrupt):
            receiver.join()


def shown(received: Received) -> Panel:
    """A delivery for the terminal. It comes from outside: nothing in it may steer the terminal."""
    verdict = {
        True: Text("✔ signature verified", "green"),
        False: Text("✘ signature does not match", "red"),
        None: Text("? signature not checked: give the secret with --secret", "yellow"),
    }[received.verified]
    request = Text(f"{received.received_at:%H:%M:%SZ}  POST {received.path!a}", "dim")
    signature = Text(f"{SIGNATURE_HEADER}: {received.headers.get(SIGNATURE_HEADER.lower(), '(none)')!a}", "dim")
    return Panel(Group(request, signature, _document(received)), title=verdict, title_align="left", expand=False)


def _document(received: Received) -> JSON | Text:
    try:
        return JSON.from_data(received.json, ensure_ascii=True)
    except ValueError:
        return Text(repr(received.body))


class _Server(ThreadingHTTPServer):
    """Speaks TLS in each connection's own thread, so that a silent sender keeps nobody waiting."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 1_024

    def __init__(self, address: tuple[str, int], tls: ssl.SSLContext, receive: _Receive) -> None:
        super().__init__(address, _Handler)
        self.tls = tls
        self.receive = receive

    def finish_request(self, request: Any, client_address: Any) -> None:
        plain: socket = request
        plain.settimeout(PATIENCE_S)
        with self.tls.wrap_socket(plain, server_side=True) as secured:
            super().finish_request(secured, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        log.warning("a connection failed: %s", sys.exception())


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "tidemark-listen"
    server: _Server

    def do_POST(self) -> None:
        length = self.headers.get("content-length", "")
        if not length.isdecimal() or int(length) > MAX_BODY_BYTES:
            self.close_connection = True
            return self._answer(413)
        body = self.rfile.read(int(length))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.receive(self.path, headers, body)
        return self._answer(204)

    def _answer(self, status: int) -> None:
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: Any) -> None:
        """Whoever listens is told of deliveries, not of requests."""


def _tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate)
    return context
