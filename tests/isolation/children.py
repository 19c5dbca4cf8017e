"""Children that misbehave, each in one way, confined like a real one. Started as `python -I children.py NAME MARK`."""

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

from isolation.child import Channel, main
from isolation.messages import LENGTH, Extracted, Progress, Task
from pipelines.intake.pdf.page.result import Extraction, Kind, Refusal, Statement, Verdict, refused_extraction

Messages = Iterator[msgspec.Struct]
MIB: Final = 1024 * 1024


class Given(NamedTuple):
    channel: Channel
    task: Task
    content: bytes


def answer(value: object) -> Extracted:
    """Return an answer whose message is the value as JSON."""
    return Extracted(refused_extraction(Refusal.NOT_A_STATEMENT, json.dumps(value)))


def is_killed(_: Given) -> Messages:
    yield Progress(1, 2)
    os.kill(os.getpid(), signal.SIGKILL)


def hangs(_: Given) -> Messages:
    time.sleep(3600)
    yield answer("awake")


def stands_still(_: Given) -> Messages:
    os.kill(os.getpid(), signal.SIGSTOP)
    yield answer("awake")


def burns(_: Given) -> Messages:
    while True:
        pass
    yield answer("done")


def eats(_: Given) -> Messages:
    eaten = [bytearray(MIB)]
    while True:
        eaten.append(bytearray(MIB))
    yield answer(len(eaten))


def eats_and_aborts(_: Given) -> Messages:
    """Abort after a failed allocation, as C++ code does."""
    eaten = []
    try:
        while True:
            eaten.append(bytearray(MIB))
    except MemoryError:
        time.sleep(1)  # until the parent has measured the memory
        os.abort()
    yield answer("done")


def breaks(_: Given) -> Messages:
    ctypes.string_at(0)
    yield answer("whole")


def says_nothing(_: Given) -> Messages:
    return iter(())


def fails(given: Given) -> NoReturn:
    raise ValueError(f"can't read {given.content!r}")


def babbles(given: Given) -> Messages:
    """Write to the parent's pipe itself, which libraries can't reach."""
    os.write(given.channel._output.fileno(), LENGTH.pack(12) + b"%PDF garbage")
    yield answer("done")


def announces_much(given: Given) -> Messages:
    os.write(given.channel._output.fileno(), LENGTH.pack(0xFFFF_FFFF) + b"x" * 1000)
    yield answer("done")


def prints(_: Given) -> Messages:
    """Print to the standard streams, as a library might."""
    print("warning: xref table is broken", flush=True)  # noqa: T201
    os.write(1, b"garbage")
    os.write(2, b"garbage")
    yield answer("done")


def lies(_: Given) -> Messages:
    """Answer with an amount that is NaN."""
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
    yield Extracted(Extraction(1, (Statement(**values),), ()))


def connects(given: Given) -> Messages:
    """Connect to the port in the content."""
    try:
        socket.create_connection(("127.0.0.1", int(given.content)), timeout=5).close()
    except OSError as error:
        yield answer(type(error).__name__)
    else:
        yield answer("connected")


def writes(given: Given) -> Messages:
    """Write a file at the path in the content."""
    try:
        with open(given.content, "wb") as file:
            file.write(b"x")
    except OSError as error:
        yield answer(type(error).__name__)
    else:
        yield answer("written")


def reads(given: Given) -> Messages:
    """Read the file at the path in the content."""
    try:
        with open(given.content, "rb") as file:
            yield answer(file.read().decode())
    except OSError as error:
        yield answer(type(error).__name__)


def leaves_another(_: Given) -> Messages:
    """Start a process, which only root may do in spite of the limit."""
    try:
        if os.fork() == 0:
            time.sleep(3600)
    except BlockingIOError:
        yield answer("alone")
    else:
        yield answer("born")


def inspects_surroundings(_: Given) -> Messages:
    limits = ("AS", "CPU", "FSIZE", "CORE", "NOFILE", "NPROC")
    yield answer(
        {
            "environment": dict(os.environ),
            "folder": os.getcwd(),
            "niceness": os.nice(0),
            "open files": [descriptor for descriptor in range(1024) if is_open(descriptor)],
            "limits": {name: resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))[0] for name in limits},
        }
    )


def is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def echoes(given: Given) -> Messages:
    yield answer([len(given.content), sum(given.content[:1000]), given.task.password])


def counts(_: Given) -> Messages:
    for page in range(1, 4):
        yield Progress(page, 3)
    yield answer("done")


KINDS: Final[Mapping[str, Callable[[Given], Messages]]] = {
    work.__name__: work
    for work in (
        is_killed, hangs, stands_still, burns, eats, eats_and_aborts, breaks, says_nothing, fails, babbles,
        announces_much, prints, lies, connects, writes, reads, leaves_another, inspects_surroundings, echoes, counts,
    )
}  # fmt: skip


if __name__ == "__main__":
    main(lambda channel, task, content: KINDS[sys.argv[1]](Given(channel, task, content)))
