"""Counters in fixed windows, for rate limits: in this process, or shared through Redis.

A window begins with the first count and ends `window_s` later; then the count restarts. A failure of Redis must not
make requests fail: see `storage.core.shared_counters`.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Protocol

MAX_WINDOWS = 100_000  # per process, to bound memory; beyond it the oldest windows are dropped


@dataclass(frozen=True)
class Count:
    """The count in the current window, and the seconds until the window ends (at least 1)."""

    number: int
    reset_s: int


class Counters(Protocol):
    def add(self, name: str, window_s: int) -> Count:
        """Add one and return the new count."""

    def local_count(self, name: str, window_s: int) -> Count:
        """Return the count as this process knows it, without asking Redis."""

    def close(self) -> None: ...


class OwnCounters:
    """Counters of this process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._windows: dict[str, tuple[int, float]] = {}  # name → count, end; oldest window first
        self._lock = Lock()

    def add(self, name: str, window_s: int) -> Count:
        with self._lock:
            number, end = self._window(name, window_s)
            self._set(name, number + 1, end)
        return self._count(number + 1, end)

    def local_count(self, name: str, window_s: int) -> Count:
        with self._lock:
            return self._count(*self._window(name, window_s))

    def learn(self, name: str, number: int, left_s: float) -> None:
        """Set the count to the one that Redis returned."""
        with self._lock:
            self._set(name, number, self._clock() + left_s)

    def close(self) -> None:
        self._windows.clear()

    def _count(self, number: int, end: float) -> Count:
        return Count(number, whole_seconds(end - self._clock()))

    def _window(self, name: str, window_s: int) -> tuple[int, float]:
        number, end = self._windows.get(name, (0, 0.0))
        if end > self._clock():
            return number, end
        self._windows.pop(name, None)
        return 0, self._clock() + window_s

    def _set(self, name: str, number: int, end: float) -> None:
        self._windows[name] = number, end
        if len(self._windows) > MAX_WINDOWS:
            del self._windows[next(iter(self._windows))]


def whole_seconds(left_s: float) -> int:
    """Round up to whole seconds, at least one."""
    return max(1, math.ceil(left_s))
