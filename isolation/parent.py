"""What the rest of Tidemark calls to have a stranger's file read: it starts a child and outlives whatever happens.

Whatever becomes of a child that reads a PDF, the answer is an Extraction. One that took more than it may is
`limits_exceeded`; one that the file broke, or that answers nonsense, is `corrupt`. Several threads may call at once:
they share nothing.
"""

import logging
import os
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from types import TracebackType
from typing import Final, Self

from isolation import ocr
from isolation.limits import DECODING, LIMITS, ChildLimits
from isolation.messages import (
    OUT_OF_MEMORY,
    Answer,
    Decode,
    Document,
    Draw,
    Elements,
    Explain,
    Failed,
    FromChild,
    Garbled,
    Invalid,
    Lines,
    Picture,
    Progress,
    Read,
    Task,
    TooLong,
    Words,
    framed,
    messages,
)
from isolation.process import Overdue, Process
from pipelines.intake.lines import Decoded, Rows
from pipelines.intake.pdf.page.result import Box, Extraction, Refusal, refused
from pipelines.vocabulary.errors import InvalidRequest, Unavailable

CHILD: Final = (sys.executable, "-I", "-m", "isolation.child")
ENVIRONMENT: Final = {"OPENBLAS_NUM_THREADS": "1"}  # all it gets: a process of several threads can't confine itself
PNG: Final = b"\x89PNG\r\n\x1a\n"
BROKE: Final = "The file broke its reader: it is damaged, or made to do so."
SMALLEST_MESSAGE_BYTES: Final = 64 * 1024
KILLED: Final = "Its reader was ended from outside: the machine may be out of memory."

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
    """The statements of a PDF file, or why there are none.

    Args:
        on_progress: told how many pages of how many are read, now and then.
        command: what starts a child.
    """
    tesseract = ocr.program()
    what = Read(limits.pages, limits.characters, limits.scanned_pages, asks=tesseract is not None)
    try:
        with _Child(what, content, password, limits, command) as child:
            extraction = _conversation(child, tesseract, on_progress)
    except _Ended as ended:
        return ended.extraction
    if extraction.refusal is Refusal.IMAGE_ONLY and tesseract is None:
        return replace(extraction, message=ocr.ADVICE)
    return extraction


def page_png(
    content: bytes,
    password: str | None,
    page: int,
    highlight: Sequence[Box] = (),
    limits: ChildLimits = LIMITS,
    *,
    command: Sequence[str] = CHILD,
) -> bytes | None:
    """A page as a picture with places marked; None where it can't be drawn."""
    if not 1 <= page <= limits.pages:
        return None
    drawn = _pictures(Draw(page, tuple(highlight)), content, password, limits, command)
    with closing(drawn):
        return next((png for number, png in drawn if number == page), None)


def explained_pngs(
    content: bytes,
    password: str | None,
    limits: ChildLimits = LIMITS,
    *,
    command: Sequence[str] = CHILD,
) -> Generator[tuple[int, bytes], None, None]:
    """Each page's number and picture, with the words, columns and rows that were seen; as many as the limits allow."""
    return _pictures(Explain(), content, password, limits, command)


def decode(
    content: bytes, rows: Rows | None = None, limits: ChildLimits = DECODING, *, command: Sequence[str] = CHILD
) -> Decoded:
    """The JSON document in `content`, as `lines.decoded` gives it.

    Raises:
        InvalidRequest: what `lines.decoded` raises.
        Unavailable: the child ended without an answer.
    """
    longest = 2 * len(content) + SMALLEST_MESSAGE_BYTES  # a number of one digit takes three bytes instead of two
    try:
        with _Child(Decode(rows), content, None, replace(limits, message_bytes=longest), command) as child:
            return _decoded(child)
    except _Ended as ended:
        log.warning("a body was not decoded: %s", ended)
        raise Unavailable("Service.Busy", "The service is busy. Try again.") from None


def _decoded(child: "_Child") -> Decoded:
    """Raises InvalidRequest, _Ended."""
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
                _log_fault(error, raised_at)
                break
    raise child.ended()


def _conversation(child: "_Child", tesseract: str | None, on_progress: OnProgress | None) -> Extraction:
    """Raises _Ended."""
    for message in child.messages():
        match message:
            case Answer(extraction):
                return extraction
            case Progress(done, total) if on_progress is not None:
                on_progress(done, total)
            case Picture(_, png) if tesseract is not None:
                child.read(png, tesseract)
            case Failed(error, raised_at):
                _log_fault(error, raised_at)
                raise _Ended(Refusal.CORRUPT, "The file could not be read to its end.")
    raise child.ended()


def _log_fault(error: str, raised_at: Sequence[str]) -> None:
    """An operator learns where, and nothing of the file."""
    about = {"error": error, "raisedAt": list(raised_at)}
    log.warning("a file was not read for a fault of the reader's", extra={"fields": about})


def _pictures(
    what: Draw | Explain, content: bytes, password: str | None, limits: ChildLimits, command: Sequence[str]
) -> Generator[tuple[int, bytes], None, None]:
    try:
        with _Child(what, content, password, limits, command) as child:
            for message in child.messages():
                if isinstance(message, Picture) and message.png.startswith(PNG):
                    yield message.page, message.png
    except _Ended:
        return


class _Ended(Exception):
    """A child ended without the answer."""

    def __init__(self, refusal: Refusal, message: str) -> None:
        super().__init__(message)
        self.extraction = refused(refusal, message)


class _Child:
    """A process that does one task with one file."""

    def __init__(
        self,
        what: Read | Draw | Explain | Decode,
        content: bytes,
        password: str | None,
        limits: ChildLimits,
        command: Sequence[str],
    ) -> None:
        self._limits = limits
        self._pictures_read = 0
        task = Task(what, password, len(content), limits.memory_bytes, limits.cpu_s, os.getpid())
        try:
            head = framed(task)
            self._process = Process(command, ENVIRONMENT, limits.wall_s)
        except UnicodeEncodeError:  # half a surrogate pair
            raise _Ended(Refusal.WRONG_PASSWORD, "The password is no text.") from None
        except OSError as error:
            reason = f"No process could be started to read it: {error.strerror}."
            raise _Ended(Refusal.LIMITS_EXCEEDED, reason) from None
        self._process.send(head, content)

    def __enter__(self) -> Self:
        self._process.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.__exit__(kind, error, at)

    def messages(self) -> Iterator[FromChild]:
        """What it says. Raises _Ended where it says nonsense, too much, or nothing in time."""
        try:
            yield from messages(self._process.said(), self._limits.message_bytes)
        except Overdue:
            raise _Ended(Refusal.LIMITS_EXCEEDED, f"Reading it takes longer than {self._limits.wall_s:g} s.") from None
        except TooLong:
            raise _Ended(Refusal.LIMITS_EXCEEDED, "It holds more than a statement does.") from None
        except Garbled:
            raise _Ended(Refusal.CORRUPT, BROKE) from None

    def read(self, png: bytes, tesseract: str) -> None:
        """Answer with the words of a page's picture. Its own time stands still meanwhile."""
        began = time.monotonic()
        self._pictures_read += 1
        allowed = self._pictures_read <= self._limits.scanned_pages and png.startswith(PNG)
        self._process.send(framed(Words(ocr.words(png, self._limits, tesseract) if allowed else ())))
        self._process.allow(time.monotonic() - began)

    def ended(self) -> _Ended:
        """Why it said no more, by how it ended."""
        status = self._process.end()
        if status == -signal.SIGXCPU:
            return _Ended(Refusal.LIMITS_EXCEEDED, f"Reading it takes more than {self._limits.cpu_s} s of computing.")
        if status == -signal.SIGKILL:
            return _Ended(Refusal.LIMITS_EXCEEDED, KILLED)
        # One that isn't given memory may break in any way. It grows by doubling, so it has come half the way at least.
        if status != 0 and self._process.peak_bytes > self._limits.memory_bytes // 2:
            return _Ended(Refusal.LIMITS_EXCEEDED, OUT_OF_MEMORY)
        return _Ended(Refusal.CORRUPT, BROKE)
