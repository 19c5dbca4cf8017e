"""A queue of the worker: one warm process, and the runs that wait for it.

Queues never wait for each other. A queue that nobody waits for has its process only while there is work. A process that
dies takes one run with it; those that wait behind it go to the next process. What a run's end means for its batch is
the ledger's business.
"""

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from typing import Protocol

from assets.core.processes import Child
from storage.core.heartbeat import Pulse, beat_by, watched_loop

log = logging.getLogger(__name__)

FREE = "free"  # from the process: it is warm, or its run is over, however that went
ALIVE = "alive"  # from the process, again and again, whatever it does
RUN = "run"  # to the process: execute this run
ENDED_WITHIN_S = 30.0  # after an interrupt; Dagster then counts the run as canceled
INTERRUPT = "interrupt"  # to the process: stop the run that executes
STOP = "stop"  # to the process: end after the run that executes

POLL_EVERY_S = 0.25
LONG_LIFE_S = 30.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 10.0


@dataclass(frozen=True)
class Run:
    run_id: str
    batch: int | None  # fencing token; None for one that somebody started by hand


class Ledger(Protocol):
    """Who keeps the batches of the runs."""

    def ended(self, run: Run) -> None:
        """The run is over or lost: what it didn't commit goes back to the queue."""

    def given_back(self, run: Run) -> None:
        """The run never began, or was ended on purpose."""


class Reports:
    """What a warm process tells its queue, from two threads: that it lives, from now on, and that it is free."""

    def __init__(self, line: Connection) -> None:
        self._line = line
        self._lock = threading.Lock()
        beat_by(partial(self._send, ALIVE))

    def free(self) -> None:
        self._send(FREE)

    def _send(self, what: str) -> None:
        with self._lock:
            self._line.send(what)


class WarmQueue:
    """Runs are taken by any thread and executed one after another."""

    def __init__(self, name: str, start: Callable[[], Child], ledger: Ledger, idle_s: float | None = None) -> None:
        """With `idle_s`, the process is started when a run comes and ended after so many seconds without one."""
        self.name = name
        self._idle_s = idle_s
        self._start = start
        self._ledger = ledger
        self._lock = threading.Lock()
        self._waiting: deque[Run] = deque()
        self._executing: Run | None = None
        self._child: Child | None = None
        self._ready = False
        self._end_by = math.inf  # monotonic; for the run that executes
        self._stopping = threading.Event()
        self._wanted = threading.Event()
        if idle_s is None:
            self._wanted.set()
        self._thread = threading.Thread(target=self._keep_warm, name=f"queue {name}", daemon=True)

    @property
    def ready(self) -> bool:
        """Whether a run would begin at once, or, in a queue that nobody waits for, soon."""
        return self._ready or self._idle_s is not None

    def begin(self) -> None:
        self._thread.start()

    def take(self, run: Run, only_if_free: bool = False) -> bool:
        """Queue the run for the warm process; False when the queue is ending, or not free and asked to be."""
        with self._lock:
            free = self.ready and self._executing is None and not self._waiting
            if self._stopping.is_set() or (only_if_free and not free):
                return False
            self._waiting.append(run)
            self._wanted.set()
            self._send_next()
            return True

    def held(self) -> list[Run]:
        """The run that executes and those that wait."""
        with self._lock:
            return [*([self._executing] if self._executing else []), *self._waiting]

    def interrupt(self, run_id: str) -> bool:
        """Stop a run: True when it was executing and will end, if need be by force; one that waited is just dropped."""
        with self._lock:
            if self._executing and self._executing.run_id == run_id:
                self._send(INTERRUPT)
                self._end_by = min(self._end_by, time.monotonic() + ENDED_WITHIN_S)
                return True
            dropped = [run for run in self._waiting if run.run_id == run_id]
            for run in dropped:
                self._waiting.remove(run)
        for run in dropped:
            self._ledger.given_back(run)
        return False

    def end(self, grace_s: float) -> None:
        """Take no more, give the waiting runs back, let the process finish its run within the grace."""
        with self._lock:
            self._stopping.set()
            self._wanted.set()
            waiting, self._waiting = list(self._waiting), deque()
            self._send(STOP)
            idle_and_cold = not self._ready
        for run in waiting:
            self._ledger.given_back(run)
        self._thread.join(0 if idle_and_cold else grace_s)
        with self._lock:
            if self._child:
                self._child.process.kill()
        self._thread.join()

    def _keep_warm(self) -> None:
        pause_s = FIRST_PAUSE_S
        while not self._stopping.is_set():
            self._wanted.wait()
            born = time.monotonic()
            try:
                self._live()
            except Exception:
                log.exception("the %s process could not be started or followed; starting another", self.name)
            pause_s = FIRST_PAUSE_S if time.monotonic() - born > LONG_LIFE_S else min(2 * pause_s, LONGEST_PAUSE_S)
            self._stopping.wait(pause_s)

    def _live(self) -> None:
        """One process, from its start to its burial."""
        line = self._warm_up()
        if line is None:
            return
        retired = False
        try:
            retired = self._listen(line)
        finally:
            self._bury(retired)

    def _warm_up(self) -> Connection | None:
        with self._lock:
            if self._stopping.is_set():
                return None
            self._child = self._start()
            return self._child.line

    def _listen(self, line: Connection) -> bool:
        """Follow the process until its end; True when it is no longer needed, False when it died or hangs."""
        pulse, busy_at = Pulse(), time.monotonic()
        with suppress(EOFError, OSError), watched_loop(f"queue {self.name}") as come_around:
            while not pulse.silent:
                come_around()
                said = line.recv() if line.poll(POLL_EVERY_S) else None
                pulse.note(heard=said is not None)
                if said == FREE:
                    busy_at = time.monotonic()
                    self._free()
                if time.monotonic() > self._end_by:
                    log.error("the %s process hangs: killing it, for its run does not end when interrupted", self.name)
                    return False
                if self._idle_s is not None and time.monotonic() - busy_at > self._idle_s and self._retire():
                    return True
            log.error("the %s process hangs: killing it, for it gave no sign of life for too long", self.name)
        return False

    def _free(self) -> None:
        if over := self._next():
            self._ledger.ended(over)

    def _retire(self) -> bool:
        """From now on the process gets no run, unless it has one or one waits for it."""
        with self._lock:
            if not self._ready or self._executing or self._waiting:
                return False
            self._ready = False
            self._wanted.clear()
            return True

    def _next(self) -> Run | None:
        """The process is free: send it the next run. Which one is over, if one is."""
        with self._lock:
            self._ready = True
            over, self._executing, self._end_by = self._executing, None, math.inf
            self._send_next()
            return over

    def _send_next(self) -> None:
        if self._ready and self._executing is None and self._waiting:
            self._executing = self._waiting.popleft()
            self._send(RUN, self._executing.run_id)

    def _send(self, what: str, run_id: str = "") -> None:
        """Tell the process; that it is dead, the listening thread finds out."""
        if self._child:
            with suppress(OSError):
                self._child.line.send((what, run_id))

    def _bury(self, retired: bool) -> None:
        with self._lock:
            child, self._child, self._ready = self._child, None, False
            interrupted, self._executing, self._end_by = self._executing, None, math.inf
        assert child is not None
        child.process.kill()
        child.process.wait()
        child.line.close()
        if interrupted and self._stopping.is_set():
            self._ledger.given_back(interrupted)
        elif interrupted:
            log.warning(
                "the %s process died (%s) during run %s", self.name, child.process.returncode, interrupted.run_id
            )
            self._ledger.ended(interrupted)
        elif not retired and not self._stopping.is_set():
            log.warning("the %s process died (%s)", self.name, child.process.returncode)
