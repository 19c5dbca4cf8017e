"""The lake: immutable files that the database refers to by path and SHA-256, in a folder or in a bucket.

A file is durable before the database refers to it (see `durable.create`). So every path in the database has its file,
and a file without a row is an orphan that nothing reads. Flipped bits in Parquet usually decode to wrong values without
an error. Therefore a process checks the hash of a file when it first opens it. It remembers the last MAX_REMEMBERED
files that it checked, and checks an older one again.
"""

import hashlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from pipelines.vocabulary.errors import Corrupt, Unavailable
from storage.core import durable
from storage.core.database import Writing

if TYPE_CHECKING:
    import polars as pl  # many processes that open the lake write no frame, and don't need its 25 MB

ROW_GROUP_ROWS = 30_000  # one customer is read several times faster than from one large group; our judgement
MAX_REMEMBERED = 20_000  # verified files: a few megabytes; our judgement
CHUNK_BYTES = 2**20
PROBE_BYTES = 4_096


@dataclass(frozen=True)
class StoredFile:
    """A durable file: its path relative to the root, its SHA-256 and its size in bytes."""

    path: str
    sha256: bytes
    size: int


@dataclass(frozen=True)
class FoundFile:
    """A file in the lake, whether or not the database refers to it."""

    path: str
    size: int
    modified: datetime  # in a bucket: when its writer announced it (`file_intents`)


@dataclass(frozen=True)
class ObjectVersion:
    """A version of an object in a bucket. A bucket that keeps no versions has only current ones."""

    path: str
    version_id: str
    written: datetime
    is_current: bool  # false: the object was replaced or deleted since


@dataclass(frozen=True)
class UnfinishedUpload:
    """An upload to a bucket whose parts are stored, but not as an object."""

    path: str
    began: datetime


class Lake:
    """Immutable files in a folder. `storage.core.bucket_lake` has them in a bucket instead."""

    lists_all_files = True  # false: `files` yields only those that may be orphans

    def __init__(self, root: Path) -> None:
        self.root = root  # the folder of the files; for a bucket, that of local copies
        self._verified: dict[tuple[str, bytes], None] = {}  # oldest check first
        self._lock = Lock()

    def put(self, path: str, content: bytes) -> StoredFile:
        """Write `content` durably under `path`, which must be new."""
        target = self.root / path
        durable.make_folder(target.parent)
        durable.create(target, content)
        return StoredFile(path, hashlib.sha256(content).digest(), len(content))

    def put_frame(self, path: str, frame: "pl.DataFrame") -> StoredFile:
        """Write a frame as Parquet (zstd-3, statistics, row groups of 30,000)."""
        buffer = BytesIO()
        frame.write_parquet(
            buffer, compression="zstd", compression_level=3, statistics=True, row_group_size=ROW_GROUP_ROWS
        )
        return self.put(path, buffer.getvalue())

    def require(self, w: Writing, path: str) -> None:
        """Check that a file still exists. Call it in the transaction that refers to the file, after inserting the row.

        If more than a day passes between writing the file and this transaction, the file may have been removed as an
        orphan (see `storage.operations.retention`).

        Raises:
            Unavailable: the file is gone; the transaction must not commit.
        """
        self._require((self.root / path).is_file())

    def _require(self, is_there: bool) -> None:
        if not is_there:
            raise Unavailable("Service.Unavailable", "The data was not stored in time. Try again.")

    def release(self, w: Writing, files: Sequence[tuple[str, int]]) -> None:
        """Let a sweep remove files (path, bytes) that this transaction no longer names.

        The sweep removes them after a day; `discard` removes them at once.
        """
        for path, _ in files:
            with suppress(FileNotFoundError):
                os.utime(self.root / path)  # its age as an orphan starts now

    def files(self, folder: str) -> Iterator[FoundFile]:
        """Yield all files below a folder, including unfinished ones, in no particular order.

        Files that are removed meanwhile are left out.
        """
        for parent, _, names in os.walk(self.root / folder):
            for name in names:
                with suppress(FileNotFoundError):
                    found = os.stat(os.path.join(parent, name))
                    path = os.path.relpath(os.path.join(parent, name), self.root)
                    yield FoundFile(path, found.st_size, datetime.fromtimestamp(found.st_mtime, UTC))

    def list_uncertain(self) -> Iterator[str]:
        """Yield the paths of files that perhaps no row of the database names. For a folder: of all files."""
        yield from (file.path for file in self.files(""))

    def list_copies(self) -> Iterator[tuple[str, Path]]:
        """Yield this machine's copies of a bucket's files, complete or not, with their paths. A folder has none."""
        yield from ()

    def list_versions(self) -> Iterator[ObjectVersion]:
        """Yield all versions of a bucket's objects, current ones included. A folder has none.

        Raises:
            ConnectionError: the bucket can't be reached or refuses the list. The message is a phrase for the operator.
        """
        yield from ()

    def list_uploads(self) -> Iterator[UnfinishedUpload]:
        """Yield a bucket's unfinished multipart uploads. A folder has none.

        Raises:
            ConnectionError: the bucket can't be reached or refuses the list. The message is a phrase for the operator.
        """
        yield from ()

    def collect(self, w: Writing, files: Sequence[FoundFile]) -> None:
        """Remove orphans. While this transaction runs, no other transaction may begin to refer to a file."""
        self.discard(*[file.path for file in files])

    def purge(self) -> None:
        """Finish the removal of collected orphans, where it can't be done within a transaction."""

    def discard(self, *paths: str) -> None:
        """Remove files that nothing refers to, and that nothing will refer to."""
        for path in paths:
            (self.root / path).unlink(missing_ok=True)

    def verified_path(self, path: str, sha256: bytes) -> Path:
        """Return the full path of a local file after checking that its content is what was written.

        Raises:
            Corrupt: the file is missing, or its SHA-256 differs.
            OSError: the bucket can't be reached.
        """
        if not self._is_remembered(path, sha256):
            self._verify(path, sha256)
            self._remember(path, sha256)
        return self.root / path

    def chunks(self, path: str, version_id: str | None = None) -> Iterator[bytes]:
        """Yield a file's content as it is stored, unchecked and never from a cache.

        Args:
            version_id: of a bucket's object. Default: the current version.

        Raises:
            OSError: it is missing (FileNotFoundError) or can't be read, or the bucket can't be reached
                (ConnectionError).
        """
        with (self.root / path).open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                yield chunk

    def url_of(self, path: str) -> str:
        """Return the address of a file for other programs."""
        return str(self.root / path)

    def probe(self) -> str | None:
        """Return why files can't be written now, as a sentence; None if they can."""
        try:
            with tempfile.TemporaryFile(dir=self.root) as probe:  # without a name, where the system supports it
                probe.write(bytes(PROBE_BYTES))
                probe.flush()
        except OSError as error:
            return f"The lake can't be written: {error.strerror}."
        return None

    def try_writing(self) -> str | None:
        """Do the same as `probe`, and in a bucket also write and delete a file."""
        return self.probe()

    def _is_remembered(self, path: str, sha256: bytes) -> bool:
        return (path, sha256) in self._verified

    def _remember(self, path: str, sha256: bytes) -> None:
        """Remember a verified file, and drop the oldest one if there are too many."""
        with self._lock:
            self._verified[path, sha256] = None
            if len(self._verified) > MAX_REMEMBERED:
                del self._verified[next(iter(self._verified))]

    def _verify(self, path: str, sha256: bytes) -> None:
        try:
            with (self.root / path).open("rb") as file:
                found = hashlib.file_digest(file, "sha256").digest()
        except OSError as error:
            raise self._unreadable(path) from error
        if found != sha256:
            raise self._mismatch(path)

    def _unreadable(self, path: str) -> Corrupt:
        return Corrupt("Lake.FileUnreadable", f"The data file {path} can't be read.")

    def _mismatch(self, path: str) -> Corrupt:
        return Corrupt("Lake.ChecksumMismatch", f"The data file {path} is not what was written.")
