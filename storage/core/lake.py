"""The lake: immutable files that the database refers to by path and SHA-256.

A file is durable before the database refers to it (see `durable.create`). So every path in the database has its file,
and a file without a row is an orphan that nothing reads. Flipped bits in Parquet usually decode to wrong values without
an error. Therefore a process checks the hash when it first opens a file, and again if it has verified so many others
since that it no longer remembers this one.
"""

import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from pipelines.vocabulary.errors import Corrupt, Unavailable
from storage.core import durable

if TYPE_CHECKING:
    import polars as pl  # many processes that open the lake write no frame, and don't need its 25 MB

ROW_GROUP_ROWS = 30_000  # one customer is read several times faster than from one large group; our judgement
MOST_REMEMBERED = 20_000  # verified files: a few megabytes; our judgement


@dataclass(frozen=True)
class Stored:
    """A durable file: its path relative to the root, its SHA-256 and its size in bytes."""

    path: str
    sha256: bytes
    size: int


@dataclass(frozen=True)
class Found:
    """A file in the lake, whether or not the database refers to it."""

    path: str
    size: int
    modified: datetime


class Lake:
    """A folder of immutable files."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._verified: dict[tuple[str, bytes], None] = {}  # oldest check first
        self._lock = Lock()

    def put(self, path: str, content: bytes) -> Stored:
        """Write `content` durably under `path`, which must be new."""
        target = self.root / path
        durable.make_folder(target.parent)
        durable.create(target, content)
        return Stored(path, hashlib.sha256(content).digest(), len(content))

    def put_frame(self, path: str, frame: "pl.DataFrame") -> Stored:
        """Write a frame as Parquet (zstd-3, statistics, row groups of 30,000)."""
        buffer = BytesIO()
        frame.write_parquet(
            buffer, compression="zstd", compression_level=3, statistics=True, row_group_size=ROW_GROUP_ROWS
        )
        return self.put(path, buffer.getvalue())

    def require(self, path: str) -> None:
        """Check that a file still exists. Call it in the transaction that refers to the file, after inserting the row.

        If more than a day passes between writing the file and this transaction, the file may have been removed as an
        orphan (see `storage.operations.retention`).

        Raises:
            Unavailable: the file is gone; the transaction must not commit.
        """
        if not (self.root / path).is_file():
            raise Unavailable("Service.Unavailable", "The data was not stored in time. Try again.")

    def files(self, folder: str) -> Iterator[Found]:
        """Yield all files below a folder, unfinished ones included, in no particular order.

        Files that are removed meanwhile are left out.
        """
        for parent, _, names in os.walk(self.root / folder):
            for name in names:
                with suppress(FileNotFoundError):
                    found = os.stat(os.path.join(parent, name))
                    path = os.path.relpath(os.path.join(parent, name), self.root)
                    yield Found(path, found.st_size, datetime.fromtimestamp(found.st_mtime, UTC))

    def touch(self, path: str) -> None:
        """Set a file's modification time to now, so that its age as an orphan restarts."""
        os.utime(self.root / path)

    def discard(self, path: str) -> int:
        """Remove a file that nothing refers to; return the bytes freed (0: it was gone already)."""
        with suppress(FileNotFoundError):
            size = (self.root / path).stat().st_size
            (self.root / path).unlink()
            return size
        return 0

    def verified(self, path: str, sha256: bytes) -> Path:
        """Return the file's full path after checking that its content is what was written.

        Raises:
            Corrupt: the file is missing, or its SHA-256 differs.
        """
        if (path, sha256) not in self._verified:
            self._verify(path, sha256)
            self._remember(path, sha256)
        return self.root / path

    def _remember(self, path: str, sha256: bytes) -> None:
        """Remember a verified file, and drop the oldest one if there are too many."""
        with self._lock:
            self._verified[path, sha256] = None
            if len(self._verified) > MOST_REMEMBERED:
                del self._verified[next(iter(self._verified))]

    def _verify(self, path: str, sha256: bytes) -> None:
        try:
            with (self.root / path).open("rb") as file:
                found = hashlib.file_digest(file, "sha256").digest()
        except OSError as error:
            raise Corrupt("Lake.FileUnreadable", f"The data file {path} can't be read.") from error
        if found != sha256:
            raise Corrupt("Lake.ChecksumMismatch", f"The data file {path} is not what was written.")
