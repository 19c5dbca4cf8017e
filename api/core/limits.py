"""Rate limits of keys and addresses, and limits on what the service does at once.

A request with a valid key counts against that key's rate limit. Only requests with a wrong key, and attempts to sign
in, count against their address. A valid key is served even from an address that has exceeded its limit, because many
clients may share one address, and one that fails must not lock out the others. Responses report the limits in the
header fields of draft-ietf-httpapi-ratelimit-headers-10.
"""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Iterator, MutableMapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address, ip_network
from uuid import UUID

from starlette.types import Scope

from pipelines.vocabulary.errors import RateLimited, Unavailable
from storage.core.counters import Count, Counters, OwnCounters
from storage.core.settings import Quota, Settings

MAX_HEAD_BYTES = 64 * 1024  # of a request: its address and headers
MAX_HELD_BODIES = 8  # times the largest body: memory for bodies that are being received or parsed (our judgement)
MAX_HELD_UPLOADS = 16  # times the largest upload: disk space for files that are being received (our judgement)
MAX_WORKING = 32  # requests whose route runs in a thread; the thread pool has 40, so keys can still be checked
IPV6_PREFIX = 64  # bits; such a network usually belongs to one subscriber, so its addresses count as one
CACHED_ADDRESSES = 1_024  # each request is counted by its address, some twice (our judgement)


@dataclass(frozen=True)
class Policy:
    """A quota with its public name."""

    name: str
    quota: Quota

    def field(self) -> str:
        return f'"{self.name}";q={self.quota.requests};w={self.quota.window_s}'


@dataclass(frozen=True)
class LimitState:
    """How much of a policy's quota a requester has used."""

    policy: Policy
    count: Count

    @property
    def is_exceeded(self) -> bool:
        return self.count.number > self.policy.quota.requests

    def write(self, headers: MutableMapping[str, str]) -> None:
        remaining = max(0, self.policy.quota.requests - self.count.number)
        headers["RateLimit-Policy"] = self.policy.field()
        headers["RateLimit"] = f'"{self.policy.name}";r={remaining};t={self.count.reset_s}'


@dataclass(frozen=True)
class Requester:
    """Whose share of a limit a request uses: its client's and, within that, its key's. Until the key has been checked,
    both are the address of the request."""

    client: str
    key: str


class Limits:
    """All limits of one process, and how much of them is used."""

    def __init__(self, settings: Settings) -> None:
        self._counters = _counters(settings)
        self._key_policy = Policy("key", settings.rate_limit)
        self._address_policy = Policy("address", settings.wrong_key_limit)
        self.requests = Shares(settings.max_requests)
        self.bodies = Shares(MAX_HELD_BODIES * settings.max_json_bytes)
        self.uploads = Shares(MAX_HELD_UPLOADS * settings.max_multipart_bytes)
        self.working = Turns(MAX_WORKING)
        self.computing = Turns(os.cpu_count() or 1)  # for requests of `heavy` routes
        self.hashing = Turns(os.cpu_count() or 1)  # passwords, each with 64 MiB
        self.slicing = Turns(os.cpu_count() or 1)  # for pieces of streamed responses
        self.decoding = Turns(os.cpu_count() or 1)  # in child processes
        self.decoding_here = Turns(os.cpu_count() or 1)

    def count_request(self, scope: Scope, key_id: UUID) -> None:
        """Count a request with a valid key.

        Raises:
            RateLimited: the key has used up its quota.
        """
        if self._count(scope, self._key_policy, str(key_id)).is_exceeded:
            raise self._refusal(scope, "Request.RateLimited", "This key has sent too many requests.")

    def count_wrong_key(self, scope: Scope) -> None:
        """Count a request without a valid key, or an attempt to sign in.

        Raises:
            RateLimited: the address has used up its quota of wrong keys.
        """
        if self._count(scope, self._address_policy, address(scope)).is_exceeded:
            raise self._refusal(scope, "Authentication.RateLimited", "Too many wrong keys came from this address.")

    def limit_state(self, scope: Scope) -> LimitState:
        """Return the limit state of the request's key, or of its address if no key has been counted."""
        counted: LimitState | None = scope["state"].get("limit_state")
        return counted or LimitState(self._address_policy, self._known_count(address(scope)))

    def close(self) -> None:
        self._counters.close()

    def _count(self, scope: Scope, policy: Policy, name: str) -> LimitState:
        count = self._counters.add(f"{policy.name}:{name}", policy.quota.window_s)
        state = scope["state"]["limit_state"] = LimitState(policy, count)
        return state

    def _known_count(self, name: str) -> Count:
        return self._counters.local_count(f"{self._address_policy.name}:{name}", self._address_policy.quota.window_s)

    def _refusal(self, scope: Scope, code: str, detail: str) -> RateLimited:
        return RateLimited(code, detail, self.limit_state(scope).count.reset_s)


class Shares:
    """A limited amount that is shared by clients and their keys. Not thread-safe: the caller locks.

    A client may take at most three quarters of what the other clients leave, and a key three quarters of what the
    client's other keys leave. So something is left for the next client or key. The deliveries of
    `storage.webhooks.outbox` are shared the same way, with half for each client; three quarters is our judgement,
    because most services have one busy client.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken = 0
        self._taken_by: Counter[tuple[str, ...]] = Counter()

    def fits(self, requester: Requester, amount: int) -> bool:
        """Return whether the requester may take this amount as well."""
        by_client, by_key = self.taken_by(requester)
        for_client = _three_quarters(self._most - (self._taken - by_client))
        for_key = _three_quarters(for_client - (by_client - by_key))
        return self._taken + amount <= self._most and by_client + amount <= for_client and by_key + amount <= for_key

    @property
    def is_untaken(self) -> bool:
        return not self._taken

    def taken_by(self, requester: Requester) -> tuple[int, int]:
        """Return how much the client has taken, and how much its key."""
        return self._taken_by[requester.client,], self._taken_by[requester.client, requester.key]

    def take(self, requester: Requester, amount: int) -> None:
        """Take an amount; a negative amount gives it back."""
        self._taken += amount
        for taker in ((requester.client,), (requester.client, requester.key)):
            self._taken_by[taker] += amount
            if not self._taken_by[taker]:
                del self._taken_by[taker]

    @contextmanager
    def held(self, requester: Requester) -> Iterator["Held"]:
        """Yield an empty `Held`; at the end of the block, give back everything that it took."""
        held = Held(self, requester)
        try:
            yield held
        finally:
            self.take(held.requester, -held.amount)


def _three_quarters(amount: int) -> int:
    return max(1, 3 * amount // 4)


class Held:
    """The part of `Shares` that one request holds."""

    def __init__(self, shares: Shares, requester: Requester) -> None:
        self._shares = shares
        self.requester = requester
        self.amount = 0

    def take(self, amount: int) -> None:
        """Take an amount; raise Unavailable if it is more than the requester's share."""
        if not self._shares.fits(self.requester, amount):
            raise Unavailable("Service.Busy", "The service is busy. Try again.")
        self._shares.take(self.requester, amount)
        self.amount += amount


class Turns:
    """A limit on pieces of work at once, shared fairly; other work waits. For use in the event loop only.

    The next turn goes to the client with the fewest turns, then to its key with the fewest, then to the first to come.
    """

    def __init__(self, most: int) -> None:
        self._shares = Shares(most)
        self._waiting: list[tuple[Requester, asyncio.Future[None]]] = []

    @asynccontextmanager
    async def turn(self, requester: Requester) -> AsyncIterator[None]:
        """Wait for the requester's turn, and hold it for the length of the block."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((requester, turn))
        self._give_turns()
        try:
            await turn
            yield
        finally:
            if turn.cancelled():
                self._waiting.remove((requester, turn))
            else:
                self._shares.take(requester, -1)
            self._give_turns()

    def _give_turns(self) -> None:
        while fitting := [each for each in self._waiting if self._fits(*each)]:
            next_one = min(fitting, key=lambda waiting: self._shares.taken_by(waiting[0]))
            self._waiting.remove(next_one)
            self._shares.take(next_one[0], 1)
            next_one[1].set_result(None)

    def _fits(self, requester: Requester, turn: asyncio.Future[None]) -> bool:
        return not turn.cancelled() and self._shares.fits(requester, 1)


def _counters(settings: Settings) -> Counters:
    if not settings.redis_url:
        return OwnCounters()
    from storage.core.shared_counters import SharedCounters  # noqa: PLC0415  # import Redis's client only if it is used

    return SharedCounters(settings.redis_url, f"tidemark:{settings.environment}:")


def unidentified_requester(scope: Scope) -> Requester:
    """Return the requester of a request whose key has not been checked yet."""
    return Requester(address(scope), address(scope))


def address(scope: Scope) -> str:
    """Return the caller's IPv4 address or IPv6 network."""
    return _network(scope["client"][0] if scope.get("client") else "unknown")


@lru_cache(CACHED_ADDRESSES)
def _network(host: str) -> str:
    try:
        ip = ip_address(host)
    except ValueError:
        return host[:64]
    if ip.version == 4:
        return str(ip)
    return str(ip.ipv4_mapped or ip_network((ip.packed, IPV6_PREFIX), strict=False))
