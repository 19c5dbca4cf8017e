"""One webhook POST over HTTPS: to no forbidden address, by a deadline, with a bounded answer, its failure classed.

The guard makes the sockets, so it sees every address at the very moment of the connect, whatever the name resolved to
a moment ago. Behind the operator's proxy, which does the dialling, all that a name resolves to is looked at before the
proxy is asked. Redirects, the environment's proxies, cookies and decompression are off.

A connection is kept for a moment: making one costs more than all the rest of a delivery. A kept one has two traps. The
receiver may say something after its answer: then it is hung up on, unless it says so while the next delivery is under
way already, which would take it for its own answer. And the receiver may close it just as it is used: then, if not a
byte of an answer had come, the same bytes go out once more over a new one, and it is one attempt. So a receiver that
died over a request may be sent it twice, as when we die, with the same id.

The steps of a delivery are timed where they happen: names are resolved once the first socket is made, a connection
stands once its TLS begins, and the answer has begun with the first byte that TLS lets through. Over a kept connection
only the last of them happens.
"""

import asyncio
import errno
import logging
import socket
import ssl
import time
import warnings
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
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

from pipelines.webhooks.addresses import Address, Reach, parse_address
from storage.core.settings import Settings, SettingsError
from storage.webhooks.outbox import Attempt

RESPONSE_HEAD_BYTES: Final = 16 * 1024
NAMES_SHARE: Final = 0.5  # of the deadline, for the look-up of a name: a receiver must have time to answer
GOODBYE_S: Final = 0.25  # for a receiver to return our TLS goodbye, before we just hang up
IDLE_S: Final = 1.0  # an idle connection, or nearly twice that: well below what servers allow
REUSED_FOR_S: Final = 60.0  # a busy one: names may lead elsewhere meanwhile, and certificates be taken back
REUSED_CONNECTIONS: Final = 250  # at once, those in use among them: a process may have few files open, often 1,024
USER_AGENT: Final = f"Tidemark/{version('tidemark')}"
NO_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=None)  # the one deadline is ours

STEPS: Final = ("dns_ms", "connect_ms", "tls_ms", "first_byte_ms")

AddressInfo = tuple[int, int, int, str, tuple[Any, ...]]

log = logging.getLogger("tidemark.delivery")


class Failure(StrEnum):
    """What went wrong, as far as a client is told."""

    DNS = "dns"  # the name could not be resolved
    CONNECT = "connect"  # nobody answered there, or the operator's proxy gave no way there
    TLS = "tls"  # no trusted connection; nothing was sent
    TIMEOUT = "timeout"  # no complete answer by the deadline
    REFUSED = "refused"  # address or port are forbidden; nothing was dialled
    RESET = "reset"  # the receiver hung up before its answer was complete
    PROTOCOL = "protocol"  # the answer was not HTTP
    SECRET = "secret"  # the signing secret can't be opened; nothing was sent


NOTHING_SENT: Final = (Failure.DNS, Failure.CONNECT, Failure.TLS, Failure.REFUSED)


class UnknownNameError(OSError):
    """Nobody knows where the name leads, or nobody said so in time."""


class RefusedAddressError(OSError):
    """The name leads to an address, or the URL to a port, that webhooks may not go to."""

    def __init__(self) -> None:
        super().__init__(errno.EACCES, "this address is not allowed")


@dataclass(frozen=True)
class Post:
    """A request as it will be sent: these bytes, these signatures."""

    url: str
    body: bytes
    signatures: Mapping[str, str]  # headers


@asynccontextmanager
async def session(settings: Settings, resolver: AbstractResolver | None = None) -> AsyncIterator[aiohttp.ClientSession]:
    """A client that can do nothing but send webhooks safely. Names are the system's business by default."""
    names = _Names(resolver or aiohttp.DefaultResolver(), settings.webhook_timeout_s * NAMES_SHARE)
    reach, proxy = settings.webhook_reach, settings.webhook_proxy or None
    async with aiohttp.ClientSession(
        connector=_connector(tls_context(settings), guarded_socket(_anything if proxy else reach.holds), names),
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
    await asyncio.sleep(GOODBYE_S)  # what is being closed still needs the event loop


def _connector(
    tls: ssl.SSLContext, make_socket: Callable[[AddressInfo], socket.socket], names: AbstractResolver
) -> aiohttp.TCPConnector:
    with warnings.catch_warnings():
        # Deprecated, since other clients should not mind. Without it a receiver that doesn't return our TLS goodbye
        # keeps a socket of ours open for 30 s after each delivery.
        warnings.simplefilter("ignore", DeprecationWarning)
        return _Connections(
            limit=0,  # whoever sends bounds how many
            keepalive_timeout=IDLE_S,
            ssl=tls,
            ssl_shutdown_timeout=GOODBYE_S,
            socket_factory=make_socket,
            resolver=names,
        )


class _Connections(aiohttp.TCPConnector):
    """Keeps some connections, and gives out a kept one only if nothing speaks against it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._lasting = WeakSet[ResponseHandler]()

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        while True:
            connection = await super().connect(req, traces, timeout)
            if _serves(connection, _stopwatch()):
                self._keep_or_not(connection)
                return connection
            connection.close()

    def _keep_or_not(self, connection: Connection) -> None:
        """Decide on a new one: when its delivery has ended is too late."""
        protocol = connection.protocol
        if protocol is None or protocol in self._lasting:
            return
        if sum(each.is_connected() for each in self._lasting) < REUSED_CONNECTIONS:
            self._lasting.add(protocol)
        else:
            protocol.force_close()


def _serves(connection: Connection, delivery: "_Stopwatch") -> bool:
    """Whether the delivery may go over this connection, which it made or finds kept."""
    if connection.transport is None or connection.protocol is None:
        return True  # it was lost just now, and using it tells so
    tls: _TimedTls = connection.transport.get_extra_info("ssl_object")
    if tls.was_made_by(delivery):
        return True
    in_doubt = tls.heard_more or connection.protocol.should_close
    if in_doubt or delivery.needs_new_connection or tls.age_s > REUSED_FOR_S:
        return False
    tls.carries(delivery)
    return True


def tls_context(settings: Settings) -> ssl.SSLContext:
    """TLS 1.2 or newer, verified against the system's authorities and the operator's extra bundle.

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
    """Makes the sockets of a connector, and none for an address and port that may not be dialled."""

    def make(info: AddressInfo) -> socket.socket:
        family, kind, protocol, _, (host, port, *_) = info
        _stopwatch().resolved()
        if family not in (socket.AF_INET, socket.AF_INET6) or not may_dial(parse_address(host), port):
            raise RefusedAddressError
        _stopwatch().dials()
        return socket.socket(family, kind, protocol)

    return make


def _anything(_: Address, __: int) -> bool:
    """Nothing but the operator's proxy is ever dialled, and that may be anywhere."""
    return True


def _checking_targets(reach: Reach, names: AbstractResolver) -> aiohttp.ClientMiddlewareType:
    """Before the proxy is asked: it resolves the name again, so everything that the name leads to must be allowed."""

    async def checked(request: aiohttp.ClientRequest, ask: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
        host, port = request.url.raw_host or "", request.url.port or 0
        try:
            addresses = await _addresses(names, host, port)
        except UnknownNameError as error:
            raise aiohttp.ClientConnectorDNSError(request.connection_key, error) from error
        if not addresses or not all(reach.holds(address, port) for address in addresses):
            raise aiohttp.ClientConnectorError(request.connection_key, RefusedAddressError())
        return await ask(request)

    return checked


async def _addresses(names: AbstractResolver, host: str, port: int) -> list[Address]:
    try:
        return [parse_address(host)]
    except ValueError:
        return [parse_address(found["host"]) for found in await names.resolve(host, port, socket.AF_UNSPEC)]


class _Names(AbstractResolver):
    """Looks names up, and waits for an answer no longer than `within_s` seconds."""

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
    """When each step of one delivery was done, by a clock that never jumps."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._resolved: float | None = None
        self._connected: float | None = None
        self._secured: float | None = None
        self._answered: float | None = None
        self._found_open = False
        self.dialled = False  # at least one of the addresses
        self.needs_new_connection = False
        self.ended = False

    def dials(self) -> None:
        self.dialled = True

    def finds_open(self) -> None:
        """A connection that stands already."""
        self._found_open = True
        self._secured = time.monotonic()

    @property
    def lost_connection(self) -> bool:
        """Whether the connection that failed was a kept one, and brought no answer at all."""
        return self._found_open and not self.needs_new_connection and self._answered is None

    def begins_again(self) -> None:
        """Over a connection of its own; the time that was lost stays part of the delivery's."""
        self.needs_new_connection = True
        self._resolved = self._connected = self._secured = None

    def resolved(self) -> None:
        self._resolved = self._resolved or time.monotonic()

    def connected(self) -> None:
        """Said of each address in turn until one serves: what the others took is part of the way."""
        self._connected = time.monotonic()

    def secured(self) -> None:
        self._secured = time.monotonic()

    def answered(self) -> None:
        self._answered = self._answered or time.monotonic()

    def total_ms(self) -> int:
        return int((time.monotonic() - self._started) * 1000)

    def steps(self) -> dict[str, int | None]:
        """STEPS, in milliseconds; None for what was not got through."""
        done = pairwise((self._started, self._resolved, self._connected, self._secured, self._answered))
        return {
            step: None if start is None or end is None else int((end - start) * 1000)
            for step, (start, end) in zip(STEPS, done, strict=True)
        }


_ITS_STOPWATCH: ContextVar[_Stopwatch] = ContextVar("_ITS_STOPWATCH")


def _stopwatch() -> _Stopwatch:
    """Of the delivery that is under way."""
    return _ITS_STOPWATCH.get(_Stopwatch())


class _TimedTls(ssl.SSLObject):
    """The TLS of a connection, and of which delivery it is just now."""

    _its: _Stopwatch | None = None
    _made_at: float = 0.0
    heard_more = False  # after the answer of its last delivery

    def do_handshake(self) -> None:
        if self._its is None:
            self._its = _stopwatch()
            self._its.connected()
            self._made_at = time.monotonic()
        super().do_handshake()
        self._its.secured()

    @property
    def age_s(self) -> float:
        return time.monotonic() - self._made_at

    def was_made_by(self, delivery: _Stopwatch) -> bool:
        return self._its is delivery

    def carries(self, delivery: _Stopwatch) -> None:
        """Another delivery than the one that made it."""
        self._its = delivery
        delivery.finds_open()

    def read(self, len: int = 1024, buffer: Any = None) -> bytes:  # noqa: A002  # the library calls it so
        received = super().read(len, buffer)
        if received and self._its is not None:
            self._its.answered()
            self.heard_more |= self._its.ended
        return received


async def send(client: aiohttp.ClientSession, post: Post, timeout_s: float) -> Attempt:
    """Send once. The deadline holds for everything, from the look-up of the name to the end of the answer's head."""
    started_at, stopwatch, answer = datetime.now(UTC), _Stopwatch(), _Answer()
    _ITS_STOPWATCH.set(stopwatch)
    failure: Failure | None = None
    try:
        async with asyncio.timeout(timeout_s):
            try:
                await _exchange(client, post, answer)
            except (aiohttp.ServerDisconnectedError, OSError):
                if not stopwatch.lost_connection:
                    raise
                stopwatch.begins_again()
                await _exchange(client, post, answer)
    except Exception as error:
        failure = failure_of(error)
        if failure is Failure.REFUSED and stopwatch.dialled:
            failure = Failure.CONNECT  # of its other addresses one was allowed, and nobody answered there
        if failure in NOTHING_SENT and stopwatch.needs_new_connection:
            failure = Failure.RESET  # it had been sent over the kept connection, and nobody knows what became of it
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


def unsent(failure: Failure) -> Attempt:
    """The attempt that ended before anything could be sent."""
    return Attempt(uuid4(), datetime.now(UTC), 0, None, failure, None)


def succeeded(attempt: Attempt) -> bool:
    """Any 2xx, answered completely (as far as it is read)."""
    return attempt.error is None and attempt.status_code is not None and 200 <= attempt.status_code <= 299


class _Answer:
    """What has arrived so far; it outlives a failure in the middle."""

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


def failure_of(error: Exception) -> Failure:
    """The class of what the HTTP client raised."""
    if isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, RefusedAddressError):
        return Failure.REFUSED
    if isinstance(error, aiohttp.ClientHttpProxyError):
        log.warning("the proxy answered %d and gave no way to a receiver", error.status)
    known = next((failure for kinds, failure in _FAILURES if isinstance(error, kinds)), None)
    if known is None:
        log.error("a delivery failed in an unforeseen way: %s", type(error).__name__)
    return known or Failure.PROTOCOL


# The first that fits: what stands further down includes some of what stands above it.
_FAILURES: Final[tuple[tuple[tuple[type[Exception], ...], Failure], ...]] = (
    ((aiohttp.ClientConnectorDNSError,), Failure.DNS),
    ((aiohttp.ClientSSLError, ssl.SSLError), Failure.TLS),
    ((aiohttp.ClientConnectorError, aiohttp.ClientHttpProxyError), Failure.CONNECT),
    ((TimeoutError,), Failure.TIMEOUT),
    ((aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError, OSError), Failure.RESET),
    ((aiohttp.ClientError,), Failure.PROTOCOL),
)
