"""An HTTPS receiver for development: it verifies the signatures of what it gets, shows it, and answers 204.

It is what `tidemark listen` runs, and what the demo and the tests receive with. Told to, it passes what it gets on to a
server of one's own and answers as that does, or misbehaves as receivers do.
"""

import json
import logging
import ssl
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
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
    key_of,
    verify,
    verify_standard,
)

LOOPBACK: Final = "127.0.0.1"
MAX_BODY_BYTES: Final = 2**20
STORED: Final = 10_000  # deliveries that are remembered
OLD_AFTER_S: Final = 300  # the tolerance that receivers are recommended
PATIENCE_S: Final = 10.0  # with a sender that says nothing
FORWARD_S: Final = 25.0  # for the server that gets what is passed on: less than the sender waits for us
DRIP_S: Final = 1.0  # between two bytes of an answer that drips
DRIPPED_BYTES: Final = 1_000
WITHOUT_BODY: Final = (204, 304)
STOP_WITHIN_S: Final = 0.05
NOT_PASSED_ON: Final = frozenset({"host", "content-length", "connection", "transfer-encoding"})

POLL_EVERY_S = 0.5

log = logging.getLogger("tidemark.listen")


@dataclass(frozen=True)
class Manners:
    """How a receiver answers: with a status, in time and in one piece, unless told otherwise.

    Args:
        forward_to: a URL that gets each delivery; its status is the answer, 502 when it gives none.
        hang: never answer.
        drip: answer with one byte a second.
    """

    status: int = 204
    forward_to: str | None = None
    hang: bool = False
    drip: bool = False


@dataclass(frozen=True)
class Received:
    """One POST as it came, and what was answered: None when nothing is.

    A signature is None where no secret is known, the standard one also where none was sent. `before` counts earlier
    deliveries of the same event.
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
        """Whether no signature is wrong and the contract's is right; None as long as no secret is known."""
        if self.contract_signature is None:
            return None
        return self.contract_signature and self.standard_signature is not False

    @property
    def age_s(self) -> int | None:
        """Seconds since the sender's timestamp, below zero when its clock is ahead; None when it gave none."""
        timestamp = self.headers.get(STANDARD_TIMESTAMP, "")
        if not (timestamp.isascii() and timestamp.isdecimal()):
            return None
        return int(self.received_at.timestamp()) - int(timestamp[:18])

    @property
    def is_old(self) -> bool:
        """Whether a receiver should refuse it: somebody may be replaying what was sent long ago."""
        return self.age_s is not None and abs(self.age_s) > OLD_AFTER_S

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
        manners: how it answers.
    """

    def __init__(
        self,
        home: Path,
        port: int = 0,
        secrets: Iterable[str] = (),
        described: Callable[[Received], None] = lambda _: None,
        manners: Manners = Manners(),
    ) -> None:
        self._keys = [key_of(secret) for secret in secrets]
        self._described = described
        self._manners = manners
        self._events = Counter[str]()
        self._stored: deque[Received] = deque(maxlen=STORED)
        self._arrival = Condition()
        self.ca_path, certificate = for_this_machine(home / "listen")
        self._server = _Server((LOOPBACK, port), _tls(certificate), self._receive, manners)
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
            return list(self._stored)

    def learn(self, secret: str) -> None:
        """Verify with this secret (Base64), too."""
        self._keys.append(key_of(secret))

    def wait_for(self, predicate: Callable[[Received], bool], timeout_s: float) -> Received | None:
        """The first delivery that fits, now or within `timeout_s` seconds."""

        def first() -> Received | None:
            return next((each for each in self._stored if predicate(each)), None)

        with self._arrival:
            return self._arrival.wait_for(first, timeout_s)

    def join(self) -> None:
        """Stay until something ends the receiver. An interrupt gets through between two waits at the latest."""
        while self._thread.is_alive():
            self._thread.join(POLL_EVERY_S)

    def _receive(self, path: str, headers: Mapping[str, str], body: bytes) -> int | None:
        """Keep and tell of a delivery; the status to answer with, None for no answer."""
        received_at, keys = datetime.now(UTC), list(self._keys)
        answered = _answered(self._manners, headers, body)
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
                before=self._times_before(body),
                answered=answered,
            )
            self._stored.append(received)
            self._arrival.notify_all()
            self._described(received)
        return answered

    def _times_before(self, body: bytes) -> int:
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


def _answered(manners: Manners, headers: Mapping[str, str], body: bytes) -> int | None:
    if manners.hang:
        return None
    return manners.status if manners.forward_to is None else _forwarded(manners.forward_to, headers, body)


def _forwarded(url: str, headers: Mapping[str, str], body: bytes) -> int:
    """The status that a server of one's own gives to the same request: 502 for none."""
    passed_on = {name: value for name, value in headers.items() if name not in NOT_PASSED_ON}
    try:
        with requests.Session() as line:
            line.trust_env = False
            answer = line.post(url, data=body, headers=passed_on, timeout=FORWARD_S, allow_redirects=False, stream=True)
            return answer.status_code
    except requests.RequestException as error:
        log.warning("%s gave no answer: %s", url, type(error).__name__)
        return 502


def listen(
    home: Path, port: int, secrets: Iterable[str], manners: Manners, console: Console, *, as_json: bool = False
) -> None:
    """Receive and show until interrupted: what `tidemark listen` does.

    Raises:
        Unavailable: the port is taken.
    """
    with showing(home, port, secrets, manners, console, as_json=as_json) as receiver, suppress(KeyboardInterrupt):
        receiver.join()


@contextmanager
def showing(
    home: Path, port: int, secrets: Iterable[str], manners: Manners, console: Console, *, as_json: bool
) -> Iterator[Receiver]:
    """A receiver that shows on the console where it is and what it gets.

    Raises:
        Unavailable: the port is taken.
    """

    def show(received: Received) -> None:
        if as_json:
            _print_line(console, described(received))
        else:
            console.print(shown(received))

    try:
        new = Receiver(home, port, secrets, show, manners)
    except OSError as error:
        raise Unavailable("Listen.PortTaken", f"can't listen on port {port}: {error.strerror}") from error
    with new as receiver:
        if as_json:
            _print_line(console, {"listening": receiver.url, "caBundle": str(receiver.ca_path)})
        else:
            _introduce(console, receiver, manners)
        yield receiver


def _introduce(console: Console, receiver: Receiver, manners: Manners) -> None:
    console.print(f"Listening on [b]{receiver.url}[/], {_said(manners)}", highlight=False, soft_wrap=True)
    console.print("Let the service call this machine and trust this receiver:", highlight=False)
    console.print("  TIDEMARK_WEBHOOK_ALLOW_CIDRS=127.0.0.0/8", highlight=False)
    console.print(f"  TIDEMARK_WEBHOOK_CA_BUNDLE={receiver.ca_path}", highlight=False, soft_wrap=True, markup=False)


def _said(manners: Manners) -> str:
    if manners.hang:
        return "never answering"
    if manners.forward_to is not None:
        return f"passing on to {manners.forward_to!a} and answering as it does"
    return f"answering {manners.status}" + (", a byte a second" if manners.drip else "")


def _print_line(console: Console, document: Mapping[str, Any]) -> None:
    """One line of JSON, in ASCII."""
    console.file.write(json.dumps(document) + "\n")
    console.file.flush()


def described(received: Received) -> dict[str, Any]:
    """A delivery for scripts."""
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


def shown(received: Received) -> Panel:
    """A delivery for the terminal. It comes from outside: nothing in it may steer the terminal."""
    verdict = {
        True: Text("✔ signature verified", "green"),
        False: Text("✘ signature does not match", "red"),
        None: Text("? signature not checked: give the secret with --secret", "yellow"),
    }[received.verified]
    lines = [_request(received), *_signatures(received), *_warnings(received), _document(received)]
    return Panel(Group(*lines), title=verdict, title_align="left", expand=False)


def _request(received: Received) -> Text:
    answered = "no answer" if received.answered is None else f"answered {received.answered}"
    return Text(f"{received.received_at:%H:%M:%SZ}  POST {received.path!a}  {answered}", "dim")


def _signatures(received: Received) -> Iterable[Text]:
    """Each signature header as it came, with its own verdict."""
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
        lies = f"{age_s} s ago" if age_s > 0 else f"{-age_s} s ahead"
        yield Text(f"! {STANDARD_TIMESTAMP} lies {lies}: refuse what is more than {OLD_AFTER_S} s away", "yellow")
    if received.before:
        yield Text(f"! this eventId has come before ({received.before + 1} times by now): do its work once", "yellow")


def _document(received: Received) -> JSON | Text:
    try:
        return JSON.from_data(received.json, ensure_ascii=True)
    except ValueError:
        return Text(repr(received.body))


_Receive = Callable[[str, Mapping[str, str], bytes], int | None]


class _Server(ThreadingHTTPServer):
    """Speaks TLS in each connection's own thread, so that a silent sender keeps nobody waiting."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 1_024

    def __init__(self, address: tuple[str, int], tls: ssl.SSLContext, receive: _Receive, manners: Manners) -> None:
        super().__init__(address, _Handler)
        self.tls = tls
        self.receive = receive
        self.manners = manners

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
        return self._drip(status) if self.server.manners.drip else self._answer(status)

    def _answer(self, status: int, length: int = 0) -> None:
        self.send_response(status)
        if status not in (204, 304):
            self.send_header("Content-Length", str(length))
        self.end_headers()

    def _drip(self, status: int) -> None:
        """One byte after the other, until the sender has had enough. Of a status that has no body: 200."""
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
        """Whoever listens is told of deliveries, not of requests."""


def _tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate)
    return context
