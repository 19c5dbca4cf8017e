"""An emulated S3 in this process, which fails on request: with a status, slowly, or by breaking the connection."""

import re
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, cycle, repeat
from typing import Any, TypeAlias

import obstore
import requests
from obstore.store import S3Store
from werkzeug.serving import make_server

BUCKET = "tidemark"
SLOW_S = 2.0
SLOW = "slow"
CUT = "cut"  # in the middle of the answer
LOST = "lost"  # the request is done, and not answered
SOUND_BETWEEN = 20  # requests between two faults of an unreliable store

Fault: TypeAlias = int | str  # a status, or one of these
App: TypeAlias = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class Emulator:
    """An S3 with one bucket. `faults` are what happens to the next requests, one each, or None for a sound one.

    If it is unreliable, every kind of fault happens to later requests, too, in turn and with sound ones between them.
    """

    def __init__(self, *, is_unreliable: bool = False) -> None:
        from moto.moto_server import werkzeug_app  # noqa: PLC0415  # takes a second, and few tests need it

        self.faults: deque[Fault | None] = deque()
        sound = [None] * SOUND_BETWEEN
        in_turn = chain.from_iterable([*sound, fault] for fault in (500, 503, SLOW, CUT, LOST))
        self._later: Iterator[Fault | None] = cycle(in_turn) if is_unreliable else repeat(None)
        self.refused: tuple[str, ...] = ()  # requests with one of these in their query are answered with 403
        self.requests: list[str] = []  # `GET /bucket/path`, since `clear`
        self._emulated: App = werkzeug_app.DomainDispatcherApplication(werkzeug_app.create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        requests.put(f"{self.endpoint}/{BUCKET}", timeout=60).raise_for_status()

    def clear(self) -> None:
        self.faults.clear()
        self.refused = ()
        self.requests.clear()

    def settings(self, prefix: str, timeout_s: float = 30) -> dict[str, Any]:
        """Return the settings of a lake below a prefix."""
        return {
            "lake_url": f"s3://{BUCKET}/{prefix}",
            "s3_endpoint": self.endpoint,
            "s3_region": "us-east-1",
            "s3_access_key_id": "emulated",
            "s3_secret_access_key": "emulated",
            "s3_path_style": True,
            "s3_timeout_s": timeout_s,
        }

    def paths(self, prefix: str) -> set[str]:
        """Return the paths of all objects below a prefix."""
        return {each["path"].removeprefix(f"{prefix}/") for page in obstore.list(self._store, prefix) for each in page}

    def overwrite(self, path: str, content: bytes) -> None:
        obstore.put(self._store, path, content)

    def delete(self, path: str) -> None:
        obstore.delete(self._store, path)

    def keep_versions(self) -> None:
        """Let the bucket keep every version from now on."""
        self._send("PUT", "?versioning", "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>")

    def begin_upload(self, path: str, part: bytes) -> None:
        """Begin a multipart upload, send a part, and never finish it."""
        upload_id = re.findall("<UploadId>(.+)</UploadId>", self._send("POST", f"/{path}?uploads"))[0]
        self._send("PUT", f"/{path}?partNumber=1&uploadId={upload_id}", part)

    def _send(self, method: str, path: str, content: str | bytes = b"") -> str:
        known = {"Authorization": "AWS x:x"}  # anybody who is not anonymous
        response = requests.request(method, f"{self.endpoint}/{BUCKET}{path}", data=content, headers=known, timeout=60)
        response.raise_for_status()
        return response.text

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()

    @property
    def _store(self) -> S3Store:
        return S3Store(
            BUCKET,
            config={"endpoint": self.endpoint, "access_key_id": "x", "secret_access_key": "x", "region": "us-east-1"},
            client_options={"allow_http": True},
            virtual_hosted_style_request=False,
        )

    def _answer(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        self.requests.append(f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}")
        fault = self.faults.popleft() if self.faults else next(self._later)
        if isinstance(fault, int):
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            start_response(f"{fault} Injected", [("Content-Length", "0")])
            return []
        if any(each in environ["QUERY_STRING"] for each in self.refused):
            start_response("403 Forbidden", [("Content-Type", "application/xml")])
            return [b"<Error><Code>AccessDenied</Code></Error>"]
        if fault == SLOW:
            time.sleep(SLOW_S)
        answer = self._emulated(environ, start_response)
        if fault == LOST:
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
        return _first_half(b"".join(answer)) if fault == CUT else answer


def _first_half(content: bytes) -> Iterator[bytes]:
    """Yield half of an answer, and break the connection: the announced length was that of the whole."""
    yield content[: len(content) // 2]
    raise ConnectionAbortedError


@contextmanager
def emulate_bucket(*, is_unreliable: bool = False) -> Iterator[Emulator]:
    emulator = Emulator(is_unreliable=is_unreliable)
    try:
        yield emulator
    finally:
        with suppress(OSError):
            emulator.stop()
