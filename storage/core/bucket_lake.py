"""A lake in a bucket, with a local cache: files are read as local Parquet, and written to both.

Its files are announced by intents before they are written (`file_intents`), so no operation lists the bucket.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from storage.core import file_intents
from storage.core.bucket import Bucket, Unreachable
from storage.core.database import Database, Writing
from storage.core.file_cache import FileCache
from storage.core.lake import FoundFile, Lake, ObjectVersion, StoredFile, UnfinishedUpload


def _utc_now() -> datetime:
    return datetime.now(UTC)


class BucketLake(Lake):
    """Immutable objects of a bucket. `root` is the folder of the local copies."""

    lists_all_files = False

    def __init__(
        self, bucket: Bucket, cache: FileCache, db: Database, clock: Callable[[], datetime] = _utc_now
    ) -> None:
        super().__init__(cache.folder)
        self._bucket = bucket
        self._cache = cache
        self._db = db
        self._clock = clock

    def put(self, path: str, content: bytes) -> StoredFile:
        digest = hashlib.sha256(content).digest()
        file_intents.announce(self._db, path, len(content), self._clock())
        self._bucket.create(path, content)
        with suppress(OSError):  # a copy is only an advantage
            self._cache.fill(path, [content], digest)
        return StoredFile(path, digest, len(content))

    def require(self, w: Writing, path: str) -> None:
        self._require(file_intents.settle(w, path))

    def release(self, w: Writing, files: Sequence[tuple[str, int]]) -> None:
        file_intents.announce_released(w, files, self._clock())

    def files(self, folder: str) -> Iterator[FoundFile]:
        yield from (FoundFile(*intent) for intent in file_intents.find_unsettled(self._db, folder))

    def list_uncertain(self) -> Iterator[str]:
        yield from file_intents.list_paths(self._db)

    def list_copies(self) -> Iterator[tuple[str, Path]]:
        yield from self._cache.list_copies()

    def list_versions(self) -> Iterator[ObjectVersion]:
        yield from self._bucket.listing.list_versions()

    def list_uploads(self) -> Iterator[UnfinishedUpload]:
        yield from self._bucket.listing.list_uploads()

    def collect(self, w: Writing, files: Sequence[FoundFile]) -> None:
        file_intents.condemn(w, [file.path for file in files], self._clock())

    def purge(self) -> None:
        paths = self._find_condemned("")
        while paths:
            self._remove(paths)
            paths = self._find_condemned(paths[-1])
        with self._db.writing() as w:
            file_intents.forget_condemned(w, self._clock())

    def _find_condemned(self, after: str) -> list[str]:
        with self._db.reading() as r:
            return file_intents.find_condemned(r, after)

    def discard(self, *paths: str) -> None:
        self._remove(paths)
        with self._db.writing() as w:
            file_intents.delete_intents(w, paths)

    def _remove(self, paths: Sequence[str]) -> None:
        self._bucket.delete(paths)
        for path in paths:
            self._cache.drop(path)

    def verified_path(self, path: str, sha256: bytes) -> Path:
        if not (self._is_remembered(path, sha256) and self._cache.touch(path)):
            if not self._cache.holds(path, sha256):
                self._fetch(path, sha256)
            self._remember(path, sha256)
        return self._cache.path_of(path)

    def _fetch(self, path: str, sha256: bytes) -> None:
        try:
            if self._cache.fill(path, self._bucket.chunks(path), sha256):
                return
        except FileNotFoundError as error:
            raise self._unreadable(path) from error
        raise self._mismatch(path)

    def chunks(self, path: str, version_id: str | None = None) -> Iterator[bytes]:
        return self._bucket.chunks(path, version_id)

    def url_of(self, path: str) -> str:
        return self._bucket.url_of(path)

    def probe(self) -> str | None:
        return _describe_problem(self._bucket.probe)

    def try_writing(self) -> str | None:
        return _describe_problem(self._bucket.try_writing)


def _describe_problem(attempt: Callable[[], None]) -> str | None:
    try:
        attempt()
    except Unreachable:
        return "The object store can't be used."
    return None
