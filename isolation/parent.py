"""Read an untrusted file in a child process. These functions are the interface of this package.

Extraction of a PDF always returns an Extraction, even if the child crashes: `limits_exceeded` if the child exceeded its
limits, `corrupt` if it crashed or sent an invalid message. Threads may call these functions at the same time: calls
share no state.
"""

import logging
import os
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Final, Self

from isolation import ocr
from isolation.limits import DECODING, EXPORTS, LIMITS, ChildLimits
from isolation.messages import (
    OUT_OF_MEMORY,
    Decode,
    Document,
    Draw,
    Elements,
    Explain,
    ExportEnd,
    ExportRows,
    Extracted,
    Failed,
    FromChild,
    Invalid,
    InvalidMessage,
    Lines,
    MessageTooLong,
    Picture,
    Progress,
    ReadExport,
    ReadStatements,
    ReadText,
    Task,
    Text,
    Words,
    frame_message,
    read_messages,
)
from isolation.process import DeadlineExceeded, Process
from pipelines.intake.export_rows import PlainRefusal, PlainRows
from pipelines.intake.lines import Decoded, Rows
from pipelines.intake.pdf.page.result import Box, Extraction, Refusal, refused_extraction
from pipelines.vocabulary.errors import InvalidRequest, Unavailable

CHILD: Final = (sys.executable, "-I", "-m", "isolation.child")
# The child's whole environment. `unshare` fails in a process that has several threads, so no library may start any.
ENVIRONMENT: Final = {"OPENBLAS_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}
PNG: Final = b"\x89PNG\r\n\x1a\n"
CRASHED: Final = "The process that read the file crashed: the file is damaged, or was made to cause this."
MESSAGE_OVERHEAD_BYTES: Final = 64 * 1024  # added to each limit, so that a message about an empty file fits
KILLED: Final = (
    "The process that read the file was killed: it did not stop at its time limit, or the machine may be out of memory."
)

log = logging.getLogger(__name__)

OnProgress = Callable[[int, int], None]


def extract(
    content: bytes,
    password: str | None,
    limits: ChildLimits = LIMITS,
    on_progress: OnProgress | None = None,
    *,
    command: Sequence[str] = CHILD,
) -> Extraction:
    """Return the statements of a PDF file, or the reason why there are none.

    Args:
        on_progress: called repeatedly with the number of pages read and the number of all pages.
        command: the command that starts a child.
    """
    tesseract = ocr.find_tesseract()
    action = ReadStatements(limits.pages, limits.characters, limits.scanned_pages, use_ocr=tesseract is not None)
    try:
        with _Child(action, content, password, limits, command) as child:
            extraction = _receive_extraction(child, tesseract, on_progress)
    except _Ended as ended:
        return ended.extraction
    if extraction.refusal is Refusal.IMAGE_ONLY and tesseract is None:
        return replace(extraction, message=ocr.ADVICE)
    return extraction


def draw_page(
    content: bytes,
    password: str | None,
    page: int,
    highlight: Sequence[Box] = (),
    limits: ChildLimits = LIMITS,
    *,
    command: Sequence[str] = CHILD,
) -> bytes | None:
    """Return a page as PNG with the boxes highlighted; None if it can't be drawn."""
    if not 1 <= page <= limits.pages:
        return None
    pictures = _receive_pictures(Draw(page, tuple(highlight)), content, password, limits, command)
    with closing(pictures):
        return next((png for number, png in pictures if number == page), None)


def draw_explained_pages(
    content: bytes,
    password: str | None,
    limits: ChildLimits = LIMITS,
    *,
    command: Sequence[str] = CHILD,
) -> Generator[tuple[int, bytes], None, None]:
    """Yield the number and a picture of each page, with the words, columns and rows found, within the limits."""
    return _receive_pictures(Explain(), content, password, limits, command)


def read_pdf_text(content: bytes, limits: ChildLimits = LIMITS, *, command: Sequence[str] = CHILD) -> tuple[str, bool]:
    """Return the text of a PDF, and whether it is complete.

    It isn't if a page is a picture, or if the file is unreadable.
    """
    try:
        with _Child(ReadText(), content, None, limits, command) as child:
            for message in child.messages():
                match message:
                    case Text(text, complete):
                        return text, complete
                    case Failed(error, raised_at):
                        _log_failure(error, raised_at)
                        return "", False
            raise child.explain_end()
    except _Ended as ended:
        log.warning("a file's text was not read: %s", ended)
    return "", False


def decode(
    content: bytes, rows: Rows | None = None, limits: ChildLimits = DECODING, *, command: Sequence[str] = CHILD
) -> Decoded:
    """Return the JSON document in `content`, like `lines.decode`.

    Raises:
        InvalidRequest: as `lines.decode`.
        ReaderBug: our code in the child failed, and would fail again.
        Unavailable: the child ended without a response.
    """
    # MessagePack can be longer than JSON: a digit and its comma are two bytes of JSON, and three of MessagePack.
    longest = 2 * len(content) + MESSAGE_OVERHEAD_BYTES
    try:
        with _Child(Decode(rows), content, None, replace(limits, message_bytes=longest), command) as child:
            return _receive_document(child)
    except _Ended as ended:
        log.warning("a request body was not decoded: %s", ended)
        raise Unavailable("Service.Busy", "The service is busy. Try again.") from None


class ReaderBug(Exception):
    """Our code failed in a child."""


@dataclass(frozen=True)
class Export:
    """What was read from a bank's export: its rows by account, and the lines that were refused.

    `notes`: decisions of the reader that are not obvious, as sentences.
    """

    rows: tuple[PlainRows, ...]
    refused: tuple[PlainRefusal, ...]
    notes: tuple[str, ...]


def read_export(name: str, content: bytes, limits: ChildLimits = EXPORTS, *, command: Sequence[str] = CHILD) -> Export:
    """Return the rows of a bank's export, with nothing masked.

    Raises:
        InvalidRequest: it can't be read, it exceeds the limits, or its reader failed. The detail continues a sentence
            that begins with the file's name.
    """
    longest = 8 * len(content) + MESSAGE_OVERHEAD_BYTES  # each row is sent with the names of its fields
    try:
        with _Child(ReadExport(name), content, None, replace(limits, message_bytes=longest), command) as child:
            return _receive_export(child)
    except _Ended as ended:
        log.warning("an export was not read: %s", ended)
        raise InvalidRequest(
            "Export.LimitsExceeded", "could not be read: it exceeds the limits, or its reader failed"
        ) from None


def _receive_export(child: "_Child") -> Export:
    """Assemble an export from its parts. Raise InvalidRequest, _Ended."""
    rows: list[PlainRows] = []
    for message in child.messages():
        match message:
            case ExportRows(part):
                rows.append(part)
            case ExportEnd(refused_lines, notes):
                return Export(tuple(rows), refused_lines, notes)
            case Invalid(code, detail):
                raise InvalidRequest(code, detail)
            case Failed(error, raised_at):
                _log_failure(error, raised_at)
                break
    raise child.explain_end()


def _receive_document(child: "_Child") -> Decoded:
    """Assemble the document from its parts. Raise InvalidRequest, ReaderBug, _Ended."""
    lists = defaultdict[str | None, list[object]](list)
    lines = bytearray()
    for message in child.messages():
        match message:
            case Elements(member, elements):
                lists[member] += elements
            case Lines(text):
                lines += text
            case Document(dict() as document):
                return Decoded({**document, **lists}, bytes(lines))
            case Document(document):
                return Decoded(lists.get(None, document))
            case Invalid(code, detail):
                raise InvalidRequest(code, detail)
            case Failed(error, raised_at):
                _log_failure(error, raised_at)
                raise ReaderBug(error)
    raise child.explain_end()


def _receive_extraction(child: "_Child", tesseract: str | None, on_progress: OnProgress | None) -> Extraction:
    """Answer the child's messages until it sends the extraction. Raise _Ended."""
    for message in child.messages():
        match message:
            case Extracted(extraction):
                return extraction
            case Progress(done, total) if on_progress is not None:
                on_progress(done, total)
            case Picture(_, png) if tesseract is not None:
                child.send_words(png, tesseract)
            case Failed(error, raised_at):
                _log_failure(error, raised_at)
                raise _Ended(Refusal.CORRUPT, "The file could not be read completely.")
    raise child.explain_end()


def _log_failure(error: str, raised_at: Sequence[str]) -> None:
    """Log where our code failed, and nothing of the file."""
    fields = {"error": error, "raisedAt": list(raised_at)}
    log.warning("a file was not read because of a bug in its reader", extra={"fields": fields})


def _receive_pictures(
    action: Draw | Explain, content: bytes, password: str | None, limits: ChildLimits, command: Sequence[str]
) -> Generator[tuple[int, bytes], None, None]:
    try:
        with _Child(action, content, password, limits, command) as child:
            for message in child.messages():
                match message:
                    case Picture(page, png) if png.startswith(PNG):
                        yield page, png
                    case Failed(error, raised_at):
                        _log_failure(error, raised_at)
            child.require_success()
    except _Ended as ended:
        log.warning("a file's pages were not drawn: %s", ended)


class _Ended(Exception):
    """A child ended without a response."""

    def __init__(self, refusal: Refusal, message: str) -> None:
        super().__init__(message)
        self.extraction = refused_extraction(refusal, message)


class _Child:
    """A process that does one task with one file."""

    def __init__(
        self,
        action: ReadStatements | Draw | Explain | ReadText | Decode | ReadExport,
        content: bytes,
        password: str | None,
        limits: ChildLimits,
        command: Sequence[str],
    ) -> None:
        self._action, self._limits = action, limits
        self._pictures_read = 0
        task = Task(action, password, len(content), limits.memory_bytes, limits.cpu_s, os.getpid())
        try:
            head = frame_message(task)
            self._process = Process(command, ENVIRONMENT, limits.wall_s)
        except UnicodeEncodeError:  # half a surrogate pair
            raise _Ended(Refusal.WRONG_PASSWORD, "The password is not valid Unicode text.") from None
        except OSError as error:
            reason = f"No process could be started to read the file: {error.strerror}."
            raise _Ended(Refusal.LIMITS_EXCEEDED, reason) from None
        self._process.send(head, content)

    def __enter__(self) -> Self:
        self._process.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.__exit__(kind, error, at)

    def messages(self) -> Iterator[FromChild]:
        """Yield the child's messages.

        Raises:
            _Ended: one is invalid or too long, they don't end in time, or the child ran out of memory.
        """
        try:
            for message in read_messages(self._process.read_output(), self._limits.message_bytes):
                if isinstance(message, Extracted) and not isinstance(self._action, ReadStatements):
                    raise _Ended(Refusal.LIMITS_EXCEEDED, OUT_OF_MEMORY)  # a child with any task reports it in this way
                yield message
        except DeadlineExceeded:
            reason = f"Reading the file takes longer than {self._limits.wall_s:g} s."
            raise _Ended(Refusal.LIMITS_EXCEEDED, reason) from None
        except MessageTooLong:
            raise _Ended(Refusal.LIMITS_EXCEEDED, "The file's content is larger than allowed.") from None
        except InvalidMessage:
            raise _Ended(Refusal.CORRUPT, CRASHED) from None

    def send_words(self, png: bytes, tesseract: str) -> None:
        """Read a scanned page and send its words. The time this takes doesn't count against the child's limit."""
        began = time.monotonic()
        self._pictures_read += 1
        allowed = self._pictures_read <= self._limits.scanned_pages and png.startswith(PNG)
        words = ocr.read_words(png, self._limits, tesseract) if allowed else ()
        self._process.send(frame_message(Words(words)))
        self._process.extend_deadline(time.monotonic() - began)

    def require_success(self) -> None:
        """Raise _Ended if the child did not exit with status 0."""
        if (status := self._process.end()) != 0:
            raise self._explain(status)

    def explain_end(self) -> _Ended:
        """End the child and return the reason why it sent no response, derived from its exit status."""
        return self._explain(self._process.end())

    def _explain(self, status: int) -> _Ended:
        if status == -signal.SIGXCPU:
            reason = f"Reading the file takes more than {self._limits.cpu_s} s of processor time."
            return _Ended(Refusal.LIMITS_EXCEEDED, reason)
        if status == -signal.SIGKILL:
            return _Ended(Refusal.LIMITS_EXCEEDED, KILLED)
        # A process that is refused memory may crash in any way. Buffers grow by doubling, so by then it has used at
        # least half of its limit.
        if status != 0 and self._process.peak_bytes > self._limits.memory_bytes // 2:
            return _Ended(Refusal.LIMITS_EXCEEDED, OUT_OF_MEMORY)
        return _Ended(Refusal.CORRUPT, CRASHED)
