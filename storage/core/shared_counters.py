"""Counters that all processes with the same Redis share.

While Redis is down, each process counts by itself from the last known counts: a broken rate limit must not fail
requests. This is a separate module because importing the client costs a third of a second and 11 MB, which only
installations with Redis should pay.
"""

import logging
import time
from collections.abc import Callable
from threading import Lock

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from storage.core.counters import Count, OwnCounters, whole_seconds

TIMEOUT_S = 0.25
RETRY_S = 5.0  # pause after a failure of Redis

# Counting and setting the window's end must be one step: a count without an end would never restart.
COUNT = """
local count = redis.call('INCR', KEYS[1])
local left_ms = redis.call('PTTL', KEYS[1])
if left_ms < 0 then
  left_ms = tonumber(ARGV[1])
  redis.call('PEXPIRE', KEYS[1], left_ms)
end
return {count, left_ms}
"""

log = logging.getLogger("tidemark.limits")


class SharedCounters:
    """Counters of all processes that use the same Redis."""

    def __init__(self, url: str, prefix: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._redis = redis.Redis.from_url(
            url,
            socket_timeout=TIMEOUT_S,
            socket_connect_timeout=TIMEOUT_S,
            retry=Retry(NoBackoff(), 0),
        )
        self._count = self._redis.register_script(COUNT)
        self._prefix = prefix
        self._clock = clock
        self._own = OwnCounters(clock)
        self._lock = Lock()
        self._is_down = False
        self._next_try = 0.0

    def add(self, name: str, window_s: int) -> Count:
        if self._clock() < self._next_try:
            return self._own.add(name, window_s)
        try:
            number, left_ms = self._count(keys=[self._prefix + name], args=[window_s * 1000])
        except redis.RedisError as error:
            self._note_failure(error)
            return self._own.add(name, window_s)
        self._note_success()
        self._own.learn(name, number, left_ms / 1000)
        return Count(number, whole_seconds(left_ms / 1000))

    def local_count(self, name: str, window_s: int) -> Count:
        return self._own.local_count(name, window_s)

    def close(self) -> None:
        self._redis.close()

    def _note_failure(self, error: redis.RedisError) -> None:
        self._next_try = self._clock() + RETRY_S
        if self._change_state(is_down=True):
            log.warning("Redis is not available (%s): each process counts by itself", type(error).__name__)

    def _note_success(self) -> None:
        if self._change_state(is_down=False):
            log.warning("Redis is available again: processes count together")

    def _change_state(self, *, is_down: bool) -> bool:
        """Set the state. Return True to the one thread that changed it, so that the change is logged once."""
        with self._lock:
            changed, self._is_down = self._is_down != is_down, is_down
        return changed
