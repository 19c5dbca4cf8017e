"""The child process that reads one file: it receives a task, confines itself, and only then reads the file.

`isolation.parent` starts it as `python -I -m isolation.child`; run by hand it waits for a task on standard input.
Every import delays every file, so a module that only one kind of task needs is imported inside that task.
"""

import gc
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO, Final

import msgspec

import isolation
import pipelines
from isolation.confinement import confine
from isolation.messages import (
    LENGTH,
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
    Invalid,
    Lines,
    Picture,
    Progress,
    ReadExport,
    ReadStatements,
    ReadText,
    Task,
    Text,
    Words,
    frame_message,
)
from pipelines.intake import lines
from pipelines.intake.lines import Rows
from pipelines.intake.pdf.document.scanned import ScannedWord
from pipelines.intake.pdf.page.result import Refusal, refused_extraction
from pipelines.vocabulary.errors import InvalidRequest

MAX_FRAMES: Final = 8  # of a bug's traceback: enough to find the line, and short enough for a log line
# Per message: decoding one blocks the parent's other threads, so messages are small.
MAX_ELEMENTS: Final = 500
MAX_LINES_BYTES: Final = 1024 * 1024
# Folders that stay readable after the confinement: they hold modules that are imported late, and their data files (such
# as bank layouts).
READABLE: Final = (sys.prefix, sys.base_prefix, *isolation.__path__, *pipelines.__path__)


class Channel:
    """Messages to and from the parent. What libraries print is discarded, because it would corrupt the messages."""

    def __init__(self) -> None:
        self._input: BinaryIO = sys.stdin.buffer
        self._output: BinaryIO = os.fdopen(os.dup(1), "wb")
        discard = os.open(os.devnull, os.O_WRONLY)
        os.dup2(discard, 1)
        os.close(discard)

    def send(self, message: msgspec.Struct) -> None:
        self._output.write(frame_message(message))
        self._output.flush()

    def read_task(self) -> Task:
        return msgspec.msgpack.decode(self._receive(), type=Task)

    def read_content(self, size: int) -> bytes:
        return self._input.read(size)

    def request_words(self, page: int, png: bytes) -> Sequence[ScannedWord]:
        """Let the parent read a scanned page by OCR, and return its words."""
        self.send(Picture(page, png))
        return msgspec.msgpack.decode(self._receive(), type=Words).words

    def _receive(self) -> bytes:
        (length,) = LENGTH.unpack(self._input.read(LENGTH.size))
        return self._input.read(length)


Work = Callable[[Channel, Task, bytes], Iterator[msgspec.Struct]]


def main(work: Work | None = None) -> None:
    """Do one task. Tests pass a `work` of their own."""
    channel = Channel()
    task = channel.read_task()
    if isinstance(task.action, ReadStatements):
        # Before `confine`, so that its memory isn't counted against the limit.
        import pipelines.intake.pdf.extraction  # noqa: F401, PLC0415
    # Polars, which reads exports, starts threads. It is imported after the confinement, so that they inherit it.
    starts_threads = isinstance(task.action, ReadExport)
    confine(task.memory_bytes, task.cpu_s, task.parent_pid, READABLE, starts_threads=starts_threads)
    sys.dont_write_bytecode = True  # writing files is forbidden now
    content = channel.read_content(task.content_bytes)
    try:
        for message in (work or do_task)(channel, task, content):
            channel.send(message)
    except MemoryError:
        # Whatever the task: the parent expects this message.
        channel.send(Extracted(refused_extraction(Refusal.LIMITS_EXCEEDED, OUT_OF_MEMORY)))
    except Exception as error:  # a bug of ours, which the parent logs as such
        channel.send(Failed(type(error).__name__, _format_frames(error)))


def do_task(channel: Channel, task: Task, content: bytes) -> Iterator[msgspec.Struct]:
    """Do the task with the file's bytes, and yield the messages to the parent."""
    match task.action:
        case Decode(rows):
            gc.disable()  # a document has no reference cycles, and searching for them takes two thirds of the time
            yield from decode_document(content, rows)
        case ReadStatements() as read:
            from pipelines.intake.pdf.extraction import Limits, extract  # noqa: PLC0415  # already imported by `main`

            yield Extracted(
                extract(
                    content,
                    task.password,
                    limits=Limits(read.max_pages, read.max_characters, read.max_scanned_pages),
                    scanned=channel.request_words if read.use_ocr else None,
                    on_page=lambda page, pages: channel.send(Progress(page, pages)),
                )
            )
        case Draw(page, highlight):
            from pipelines.intake.pdf.render import draw_page  # noqa: PLC0415

            yield Picture(page, draw_page(content, task.password, page, highlight))
        case Explain():
            from pipelines.intake.pdf.render import draw_explained_pages  # noqa: PLC0415

            yield from (Picture(page, png) for page, png in draw_explained_pages(content, task.password))
        case ReadText():
            yield read_text(content)
        case ReadExport(name):
            yield from read_export(name, content)


def read_text(content: bytes) -> Text:
    """Return the text of a PDF; it is empty and incomplete if the file can't be opened."""
    from pipelines.intake.pdf.document.document import Unreadable, open_document, pages_of  # noqa: PLC0415

    try:
        with open_document(content, None) as document:
            pages = pages_of(document)
    except Unreadable:
        return Text("", complete=False)
    lines = [line.text for page in pages for line in page.lines]
    return Text("\n".join(lines), complete=not any(page.is_picture for page in pages))


def read_export(name: str, content: bytes) -> Iterator[msgspec.Struct]:
    """Yield the rows of an export in parts, or the reason why it is refused."""
    from pipelines.intake.exports import plain_refusals, plain_rows, read_unmasked  # noqa: PLC0415

    try:
        contents = read_unmasked(name, content)
    except InvalidRequest as refusal:
        yield Invalid(refusal.code, refusal.detail)
        return
    yield from map(ExportRows, plain_rows(contents))
    yield ExportEnd(plain_refusals(contents), contents.notes)


def decode_document(content: bytes, rows: Rows | None = None) -> Iterator[msgspec.Struct]:
    """Yield a JSON document in parts, or the reason why it is refused."""
    try:
        decoded = lines.decode(content, rows)
    except InvalidRequest as refusal:
        yield Invalid(refusal.code, refusal.detail)
        return
    for first in range(0, len(decoded.lines), MAX_LINES_BYTES):
        yield Lines(decoded.lines[first : first + MAX_LINES_BYTES])
    document = decoded.document
    if isinstance(document, dict):
        for name, elements in document.items():
            if isinstance(elements, list):
                yield from _split_list(name, elements)
                document[name] = []
    elif isinstance(document, list):
        yield from _split_list(None, document)
        document = list[object]()
    yield Document(document)


def _split_list(name: str | None, elements: Sequence[object]) -> Iterator[Elements]:
    for first in range(0, len(elements), MAX_ELEMENTS):
        yield Elements(name, list(elements[first : first + MAX_ELEMENTS]))


def _format_frames(error: BaseException) -> tuple[str, ...]:
    """Return file, line and function of the innermost MAX_FRAMES calls, the innermost last."""
    stack = traceback.extract_tb(error.__traceback__)[-MAX_FRAMES:]
    return tuple(f"{os.path.basename(frame.filename)}:{frame.lineno} {frame.name}" for frame in stack)


if __name__ == "__main__":
    main()
