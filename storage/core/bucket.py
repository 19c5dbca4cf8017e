"""A bucket of an S3-compatible object store.

The library (https://developmentseed.org/obstore) repeats requests that fail with a 5xx status or whose connection
breaks. If that doesn't help, `Unreachable` is raised, which is handled like an unreachable database
(`database.UNREACHABLE`): the API responds with 503, and a run's jobs wait.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError
from obstore.store import S3Store

from storage.core.bucket_listing import BucketListing
from storage.core.settings import Settings

if TYPE_CHECKING:
    from obstore import GetOptions

ONE_REQUEST_BYTES = 16 * 2**20  # larger files are sent in parts; our judgement
PART_BYTES = 8 * 2**20
CHUNK_BYTES = 2**20
PROBE_TIMEOUT = timedelta(seconds=2)  # less than a readiness check may take
NO_BUCKET = "NoSuchBucket"  # S3's code; the library raises FileNotFoundError for it, as for a missing object


class Unreachable(ConnectionError):
    """The object store doesn't answer, fails, or refuses our credentials."""


@dataclass(frozen=True)
class Bucket:
    """The objects below a prefix of a bucket. Paths are relative to the prefix."""

    url: str  # s3://bucket/prefix
    _store: S3Store
    _impatient: S3Store  # for health checks
    listing: BucketListing

    @classmethod
    def of(cls, settings: Settings) -> "Bucket":
        """Return the bucket that the settings name, without connecting to it."""
        patience = timedelta(seconds=settings.s3_timeout_s)
        store, impatient = connect(settings, patience, 5), connect(settings, PROBE_TIMEOUT, 0)
        return cls(settings.lake_url.rstrip("/"), store, impatient, BucketListing(settings, store))

    def url_of(self, path: str) -> str:
        return f"{self.url}/{path}"

    def create(self, path: str, content: bytes) -> None:
        """Write a new object.

        Raises:
            FileExistsError: the path has another content; it is unchanged.
            Unreachable: the object may have been written or not.
        """
        try:
            with _translate_errors():
                self._put(path, content)
        except AlreadyExistsError as error:
            # Perhaps the first try wrote the object, its response was lost, and the library tried again.
            if b"".join(self.chunks(path)) != content:
                raise FileExistsError(path) from error
        except FileNotFoundError as error:
            # The response to the end of an upload broke off: the library then tries to abort an upload that has ended.
            raise Unreachable(type(error).__name__) from error

    def _put(self, path: str, content: bytes) -> None:
        if len(content) <= ONE_REQUEST_BYTES:
            obstore.put(self._store, path, content, mode="create", use_multipart=False)
        elif self._exists(path):  # S3 can't refuse this by itself. It is no race: only the path's owner writes there
            raise AlreadyExistsError(path)
        else:
            obstore.put(self._store, path, content, use_multipart=True, chunk_size=PART_BYTES)

    def _exists(self, path: str) -> bool:
        try:
            obstore.head(self._store, path)
        except FileNotFoundError:
            return False
        return True

    def chunks(self, path: str, version_id: str | None = None) -> Iterator[bytes]:
        """Yield an object's content, by default of its current version.

        Raises:
            FileNotFoundError: there is no such object.
            Unreachable: it can't be read now.
        """
        options: GetOptions = {"version": version_id} if version_id else {}
        with _translate_errors():
            for chunk in obstore.get(self._store, path, options=options).stream(min_chunk_size=CHUNK_BYTES):
                yield bytes(chunk)

    def delete(self, paths: Sequence[str]) -> None:
        """Delete objects; missing ones are ignored."""
        if paths:
            with _translate_errors():
                obstore.delete(self._store, paths)

    def probe(self) -> None:
        """Raise Unreachable unless the bucket responds quickly. That there is no such object is a good response."""
        with suppress(FileNotFoundError), _translate_errors():
            obstore.get(self._impatient, ".probe")

    def try_writing(self) -> None:
        """Raise Unreachable unless an object can be written and deleted."""
        path = f".doctor.{uuid4().hex}"
        self.create(path, b"")
        self.delete([path])


def connect(settings: Settings, patience: timedelta, retries: int) -> S3Store:
    """Return the library's view of the lake's bucket and prefix."""
    bucket, _, prefix = settings.lake_url.removeprefix("s3://").rstrip("/").partition("/")
    given = {
        "endpoint": settings.s3_endpoint,
        "region": settings.s3_region,
        "access_key_id": settings.s3_access_key_id,
        "secret_access_key": settings.s3_secret_access_key.get_secret_value(),
    }
    return S3Store(
        bucket,
        prefix=prefix or None,
        config={name: value for name, value in given.items() if value},
        virtual_hosted_style_request=not settings.s3_path_style,
        client_options={"allow_http": settings.s3_endpoint.startswith("http://"), "timeout": patience},
        retry_config={"max_retries": retries, "retry_timeout": patience},
    )


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except AlreadyExistsError:
        raise
    except FileNotFoundError as error:
        if NO_BUCKET in str(error):
            raise Unreachable("There is no such bucket.") from error
        raise
    except (BaseError, OSError) as error:
        raise Unreachable(type(error).__name__) from error
