"""What a small process tree needs: children that end with their parent, one holder per home, short socket paths.

A child's standard input is one end of a socket pair. When the parent is gone, however it went, the child reads the
end of the stream and ends too. (The kernel's parent-death signal would be wrong: it comes when the starting *thread*
ends.) Children have a session of their own: Ctrl-C on a terminal reaches the parent alone, who ends them in order.
"""

import fcntl
import hashlib
import os
import signal
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

from storage.core.heartbeat import beat, beat_by

STANDARD_INPUT = 0
LONGEST_SOCKET_PATH = 100  # the system's limit is 104 or 108 bytes
MOST_SLOTS = 32


class AlreadyRunningError(Exception):
    """Other processes have this part of this home."""


class Child(NamedTuple):
    process: subprocess.Popen[bytes]
    line: Connection  # the child's other end is its standard input


def spawn(module: str, *arguments: str, environment: Mapping[str, str], keep: Sequence[int] = ()) -> Child:
    """Start `python -m module arguments…` afresh, never forked; it inherits the file descriptors `keep`."""
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
    """The child's end of what `spawn` gave its parent."""
    return Connection(os.dup(STANDARD_INPUT))


def end_with_parent() -> None:
    """End this process at once when its parent is gone; until then, give it signs of life."""
    beat(STANDARD_INPUT)
    _when_parent_is_gone(partial(os._exit, 1))


def stop_requested(tethered: bool) -> threading.Event:
    """Set by SIGTERM or SIGINT, and, when tethered, by the end of the standard input: the parent's end. The process's
    loops are watched in either case: whatever started it starts it again.
    """
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    if tethered:
        beat(STANDARD_INPUT)
        _when_parent_is_gone(stop.set)
    else:
        beat_by(lambda: None)
    return stop


def _when_parent_is_gone(act: Callable[[], None]) -> None:
    def wait() -> None:
        line_to_parent().poll(None)
        act()

    threading.Thread(target=wait, name="lifeline", daemon=True).start()


def end(process: subprocess.Popen[bytes], grace_s: float) -> None:
    """Ask a child to end; after the grace, make it."""
    process.terminate()
    try:
        process.wait(grace_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def the_only_one(lock_file: Path) -> Iterator[UUID]:
    """Be the one process that has this lock, under an id that its successors in this home take over.

    Raises:
        AlreadyRunningError: another process has it.
    """
    with lock_file.open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise AlreadyRunningError(f"This part of Tidemark runs already: {lock_file} is taken.") from error
        lock.seek(0)
        holder = UUID(lock.read() or str(uuid4()))
        lock.truncate(0)
        lock.write(str(holder))
        lock.flush()
        yield holder


@contextmanager
def hold_slot(folder: Path, name: str) -> Iterator[tuple[int, UUID]]:
    """Have the first free of a home's numbered slots: its number, and the id that its next holder takes over.

    Raises:
        AlreadyRunningError: all are taken.
    """
    with ExitStack() as held:
        for number in range(1, MOST_SLOTS + 1):
            try:
                holder = held.enter_context(the_only_one(folder / f"{name}-{number}.lock"))
            except AlreadyRunningError:
                continue
            yield number, holder
            return
    raise AlreadyRunningError(f"{MOST_SLOTS} of this part of Tidemark run in this home already.")


def slots(folder: Path, name: str) -> list[int]:
    """The numbers of the slots that were ever taken."""
    found = (path.stem.removeprefix(f"{name}-") for path in folder.glob(f"{name}-*.lock"))
    return sorted(int(number) for number in found if number.isdecimal())


def socket_path(home: Path, name: str) -> Path:
    """Where a Unix socket of this home lies: in it, or, where its path is too long for a socket, in a private
    folder of the system's temporary one.
    """
    path = home / name
    if len(os.fsencode(path)) <= LONGEST_SOCKET_PATH:
        return path
    digest = hashlib.sha256(os.fsencode(home)).hexdigest()[:12]
    folder = Path(tempfile.gettempdir()) / f"tidemark-{os.getuid()}-{digest}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise PermissionError(f"{folder} must belong to this user alone")
    return folder / name
