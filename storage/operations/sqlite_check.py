"""Check a SQLite file with SQLite's own `quick_check`, within a time limit.

It reads every page and follows every tree. The only thing that it leaves out is comparing indexes with their tables.
"""

import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import make_url

from storage.core.settings import Settings

STEPS_BETWEEN_CHECKS = 10_000  # instructions of SQLite's virtual machine; they take well under a millisecond


@dataclass(frozen=True)
class Checked:
    """The result of a check. It is incomplete if the time limit was reached."""

    complete: bool
    damage: str | None = None  # in SQLite's words


def database_file(settings: Settings) -> Path | None:
    """Return the path of the SQLite database; None on PostgreSQL, which checks its own files."""
    url = make_url(settings.database)
    return Path(url.database) if url.get_backend_name() == "sqlite" and url.database else None


def was_left_open(file: Path) -> bool:
    """Return whether the last process that used the file ended without closing it, and so left its WAL file behind."""
    log = file.with_name(f"{file.name}-wal")
    return log.exists() and log.stat().st_size > 0


def quick_check(file: Path, within_s: float) -> Checked:
    """Check a database file that may be in use. The check never waits for writers."""
    deadline = time.monotonic() + within_s
    try:
        with closing(sqlite3.connect(file)) as connection:
            connection.set_progress_handler(lambda: time.monotonic() > deadline, STEPS_BETWEEN_CHECKS)
            [result] = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.DatabaseError as failure:
        if failure.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
            return Checked(complete=False)
        return Checked(complete=True, damage=str(failure))
    return Checked(complete=True, damage=None if result == "ok" else str(result).replace("\n", " "))
