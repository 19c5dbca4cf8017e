"""Check a SQLite file with SQLite's own `quick_check`, within a time limit, and its log before SQLite opens it.

`quick_check` reads every page and follows every tree. The only thing that it leaves out is comparing indexes with their
tables. It can't see a damaged log (WAL): at the first page whose checksum is wrong, SQLite takes the log to have ended,
so commits after it vanish without an error. The format: https://sqlite.org/fileformat2.html#walformat
"""

import shutil
import sqlite3
import struct
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import make_url

from storage.core.settings import Settings

_LOG_HEAD, _FRAME_HEAD = 32, 24  # bytes
_NO_COMMIT = bytes(4)
_MAX_OF_LOG = 64 * 2**20  # bytes that are checked, which takes seconds; a log has a few MiB
_32_BITS = 0xFFFFFFFF
STEPS_BETWEEN_CHECKS = 10_000  # instructions of SQLite's virtual machine; they take well under a millisecond


@dataclass(frozen=True)
class QuickCheck:
    """The result of a check. It is incomplete if the time limit was reached."""

    complete: bool
    damage: str | None = None  # in SQLite's words


def database_file(settings: Settings) -> Path | None:
    """Return the path of the SQLite database; None on PostgreSQL, which checks its own files."""
    url = make_url(settings.database)
    return Path(url.database) if url.get_backend_name() == "sqlite" and url.database else None


def was_left_open(file: Path) -> bool:
    """Return whether the last process that used the file ended without closing it, and so left its WAL file behind."""
    log = _log_of(file)
    return log.exists() and log.stat().st_size > 0


def count_lost_commits(file: Path) -> int:
    """Return how many committed transactions SQLite would ignore in the log, because a page before them is damaged.

    The very last transaction doesn't count: a power failure may leave it incomplete, and nobody was told that it was
    committed. So damage within it is not found. If there is other damage, the log is read again, because a log in use
    changes.
    """
    return (_count_lost(file) and _count_lost(file)) if was_left_open(file) else 0


def keep_log(file: Path) -> Path:
    """Copy the log to a file beside it, and return its path."""
    return Path(shutil.copy2(_log_of(file), file.with_name(f"{file.name}-wal-damaged")))


def _log_of(file: Path) -> Path:
    return file.with_name(f"{file.name}-wal")


def _count_lost(file: Path) -> int:
    """Count the commits behind the first damaged frame, less one."""
    head, frames = _read_log(_log_of(file))
    if not frames:
        return 0
    order = ">" if head[3] & 1 else "<"
    total = _checksum(head[:24], (0, 0), order)
    is_intact = total == struct.unpack_from(">II", head, 24)
    salt = head[16:24] if is_intact else frames[0][8:16]
    behind = frames[_count_intact(frames, salt, total, order) :] if is_intact else frames
    return max(sum(frame[8:16] == salt and frame[4:8] != _NO_COMMIT for frame in behind) - 1, 0)


def _read_log(log: Path) -> tuple[bytes, Sequence[bytes]]:
    """Return a log's head and its frames, each a page with a head of its own."""
    with log.open("rb") as file:
        head, rest = file.read(_LOG_HEAD), file.read(_MAX_OF_LOG)
    size = struct.unpack_from(">I", head, 8)[0] + _FRAME_HEAD if len(head) == _LOG_HEAD else len(rest) + 1
    return head, [rest[at : at + size] for at in range(0, len(rest) - size + 1, size)]


def _count_intact(frames: Sequence[bytes], salt: bytes, total: tuple[int, int], order: str) -> int:
    """Return the number of frames up to the first whose salt or checksum is wrong. Checksums are cumulative."""
    for number, frame in enumerate(frames):
        total = _checksum(frame[:8] + frame[_FRAME_HEAD:], total, order)
        if frame[8:16] != salt or total != struct.unpack_from(">II", frame, 16):
            return number
    return len(frames)


def _checksum(data: bytes, total: tuple[int, int], order: str) -> tuple[int, int]:
    one, two = total
    for first, second in struct.iter_unpack(f"{order}II", data):
        one = (one + first + two) & _32_BITS
        two = (two + second + one) & _32_BITS
    return one, two


def quick_check(file: Path, within_s: float) -> QuickCheck:
    """Check a database file that may be in use. The check never waits for writers."""
    deadline = time.monotonic() + within_s
    try:
        with closing(sqlite3.connect(file)) as connection:
            connection.set_progress_handler(lambda: time.monotonic() > deadline, STEPS_BETWEEN_CHECKS)
            [result] = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.DatabaseError as failure:
        if failure.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
            return QuickCheck(complete=False)
        return QuickCheck(complete=True, damage=str(failure))
    return QuickCheck(complete=True, damage=None if result == "ok" else str(result).replace("\n", " "))
