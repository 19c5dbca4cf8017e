"""A bounded folder of copies of immutable files, which all processes of a home share.

A copy may be removed or damaged at any time. Each process compares its hash before using it, and fetches the file again
if it is wrong, so copies need no `fsync`. A copy is written under another name and then renamed, so that other
processes find either all of it or nothing.

When there are too many bytes, the least recently used copies are removed. A copy that was used in the last `IN_USE_S`
seconds stays, because a process may be about to open it. So the disk must have room for all files that are read within
that time, even if they exceed the limit. A file that is still being written stays, too, until nobody has written to it
for `ABANDONED_S` seconds: its process was killed.
"""

import hashlib
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Lock
from uuid import uuid4

from storage.core import durable

IN_USE_S = 900  # more than it takes to fetch and read the files of one scan; our judgement
ABANDONED_S = 86_400  # longer than any process is suspended while it writes a copy; our judgement
SHARE_BETWEEN_TRIMS = 16  # a process trims whenever it has added a 16th of the limit
SEPARATOR = "+"  # in the name of a copy, for `/` in the file's path
DRAFT = "."  # how the name of a copy begins while it is being written


class FileCache:
    """Copies of files, below `folder`, of at most about `max_bytes`."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.folder = folder
        self._max_bytes = max_bytes
        self._trim_after = max_bytes // SHARE_BETWEEN_TRIMS
        # Bytes since the last trim. It begins full, so that a process's first copy trims what earlier processes left.
        self._added = self._trim_after
        self._lock = Lock()

    def path_of(self, path: str) -> Path:
        return self.folder / path.replace("/", SEPARATOR)

    def list_copies(self) -> Iterator[tuple[str, Path]]:
        """Yield each file of the folder, complete or not, with the path that it is a copy of."""
        for file in sorted(self.folder.iterdir()):
            yield file.name.replace(SEPARATOR, "/"), file

    def touch(self, path: str) -> bool:
        """Note that a copy is being used. Return False if there is none."""
        try:
            os.utime(self.path_of(path))
        except FileNotFoundError:
            return False
        return True

    def holds(self, path: str, sha256: bytes) -> bool:
        """Return whether there is a copy with this hash, and note its use. A damaged one is removed."""
        if not self.touch(path):
            return False
        with suppress(OSError):
            with self.path_of(path).open("rb") as copy:
                if hashlib.file_digest(copy, "sha256").digest() == sha256:
                    return True
            self.drop(path)
        return False

    def fill(self, path: str, chunks: Iterable[bytes], sha256: bytes) -> bool:
        """Copy a file. Return False, and keep no copy, if the hash differs.

        Raises:
            OSError: the disk is full or failed, or `chunks` raised it.
        """
        digest, size = hashlib.sha256(), 0
        draft = self.folder / f"{DRAFT}{uuid4().hex}"
        try:
            with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, durable.FILE_MODE), "wb") as file:
                for chunk in chunks:
                    digest.update(chunk)
                    size += file.write(chunk)
            if digest.digest() != sha256:
                return False
            draft.replace(self.path_of(path))
        finally:
            draft.unlink(missing_ok=True)
        self._count_added(size)
        return True

    def drop(self, path: str) -> None:
        """Remove a copy, if there is one."""
        self.path_of(path).unlink(missing_ok=True)

    def _count_added(self, size: int) -> None:
        with self._lock:
            self._added += size
            if self._added < self._trim_after:
                return
            self._added = 0
        self.trim()

    def trim(self) -> None:
        """Remove the least recently used copies, until `_trim_after` more bytes fit within `max_bytes`."""
        now, removable, total = time.time(), list[tuple[float, int, str]](), 0
        for entry in os.scandir(self.folder):
            with suppress(FileNotFoundError):  # another process trims, too
                stat = entry.stat()
                total += stat.st_size
                if stat.st_mtime <= now - (ABANDONED_S if entry.name.startswith(DRAFT) else IN_USE_S):
                    removable.append((stat.st_mtime, stat.st_size, entry.path))
        excess = total - self._max_bytes + self._trim_after
        for _, size, path in sorted(removable):
            if excess <= 0:
                return
            Path(path).unlink(missing_ok=True)
            excess -= size
