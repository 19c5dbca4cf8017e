"""Calls of other processes to a home's workers: one line of JSON each way, over Unix sockets that only their user can
open.

Every call is answered at once with yes or no: a worker accepts a run, and the caller doesn't wait for its end. Each
worker has a numbered slot with a socket of its own; a socket without a listener belongs to an empty slot.
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

from assets.core.processes import list_slots, socket_path
from assets.workers.workers import NoWorkerError, Run
from storage.core.models import Queue

SLOT = "worker"
TIMEOUT_S = 10.0  # the worker records a run in the database before it answers
MAX_LINE_BYTES = 4_096


class Verb(StrEnum):
    TAKE = "take"  # execute this run? "No": the worker is about to end or, with `only_if_free`, is busy
    HOLDS = "holds"  # does this run wait or execute here?
    INTERRUPT = "interrupt"  # stop this run? "Yes": it is executing and will report its own end


@dataclass(frozen=True)
class Call:
    verb: Verb
    run_id: str
    queue: Queue | None = None
    batch: int | None = None  # fencing token of the batch that the run is for
    only_if_free: bool = False


class HomeWorkers:
    """The workers of one Dagster home, as `assets.workers.workers.Workers`."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def launch(self, run: Run, queue: Queue) -> None:
        """Give a run to a free worker or, if there is none, to a busy one."""
        call = Call(Verb.TAKE, run.run_id, queue, run.batch)
        if not (any(self._answers(replace(call, only_if_free=True))) or any(self._answers(call))):
            raise NoWorkerError("Every Tidemark worker is shutting down and takes no more runs.")

    def count(self) -> int:
        try:
            return sum(1 for _ in self._answers(Call(Verb.HOLDS, "")))  # whatever they answer
        except NoWorkerError:
            return 0

    def has_run(self, run_id: str) -> bool:
        return self._ask_all(Call(Verb.HOLDS, run_id))

    def interrupt(self, run_id: str) -> bool:
        return self._ask_all(Call(Verb.INTERRUPT, run_id))

    def close(self) -> None:
        """Do nothing: a connection lasts for one call."""

    def _ask_all(self, call: Call) -> bool:
        """Ask one worker after another until one says yes. Return whether one did.

        Raises:
            TimeoutError: a worker doesn't answer, and no other says yes.
        """
        unanswered: TimeoutError | None = None
        for slot in list_slots(self._home, SLOT):
            try:
                if _ask(self._home, slot, call):
                    return True
            except NoWorkerError:
                continue
            except TimeoutError as error:  # the next worker may have the run
                unanswered = error
        if unanswered:
            raise unanswered
        return False

    def _answers(self, call: Call) -> Iterator[bool]:
        """Yield the answer of one worker after another. A worker is asked only when its answer is consumed."""
        no_worker = True
        for slot in list_slots(self._home, SLOT):
            with suppress(NoWorkerError):
                answer = _ask(self._home, slot, call)
                no_worker = False
                yield answer
        if no_worker:
            raise NoWorkerError("No Tidemark worker runs for this home: start `tidemark worker`.")


def _ask(home: Path, slot: int, call: Call) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(TIMEOUT_S)
        try:
            connection.connect(str(_socket(home, slot)))
            connection.sendall(json.dumps(asdict(call)).encode() + b"\n")
            answer = connection.makefile("rb").readline(MAX_LINE_BYTES)
        except (FileNotFoundError, ConnectionError) as error:
            raise NoWorkerError from error
    if not answer:
        raise NoWorkerError
    return bool(json.loads(answer))


def _socket(home: Path, slot: int) -> Path:
    return socket_path(home, f"{SLOT}-{slot:02}.sock")


@contextmanager
def serve_calls(home: Path, slot: int, answer: Callable[[Call], bool]) -> Iterator[None]:
    """Answer calls until the end of the block, each in its own thread."""
    path = _socket(home, slot)
    path.unlink(missing_ok=True)

    class Handler(socketserver.StreamRequestHandler):
        timeout = TIMEOUT_S

        def handle(self) -> None:
            fields = json.loads(self.rfile.readline(MAX_LINE_BYTES))
            queue = fields.pop("queue")
            call = Call(Verb(fields.pop("verb")), queue=Queue(queue) if queue else None, **fields)
            self.wfile.write(json.dumps(answer(call)).encode() + b"\n")

    server = socketserver.ThreadingUnixStreamServer(str(path), Handler, bind_and_activate=False)
    server.server_bind()
    path.chmod(0o600)  # before it listens; a umask would also affect the files that other threads create meanwhile
    server.server_activate()
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="calls", daemon=True).start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        path.unlink(missing_ok=True)
