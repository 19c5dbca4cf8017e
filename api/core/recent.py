"""A bounded cache in a process's memory. Losing it costs time only."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recent(Generic[K, V]):
    """A thread-safe cache of the most recently used values, none of which is None.

    Two threads may make the same value at once.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._cached: OrderedDict[K, V] = OrderedDict()
        self._lock = Lock()

    def find(self, key: K) -> V | None:
        """Return the cached value, or None."""
        with self._lock:
            if key not in self._cached:
                return None
            self._cached.move_to_end(key)
            return self._cached[key]

    def get(self, key: K, make: Callable[[], V]) -> V:
        """Return the cached value, or make it. If that fails, nothing is cached."""
        found = self.find(key)
        if found is not None:
            return found
        value = make()
        with self._lock:
            self._cached[key] = value
            if len(self._cached) > self._most:
                self._cached.popitem(last=False)
        return value
