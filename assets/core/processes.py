"""Tools for a small process tree: children that end with their parent, locks for one process per home, socket paths.

A child's standard input is one end of a socket pair. However the parent ends, the child then reads the end of the
stream and ends too. (The kernel's parent-death signal would be wrong: it is sent when the starting *thread* ends.)
Each child has its own session, so that Ctrl-C on a terminal reaches only the parent, which ends the children in order.
"""

import fcntl
import hashlib
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple
from uuid import UUID, uuid4

from storage.core.heartbeat import send_heartbeats, send_heartbeats_by
from storage.core.signals import call_when_asked_to_stop

STANDARD_INPUT = 0
LONGEST_SOCKET_PATH = 100  # the system's limit is 104 or 108 bytes
MAX_SLOTS = 32  # of a home: our judgement


class AlreadyRunningError(Exception):
    """Another process already runs this part of Tidemark in this home."""


class Child(NamedTuple):
    process: subprocess.Popen[bytes]
    line: Connection  # the other end is the child's standard input


def spawn(module: str, *arguments: str, environment: Mapping[str, str], keep: Sequence[int] = ()) -> Child:
    """Start `python -m module arguments…` as a new process (not a fork) that inherits the file descriptors `keep`."""
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=theirs.fileno(),
            start_new_session=True,
            env={**os.environ, **environment},
            pass_fds=keep,
        )
    return Child(process, Connection(ours.detach()))


def line_to_parent() -> Connection:
    """Return the child's end of the connection that `spawn` opened."""
    return Connection(os.dup(STANDARD_INPUT))


def end_with_parent() -> None:
    """Exit as soon as the parent ends; until then, send it heartbeats."""
    send_heartbeats(STANDARD_INPUT)
    _call_when_parent_ends(partial(os._exit, 1))


def stop_requested(with_parent: bool) -> threading.Event:
    """Return an event that SIGTERM and SIGINT set and, with `with_parent`, the end of the parent.

    The process's watched loops are checked in either case, because it is restarted when it ends.
    """
    stop = threading.Event()
    call_when_asked_to_stop(stop.set)
    if with_parent:
        send_heartbeats(STANDARD_INPUT)
        _call_when_parent_ends(stop.set)
    else:
        send_heartbeats_by(lambda: None)
    return stop


def _call_when_parent_ends(action: Callable[[], None]) -> None:
    def run() -> None:
        line_to_parent().poll(None)
        action()

    threading.Thread(target=run, name="stop", daemon=True).start()


def end(process: subprocess.Popen[bytes], grace_s: float) -> None:
    """Ask a child to end, and kill it after `grace_s`."""
    process.terminate()
    try:
        process.wait(grace_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def hold_lock(lock_file: Path) -> Iterator[UUID]:
    """Hold a file lock. Yield an id that is stored in the file, so that later holders get the same.

    Raises:
        AlreadyRunningError: another process holds it.
    """
    with lock_file.open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise AlreadyRunningError(f"This part of Tidemark is already running: {lock_file} is locked.") from error
        lock.seek(0)
        holder = UUID(lock.read() or str(uuid4()))
        lock.truncate(0)
        lock.write(str(holder))
        lock.flush()
        yield holder


@contextmanager
def hold_slot(folder: Path, name: str) -> Iterator[tuple[int, UUID]]:
    """Hold the first free one of a home's numbered slots. Yield its number and its id, which later holders get too.

    Raises:
        AlreadyRunningError: all slots are taken.
    """
    with ExitStack() as stack:
        for number in range(1, MAX_SLOTS + 1):
            try:
                holder = stack.enter_context(hold_lock(folder / f"{name}-{number}.lock"))
            except AlreadyRunningError:
                continue
            yield number, holder
            return
    raise AlreadyRunningError(f"{MAX_SLOTS} processes of this part of Tidemark are already running in this home.")


def list_slots(folder: Path, name: str) -> list[int]:
    """Return the numbers of all slots that were ever held."""
    numbers = (path.stem.removeprefix(f"{name}-") for path in folder.glob(f"{name}-*.lock"))
    return sorted(int(number) for number in numbers if number.isdecimal())


def socket_path(home: Path, name: str) -> Path:
    """Return the path for a Unix socket of this home: in the home or, if that path is too long for a socket, in a
    private folder below the system's temporary folder.
    """
    path = home / name
    if len(os.fsencode(path)) <= LONGEST_SOCKET_PATH:
        return path
    digest = hashlib.sha256(os.fsencode(home)).hexdigest()[:12]
    folder = Path(tempfile.gettempdir()) / f"tidemark-{os.getuid()}-{digest}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise PermissionError(f"{folder} must belong to this user, and no other user may have access to it")
    return folder / name
