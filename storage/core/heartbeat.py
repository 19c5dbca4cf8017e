"""Signs of life between a process and the one that started it, over the socket that they share.

A process that dies is noticed by itself; one that hangs is not: it holds its port, its leases and its work. So each
sends a byte every two seconds from a thread of its own, however long a pass its other threads are in: only a process
that is stopped, or whose interpreter one call never lets go, falls silent.

A process whose heart beats may still do nothing: a thread waits for a dead disk, or for another thread. So the loops
that a component's work hangs on report each round, and the process ends when one is overdue: it is then started again.
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
ROUND_WITHIN_S = 180.0  # of a loop, whose waits for databases, workers and Dagster end within 20 s each. Our judgement
LAST_WORDS_S = 1.0
LONGEST_CHECK_S = 1.0  # whoever listens looks four times a second; for longer it was not awake itself

log = logging.getLogger(__name__)


class Loop:
    """A loop that is watched, in time that this process was awake: counted in beats, so a machine that was suspended or
    busy says nothing about it.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._beats = 0

    def come_around(self) -> None:
        self._beats = 0

    def is_overdue(self) -> bool:
        """Return whether it is, as of one beat later than when this was last asked."""
        self._beats += 1
        return self._beats * BEAT_EVERY_S > ROUND_WITHIN_S


_loops: set[Loop] = set()


@contextmanager
def watched_loop(name: str) -> Iterator[Callable[[], None]]:
    """Watch a loop for as long as the context lasts; what it gives is to be called every round."""
    loop = Loop(name)
    _loops.add(loop)
    try:
        yield loop.come_around
    finally:
        _loops.discard(loop)


def overdue_loops() -> list[str]:
    """Return the names of loops that have not come around in time; to be asked once a beat."""
    return [loop.name for loop in list(_loops) if loop.is_overdue()]


def _end_if_overdue() -> None:
    """End the process when a loop is overdue. Saying so is left to another thread: the log may be what is blocked."""
    if names := overdue_loops():
        message = "ending this process, for its work hangs (%s): no round within %d s"
        threading.Thread(target=log.error, args=(message, ", ".join(names), ROUND_WITHIN_S), daemon=True).start()
        time.sleep(LAST_WORDS_S)
        os._exit(1)


def beat(descriptor: int) -> None:
    """Send signs of life in a thread, for as long as somebody holds the other end.

    They go through a descriptor of their own: a number that is closed here soon belongs to another file or connection.
    """
    ours = os.dup(descriptor)
    beat_by(lambda: os.write(ours, b"."))


def beat_by(send: Callable[[], object]) -> None:
    """Call `send` every two seconds in a thread, until nobody holds the other end. The thread watches the loops, too.

    The process ends at once if a thread found no memory to begin: whoever started that thread waits for ever
    (`Thread.start` waits for its first step), and no other thread can tell. Python only reports it, and a function of
    our own to report to would need memory, too; a list's `append` needs next to none.
    """
    failures: list[sys.UnraisableHookArgs] = []
    sys.unraisablehook = failures.append

    def keep_on() -> None:
        with suppress(OSError):  # what happens without a parent is decided elsewhere
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
    """How long a process has been silent, in time that the listener was awake itself.

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
