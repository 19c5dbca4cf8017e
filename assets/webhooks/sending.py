"""Send one webhook POST over HTTPS: to no forbidden address, by a deadline, reading a bounded response.

The guard creates the sockets, so it checks every address at the moment of the connect, whatever the name resolved to
before. With the operator's proxy, which connects in our place, all addresses of a name are checked before the proxy is
asked. Redirects, the environment's proxies, cookies and decompression are off.

A connection is reused for a short time, because opening one costs more than the rest of a delivery. This has two traps.
First, the receiver may send more after its response. We then close the connection; but if the next delivery has already
begun, that delivery takes the bytes for its own response. Second, the receiver may close the connection just as it is
used. If no byte of a response had arrived, the same bytes are sent once more over a new connection, within the same
attempt. So a receiver that crashed during a request may get it twice with the same id, as when this process crashes.

The steps of a delivery are timed where they happen: names are resolved when the first socket is created, a connection
is open when TLS begins, and the response begins with the first byte that TLS delivers. Over a reused connection only
the last step happens.
"""

import asyncio
import errno
import logging
import socket
import ssl
import time
import warnings
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from importlib.metadata import version
from itertools import pairwise
from typing import Any, Final
from uuid import uuid4
from weakref import WeakSet

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.tracing import Trace
from yarl import URL

from pipelines.webhooks.addresses import LOOPBACKS, Address, Reach, parse_address
from storage.core.settings import Settings, SettingsError
from storage.webhooks import local_receiver
from storage.webhooks.outbox import Attempt

RESPONSE_HEAD_BYTES: Final = 16 * 1024
NAMES_SHARE: Final = 0.5  # of the deadline, for the look-up of a name: a receiver must have time to respond
CLOSE_S: Final = 0.25  # for a receiver to answer our TLS close message, before we close the socket
IDLE_S: Final = 1.0  # for an idle connection (aiohttp may need nearly twice that): well below what servers allow
REUSED_FOR_S: Final = 60.0  # for a busy connection: a name's addresses may change, and certificates be revoked
REUSED_CONNECTIONS: Final = 250  # at once, including those in use: a process may often open only 1,024 files
USER_AGENT: Final = f"Tidemark/{version('tidemark')}"
NO_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=None)  # `send` has the only deadline

STEPS: Final = ("dns_ms", "connect_ms", "tls_ms", "first_byte_ms")

AddressInfo = tuple[int, int, int, str, tuple[Any, ...]]

log = logging.getLogger("tidemark.delivery")


class Failure(StrEnum):
    """The class of a failed attempt, as reported to the client."""

    DNS = "dns"  # the name could not be resolved
    CONNECT = "connect"  # no server accepted the connection, or the operator's proxy refused to open one
    TLS = "tls"  # no trusted connection; nothing was sent
    TIMEOUT = "timeout"  # no complete response by the deadline
    REFUSED = "refused"  # the address or port is forbidden; no connection was tried
    RESET = "reset"  # the receiver closed the connection before its response was complete
    PROTOCOL = "protocol"  # the response was not HTTP
    SECRET = "secret"  # the signing secret can't be opened; nothing was sent


NOTHING_SENT: Final = (Failure.DNS, Failure.CONNECT, Failure.TLS, Failure.REFUSED)


class UnknownNameError(OSError):
    """The name could not be resolved, or not in time."""


class RefusedAddressError(OSError):
    """The address that a name resolves to, or the URL's port, is not allowed for webhooks."""

    def __init__(self) -> None:
        super().__init__(errno.EACCES, "this address is not allowed")


@dataclass(frozen=True)
class Post:
    """A signed request, ready to be sent."""

    url: str
    body: bytes
    signatures: Mapping[str, str]  # headers


@asynccontextmanager
async def session(settings: Settings, resolver: AbstractResolver | None = None) -> AsyncIterator[aiohttp.ClientSession]:
    """Open an HTTP client that can only send webhooks, and only safely. By default the system resolves names."""
    names = _Names(resolver or aiohttp.DefaultResolver(), settings.webhook_timeout_s * NAMES_SHARE)
    reach, proxy, tls = settings.webhook_reach, settings.webhook_proxy or None, tls_context(settings)
    may_dial = _allow_all if proxy else _allow_reachable(settings, reach, tls)
    async with aiohttp.ClientSession(
        connector=_connector(tls, guarded_socket(may_dial), names),
        proxy=proxy,
        middlewares=[_checking_targets(reach, names)] if proxy else [],
        timeout=NO_TIMEOUT,
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,
        auto_decompress=False,
        headers={"User-Agent": USER_AGENT, "Content-Type": "application/json"},
        skip_auto_headers=["Accept-Encoding"],
    ) as client:
        yield client
    await asyncio.sleep(CLOSE_S)  # connections that are being closed still need the event loop


def _connector(
    tls: ssl.SSLContext, make_socket: Callable[[AddressInfo], socket.socket], names: AbstractResolver
) -> aiohttp.TCPConnector:
    with warnings.catch_warnings():
        # `ssl_shutdown_timeout` is deprecated, because most clients don't need it. Without it, a receiver that doesn't
        # answer our TLS close message keeps a socket of ours open for 30 s after each delivery.
        warnings.simplefilter("ignore", DeprecationWarning)
        return _Connections(
            limit=0,  # the caller of `send` limits how many
            keepalive_timeout=IDLE_S,
            ssl=tls,
            ssl_shutdown_timeout=CLOSE_S,
            socket_factory=make_socket,
            resolver=names,
        )


class _Connections(aiohttp.TCPConnector):
    """A connector that reuses a limited number of connections, and each only while it is safe."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._reusable = WeakSet[ResponseHandler]()

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        while True:
            connection = await super().connect(req, traces, timeout)
            if _is_usable(connection, _stopwatch()):
                self._limit_reuse(connection)
                return connection
            connection.close()

    def _limit_reuse(self, connection: Connection) -> None:
        """Decide whether a new connection may be reused. After its delivery it would be too late to decide."""
        protocol = connection.protocol
        if protocol is None or protocol in self._reusable:
            return
        if sum(reusable.is_connected() for reusable in self._reusable) < REUSED_CONNECTIONS:
            self._reusable.add(protocol)
        else:
            protocol.force_close()


def _is_usable(connection: Connection, delivery: "_Stopwatch") -> bool:
    """Return whether the delivery may use this connection, which it has opened itself or would reuse."""
    if connection.transport is None or connection.protocol is None:
        return True  # it was lost just now; its use raises the right error
    tls: _TimedTls = connection.transport.get_extra_info("ssl_object")
    if tls.was_opened_by(delivery):
        return True
    in_doubt = tls.received_more or connection.protocol.should_close
    if in_doubt or delivery.needs_new_connection or tls.age_s > REUSED_FOR_S:
        return False
    tls.assign(delivery)
    return True


def tls_context(settings: Settings) -> ssl.SSLContext:
    """Return a context for TLS 1.2 or newer that trusts the system's certificate authorities and the operator's bundle.

    Raises:
        SettingsError: the bundle can't be read.
    """
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.sslobject_class = _TimedTls
    if settings.webhook_ca_bundle is not None:
        try:
            context.load_verify_locations(settings.webhook_ca_bundle)
        except OSError as error:  # ssl.SSLError is one too
            raise SettingsError("TIDEMARK_WEBHOOK_CA_BUNDLE is not a readable file of certificates") from error
    return context


def guarded_socket(may_dial: Callable[[Address, int], bool]) -> Callable[[AddressInfo], socket.socket]:
    """Return a socket factory for a connector, which raises RefusedAddressError for a forbidden address or port."""

    def make_socket(info: AddressInfo) -> socket.socket:
        family, kind, protocol, _, (host, port, *_) = info
        _stopwatch().note_resolved()
        if family not in (socket.AF_INET, socket.AF_INET6) or not may_dial(parse_address(host), port):
            raise RefusedAddressError
        _stopwatch().note_dialled()
        return socket.socket(family, kind, protocol)

    return make_socket


def _allow_reachable(settings: Settings, reach: Reach, tls: ssl.SSLContext) -> Callable[[Address, int], bool]:
    """Return the check for use without a proxy: it allows what `reach` does, and `listen --subscribe`'s receiver."""

    def may_dial(address: Address, port: int) -> bool:
        return reach.allows(address, port) or _is_local_receiver(settings, tls, address, port)

    return may_dial


def _is_local_receiver(settings: Settings, tls: ssl.SSLContext, address: Address, port: int) -> bool:
    """Return whether a local receiver listens there; then its certificate is trusted."""
    local = local_receiver.find(settings) if address in LOOPBACKS else None
    if local is None or port != local.port:
        return False
    with suppress(OSError):  # without it, the connection fails as an untrusted one
        tls.load_verify_locations(local_receiver.authority_file(settings.home))
    return True


def _allow_all(_: Address, __: int) -> bool:
    """Allow every address: with a proxy, only the proxy itself is connected to, and it may be anywhere."""
    return True


def _checking_targets(reach: Reach, names: AbstractResolver) -> aiohttp.ClientMiddlewareType:
    """Return a middleware for use with a proxy. The proxy resolves the name again, so all of its addresses must be
    allowed.
    """

    async def check(request: aiohttp.ClientRequest, forward: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
        host, port = request.url.raw_host or "", request.url.port or 0
        try:
            addresses = await _resolve(names, host, port)
        except UnknownNameError as error:
            raise aiohttp.ClientConnectorDNSError(request.connection_key, error) from error
        if not addresses or not all(reach.allows(address, port) for address in addresses):
            raise aiohttp.ClientConnectorError(request.connection_key, RefusedAddressError())
        return await forward(request)

    return check


async def _resolve(names: AbstractResolver, host: str, port: int) -> list[Address]:
    try:
        return [parse_address(host)]
    except ValueError:
        return [parse_address(result["host"]) for result in await names.resolve(host, port, socket.AF_UNSPEC)]


class _Names(AbstractResolver):
    """A resolver that waits at most `within_s` seconds for a response."""

    def __init__(self, names: AbstractResolver, within_s: float) -> None:
        self._names = names
        self._within_s = within_s

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        try:
            async with asyncio.timeout(self._within_s):
                return await self._names.resolve(host, port, family)
        except OSError as error:  # TimeoutError is one
            raise UnknownNameError from error

    async def close(self) -> None:
        await self._names.close()


class _Stopwatch:
    """The times of the steps of one delivery, by a monotonic clock."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._resolved: float | None = None
        self._connected: float | None = None
        self._secured: float | None = None
        self._answered: float | None = None
        self._reuses = False  # a connection of an earlier delivery
        self.dialled = False  # at least one of the addresses
        self.needs_new_connection = False
        self.ended = False

    def note_dialled(self) -> None:
        self.dialled = True

    def note_reused(self) -> None:
        self._reuses = True
        self._secured = time.monotonic()

    @property
    def lost_connection(self) -> bool:
        """Whether the connection that failed was a reused one, and no byte of a response had arrived."""
        return self._reuses and not self.needs_new_connection and self._answered is None

    def restart(self) -> None:
        """Begin again with a new connection. The delivery's total time includes the first try."""
        self.needs_new_connection = True
        self._resolved = self._connected = self._secured = None

    def note_resolved(self) -> None:
        self._resolved = self._resolved or time.monotonic()

    def note_connected(self) -> None:
        """Note that a connection is open. This step's time includes the addresses that failed before."""
        self._connected = time.monotonic()

    def note_secured(self) -> None:
        self._secured = time.monotonic()

    def note_answered(self) -> None:
        self._answered = self._answered or time.monotonic()

    def total_ms(self) -> int:
        return int((time.monotonic() - self._started) * 1000)

    def steps(self) -> dict[str, int | None]:
        """Return the duration of each of STEPS in milliseconds; None for a step that did not complete."""
        intervals = pairwise((self._started, self._resolved, self._connected, self._secured, self._answered))
        return {
            step: None if start is None or end is None else int((end - start) * 1000)
            for step, (start, end) in zip(STEPS, intervals, strict=True)
        }


_CURRENT_STOPWATCH: ContextVar[_Stopwatch] = ContextVar("_CURRENT_STOPWATCH")


def _stopwatch() -> _Stopwatch:
    """Return the stopwatch of the current task's delivery."""
    return _CURRENT_STOPWATCH.get(_Stopwatch())


class _TimedTls(ssl.SSLObject):
    """The TLS layer of a connection, which knows the delivery that currently uses the connection."""

    _delivery: _Stopwatch | None = None
    _opened_at: float = 0.0
    received_more = False  # after the response of its last delivery

    def do_handshake(self) -> None:
        if self._delivery is None:
            self._delivery = _stopwatch()
            self._delivery.note_connected()
            self._opened_at = time.monotonic()
        super().do_handshake()
        self._delivery.note_secured()

    @property
    def age_s(self) -> float:
        return time.monotonic() - self._opened_at

    def was_opened_by(self, delivery: _Stopwatch) -> bool:
        return self._delivery is delivery

    def assign(self, delivery: _Stopwatch) -> None:
        """Assign an open connection to another delivery."""
        self._delivery = delivery
        delivery.note_reused()

    def read(self, len: int = 1024, buffer: Any = None) -> bytes:  # noqa: A002  # the base class's name
        received = super().read(len, buffer)
        if received and self._delivery is not None:
            self._delivery.note_answered()
            self.received_more |= self._delivery.ended
        return received


async def send(client: aiohttp.ClientSession, post: Post, timeout_s: float) -> Attempt:
    """Send one request. The timeout covers everything from resolving the name to reading 16 KiB of the response."""
    started_at, stopwatch, answer = datetime.now(UTC), _Stopwatch(), _Answer()
    _CURRENT_STOPWATCH.set(stopwatch)
    failure: Failure | None = None
    try:
        async with asyncio.timeout(timeout_s):
            try:
                await _exchange(client, post, answer)
            except (aiohttp.ServerDisconnectedError, OSError):
                if not stopwatch.lost_connection:
                    raise
                stopwatch.restart()
                await _exchange(client, post, answer)
    except Exception as error:
        failure = classify(error)
        if failure is Failure.REFUSED and stopwatch.dialled:
            failure = Failure.CONNECT  # another address of the name was allowed, but did not respond
        if failure in NOTHING_SENT and stopwatch.needs_new_connection:
            failure = Failure.RESET  # it was sent over the reused connection, and the receiver may have got it
    stopwatch.ended = True
    return Attempt(
        attempt_id=uuid4(),
        started_at=started_at,
        duration_ms=stopwatch.total_ms(),
        status_code=answer.status,
        error=failure,
        response_head=None if answer.status is None else bytes(answer.head),
        **stopwatch.steps(),
    )


def attempt_without_sending(failure: Failure) -> Attempt:
    """Return an attempt that ended before anything was sent."""
    return Attempt(uuid4(), datetime.now(UTC), 0, None, failure, None)


def has_succeeded(attempt: Attempt) -> bool:
    """Return whether the response is a 2xx and complete, as far as it is read."""
    return attempt.error is None and attempt.status_code is not None and 200 <= attempt.status_code <= 299


class _Answer:
    """The part of a response that has arrived. It is recorded even if the rest fails."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.head = bytearray()


async def _exchange(client: aiohttp.ClientSession, post: Post, answer: _Answer) -> None:
    request = client.post(URL(post.url, encoded=True), data=post.body, headers=post.signatures, allow_redirects=False)
    async with request as response:
        answer.status = response.status
        while (remaining := RESPONSE_HEAD_BYTES - len(answer.head)) and (
            chunk := await response.content.read(remaining)
        ):
            answer.head += chunk


def classify(error: Exception) -> Failure:
    """Return the class of an exception of the HTTP client."""
    if isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, RefusedAddressError):
        return Failure.REFUSED
    if isinstance(error, aiohttp.ClientHttpProxyError):
        log.warning("the proxy answered %d instead of connecting to a receiver", error.status)
    known = next((failure for kinds, failure in _FAILURES if isinstance(error, kinds)), None)
    if known is None:
        log.error("a delivery failed with an unexpected error: %s", type(error).__name__)
    return known or Failure.PROTOCOL


# The first match counts: the order matters, because later classes are bases of earlier ones.
_FAILURES: Final[tuple[tuple[tuple[type[Exception], ...], Failure], ...]] = (
    ((aiohttp.ClientConnectorDNSError,), Failure.DNS),
    ((aiohttp.ClientSSLError, ssl.SSLError), Failure.TLS),
    ((aiohttp.ClientConnectorError, aiohttp.ClientHttpProxyError), Failure.CONNECT),
    ((TimeoutError,), Failure.TIMEOUT),
    ((aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError, OSError), Failure.RESET),
    ((aiohttp.ClientError,), Failure.PROTOCOL),
)
