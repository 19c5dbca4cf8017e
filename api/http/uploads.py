"""Receive files, as multipart/form-data or as Base64 in JSON.

Multipart is parsed while it arrives. Small files stay in memory; larger ones go to unnamed temporary files, so that
nothing is left of them however a request ends. Faults of the form are raised when it is read, because 404
takes precedence over 400.
"""

import hashlib
import json
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema
from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from api.core.limits import Limits
from api.core.schemas.common import Received
from api.core.schemas.files import (
    ATTACHMENT_FORM_SCHEMA,
    FORM_SCHEMA,
    MAX_FILES,
    MAX_PASSWORD_BYTES,
    SentAttachment,
    SentFiles,
    SentPdf,
)
from api.http import bodies
from api.http.bodies import MULTIPART, Body, is_json, require_length, require_plain, too_large
from pipelines.vocabulary.errors import InvalidRequest, TidemarkError, TooLarge, UnsupportedMedia
from storage.core.settings import Settings
from storage.work.attachments import MAX_BYTES

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

FORM: Final = "multipart/form-data"
PARTS_PER_FILE = 3  # the file, its password and a part that is ignored
MAX_HEADER_BYTES = 64 * 1024  # of a part: a file's name may be long, and is cut later
IN_MEMORY_BYTES = 512 * 1024  # of a file
HEAD_BYTES = 1024  # of a file: Acrobat looks for `%PDF-` in as many bytes


@dataclass(frozen=True)
class SentFile:
    """One file as sent; `content` reads it."""

    name: str
    size: int
    sha256: bytes
    head: bytes
    password: str | None
    content: Callable[[], bytes]


@dataclass(frozen=True)
class Accepted:
    """Which files a route accepts: their models, their limits, and the codes of refusals."""

    model: type[Received]  # of a request in JSON
    form: Mapping[str, Any]  # JSON Schema of a form
    area: str  # of the codes: `Statement` in `Statement.FileTooLarge`
    most_files: int
    max_file_bytes: Callable[[Settings], int]
    has_passwords: bool

    @property
    def most_parts(self) -> int:
        return PARTS_PER_FILE * self.most_files

    def code(self, reason: str) -> str:
        return f"{self.area}.{reason}"

    def require_small(self, size: int, settings: Settings) -> None:
        """Raise TooLarge for a file over the limit."""
        if size > (limit := self.max_file_bytes(settings)):
            raise TooLarge(self.code("FileTooLarge"), f"A file may have {limit:,} bytes at most.")

    @property
    def wrong_count(self) -> InvalidRequest:
        count = "one file" if self.most_files == 1 else f"1 to {self.most_files} files"
        return InvalidRequest(self.code("WrongCount"), f"Send {count}.")


@dataclass(frozen=True)
class Files:
    """The PDF statements of a request, as its route reads them; `SentFiles` describes them as JSON."""

    accepted: ClassVar = Accepted(
        SentFiles, FORM_SCHEMA, "Statement", MAX_FILES, lambda settings: settings.max_file_bytes, has_passwords=True
    )
    sent: Sequence[SentFile]

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.json_or_python_schema(
            handler.generate_schema(cls.accepted.model), core_schema.is_instance_schema(cls)
        )


@dataclass(frozen=True)
class AttachedFile(Files):
    """The one file of any type of a request; `SentAttachment` describes it as JSON."""

    accepted: ClassVar = Accepted(
        SentAttachment, ATTACHMENT_FORM_SCHEMA, "Attachment", 1, lambda _: MAX_BYTES, has_passwords=False
    )


@dataclass(frozen=True)
class FilesBody:
    """Files as received. `content` identifies the request: the raw bytes of JSON, or a list of a form's parts with
    their hashes, because a client that sends a form again uses another boundary.
    """

    kind: type[Files]
    content: bytes
    files: Callable[[], Sequence[SentFile]]

    def read(self, _caller: object) -> Files:
        """Return the files.

        Raises:
            InvalidRequest: neither a form nor strict JSON, too many files, or none.
            TooLarge: one of them is too large.
        """
        return self.kind(self.files())


@asynccontextmanager
async def receive_files(kind: type[Files], request: Request) -> AsyncIterator[FilesBody]:
    """Receive files within the limits, and hold them for the length of the block. `read` raises their faults."""
    settings: Settings = request.app.state.store.settings
    limits: Limits = request.app.state.limits
    if is_json(request.headers):
        async with bodies.receive_json(kind.accepted.model, request) as body:
            yield FilesBody(kind, body.content, partial(_read_json, body, kind.accepted, settings))
        return
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
        raise UnsupportedMedia("Request.NotJson", f"The body must be {FORM} or application/json in UTF-8.")
    require_plain(request.headers)
    require_length(request.headers, settings.max_multipart_bytes, MULTIPART)
    with limits.uploads.held(request.state.held.requester) as held, _form(request, kind.accepted, settings) as form:
        content = await _receive_form(request, form, settings.max_multipart_bytes, held.take)
        yield FilesBody(kind, content, form.read)


def _read_json(body: Body, accepted: Accepted, settings: Settings) -> Sequence[SentFile]:
    document = cast("SentFiles | SentAttachment", body.read())
    files = document.files if isinstance(document, SentFiles) else [document]
    for file in files:
        accepted.require_small(len(file.content_base64), settings)
    return [
        _sent_file(file.file_name, file.content_base64, file.password if isinstance(file, SentPdf) else None)
        for file in files
    ]


def _sent_file(name: str, content: bytes, password: str | None) -> SentFile:
    sha256 = hashlib.sha256(content).digest()
    return SentFile(name, len(content), sha256, content[:HEAD_BYTES], password, lambda: content)


@contextmanager
def _form(request: Request, accepted: Accepted, settings: Settings) -> Iterator["_Form"]:
    _, options = parse_options_header(request.headers["content-type"])
    with ExitStack() as files:
        yield _Form(options.get(b"boundary", b""), files, accepted, settings)


async def _receive_form(request: Request, form: "_Form", limit: int, take: Callable[[int], None]) -> bytes:
    """Receive the whole form, and return its fingerprint; stop at its first fault, or when it gets too large."""
    size = 0
    async for chunk in request.stream():
        take(len(chunk))
        size += len(chunk)
        if size > limit:
            raise too_large(limit, MULTIPART)
        if form.fault is None:
            await run_in_threadpool(form.take, chunk)
        if form.fault is not None:
            break
    form.close()
    return form.fingerprint()


class _Kind(Enum):
    FILE = auto()
    PASSWORD = auto()
    OTHER = auto()  # ignored, like unknown fields of JSON


class _Part:
    """One part of a form while it is received."""

    def __init__(self, kind: _Kind, name: str, sink: "tempfile.SpooledTemporaryFile[bytes] | None") -> None:
        self.kind = kind
        self.name = name
        self.size = 0
        self.sha256 = hashlib.sha256()
        self.head = b""
        self._sink = sink

    def add(self, data: bytes) -> None:
        self.size += len(data)
        self.sha256.update(data)
        if self._sink is not None:
            self.head += data[: HEAD_BYTES - len(self.head)]
            self._sink.write(data)

    def content(self) -> bytes:
        assert self._sink is not None
        self._sink.seek(0)
        return self._sink.read()


class _Form:
    """A form while it is received. Parsing ends at the first fault."""

    def __init__(self, boundary: bytes, files: ExitStack, accepted: Accepted, settings: Settings) -> None:
        self._files = files
        self._accepted = accepted
        self._settings = settings
        self._parts: list[_Part] = []
        self._header: tuple[bytearray, bytearray] = (bytearray(), bytearray())  # name and value so far
        self._headers: dict[str, str] = {}
        self._whole = False
        self.fault: TidemarkError | None = None
        try:
            self._parser = MultipartParser(boundary, self._callbacks(), max_header_size=MAX_HEADER_BYTES)
        except (MultipartParseError, ValueError):
            self.fault = _malformed_form("The body has no boundary.")
        if not boundary:
            self.fault = _malformed_form("The body has no boundary.")

    def take(self, chunk: bytes) -> None:
        try:
            self._parser.write(chunk)
        except MultipartParseError:
            self.fault = _malformed_form(f"The body is not {FORM}.")
        except TidemarkError as fault:
            self.fault = fault

    def close(self) -> None:
        """Note that the body has ended."""
        if self.fault is None and not self._whole:
            self.fault = _malformed_form(f"The body ends in the middle of its {FORM}.")

    def read(self) -> Sequence[SentFile]:
        """Return the files with their passwords.

        Raises:
            InvalidRequest: not a form, too many files, or none.
            TooLarge: one of them is too large.
        """
        if self.fault is not None:
            raise self.fault
        files = [part for part in self._parts if part.kind is _Kind.FILE]
        if not files:
            raise self._accepted.wrong_count
        passwords = self._passwords(len(files))
        return [
            SentFile(part.name, part.size, part.sha256.digest(), part.head, password, part.content)
            for part, password in zip(files, passwords, strict=True)
        ]

    def _passwords(self, files: int) -> list[str | None]:
        """Return a password for each file. A form has one for all, or one for each in order; empty means none."""
        given = [part.content() for part in self._parts if part.kind is _Kind.PASSWORD]
        if len(given) not in (0, 1, files):
            raise InvalidRequest("Statement.PasswordsDontMatch", "Give one password for all files, or one for each.")
        try:
            texts = [each.decode() or None for each in given]
        except UnicodeDecodeError:
            raise _invalid_password() from None
        if any("\0" in each for each in texts if each):  # the PDF library would take it for the password's end
            raise _invalid_password()
        return texts * files if len(texts) == 1 else texts or [None] * files

    def fingerprint(self) -> bytes:
        described = [[part.kind.name, part.name, part.sha256.hexdigest()] for part in self._parts]
        return json.dumps(described).encode()

    # Called by the parser

    def _callbacks(self) -> "MultipartCallbacks":
        return {
            "on_part_begin": self._part_begins,
            "on_header_field": lambda data, start, end: self._header[0].extend(data[start:end]),
            "on_header_value": lambda data, start, end: self._header[1].extend(data[start:end]),
            "on_header_end": self._header_ends,
            "on_headers_finished": self._open_part,
            "on_part_data": lambda data, start, end: self._add(data[start:end]),
            "on_end": self._end,
        }

    def _part_begins(self) -> None:
        self._headers = {}
        if len(self._parts) == (most := self._accepted.most_parts):
            raise InvalidRequest(self._accepted.code("TooManyParts"), f"A form may have {most} parts at most.")

    def _header_ends(self) -> None:
        name, value = self._header
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")
        self._header = (bytearray(), bytearray())

    def _open_part(self) -> None:
        _, options = parse_options_header(self._headers.get("content-disposition", ""))
        kinds = {b"file": _Kind.FILE} | ({b"password": _Kind.PASSWORD} if self._accepted.has_passwords else {})
        kind = kinds.get(options.get(b"name", b""), _Kind.OTHER)
        files = sum(part.kind is _Kind.FILE for part in self._parts)
        if kind is _Kind.FILE and files == self._accepted.most_files:
            raise self._accepted.wrong_count
        sink = None if kind is _Kind.OTHER else self._files.enter_context(self._unnamed_file())
        self._parts.append(_Part(kind, options.get(b"filename", b"").decode(errors="replace"), sink))

    def _unnamed_file(self) -> "tempfile.SpooledTemporaryFile[bytes]":
        """Return a file in memory, which moves to an unnamed file on disk when it grows."""
        return tempfile.SpooledTemporaryFile(IN_MEMORY_BYTES, dir=str(self._settings.home))

    def _add(self, data: bytes) -> None:
        part = self._parts[-1]
        part.add(data)
        if part.kind is _Kind.FILE:
            self._accepted.require_small(part.size, self._settings)
        elif part.kind is _Kind.PASSWORD and part.size > MAX_PASSWORD_BYTES:
            raise _invalid_password()

    def _end(self) -> None:
        self._whole = True


def _malformed_form(detail: str) -> InvalidRequest:
    return InvalidRequest("Request.MalformedForm", detail)


def _invalid_password() -> InvalidRequest:
    return InvalidRequest(
        "Statement.InvalidPassword", f"password must be UTF-8 text of at most {MAX_PASSWORD_BYTES} bytes, without NUL."
    )
