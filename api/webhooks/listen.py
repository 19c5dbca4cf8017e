"""An HTTPS receiver of webhooks for development: it verifies signatures, shows deliveries, and responds with 204.

`tidemark listen`, the demo and the tests use it. It can also forward deliveries to another server and respond with that
server's status, or imitate a misbehaving receiver.
"""

import json
import logging
import ssl
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import socket
from threading import Condition, Thread
from types import TracebackType
from typing import Any, Final, Self, cast

import requests
from rich.console import Console, Group
from rich.json import JSON
from rich.panel import Panel
from rich.text import Text

from api.webhooks.certificates import for_this_machine
from pipelines.vocabulary.errors import Unavailable
from pipelines.webhooks.events import (
    SIGNATURE_HEADER,
    STANDARD_SIGNATURE,
    STANDARD_TIMESTAMP,
    decode_secret,
    verify,
    verify_standard,
)
from storage.core.signals import call_when_asked_to_stop
from storage.webhooks.local_receiver import FOLDER

LOOPBACK: Final = "127.0.0.1"
MAX_BODY_BYTES: Final = 2**20
STORED: Final = 10_000  # most deliveries in memory
OLD_AFTER_S: Final = 300  # the tolerance that we recommend to receivers
PATIENCE_S: Final = 10.0  # timeout for a silent sender
FORWARD_S: Final = 25.0  # timeout of the server that we forward to: less than the 30 s that the sender waits for us
DRIP_S: Final = 1.0  # between two bytes of a dripping response
DRIPPED_BYTES: Final = 1_000
WITHOUT_BODY: Final = (204, 304)
STOP_WITHIN_S: Final = 0.05
NOT_FORWARDED: Final = frozenset({"host", "content-length", "connection", "transfer-encoding"})

log = logging.getLogger("tidemark.listen")


@dataclass(frozen=True)
class Behaviour:
    """How a receiver answers. By default with the status, at once and in one piece.

    Args:
        forward_to: a URL to forward deliveries to; we respond with its status, or with 502 if it gives none.
        hang: never answer.
        drip: respond with one byte a second.
    """

    status: int = 204
    forward_to: str | None = None
    hang: bool = False
    drip: bool = False


@dataclass(frozen=True)
class Received:
    """One POST as received, and the status that was answered, None for no response.

    A signature is None if no secret is known; the standard signature also if none was sent. `before` is the number of
    earlier deliveries of the same event.
    """

    received_at: datetime
    path: str
    headers: Mapping[str, str]  # names in lower case
    body: bytes
    contract_signature: bool | None
    standard_signature: bool | None
    before: int
    answered: int | None

    @property
    def verified(self) -> bool | None:
        """Whether the contract's signature is right and the standard one isn't wrong; None if no secret is known."""
        if self.contract_signature is None:
            return None
        return self.contract_signature and self.standard_signature is not False

    @property
    def age_s(self) -> int | None:
        """Seconds since the sender's timestamp, negative if its clock is ahead; None if it sent none."""
        timestamp = self.headers.get(STANDARD_TIMESTAMP, "")
        if not (timestamp.isascii() and timestamp.isdecimal()):
            return None
        return int(self.received_at.timestamp()) - int(timestamp[:18])

    @property
    def is_old(self) -> bool:
        """Whether a receiver should refuse it, because it may be a replay of an old delivery."""
        return self.age_s is not None and abs(self.age_s) > OLD_AFTER_S

    @property
    def json(self) -> dict[str, Any]:
        """The event.

        Raises:
            ValueError: the body is not JSON.
        """
        return cast(dict[str, Any], json.loads(self.body))


class Receiver:
    """A receiver that listens from construction on, and answers while its context is entered.

    Args:
        home: the folder in which authority and certificate are stored and reused while they are valid.
        port: 0 takes a free port.
        secrets: Base64 texts of the known secrets; `learn` adds others.
        on_delivery: called with each delivery, one at a time.
        behaviour: how it answers.
    """

    def __init__(
        self,
        home: Path,
        port: int = 0,
        secrets: Iterable[str] = (),
        on_delivery: Callable[[Received], None] = lambda _: None,
        behaviour: Behaviour = Behaviour(),
    ) -> None:
        self._keys = [decode_secret(secret) for secret in secrets]
        self._on_delivery = on_delivery
        self._behaviour = behaviour
        self._events = Counter[str]()
        self._stored: deque[Received] = deque(maxlen=STORED)
        self._arrival = Condition()
        self._stopped = False
        self.ca_path, certificate = for_this_machine(home / FOLDER)
        self._server = _Server((LOOPBACK, port), _tls(certificate), self._receive, behaviour)
        self._thread = Thread(
            target=self._server.serve_forever, args=(STOP_WITHIN_S,), name="tidemark-listen", daemon=True
        )

    @property
    def url(self) -> str:
        """The URL to send webhooks to."""
        return f"https://{LOOPBACK}:{self.port}/"

    @property
    def port(self) -> int:
        return self._server.server_port

    @property
    def received(self) -> list[Received]:
        """The deliveries so far, oldest first."""
        with self._arrival:
            return list(self._stored)

    def learn(self, secret: str) -> None:
        """Add a secret (Base64) to verify signatures with."""
        self._keys.append(decode_secret(secret))

    def wait_for(self, predicate: Callable[[Received], bool], timeout_s: float) -> Received | None:
        """Return the first delivery that fits, waiting up to `timeout_s` seconds; None if none comes before `stop`."""

        def first() -> Received | None:
            return next((each for each in self._stored if predicate(each)), None)

        with self._arrival:
            self._arrival.wait_for(lambda: self._stopped or first(), timeout_s)
            return first()

    def join(self) -> None:
        """Wait until `stop` is called."""
        with self._arrival:
            self._arrival.wait_for(lambda: self._stopped)

    def stop(self) -> None:
        """End `join` and `wait_for`."""
        with self._arrival:
            self._stopped = True
            self._arrival.notify_all()

    def _receive(self, path: str, headers: Mapping[str, str], body: bytes) -> int | None:
        """Verify, store and report a delivery; return the status to respond with, None for no response."""
        received_at, keys = datetime.now(UTC), list(self._keys)
        answered = _choose_status(self._behaviour, headers, body)
        contract = headers.get(SIGNATURE_HEADER.lower(), "")
        sent_standard = STANDARD_SIGNATURE in headers
        with self._arrival:
            received = Received(
                received_at=received_at,
                path=path,
                headers=headers,
                body=body,
                contract_signature=_any_right(keys, lambda key: verify(body, key, contract)),
                standard_signature=_any_right(
                    keys if sent_standard else [], lambda key: verify_standard(headers, body, key)
                ),
                before=self._count_earlier(body),
                answered=answered,
            )
            self._stored.append(received)
            self._arrival.notify_all()
            self._on_delivery(received)
        return answered

    def _count_earlier(self, body: bytes) -> int:
        with suppress(ValueError, KeyError, TypeError):
            event_id = str(json.loads(body)["eventId"])
            self._events[event_id] += 1
            return self._events[event_id] - 1
        return 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _any_right(keys: Sequence[bytes], is_right: Callable[[bytes], bool]) -> bool | None:
    return any(map(is_right, keys)) if keys else None


def _choose_status(behaviour: Behaviour, headers: Mapping[str, str], body: bytes) -> int | None:
    if behaviour.hang:
        return None
    return behaviour.status if behaviour.forward_to is None else _forward(behaviour.forward_to, headers, body)


def _forward(url: str, headers: Mapping[str, str], body: bytes) -> int:
    """Forward a delivery; return the status of the response, 502 if there is none."""
    forwarded = {name: value for name, value in headers.items() if name not in NOT_FORWARDED}
    try:
        with requests.Session() as session:
            session.trust_env = False
            response = session.post(
                url, data=body, headers=forwarded, timeout=FORWARD_S, allow_redirects=False, stream=True
            )
            return response.status_code
    except requests.RequestException as error:
        log.warning("%s gave no response: %s", url, type(error).__name__)
        return 502


def listen(
    home: Path,
    port: int,
    secrets: Iterable[str],
    behaviour: Behaviour,
    console: Console,
    *,
    as_json: bool = False,
    meanwhile: Callable[[Receiver], AbstractContextManager[object]] | None = None,
) -> None:
    """Receive and show deliveries until the process is asked to stop, for `tidemark listen`.

    Args:
        meanwhile: a context around the time of listening. Without it, the console says how to let the service call.

    Raises:
        Unavailable: the port is taken.
    """
    receiver = make_showing(home, port, secrets, behaviour, console, as_json=as_json)
    call_when_asked_to_stop(receiver.stop)
    with receiver:
        introduce(receiver, behaviour, console, as_json=as_json, instructs=meanwhile is None)
        with (meanwhile or nullcontext)(receiver):
            receiver.join()


def make_showing(
    home: Path, port: int, secrets: Iterable[str], behaviour: Behaviour, console: Console, *, as_json: bool
) -> Receiver:
    """Return a receiver that shows its deliveries on the console.

    Raises:
        Unavailable: the port is taken.
    """

    def show(received: Received) -> None:
        if as_json:
            _print_line(console, as_record(received))
        else:
            console.print(as_panel(received))

    try:
        return Receiver(home, port, secrets, show, behaviour)
    except OSError as error:
        raise Unavailable(
            "Listen.PortTaken", f"Can't listen on port {port}: {error.strerror}. Choose another one with --port."
        ) from error


def introduce(receiver: Receiver, behaviour: Behaviour, console: Console, *, as_json: bool, instructs: bool) -> None:
    """Show a receiver's URL on the console.

    Args:
        instructs: also show the settings by which the service may call it.
    """
    if as_json:
        _print_line(console, {"listening": receiver.url, "caBundle": str(receiver.ca_path)})
        return
    console.print(
        f"Listening on [b]{receiver.url}[/], {_describe_behaviour(behaviour)}", highlight=False, soft_wrap=True
    )
    if not instructs:
        return
    console.print("To let the service call this machine and trust this receiver, set:", highlight=False)
    console.print("  TIDEMARK_WEBHOOK_ALLOW_CIDRS=127.0.0.0/8", highlight=False)
    console.print(f"  TIDEMARK_WEBHOOK_CA_BUNDLE={receiver.ca_path}", highlight=False, soft_wrap=True, markup=False)


def _describe_behaviour(behaviour: Behaviour) -> str:
    if behaviour.hang:
        return "never answering"
    if behaviour.forward_to is not None:
        return f"forwarding to {behaviour.forward_to!a} and responding with its status"
    return f"answering {behaviour.status}" + (", a byte a second" if behaviour.drip else "")


def _print_line(console: Console, document: Mapping[str, Any]) -> None:
    """Print one line of JSON in ASCII, which can't contain control characters."""
    console.file.write(json.dumps(document) + "\n")
    console.file.flush()


def as_record(received: Received) -> dict[str, Any]:
    """Return a delivery as a document for scripts."""
    try:
        content: dict[str, Any] = {"event": received.json}
    except ValueError:
        content = {"event": None, "body": received.body.decode(errors="replace")}
    return {
        "receivedAt": f"{received.received_at:%Y-%m-%dT%H:%M:%SZ}",
        "path": received.path,
        "headers": dict(received.headers),
        "verified": received.verified,
        "contractSignature": received.contract_signature,
        "standardSignature": received.standard_signature,
        "ageSeconds": received.age_s,
        "isOld": received.is_old,
        "timesBefore": received.before,
        "answered": received.answered,
        **content,
    }


def as_panel(received: Received) -> Panel:
    """Return a delivery for the terminal. Its content is untrusted, so control characters are escaped."""
    verdict = {
        True: Text("✔ signature verified", "green"),
        False: Text("✘ signature does not match", "red"),
        None: Text("? signature not checked: give the secret with --secret", "yellow"),
    }[received.verified]
    lines = [_request(received), *_signatures(received), *_warnings(received), _document(received)]
    return Panel(Group(*lines), title=verdict, title_align="left", expand=False)


def _request(received: Received) -> Text:
    answered = "no response" if received.answered is None else f"answered {received.answered}"
    return Text(f"{received.received_at:%H:%M:%SZ}  POST {received.path!a}  {answered}", "dim")


def _signatures(received: Received) -> Iterable[Text]:
    """Yield each signature header as received, with its own verdict."""
    for name, right in (
        (SIGNATURE_HEADER, received.contract_signature),
        (STANDARD_SIGNATURE, received.standard_signature),
    ):
        sign, style = {True: ("✔", "green"), False: ("✘", "red"), None: ("·", "dim")}[right]
        value = received.headers.get(name.lower())
        yield Text.assemble((sign, style), (f" {name}: {'(none)' if value is None else ascii(value)}", "dim"))


def _warnings(received: Received) -> Iterable[Text]:
    if received.is_old:
        age_s = received.age_s or 0
        offset = f"{age_s} s ago" if age_s > 0 else f"{-age_s} s ahead"
        yield Text(f"! {STANDARD_TIMESTAMP} is {offset}: refuse deliveries more than {OLD_AFTER_S} s off", "yellow")
    if received.before:
        yield Text(f"! received {received.before + 1} times with this eventId: process it only once", "yellow")


def _document(received: Received) -> JSON | Text:
    try:
        return JSON.from_data(received.json, ensure_ascii=True)
    except ValueError:
        return Text(repr(received.body))


_Receive = Callable[[str, Mapping[str, str], bytes], int | None]


class _Server(ThreadingHTTPServer):
    """An HTTPS server with a thread for each connection.

    The TLS handshake runs in that thread too, so a silent sender doesn't block other connections.
    """

    daemon_threads = True
    block_on_close = False
    request_queue_size = 1_024

    def __init__(self, address: tuple[str, int], tls: ssl.SSLContext, receive: _Receive, behaviour: Behaviour) -> None:
        super().__init__(address, _Handler)
        self.tls = tls
        self.receive = receive
        self.behaviour = behaviour

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
        status = self.server.receive(self.path, headers, body)
        if status is None:
            return self._hang()
        return self._drip(status) if self.server.behaviour.drip else self._answer(status)

    def _answer(self, status: int, length: int = 0) -> None:
        self.send_response(status)
        if status not in WITHOUT_BODY:
            self.send_header("Content-Length", str(length))
        self.end_headers()

    def _drip(self, status: int) -> None:
        """Send one byte after another until the sender gives up. A status without a body becomes 200."""
        self.close_connection = True
        with suppress(OSError):
            self._answer(200 if status in WITHOUT_BODY else status, DRIPPED_BYTES)
            for _ in range(DRIPPED_BYTES):
                time.sleep(DRIP_S)
                self.wfile.write(b".")

    def _hang(self) -> None:
        """Say nothing until the sender hangs up."""
        self.close_connection = True
        self.connection.settimeout(None)
        with suppress(OSError):
            while self.connection.recv(65_536):
                pass

    def log_message(self, *args: Any, **_named: Any) -> None:
        """Log no requests: deliveries are shown instead."""


def _tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate)
    return context
