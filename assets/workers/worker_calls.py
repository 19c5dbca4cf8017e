"""How other processes speak to a home's workers: one line of JSON each way over Unix sockets that only their user may
open.

Every call is answered with yes or no, at once: a run is taken, not awaited. Each worker has a numbered slot, and the
slot a socket; one that nobody listens at is an empty slot.
"""

import json
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path

from assets.core.processes import slots, socket_path

SLOT = "worker"
TIMEOUT_S = 10.0  # the worker notes a run in the database before it answers
LONGEST_LINE = 4_096


class Verb(StrEnum):
    TAKE = "take"  # execute this run; no: the worker is about to end, or not free and asked to be
    HOLDS = "holds"  # is this run waiting or executing here?
    INTERRUPT = "interrupt"  # stop this run; yes: it executes and will report its own end


@dataclass(frozen=True)
class Call:
    verb: Verb
    run_id: str
    queue: str | None = None
    batch: int | None = None  # fencing token of the batch that the run is for
    only_if_free: bool = False


class NoWorkerError(ConnectionError):
    """Nobody listens: no worker runs, or it ended before it answered."""


def offer(home: Path, run: Call) -> bool:
    """Whether a worker of this Dagster home took the run: one that is free, or else one that will be.

    Raises:
        NoWorkerError: no worker runs.
        TimeoutError: a worker doesn't answer, and may have taken it.
    """
    return any(_answers(home, replace(run, only_if_free=True))) or any(_answers(home, run))


def anyone(home: Path, question: Call) -> bool:
    """Whether any worker of this Dagster home says yes.

    Raises:
        NoWorkerError: no worker runs.
        TimeoutError: a worker doesn't answer; those before it said no.
    """
    return any(_answers(home, question))


def _answers(home: Path, question: Call) -> Iterator[bool]:
    """One worker's after another's: who has heard enough doesn't ask the next."""
    nobody = True
    for slot in slots(home, SLOT):
        with suppress(NoWorkerError):
            answer = _ask(home, slot, question)
            nobody = False
            yield answer
    if nobody:
        raise NoWorkerError("No Tidemark worker runs for this home: start `tidemark worker`.")


def _ask(home: Path, slot: int, question: Call) -> bool:
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(TIMEOUT_S)
        try:
            line.connect(str(_socket(home, slot)))
            line.sendall(json.dumps(asdict(question)).encode() + b"\n")
            answer = line.makefile("rb").readline(LONGEST_LINE)
        except (FileNotFoundError, ConnectionError) as error:
            raise NoWorkerError from error
    if not answer:
        raise NoWorkerError
    return bool(json.loads(answer))


def _socket(home: Path, slot: int) -> Path:
    return socket_path(home, f"{SLOT}-{slot:02}.sock")


@contextmanager
def answering(home: Path, slot: int, answer: Callable[[Call], bool]) -> Iterator[None]:
    """Answer calls in threads of their own for as long as the context lasts."""
    path = _socket(home, slot)
    path.unlink(missing_ok=True)

    class Answering(socketserver.StreamRequestHandler):
        timeout = TIMEOUT_S

        def handle(self) -> None:
            fields = json.loads(self.rfile.readline(LONGEST_LINE))
            question = Call(Verb(fields.pop("verb")), **fields)
            self.wfile.write(json.dumps(answer(question)).encode() + b"\n")

    server = socketserver.ThreadingUnixStreamServer(str(path), Answering, bind_and_activate=False)
    server.server_bind()
    path.chmod(0o600)  # before it listens; a umask would hold for what other threads make meanwhile
    server.server_activate()
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="calls", daemon=True).start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        path.unlink(missing_ok=True)
