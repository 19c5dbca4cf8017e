"""How much may be asked: of one key in a window of time, by one address with wrong keys, and of the service at once.

Every answer to a request that can be read says where its asker stands, in the fields of
draft-ietf-httpapi-ratelimit-headers-10. Whoever shows a good key is counted under that key; everybody else under their
address, where only refused keys count. A good key is served from an address that is refused: behind one address there
may be many clients, and one that fails must not lock out the others.
"""

from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from uuid import UUID

from starlette.types import Scope

from pipelines.errors import RateLimited, Unavailable
from storage.counters import Count, Counters, OwnCounters
from storage.settings import Quota, Settings

MAX_HEAD_BYTES = 64 * 1024  # of a request: its address and headers
MAX_HELD_BODIES = 8  # of the largest size allowed: so much memory is given to bodies that are being received or read
MAX_HELD_UPLOADS = 16  # likewise, so much disk to files that are being sent
IPV6_PREFIX = 64  # what one subscriber is given: every address in it is the same asker


@dataclass(frozen=True)
class Policy:
    """A quota with its public name."""

    name: str
    quota: Quota

    def field(self) -> str:
        return f'"{self.name}";q={self.quota.requests};w={self.quota.window_s}'


@dataclass(frozen=True)
class Standing:
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


class Limits:
    """What one service allows, and how much of it is used."""

    def __init__(self, settings: Settings) -> None:
        self._counters = _counters(settings)
        self._of_key = Policy("key", settings.rate_limit)
        self._of_address = Policy("address", settings.wrong_key_limit)
        self.requests = AtOnce(settings.max_requests)
        self.bodies = AtOnce(MAX_HELD_BODIES * settings.max_json_bytes)
        self.uploads = AtOnce(MAX_HELD_UPLOADS * settings.max_multipart_bytes)

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

    def standing(self, scope: Scope) -> Standing:
        """Where the asker of this request stands."""
        counted: Standing | None = scope["state"].get("standing")
        return counted or Standing(self._of_address, self._known(address(scope)))

    def close(self) -> None:
        self._counters.close()

    def _count(self, scope: Scope, policy: Policy, name: str) -> Standing:
        count = self._counters.add(f"{policy.name}:{name}", policy.quota.window_s)
        found = scope["state"]["standing"] = Standing(policy, count)
        return found

    def _known(self, name: str) -> Count:
        return self._counters.known(f"{self._of_address.name}:{name}", self._of_address.quota.window_s)

    def _refusal(self, scope: Scope, code: str, detail: str) -> RateLimited:
        return RateLimited(code, detail, self.standing(scope).count.reset_s)


class AtOnce:
    """So much of something at one time; more is refused, not queued. Used in the event loop only."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken = 0

    @contextmanager
    def share(self) -> Iterator[Callable[[int], None]]:
        """Takes more and more, or raises Unavailable; all of it is given back in the end."""
        mine = 0

        def take(amount: int) -> None:
            nonlocal mine
            if self._taken + amount > self._most:
                raise Unavailable("Service.Busy", "The service is busy. Try again.")
            self._taken += amount
            mine += amount

        try:
            yield take
        finally:
            self._taken -= mine


def _counters(settings: Settings) -> Counters:
    if not settings.redis_url:
        return OwnCounters()
    from storage.shared_counters import SharedCounters  # noqa: PLC0415  # who names no Redis doesn't pay for its client

    return SharedCounters(settings.redis_url, f"tidemark:{settings.environment}:")


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
