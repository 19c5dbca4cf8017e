"""Start child processes and restart those that die or hang. `up` and the Dagster platform consist of such parts."""

import logging
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from assets.core.processes import Child, end, spawn
from storage.core.heartbeat import Pulse, take_beats, watched_loop

log = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
DAGSTER_PORT = 3000
POLL_EVERY_S = 0.25
LONG_LIFE_S = 30.0  # after which a part that dies is restarted without a longer pause
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 3.0  # before a restart; doubled each time. Work goes on within 10 s of a kill
FINISH_WITHIN_S = 20.0  # longer than a worker gives its runs


@dataclass(frozen=True)
class Address:
    """An address that a server listens on."""

    host: str
    port: int

    @property
    def local_url(self) -> str:
        """The base URL for a client on this machine."""
        host = LOOPBACK if self.host in ("", "0.0.0.0", "::") else self.host
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


class NeverStartedError(Exception):
    """A part exited with an error before its first heartbeat. It has written the reason to its log."""


def keep_running(parts: Sequence["Part"], stop: threading.Event) -> None:
    """Restart parts that die until `stop` is set; then end all of them.

    Raises:
        NeverStartedError: a part can't start, and a restart would not help.
    """
    try:
        with watched_loop("parts") as report_round:
            while not stop.wait(POLL_EVERY_S):
                report_round()
                for part in parts:
                    part.check()
    finally:
        with ThreadPoolExecutor(len(parts)) as threads:  # in parallel: each may need the whole grace period
            list(threads.map(Part.end, parts))


class Part:
    """A child process that is restarted when it dies. The pause before a restart grows while the process keeps dying
    early. A process that hangs is killed, and therefore restarted too. With `after`, the first start waits for that
    event.
    """

    def __init__(
        self,
        name: str,
        module: str,
        *arguments: str,
        environment: Mapping[str, str],
        keep: Sequence[int] = (),
        after: threading.Event | None = None,
    ) -> None:
        self._name = name
        self._start = partial(spawn, module, *arguments, environment=environment, keep=keep)
        self._pause_s = FIRST_PAUSE_S
        self._restart_at = 0.0
        self._was_alive = False
        self._after = after
        self._child: Child | None = None
        if after is None:
            self.begin()

    @property
    def pid(self) -> int | None:
        """The id of its process; None before its start and during the pause before a restart."""
        return self._child.process.pid if self._child else None

    def begin(self) -> None:
        self._started_at = time.monotonic()
        self._child = self._start()
        self._pulse = Pulse()

    def check(self) -> None:
        """Kill the process if it hangs; restart it if it died and the pause is over.

        Raises:
            NeverStartedError: the process exited with an error before its first heartbeat.
        """
        if self._child and self._child.process.poll() is None:
            self._check_heartbeat(self._child)
        elif self._child:
            self._handle_exit(self._child)
        if self._child is None and time.monotonic() >= self._restart_at and (not self._after or self._after.is_set()):
            self._restart()

    def end(self, grace_s: float = FINISH_WITHIN_S) -> None:
        if self._child:
            end(self._child.process, grace_s)

    def _check_heartbeat(self, child: Child) -> None:
        heard = take_beats(child.line)
        self._was_alive |= heard
        self._pulse.note(heard=heard)
        if self._pulse.hangs:
            log.error("the %s hangs: it has sent no heartbeat for too long and is killed", self._name)
            child.process.kill()
            self._pulse = Pulse()  # a process that waits for a dead disk survives this: don't log it at every check

    def _restart(self) -> None:
        try:
            self.begin()
        except Exception:
            self._schedule_restart(lived_long=False)
            log.exception("the %s could not be started; trying again in %.1f s", self._name, self._pause_s)

    def _handle_exit(self, child: Child) -> None:
        self._was_alive |= take_beats(child.line)
        if not self._was_alive and child.process.returncode > 0:  # a negative one means a signal
            raise NeverStartedError(f"the {self._name} could not be started")
        self._schedule_restart(lived_long=time.monotonic() - self._started_at > LONG_LIFE_S)
        log.warning("the %s ended (%s); restarting it in %.1f s", self._name, child.process.returncode, self._pause_s)
        child.line.close()
        self._child = None

    def _schedule_restart(self, *, lived_long: bool) -> None:
        self._pause_s = FIRST_PAUSE_S if lived_long else min(2 * self._pause_s, LONGEST_PAUSE_S)
        self._restart_at = time.monotonic() + self._pause_s
