"""The process that reads one file: it takes its task, confines itself, and only then looks at the file.

Started by `isolation.parent` as `python -I -m isolation.child`; run by hand it waits for a task on standard input. What
it imports costs every file its time, so what only one kind of task needs is imported when asked for.
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
    Answer,
    Decode,
    Document,
    Draw,
    Elements,
    Explain,
    Failed,
    Invalid,
    Lines,
    Picture,
    Progress,
    Read,
    Task,
    Words,
    framed,
)
from pipelines.intake import lines
from pipelines.intake.lines import Rows
from pipelines.intake.pdf.document.scanned import ScannedWord
from pipelines.intake.pdf.page.result import Refusal, refused
from pipelines.vocabulary.errors import InvalidRequest

MOST_FRAMES: Final = 8
ELEMENTS_AT_ONCE: Final = 500
LINES_BYTES: Final = 1024 * 1024  # at once
# What it may import late, and the layouts beside the engine.
READABLE: Final = (sys.prefix, sys.base_prefix, *isolation.__path__, *pipelines.__path__)


class Line:
    """To and from the parent. What libraries print goes nowhere, so that it garbles no message."""

    def __init__(self) -> None:
        self._heard: BinaryIO = sys.stdin.buffer
        self._said: BinaryIO = os.fdopen(os.dup(1), "wb")
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)

    def say(self, message: msgspec.Struct) -> None:
        self._said.write(framed(message))
        self._said.flush()

    def task(self) -> Task:
        return msgspec.msgpack.decode(self._hear(), type=Task)

    def content(self, size: int) -> bytes:
        return self._heard.read(size)

    def words(self, page: int, png: bytes) -> Sequence[ScannedWord]:
        """What the parent reads in a picture."""
        self.say(Picture(page, png))
        return msgspec.msgpack.decode(self._hear(), type=Words).words

    def _hear(self) -> bytes:
        (length,) = LENGTH.unpack(self._heard.read(LENGTH.size))
        return self._heard.read(length)


Work = Callable[[Line, Task, bytes], Iterator[msgspec.Struct]]


def main(work: Work | None = None) -> None:
    line = Line()
    task = line.task()
    if isinstance(task.what, Read):
        import pipelines.intake.pdf.extraction  # noqa: F401, PLC0415  # now: the memory it takes is not the file's
    confine(task.memory_bytes, task.cpu_s, task.parent, READABLE)
    sys.dont_write_bytecode = True  # it couldn't
    content = line.content(task.content_bytes)
    try:
        for message in (work or done)(line, task, content):
            line.say(message)
    except MemoryError:
        line.say(Answer(refused(Refusal.LIMITS_EXCEEDED, OUT_OF_MEMORY)))
    except Exception as error:  # a fault of ours; the parent tells it from a fault of the file's
        line.say(Failed(type(error).__name__, _frames(error)))


def done(line: Line, task: Task, content: bytes) -> Iterator[msgspec.Struct]:
    match task.what:
        case Decode(rows):
            gc.disable()  # a document has no cycles, and looking for some takes two thirds of the time
            yield from decoded(content, rows)
        case Read() as read:
            from pipelines.intake.pdf.extraction import Limits, extract  # noqa: PLC0415  # see above

            yield Answer(
                extract(
                    content,
                    task.password,
                    limits=Limits(read.pages, read.characters, read.scanned_pages),
                    scanned=line.words if read.asks else None,
                    on_page=lambda page, pages: line.say(Progress(page, pages)),
                )
            )
        case Draw(page, highlight):
            from pipelines.intake.pdf.render import page_png  # noqa: PLC0415

            yield Picture(page, page_png(content, task.password, page, highlight))
        case Explain():
            from pipelines.intake.pdf.render import explained_pngs  # noqa: PLC0415

            yield from (Picture(page, png) for page, png in explained_pngs(content, task.password))


def decoded(content: bytes, rows: Rows | None = None) -> Iterator[msgspec.Struct]:
    """A JSON document in parts, or what is wrong with it."""
    try:
        found = lines.decoded(content, rows)
    except InvalidRequest as refusal:
        yield Invalid(refusal.code, refusal.detail)
        return
    for first in range(0, len(found.lines), LINES_BYTES):
        yield Lines(found.lines[first : first + LINES_BYTES])
    document = found.document
    if isinstance(document, dict):
        for name, elements in document.items():
            if isinstance(elements, list):
                yield from _elements(name, elements)
                document[name] = []
    elif isinstance(document, list):
        yield from _elements(None, document)
        document = list[object]()
    yield Document(document)


def _elements(name: str | None, elements: Sequence[object]) -> Iterator[Elements]:
    for first in range(0, len(elements), ELEMENTS_AT_ONCE):
        yield Elements(name, list(elements[first : first + ELEMENTS_AT_ONCE]))


def _frames(error: BaseException) -> tuple[str, ...]:
    """Where it was raised, the innermost last."""
    stack = traceback.extract_tb(error.__traceback__)[-MOST_FRAMES:]
    return tuple(f"{os.path.basename(frame.filename)}:{frame.lineno} {frame.name}" for frame in stack)


if __name__ == "__main__":
    main()
