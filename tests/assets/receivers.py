"""Webhook receivers that misbehave, over real TLS on loopback: each is a function that gets the connection.

There are also a resolver that returns the addresses a test wants, a proxy, and a record of the addresses dialled.
"""

import asyncio
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from ipaddress import ip_address, ip_network
from pathlib import Path

import trustme
from aiohttp.abc import AbstractResolver, ResolveResult

from assets.webhooks import sending
from storage.core.settings import Settings
from storage.webhooks.outbox import Attempt

Script = Callable[[ssl.SSLSocket], None]


@dataclass
class Misbehaving:
    """A receiver's record: the number of connections, of TLS handshakes, and the requests."""

    port: int
    connections: int = 0
    secured: int = 0
    requests: list[bytes] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}/hooks"


def tls(ca: trustme.CA, *names: str) -> ssl.SSLContext:
    """Return a server's context with a certificate for `names`, by default for loopback."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert(*(names or ("127.0.0.1",))).configure_cert(context)
    return context


def trusting(ca: trustme.CA, folder: Path, timeout_s: float) -> Settings:
    """Return settings of a sender that may connect to loopback and trusts the authority."""
    bundle = folder / "ca.pem"
    ca.cert_pem.write_to_path(str(bundle))
    loopback = (ip_network("127.0.0.0/8"),)
    return Settings(home=folder, webhook_allow_cidrs=loopback, webhook_ca_bundle=bundle, webhook_timeout_s=timeout_s)


@contextmanager
def receiver(context: ssl.SSLContext | None, script: Script) -> Iterator[Misbehaving]:
    """Run `script` on every connection once its request was read. Without a context the handshake never happens."""
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0), backlog=1_024) as server:
        seen = Misbehaving(server.getsockname()[1])
        threads: list[threading.Thread] = []

        def serve() -> None:
            while True:
                connection, _ = server.accept()
                if ended.is_set():
                    connection.close()
                    return
                seen.connections += 1
                threads.append(threading.Thread(target=answer, args=(connection,)))
                threads[-1].start()

        def answer(connection: socket.socket) -> None:
            with connection, suppress(OSError):
                if context is None:
                    ended.wait(10)
                    return
                with context.wrap_socket(connection, server_side=True) as secured:
                    secured.settimeout(10)
                    seen.secured += 1
                    seen.requests.append(read_request(secured))
                    script(secured)

        serving = threading.Thread(target=serve)
        serving.start()
        try:
            yield seen
        finally:
            ended.set()
            socket.create_connection(("127.0.0.1", seen.port)).close()
            for thread in (serving, *threads):
                thread.join()


def read_request(connection: ssl.SSLSocket) -> bytes:
    """Read one request: head and body."""
    request = b""
    while b"\r\n\r\n" not in request:
        request += receive(connection)
    head, _, body = request.partition(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    while len(body) < length:
        body += receive(connection)
    return head + b"\r\n\r\n" + body


def receive(connection: ssl.SSLSocket) -> bytes:
    """Return the next bytes; empty if the sender closed the connection."""
    if part := connection.recv(65_536):
        return part
    msg = "the sender closed the connection before its request was complete"
    raise ConnectionError(msg)


def answering(status: str, body: bytes = b"", *headers: str) -> Script:
    """Return a script that answers with a status line, headers and body, and closes the connection."""
    lines = [f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(body)}", "Connection: close"]
    return lambda connection: connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)


def saying(text: bytes) -> Script:
    """Return a script that sends these bytes and closes the connection."""
    return lambda connection: connection.sendall(text)


@dataclass
class Names(AbstractResolver):
    """A resolver that answers for every name with these addresses, after `after_s` seconds; an error if there are none.

    If `addresses` holds several lists, each call takes the next one, and later calls the last.
    """

    addresses: Sequence[str] | Sequence[Sequence[str]]
    after_s: float = 0
    asked: int = 0

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        self.asked += 1
        await asyncio.sleep(self.after_s)
        if not self.addresses:
            raise socket.gaierror(socket.EAI_NONAME, "unknown name")
        reported = self.addresses[min(self.asked, len(self.addresses)) - 1]
        addresses = self.addresses if isinstance(reported, str) else reported
        return [_make_result(host, port, str(address)) for address in addresses]

    async def close(self) -> None:
        """Do nothing: no resource is open."""


def _make_result(host: str, port: int, address: str) -> ResolveResult:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=0)


def post_all(settings: Settings, urls: Sequence[str], names: AbstractResolver | None = None) -> list[Attempt]:
    """Send one POST to each URL, all at once through one client."""

    async def all_of_them() -> list[Attempt]:
        async with sending.session(settings, names) as client:
            requests = [sending.Post(url, b"{}", {"X-Service-Webhook-Signature": "sha256=00"}) for url in urls]
            sent = [sending.send(client, request, settings.webhook_timeout_s) for request in requests]
            return await asyncio.gather(*sent)

    return asyncio.run(all_of_them())


def post_in_turn(
    settings: Settings, urls: Sequence[str], pause_s: float = 0.05, once: threading.Event | None = None
) -> list[Attempt]:
    """Send one POST to each URL through one client, one after the other with a pause between.

    Args:
        once: an event to wait for before each pause.
    """

    async def one_by_one() -> list[Attempt]:
        attempts = []
        async with sending.session(settings) as client:
            for place, url in enumerate(urls):
                request = sending.Post(url, b"%d" % place, {})
                attempts.append(await sending.send(client, request, settings.webhook_timeout_s))
                if once is not None:
                    assert await asyncio.to_thread(once.wait, 60)
                await asyncio.sleep(pause_s)
        return attempts

    return asyncio.run(one_by_one())


def post(settings: Settings, url: str, names: AbstractResolver | None = None) -> Attempt:
    (attempt,) = post_all(settings, [url], names)
    return attempt


_dialled: list[str] = []
_watching = threading.Event()


@cache  # a hook can't be removed, and slows down every import
def _add_hook() -> None:
    sys.addaudithook(_watch)


def _watch(event: str, args: tuple[object, ...]) -> None:
    if event == "socket.connect" and _watching.is_set():
        host = str(args[1][0])  # pyrefly: ignore[bad-index]  # an internet address: host, port, …
        _dialled.append(host)
        if not ip_address(host).is_loopback:
            raise ConnectionRefusedError


@contextmanager
def record_dialled() -> Iterator[list[str]]:
    """Yield a list of the addresses that this process connects to in the block, by the interpreter's audit events.

    Only loopback is reached: tests send nothing to anybody.
    """
    _add_hook()
    _dialled.clear()
    _watching.set()
    try:
        yield _dialled
    finally:
        _watching.clear()


@dataclass
class Proxy:
    """An egress proxy that records its requests, and connects all of them to one receiver."""

    port: int
    asked: list[bytes] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def proxy_to(port: int, answer: bytes = b"HTTP/1.1 200 Connection established\r\n\r\n") -> Iterator[Proxy]:
    """Run a proxy whose tunnels all lead to `port` on loopback."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        made, threads = Proxy(server.getsockname()[1]), list[threading.Thread]()

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    threads.append(threading.Thread(target=tunnel, args=(connection,), daemon=True))
                    threads[-1].start()

        def tunnel(connection: socket.socket) -> None:
            with connection, suppress(OSError), socket.create_connection(("127.0.0.1", port)) as far:
                made.asked.append(connection.recv(65_536))
                connection.sendall(answer)
                if not answer.startswith(b"HTTP/1.1 200"):
                    return
                back = threading.Thread(target=_pass, args=(far, connection), daemon=True)
                back.start()
                _pass(connection, far)
                back.join()

        serving = threading.Thread(target=serve, daemon=True)
        serving.start()
        yield made
        server.shutdown(socket.SHUT_RDWR)
        serving.join()


def _pass(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while part := source.recv(65_536):
            sink.sendall(part)
        sink.shutdown(socket.SHUT_WR)
