"""Heartbeats from a process to the one that started it, over the socket that they share.

The end of a process is noticed without them, but not that it hangs: then it still holds its port, its leases and its
work. So each process sends a byte every two seconds from a separate thread, even during long computations. Only a
process that is stopped, or in which one call never releases the interpreter, falls silent.
"""

import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection

BEAT_EVERY_S = 2.0
HUNG_AFTER_S = 20.0  # ten beats
FIRST_BEAT_WITHIN_S = 300.0  # until a process has imported what it needs, on a busy machine
LONGEST_CHECK_S = 1.0  # the listener checks four times a second; after a longer gap it was suspended or too busy


def beat(descriptor: int) -> None:
    """Send heartbeats in a thread until the other end is closed.

    They use a duplicated descriptor: if the caller closes its own, the number may soon belong to another file.
    """
    duplicate = os.dup(descriptor)
    beat_by(lambda: os.write(duplicate, b"."))


def beat_by(send: Callable[[], object]) -> None:
    """Call `send` every two seconds in a thread, until it raises OSError because the other end is closed.

    The process exits if a thread had no memory to start: `Thread.start` then waits forever, and no other thread can
    notice it. Python only calls `sys.unraisablehook`. A function of our own as hook would need memory, too; a list's
    `append` needs almost none.
    """
    failures: list[sys.UnraisableHookArgs] = []
    sys.unraisablehook = failures.append

    def keep_on() -> None:
        with suppress(OSError):  # other code decides what to do without a parent
            while True:
                _report(failures)
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

    Counted by the listener's monotonic clock, and never more than a second from one look to the next: a machine that
    was suspended, or too busy to let the listener look, says nothing about the process.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._checked_at = clock()
        self._silent_s = 0.0
        self._bearable_s = FIRST_BEAT_WITHIN_S

    def note(self, *, heard: bool) -> None:
        """Note that the listener looked just now, and whether there was a sign of life since it last did."""
        now = self._clock()
        if heard:
            self._silent_s, self._bearable_s = 0.0, HUNG_AFTER_S
        else:
            self._silent_s += min(now - self._checked_at, LONGEST_CHECK_S)
        self._checked_at = now

    @property
    def silent(self) -> bool:
        """Whether the process hangs."""
        return self._silent_s > self._bearable_s


def take_beats(line: Connection) -> bool:
    """Take what was sent by `beat`; return whether there was anything."""
    os.set_blocking(line.fileno(), False)  # no poll: it fails in a process that is out of files
    try:
        return bool(os.read(line.fileno(), 65_536))
    except OSError:  # nothing was sent, or the other end is gone
        return False
