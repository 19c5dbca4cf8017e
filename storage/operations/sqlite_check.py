"""SQLite's own check of its file, within a time limit.

`quick_check` reads every page and follows every tree, and skips only the comparison of indexes with their tables.
"""

import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import make_url

from storage.core.settings import Settings

STEPS_BETWEEN_CHECKS = 10_000  # of SQLite's virtual machine: well under a millisecond


@dataclass(frozen=True)
class Checked:
    """What the check came to. Neither damaged nor complete: the time was over."""

    complete: bool
    damage: str | None = None  # in SQLite's words


def file_of(settings: Settings) -> Path | None:
    """Return the database's file; None on PostgreSQL, which sees to itself."""
    url = make_url(settings.database)
    return Path(url.database) if url.get_backend_name() == "sqlite" and url.database else None


def was_left_open(file: Path) -> bool:
    """Tell whether whoever used the file last ended without closing it: the last to close removes the log beside it."""
    log = file.with_name(f"{file.name}-wal")
    return log.exists() and log.stat().st_size > 0


def quick_check(file: Path, within_s: float) -> Checked:
    """Check a database file while others use it. Never waits for writers."""
    deadline = time.monotonic() + within_s
    try:
        with closing(sqlite3.connect(file)) as connection:
            connection.set_progress_handler(lambda: time.monotonic() > deadline, STEPS_BETWEEN_CHECKS)
            [reported] = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.DatabaseError as failure:
        if failure.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
            return Checked(complete=False)
        return Checked(complete=True, damage=str(failure))
    return Checked(complete=True, damage=None if reported == "ok" else str(reported).replace("\n", " "))
