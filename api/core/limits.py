"""How much may be asked: of one key in a window of time, by one address with wrong keys, and of the service at once.

Every answer to a request that can be read says where its asker stands, in the fields of
draft-ietf-httpapi-ratelimit-headers-10. Whoever shows a good key is counted under that key; everybody else under their
address, where only refused keys count. A good key is served from an address that is refused: behind one address there
may be many clients, and one that fails must not lock out the others.
"""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Iterator, MutableMapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from uuid import UUID

from starlette.types import Scope

from pipelines.vocabulary.errors import RateLimited, Unavailable
from storage.core.counters import Count, Counters, OwnCounters
from storage.core.settings import Quota, Settings

MAX_HEAD_BYTES = 64 * 1024  # of a request: its address and headers
MAX_HELD_BODIES = 8  # of the largest size allowed: so much memory is given to bodies that are being received or read
MAX_HELD_UPLOADS = 16  # likewise, so much disk to files that are being sent
MAX_WORKING = 32  # routes at once; the threads that they leave check keys
IPV6_PREFIX = 64  # what one subscriber is given: every address in it is the same asker


@dataclass(frozen=True)
class Policy:
    """A quota with its public name."""

    name: str
    quota: Quota

    def field(self) -> str:
        return f'"{self.name}";q={self.quota.requests};w={self.quota.window_s}'


@dataclass(frozen=True)
class LimitState:
    """Where an asker stands against a policy."""

    policy: Policy
    count: Count

    @property
    def exceeded(self) -> bool:
        return self.count.number > self.policy.quota.requests

    def write(self, headers: MutableMapping[str, str]) -> None:
        remaining = max(0, self.policy.quota.requests - self.count.number)
        headers["RateLimit-Policy"] = self.policy.field()
        headers["RateLimit"] = f'"{self.policy.name}";r={remaining};t={self.count.reset_s}'


@dataclass(frozen=True)
class Asker:
    """Who shares what the service can bear: a client, and within its part a key. Until a key is known to be good, both
    are its address."""

    client: UUID | str
    key: UUID | str


class Limits:
    """What one service allows, and how much of it is used."""

    def __init__(self, settings: Settings) -> None:
        self._counters = _counters(settings)
        self._of_key = Policy("key", settings.rate_limit)
        self._of_address = Policy("address", settings.wrong_key_limit)
        self.requests = Shares(settings.max_requests)
        self.bodies = Shares(MAX_HELD_BODIES * settings.max_json_bytes)
        self.uploads = Shares(MAX_HELD_UPLOADS * settings.max_multipart_bytes)
        self.working = Turns(MAX_WORKING)
        self.computing = Turns(os.cpu_count() or 1)  # of routes that are `heavy`
        self.decoding = Turns(os.cpu_count() or 1)  # in child processes
        self.decoding_here = Turns(os.cpu_count() or 1)

    def count_request(self, scope: Scope, key_id: UUID) -> None:
        """A request with a good key.

        Raises:
            RateLimited: one too many for this key.
        """
        if self._count(scope, self._of_key, str(key_id)).exceeded:
            raise self._refusal(scope, "Request.RateLimited", "This key has asked too often.")

    def count_wrong_key(self, scope: Scope) -> None:
        """A request with no good key.

        Raises:
            RateLimited: one too many from this address.
        """
        if self._count(scope, self._of_address, address(scope)).exceeded:
            raise self._refusal(scope, "Authentication.RateLimited", "Too many wrong keys came from this address.")

    def limit_state(self, scope: Scope) -> LimitState:
        """Where the asker of this request stands."""
        counted: LimitState | None = scope["state"].get("limit_state")
        return counted or LimitState(self._of_address, self._known(address(scope)))

    def close(self) -> None:
        self._counters.close()

    def _count(self, scope: Scope, policy: Policy, name: str) -> LimitState:
        count = self._counters.add(f"{policy.name}:{name}", policy.quota.window_s)
        found = scope["state"]["limit_state"] = LimitState(policy, count)
        return found

    def _known(self, name: str) -> Count:
        return self._counters.known(f"{self._of_address.name}:{name}", self._of_address.quota.window_s)

    def _refusal(self, scope: Scope, code: str, detail: str) -> RateLimited:
        return RateLimited(code, detail, self.limit_state(scope).count.reset_s)


class Shares:
    """So much of something at one time; more is refused, not queued. Used by one thread at a time.

    A client has at most three quarters of what the others leave, and so has a key of what the client's other keys
    leave: however much one takes, some is left for who comes next, as with the deliveries of `storage.webhooks.outbox`.
    There a client has half; three quarters are our judgement, for most services have one busy client.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken = 0
        self._taken_by: Counter[tuple[UUID | str, ...]] = Counter()

    def fits(self, asker: Asker, amount: int) -> bool:
        """Whether so much more is left for this asker."""
        mine, of_key = self.taken_by(asker)
        for_client = _part(self._most - (self._taken - mine))
        for_key = _part(for_client - (mine - of_key))
        return self._taken + amount <= self._most and mine + amount <= for_client and of_key + amount <= for_key

    @property
    def untaken(self) -> bool:
        return not self._taken

    def taken_by(self, asker: Asker) -> tuple[int, int]:
        """How much the client has, and how much the key."""
        return self._taken_by[asker.client,], self._taken_by[asker.client, asker.key]

    def take(self, asker: Asker, amount: int) -> None:
        """Negative amounts give back."""
        self._taken += amount
        for taker in ((asker.client,), (asker.client, asker.key)):
            self._taken_by[taker] += amount
            if not self._taken_by[taker]:
                del self._taken_by[taker]

    @contextmanager
    def held(self, asker: Asker) -> Iterator["Held"]:
        """Nothing yet; all that is taken by then is given back in the end."""
        held = Held(self, asker)
        try:
            yield held
        finally:
            self.take(held.asker, -held.amount)


def _part(amount: int) -> int:
    return max(1, 3 * amount // 4)


class Held:
    """What one request has of something."""

    def __init__(self, shares: Shares, asker: Asker) -> None:
        self._shares = shares
        self.asker = asker
        self.amount = 0

    def take(self, amount: int) -> None:
        """Raises Unavailable where that is more than the asker's share."""
        if not self._shares.fits(self.asker, amount):
            raise Unavailable("Service.Busy", "The service is busy. Try again.")
        self._shares.take(self.asker, amount)
        self.amount += amount


class Turns:
    """So many pieces of work at one time, shared like all else; what is more waits. Used in the event loop only.

    The next turn is the client's with the fewest, then the key's with the fewest, then who came first.
    """

    def __init__(self, most: int) -> None:
        self._shares = Shares(most)
        self._waiting: list[tuple[Asker, asyncio.Future[None]]] = []

    @asynccontextmanager
    async def turn(self, asker: Asker) -> AsyncIterator[None]:
        """Begins when it is the asker's turn."""
        mine = asyncio.get_running_loop().create_future()
        self._waiting.append((asker, mine))
        self._give()
        try:
            await mine
            yield
        finally:
            if mine.cancelled():
                self._waiting.remove((asker, mine))
            else:
                self._shares.take(asker, -1)
            self._give()

    def _give(self) -> None:
        while fitting := [each for each in self._waiting if self._fits(*each)]:
            next_one = min(fitting, key=lambda waiting: self._shares.taken_by(waiting[0]))
            self._waiting.remove(next_one)
            self._shares.take(next_one[0], 1)
            next_one[1].set_result(None)

    def _fits(self, asker: Asker, turn: asyncio.Future[None]) -> bool:
        return not turn.cancelled() and self._shares.fits(asker, 1)


def _counters(settings: Settings) -> Counters:
    if not settings.redis_url:
        return OwnCounters()
    from storage.core.shared_counters import SharedCounters  # noqa: PLC0415  # who names no Redis doesn't pay for its client

    return SharedCounters(settings.redis_url, f"tidemark:{settings.environment}:")


def stranger(scope: Scope) -> Asker:
    """Who asks, as long as nobody knows whose key it is."""
    return Asker(address(scope), address(scope))


def address(scope: Scope) -> str:
    """Who is at the other end of the line: an IPv4 address, or an IPv6 network."""
    host = scope["client"][0] if scope.get("client") else "unknown"
    try:
        found = ip_address(host)
    except ValueError:
        return host[:64]
    if found.version == 4:
        return str(found)
    return str(found.ipv4_mapped or ip_network((found.packed, IPV6_PREFIX), strict=False))
