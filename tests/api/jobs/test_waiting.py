"""The watch for ended jobs: changes must not pile up, and waiting requests must not delay shutdown."""

import asyncio
import time
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from api.jobs import waiting
from api.jobs.waiting import Watcher
from storage.core.changes import Changes
from storage.core.store import Store
from tests.storage.examples import a_client


def test_changes_are_read_while_no_request_waits(own_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[float] = []

    class Heard(Changes):
        def wait(self, timeout_s: float) -> bool:
            reported = super().wait(timeout_s)
            if reported:
                heard.append(time.monotonic())
            return reported

    monkeypatch.setattr(waiting, "Changes", Heard)
    monkeypatch.setattr(waiting, "DATABASE_POLL_S", 0.05)

    async def follow() -> None:
        watcher = Watcher(own_store)
        await asyncio.sleep(0.2)
        a_client(own_store, datetime.now(UTC))
        await asyncio.sleep(0.5)
        while_nobody_waited = len(heard)
        with watcher.watching(uuid4()):
            await asyncio.sleep(0.2)
        watcher.stop()
        assert (while_nobody_waited, len(heard)) == (1, 1)

    asyncio.run(follow())


def test_a_wait_that_begins_during_shutdown_ends_at_once(own_store: Store) -> None:
    async def begin_late() -> None:
        watcher = Watcher(own_store)
        with watcher.watching(uuid4()) as early:
            watcher.release()
            with watcher.watching(uuid4()) as late:
                assert (early.is_set(), late.is_set()) == (True, True)
        watcher.stop()

    asyncio.run(begin_late())
