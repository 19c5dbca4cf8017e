"""Children that misbehave, each in one way, with what a real one has: started as `python -I children.py NAME MARK`."""

import ctypes
import json
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final, NamedTuple, NoReturn

import msgspec

from isolation.child import Line, main
from isolation.messages import LENGTH, Answer, Progress, Task
from pipelines.intake.pdf.page.result import Extraction, Kind, Refusal, Statement, Verdict, refused

Said = Iterator[msgspec.Struct]
MIB: Final = 1024 * 1024


class Given(NamedTuple):
    line: Line
    task: Task
    content: bytes


def reports(value: object) -> Answer:
    """An answer whose message is the value as JSON."""
    return Answer(refused(Refusal.NOT_A_STATEMENT, json.dumps(value)))


def is_killed(_: Given) -> Said:
    yield Progress(1, 2)
    os.kill(os.getpid(), signal.SIGKILL)


def hangs(_: Given) -> Said:
    time.sleep(3600)
    yield reports("awake")


def stands_still(_: Given) -> Said:
    os.kill(os.getpid(), signal.SIGSTOP)
    yield reports("awake")


def burns(_: Given) -> Said:
    while True:
        pass
    yield reports("done")


def eats(_: Given) -> Said:
    eaten = [bytearray(MIB)]
    while True:
        eaten.append(bytearray(MIB))
    yield reports(len(eaten))


def eats_and_aborts(_: Given) -> Said:
    """As C++ does that isn't given what it asks for."""
    eaten = []
    try:
        while True:
            eaten.append(bytearray(MIB))
    except MemoryError:
        time.sleep(1)  # as long as it takes to be seen
        os.abort()
    yield reports("done")


def breaks(_: Given) -> Said:
    ctypes.string_at(0)
    yield reports("whole")


def says_nothing(_: Given) -> Said:
    return iter(())


def fails(given: Given) -> NoReturn:
    raise ValueError(f"can't read {given.content!r}")


def babbles(given: Given) -> Said:
    """Past what libraries may not do."""
    os.write(given.line._said.fileno(), LENGTH.pack(12) + b"%PDF garbage")
    yield reports("done")


def announces_much(given: Given) -> Said:
    os.write(given.line._said.fileno(), LENGTH.pack(0xFFFF_FFFF) + b"x" * 1000)
    yield reports("done")


def prints(_: Given) -> Said:
    """As a library might."""
    print("warning: xref table is broken", flush=True)  # noqa: T201
    os.write(1, b"garbage")
    os.write(2, b"garbage")
    yield reports("done")


def lies(_: Given) -> Said:
    """Money that is no number."""
    nothing: Mapping[str, Any] = dict.fromkeys(Statement.__dataclass_fields__)
    values: dict[str, Any] = {
        **nothing,
        "kind": Kind.LISTING,
        "verdict": Verdict.PARTIAL,
        "reasons": (),
        "entries": (),
        "read_by_ocr": False,
        "first_page": 1,
        "last_page": 1,
        "closing_balance": Decimal("NaN"),
    }
    yield Answer(Extraction(1, (Statement(**values),), ()))


def connects(given: Given) -> Said:
    """To the port that the content names."""
    try:
        socket.create_connection(("127.0.0.1", int(given.content)), timeout=5).close()
    except OSError as error:
        yield reports(type(error).__name__)
    else:
        yield reports("connected")


def writes(given: Given) -> Said:
    """A file at the path that the content names."""
    try:
        with open(given.content, "wb") as file:
            file.write(b"x")
    except OSError as error:
        yield reports(type(error).__name__)
    else:
        yield reports("written")


def reads(given: Given) -> Said:
    """The file that the content names."""
    try:
        with open(given.content, "rb") as file:
            yield reports(file.read().decode())
    except OSError as error:
        yield reports(type(error).__name__)


def leaves_another(_: Given) -> Said:
    """A process of its own, which only root may start in spite of the limit."""
    try:
        if os.fork() == 0:
            time.sleep(3600)
    except BlockingIOError:
        yield reports("alone")
    else:
        yield reports("born")


def inspects_surroundings(_: Given) -> Said:
    limits = ("AS", "CPU", "FSIZE", "CORE", "NOFILE", "NPROC")
    yield reports(
        {
            "environment": dict(os.environ),
            "folder": os.getcwd(),
            "niceness": os.nice(0),
            "open files": [each for each in range(1024) if is_open(each)],
            "limits": {name: resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))[0] for name in limits},
        }
    )


def is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def echoes(given: Given) -> Said:
    yield reports([len(given.content), sum(given.content[:1000]), given.task.password])


def counts(_: Given) -> Said:
    for page in range(1, 4):
        yield Progress(page, 3)
    yield reports("done")


KINDS: Final[Mapping[str, Callable[[Given], Said]]] = {
    work.__name__: work
    for work in (
        is_killed, hangs, stands_still, burns, eats, eats_and_aborts, breaks, says_nothing, fails, babbles,
        announces_much, prints, lies, connects, writes, reads, leaves_another, inspects_surroundings, echoes, counts,
    )
}  # fmt: skip


if __name__ == "__main__":
    main(lambda line, task, content: KINDS[sys.argv[1]](Given(line, task, content)))
