"""Heartbeats from a process to the one that started it, over the socket that they share.

A process that ends is noticed without heartbeats. One that hangs is not, and still holds its port, its leases and its
work. So each process sends a byte every two seconds from a separate thread, even during long computations. It falls
silent only if it is stopped, or if one call never releases the interpreter.

A process that sends heartbeats may still do no work, because a thread waits for a dead disk or for another thread. So
the loops that do a component's work report each round. When one is overdue, the process ends, and it is then restarted.
"""

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection

BEAT_EVERY_S = 2.0
HUNG_AFTER_S = 20.0  # ten beats
FIRST_BEAT_WITHIN_S = 300.0  # until a process has imported what it needs, on a busy machine
# For one round of a watched loop, each of whose waits (for a database, a worker or Dagster) takes up to 20 s. Our
# judgement.
ROUND_WITHIN_S = 180.0
LOGGING_S = 1.0  # for the log, before a process with an overdue loop ends
LONGEST_CHECK_S = 1.0  # the listener checks four times a second; after a longer gap it was suspended or too busy

log = logging.getLogger(__name__)


class Loop:
    """A watched loop.

    Time is counted in heartbeats of this process, so that time in which the machine was suspended or too busy doesn't
    count.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._beats = 0

    def report_round(self) -> None:
        self._beats = 0

    def is_overdue(self) -> bool:
        """Count one more heartbeat. Return whether the loop has made no round for too long."""
        self._beats += 1
        return self._beats * BEAT_EVERY_S > ROUND_WITHIN_S


_loops: set[Loop] = set()


@contextmanager
def watched_loop(name: str) -> Iterator[Callable[[], None]]:
    """Watch a loop inside the block. Yield a function that the loop must call in each round."""
    loop = Loop(name)
    _loops.add(loop)
    try:
        yield loop.report_round
    finally:
        _loops.discard(loop)


def find_overdue_loops() -> list[str]:
    """Return the names of overdue loops. Call this once for each heartbeat."""
    return [loop.name for loop in list(_loops) if loop.is_overdue()]


def _end_if_overdue() -> None:
    """End the process if a loop is overdue. Another thread logs it, because the log itself may be blocked."""
    if names := find_overdue_loops():
        message = "ending this process because its work hangs (%s): no round within %d s"
        threading.Thread(target=log.error, args=(message, ", ".join(names), ROUND_WITHIN_S), daemon=True).start()
        time.sleep(LOGGING_S)
        os._exit(1)


def send_heartbeats(descriptor: int) -> None:
    """Send heartbeats in a thread until the other end is closed.

    They use a duplicated descriptor: if the caller closes its own, the number may soon belong to another file.
    """
    duplicate = os.dup(descriptor)
    send_heartbeats_by(lambda: os.write(duplicate, b"."))


def send_heartbeats_by(send: Callable[[], object]) -> None:
    """Call `send` every two seconds in a thread, until it raises OSError because the other end is closed.

    The thread also ends the process when a watched loop is overdue.

    If a new thread has no memory to start, `Thread.start` waits for ever, and Python only calls `sys.unraisablehook`.
    So the process exits after such a call. A hook of our own would need memory, too; a list's `append` needs almost
    none.
    """
    failures: list[sys.UnraisableHookArgs] = []
    sys.unraisablehook = failures.append

    def keep_on() -> None:
        with suppress(OSError):  # other code decides what to do without a parent
            while True:
                _report(failures)
                _end_if_overdue()
                send()
                time.sleep(BEAT_EVERY_S)

    threading.Thread(target=keep_on, name="heartbeat", daemon=True).start()


def _report(failures: "list[sys.UnraisableHookArgs]") -> None:
    while failures:
        failure = failures.pop(0)
        sys.__unraisablehook__(failure)
        if issubclass(failure.exc_type, MemoryError):
            os._exit(1)


class Pulse:
    """How long a process has been silent, counting only time in which the listener was running.

    Each check of the listener adds the time since the last one, by its monotonic clock, but at most a second: if the
    machine was suspended, or too busy for the listener to check, that says nothing about the process.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._checked_at = clock()
        self._silent_s = 0.0
        self._allowed_s = FIRST_BEAT_WITHIN_S

    def note(self, *, heard: bool) -> None:
        """Record a check by the listener: whether the process has sent anything since the last one."""
        now = self._clock()
        if heard:
            self._silent_s, self._allowed_s = 0.0, HUNG_AFTER_S
        else:
            self._silent_s += min(now - self._checked_at, LONGEST_CHECK_S)
        self._checked_at = now

    @property
    def hangs(self) -> bool:
        """Whether the process has been silent for too long."""
        return self._silent_s > self._allowed_s


def take_beats(line: Connection) -> bool:
    """Take what was sent by `send_heartbeats`; return whether there was anything."""
    os.set_blocking(line.fileno(), False)  # not `line.poll`, which fails if the limit on open files is 0
    try:
        return bool(os.read(line.fileno(), 65_536))
    except OSError:  # nothing was sent, or the other end is gone
        return False
