"""A queue of a worker: one warm process, and the runs that wait for it.

Queues never wait for each other. A queue for work that no client waits for has a process only while there is work. If a
process dies, only its current run is lost; the waiting runs go to the next process. The ledger decides what the end of
a run means for its batch.
"""

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from typing import Protocol

from assets.core.processes import Child
from assets.workers.workers import Run
from storage.core.heartbeat import Pulse, send_heartbeats_by, watched_loop

log = logging.getLogger(__name__)

FREE = "free"  # from the process: it is warm, or its run has ended, successfully or not
ALIVE = "alive"  # from the process, regularly, even while a run executes
RUN = "run"  # to the process: execute this run
INTERRUPT = "interrupt"  # to the process: stop the current run
STOP = "stop"  # to the process: end after the current run

INTERRUPTED_WITHIN_S = 30.0  # until an interrupted run must have ended; Dagster then counts it as canceled

POLL_EVERY_S = 0.25
LONG_LIFE_S = 30.0  # after which a process that dies is restarted without a longer pause
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 3.0  # before a restart; doubled each time


class Ledger(Protocol):
    """Updates the batches of runs in the database."""

    def release(self, run: Run) -> None:
        """Record that the run ended or was lost: jobs that it didn't commit go back to the queue."""

    def give_back(self, run: Run) -> None:
        """Record that the run never began, or was stopped on purpose."""


class Signals:
    """Messages from a warm process to its queue: that it is free, and heartbeats, which a separate thread sends."""

    def __init__(self, line: Connection) -> None:
        self._line = line
        self._lock = threading.Lock()
        send_heartbeats_by(partial(self._send, ALIVE))

    def report_free(self) -> None:
        self._send(FREE)

    def _send(self, message: str) -> None:
        with self._lock:
            self._line.send(message)


class WarmQueue:
    """Takes runs from any thread, and executes them one after another in a warm process."""

    def __init__(self, name: str, start: Callable[[], Child], ledger: Ledger, idle_s: float | None = None) -> None:
        """With `idle_s`, the process starts when a run arrives, and ends after `idle_s` seconds without a run."""
        self.name = name
        self._idle_s = idle_s
        self._start = start
        self._ledger = ledger
        self._lock = threading.Lock()
        self._waiting: deque[Run] = deque()
        self._executing: Run | None = None
        self._child: Child | None = None
        self._ready = False
        self._end_by = math.inf  # monotonic time by which the current run must end
        self._stopping = threading.Event()
        self._wanted = threading.Event()
        if idle_s is None:
            self._wanted.set()
        self._thread = threading.Thread(target=self._keep_warm, name=f"queue {name}", daemon=True)

    @property
    def ready(self) -> bool:
        """Whether a run would begin at once or, with `idle_s`, as soon as a process has started."""
        return self._ready or self._idle_s is not None

    def begin(self) -> None:
        self._thread.start()

    def take(self, run: Run, only_if_free: bool = False) -> bool:
        """Accept a run for the warm process. Return False if the queue is ending or, with `only_if_free`, busy."""
        with self._lock:
            free = self.ready and self._executing is None and not self._waiting
            if self._stopping.is_set() or (only_if_free and not free):
                return False
            self._waiting.append(run)
            self._wanted.set()
            self._send_next()
            return True

    def list_runs(self) -> list[Run]:
        """Return the current run and the waiting ones."""
        with self._lock:
            return [*([self._executing] if self._executing else []), *self._waiting]

    def interrupt(self, run_id: str) -> bool:
        """Stop a run. Return True if it is executing and will end, if necessary by force. A waiting run is dropped."""
        with self._lock:
            if self._executing and self._executing.run_id == run_id:
                self._send(INTERRUPT)
                self._end_by = min(self._end_by, time.monotonic() + INTERRUPTED_WITHIN_S)
                return True
            dropped = [run for run in self._waiting if run.run_id == run_id]
            for run in dropped:
                self._waiting.remove(run)
        for run in dropped:
            self._ledger.give_back(run)
        return False

    def end(self, grace_s: float) -> None:
        """Accept no more runs, give the waiting ones back, and let the process finish its run within `grace_s`."""
        with self._lock:
            self._stopping.set()
            self._wanted.set()
            waiting, self._waiting = list(self._waiting), deque()
            self._send(STOP)
            idle_and_cold = not self._ready
        for run in waiting:
            self._ledger.give_back(run)
        self._thread.join(0 if idle_and_cold else grace_s)
        with self._lock:
            if self._child:
                self._child.process.kill()
        self._thread.join()

    def _keep_warm(self) -> None:
        pause_s = FIRST_PAUSE_S
        while not self._stopping.is_set():
            self._wanted.wait()
            started = time.monotonic()
            try:
                self._run_process()
            except Exception:
                log.exception("the %s process could not be started or watched; starting another", self.name)
            pause_s = FIRST_PAUSE_S if time.monotonic() - started > LONG_LIFE_S else min(2 * pause_s, LONGEST_PAUSE_S)
            self._stopping.wait(pause_s)

    def _run_process(self) -> None:
        """Start one process, follow it until it ends, and clean up after it."""
        line = self._start_process()
        if line is None:
            return
        retired = False
        try:
            retired = self._listen(line)
        finally:
            self._remove_process(retired)

    def _start_process(self) -> Connection | None:
        with self._lock:
            if self._stopping.is_set():
                return None
            self._child = self._start()
            return self._child.line

    def _listen(self, line: Connection) -> bool:
        """Follow the process. Return True when it is no longer needed, False when it died or hangs."""
        pulse, busy_at = Pulse(), time.monotonic()
        with suppress(EOFError, OSError), watched_loop(f"queue {self.name}") as report_round:
            while not pulse.hangs:
                report_round()
                message = line.recv() if line.poll(POLL_EVERY_S) else None
                pulse.note(heard=message is not None)
                if message == FREE:
                    busy_at = time.monotonic()
                    self._start_next()
                if time.monotonic() > self._end_by:
                    log.error("the %s process hangs: its run does not end when interrupted, so it is killed", self.name)
                    return False
                if self._idle_s is not None and time.monotonic() - busy_at > self._idle_s and self._retire():
                    return True
            log.error("the %s process hangs: it has sent no heartbeat for too long and is killed", self.name)
        return False

    def _start_next(self) -> None:
        """Send the next run to the process, which is free, and release the batch of the run that has ended, if any."""
        with self._lock:
            self._ready = True
            ended, self._executing, self._end_by = self._executing, None, math.inf
            self._send_next()
        if ended:
            self._ledger.release(ended)

    def _retire(self) -> bool:
        """Stop sending runs to the process. Return False if it has a run or one waits for it."""
        with self._lock:
            if not self._ready or self._executing or self._waiting:
                return False
            self._ready = False
            self._wanted.clear()
            return True

    def _send_next(self) -> None:
        if self._ready and self._executing is None and self._waiting:
            self._executing = self._waiting.popleft()
            self._send(RUN, self._executing.run_id)

    def _send(self, command: str, run_id: str = "") -> None:
        """Send a command to the process. If the process is dead, the listening thread notices."""
        if self._child:
            with suppress(OSError):
                self._child.line.send((command, run_id))

    def _remove_process(self, retired: bool) -> None:
        with self._lock:
            child, self._child, self._ready = self._child, None, False
            interrupted, self._executing, self._end_by = self._executing, None, math.inf
        assert child is not None
        child.process.kill()
        child.process.wait()
        child.line.close()
        if interrupted and self._stopping.is_set():
            self._ledger.give_back(interrupted)
        elif interrupted:
            log.warning(
                "the %s process died (%s) during run %s", self.name, child.process.returncode, interrupted.run_id
            )
            self._ledger.release(interrupted)
        elif not retired and not self._stopping.is_set():
            log.warning("the %s process died (%s)", self.name, child.process.returncode)
