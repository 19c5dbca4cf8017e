"""One webhook POST over HTTPS: to no forbidden address, by a deadline, with a bounded answer, its failure classed.

The guard makes the sockets, so it sees every address at the very moment of the connect, whatever the name resolved to
a moment ago. Redirects, proxies, cookies and decompression are off. Each delivery has a connection of its own: a kept
one may be closed by the receiver just as it is used, which would be a failure of ours.
"""

import asyncio
import errno
import logging
import socket
import ssl
import time
import warnings
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from importlib.metadata import version
from typing import Any, Final
from uuid import uuid4

import aiohttp
from aiohttp.abc import AbstractResolver
from yarl import URL

from pipelines.addresses import Network, forbidden, parsed
from storage.outbox import Attempt
from storage.settings import Settings, SettingsError

RESPONSE_HEAD_BYTES: Final = 16 * 1024
GOODBYE_S: Final = 0.25  # for a receiver to return our TLS goodbye, before we just hang up
USER_AGENT: Final = f"Tidemark/{version('tidemark')}"
NO_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, sock_connect=None)  # the one deadline is ours

AddressInfo = tuple[int, int, int, str, tuple[Any, ...]]

log = logging.getLogger("tidemark.delivery")


class Failure(StrEnum):
    """What went wrong, as far as a client is told."""

    DNS = "dns"  # the name could not be resolved
    CONNECT = "connect"  # nobody answered there
    TLS = "tls"  # no trusted connection; nothing was sent
    TIMEOUT = "timeout"  # no complete answer by the deadline
    REFUSED = "refused"  # the address is forbidden; nothing was dialled
    RESET = "reset"  # the receiver hung up before its answer was complete
    PROTOCOL = "protocol"  # the answer was not HTTP
    SECRET = "secret"  # the signing secret can't be opened; nothing was sent


class RefusedAddressError(OSError):
    """The name leads to an address that webhooks may not go to."""

    def __init__(self) -> None:
        super().__init__(errno.EACCES, "this address is not allowed")


@dataclass(frozen=True)
class Post:
    """A request as it will be sent: these bytes, this signature."""

    url: str
    body: bytes
    signature_header: tuple[str, str]


@asynccontextmanager
async def session(settings: Settings, resolver: AbstractResolver | None = None) -> AsyncIterator[aiohttp.ClientSession]:
    """A client that can do nothing but send webhooks safely. Names are the system's business by default."""
    connector = _connector(tls_context(settings), guarded_socket(settings.webhook_allow_cidrs), resolver)
    async with aiohttp.ClientSession(
        connector=connector,
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
    tls: ssl.SSLContext, make_socket: Callable[[AddressInfo], socket.socket], resolver: AbstractResolver | None
) -> aiohttp.TCPConnector:
    with warnings.catch_warnings():
        # Deprecated, since other clients should not mind. Without it a receiver that doesn't return our TLS goodbye
        # keeps a socket of ours open for 30 s after each delivery.
        warnings.simplefilter("ignore", DeprecationWarning)
        return aiohttp.TCPConnector(
            limit=0,  # whoever sends bounds how many
            force_close=True,
            ssl=tls,
            ssl_shutdown_timeout=GOODBYE_S,
            socket_factory=make_socket,
            resolver=resolver,
        )


def tls_context(settings: Settings) -> ssl.SSLContext:
    """TLS 1.2 or newer, verified against the system's authorities and the operator's extra bundle.

    Raises:
        SettingsError: the bundle can't be read.
    """
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if settings.webhook_ca_bundle is not None:
        try:
            context.load_verify_locations(settings.webhook_ca_bundle)
        except OSError as error:  # ssl.SSLError is one too
            raise SettingsError("TIDEMARK_WEBHOOK_CA_BUNDLE is not a readable file of certificates") from error
    return context


def guarded_socket(allowed: Sequence[Network]) -> Callable[[AddressInfo], socket.socket]:
    """Makes the sockets of a connector, and none for a forbidden address."""

    def make(info: AddressInfo) -> socket.socket:
        family, kind, protocol, _, address = info
        if family not in (socket.AF_INET, socket.AF_INET6) or forbidden(parsed(address[0]), allowed):
            raise RefusedAddressError
        return socket.socket(family, kind, protocol)

    return make


async def send(client: aiohttp.ClientSession, post: Post, timeout_s: float) -> Attempt:
    """Send once. The deadline holds for everything, from the look-up of the name to the end of the answer's head."""
    started_at, started = datetime.now(UTC), time.monotonic()
    answer = _Answer()
    failure: Failure | None = None
    try:
        async with asyncio.timeout(timeout_s):
            await _exchange(client, post, answer)
    except Exception as error:
        failure = failure_of(error)
    return Attempt(
        attempt_id=uuid4(),
        started_at=started_at,
        duration_ms=round((time.monotonic() - started) * 1000),
        status_code=answer.status,
        error=failure,
        response_head=None if answer.status is None else bytes(answer.head),
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
    name, signature = post.signature_header
    request = client.post(URL(post.url, encoded=True), data=post.body, headers={name: signature}, allow_redirects=False)
    async with request as response:
        answer.status = response.status
        while (room := RESPONSE_HEAD_BYTES - len(answer.head)) and (chunk := await response.content.read(room)):
            answer.head += chunk


def failure_of(error: Exception) -> Failure:
    """The class of what the HTTP client raised."""
    if isinstance(error, aiohttp.ClientConnectorError) and isinstance(error.os_error, RefusedAddressError):
        return Failure.REFUSED
    known = next((failure for kinds, failure in _FAILURES if isinstance(error, kinds)), None)
    if known is None:
        log.error("a delivery failed in an unforeseen way: %s", type(error).__name__)
    return known or Failure.PROTOCOL


# The first that fits: what stands further down includes some of what stands above it.
_FAILURES: Final[tuple[tuple[tuple[type[Exception], ...], Failure], ...]] = (
    ((aiohttp.ClientConnectorDNSError,), Failure.DNS),
    ((aiohttp.ClientSSLError, ssl.SSLError), Failure.TLS),
    ((aiohttp.ClientConnectorError,), Failure.CONNECT),
    ((TimeoutError,), Failure.TIMEOUT),
    ((aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError, OSError), Failure.RESET),
    ((aiohttp.ClientError,), Failure.PROTOCOL),
)
