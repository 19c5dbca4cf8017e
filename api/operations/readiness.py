"""Run the checks of `GET /health/ready` and `GET /metrics`: one run for all callers who wait, with a time limit."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from storage.core.store import Store
from storage.operations import health
from storage.operations.health import Parts

CHECK_WITHIN_S = 3.0  # our judgement
T = TypeVar("T")
TOO_SLOW = f"It did not respond within {CHECK_WITHIN_S:.0f} seconds."


class Readiness:
    """The readiness checks."""

    def __init__(self, store: Store) -> None:
        self._work = Check(lambda: health.check_work(store), health.database_failure(TOO_SLOW))
        self._disk = Check(lambda: health.check_disk(store), health.disk_failure(TOO_SLOW))

    async def parts(self) -> Parts:
        work, disk = await asyncio.gather(self._work.ask(), self._disk.ask())
        return {**work, **disk}

    def close(self) -> None:
        for check in (self._work, self._disk):
            check.close()


class Check(Generic[T]):
    """A check that may take too long. Callers who wait share one run; `if_too_slow` is the result if it is too slow."""

    def __init__(self, check: Callable[[], T], if_too_slow: T) -> None:
        self._check = check
        self._if_too_slow = if_too_slow
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="tidemark-health")
        self._under_way: asyncio.Future[T] | None = None

    async def ask(self) -> T:
        if self._under_way is None or self._under_way.done():
            self._under_way = asyncio.wrap_future(self._thread.submit(self._check))
        try:
            return await asyncio.wait_for(asyncio.shield(self._under_way), CHECK_WITHIN_S)
        except TimeoutError:
            return self._if_too_slow

    def close(self) -> None:
        self._thread.shutdown(wait=False)
