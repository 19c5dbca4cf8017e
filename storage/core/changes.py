"""Wait until the database changes. A change is noticed within tens of milliseconds, at little cost.

SQLite counts other connections' commits in `PRAGMA data_version`. Reading it takes microseconds, so checking it every
20 ms is cheaper than any queue. On PostgreSQL every writing transaction ends with a NOTIFY. Commits within
20 ms are reported together, or a busy service would spend much of its time on watching itself. If no NOTIFY comes for
some time, the network may be down, so the connection is checked.
"""

import sqlite3
import time
from types import TracebackType
from typing import Protocol, Self, cast

import psycopg

from storage.core import postgres
from storage.core.database import CHANGES_CHANNEL, Database

POLL_EVERY_S = 0.02
CHECK_AFTER_S = 5.0  # of silence


class _Feed(Protocol):
    def wait(self, timeout_s: float) -> bool: ...
    def close(self) -> None: ...


class Changes:
    """A connection that watches for other connections' commits. Use it in one thread only."""

    def __init__(self, db: Database) -> None:
        self._feed: _Feed = _SqliteFeed(db) if db.is_sqlite else _PostgresFeed(db)

    def wait(self, timeout_s: float) -> bool:
        """Return True as soon as there is a commit since the last call, or False after `timeout_s` without one."""
        return self._feed.wait(timeout_s)

    def close(self) -> None:
        self._feed.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _SqliteFeed:
    def __init__(self, db: Database) -> None:
        self._connection = sqlite3.connect(cast(str, db.url.database), check_same_thread=False)
        self._seen = self._version()

    def _version(self) -> int:
        return cast(int, self._connection.execute("PRAGMA data_version").fetchone()[0])

    def wait(self, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        while (version := self._version()) == self._seen:
            if time.monotonic() >= deadline:
                return False
            time.sleep(POLL_EVERY_S)
        self._seen = version
        return True

    def close(self) -> None:
        self._connection.close()


class _PostgresFeed:
    def __init__(self, db: Database) -> None:
        self._connection = postgres.connect(db.url)
        try:
            self._connection.execute(f"LISTEN {CHANGES_CHANNEL}")
        except psycopg.Error:
            self._connection.close()
            raise
        self._heard_at = time.monotonic()
        self._reported_at = 0.0

    def wait(self, timeout_s: float) -> bool:
        time.sleep(max(0.0, self._reported_at + POLL_EVERY_S - time.monotonic()))
        if time.monotonic() - self._heard_at > CHECK_AFTER_S:
            self._connection.execute("SELECT")
            self._heard_at = time.monotonic()
        reported = self._wait_for_notification(timeout_s)
        # Take all waiting notifications: otherwise each would be reported as another change.
        while self._wait_for_notification(0):
            pass
        if reported:
            self._heard_at = self._reported_at = time.monotonic()
        return reported

    def _wait_for_notification(self, timeout_s: float) -> bool:
        return bool(list(self._connection.notifies(timeout=timeout_s, stop_after=1)))

    def close(self) -> None:
        self._connection.close()
