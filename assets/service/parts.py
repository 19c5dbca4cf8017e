"""Keeping child processes alive: what `up` and the Dagster platform are made of."""

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
LONG_LIFE_S = 30.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 10.0
FINISH_WITHIN_S = 20.0  # more than a worker gives its runs


@dataclass(frozen=True)
class Address:
    """Where a server listens."""

    host: str
    port: int

    @property
    def from_here(self) -> str:
        """The base address for a client on this machine."""
        host = LOOPBACK if self.host in ("", "0.0.0.0", "::") else self.host
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


class NeverStartedError(Exception):
    """A part ended by itself, and said why, before its first sign of life."""


def keep_running(parts: Sequence["Part"], stop: threading.Event) -> None:
    """Start again whichever part dies, until told to stop; then end them all.

    Raises:
        NeverStartedError: what is wrong is nothing that starting it again would change.
    """
    try:
        with watched_loop("parts") as come_around:
            while not stop.wait(POLL_EVERY_S):
                come_around()
                for part in parts:
                    part.look_after()
    finally:
        with ThreadPoolExecutor(len(parts)) as ending:  # side by side: each may need the whole grace
            list(ending.map(Part.end, parts))


class Part:
    """A child process that is started again when it dies, after a pause that grows while it dies young. One that hangs
    is killed, and so starts again, too.
    """

    def __init__(
        self, name: str, module: str, *arguments: str, environment: Mapping[str, str], keep: Sequence[int] = ()
    ) -> None:
        self._name = name
        self._start = partial(spawn, module, *arguments, environment=environment, keep=keep)
        self._pause_s = FIRST_PAUSE_S
        self._restart_at = 0.0
        self._ever_lived = False
        self.begin()

    @property
    def pid(self) -> int | None:
        """Its process; none during the pause before it is started again."""
        return self._child.process.pid if self._child else None

    def begin(self) -> None:
        self._born = time.monotonic()
        self._child: Child | None = self._start()
        self._pulse = Pulse()

    def look_after(self) -> None:
        if self._child and self._child.process.poll() is None:
            self._feel_pulse(self._child)
        elif self._child:
            self._mourn(self._child)
        if self._child is None and time.monotonic() >= self._restart_at:
            self._begin_again()

    def end(self, grace_s: float = FINISH_WITHIN_S) -> None:
        if self._child:
            end(self._child.process, grace_s)

    def _feel_pulse(self, child: Child) -> None:
        heard = take_beats(child.line)
        self._ever_lived |= heard
        self._pulse.note(heard=heard)
        if self._pulse.silent:
            log.error("the %s hangs: killing it, for it gave no sign of life for too long", self._name)
            child.process.kill()
            self._pulse = (
                Pulse()
            )  # one that waits for a dead disk stays for as long: it is not said four times a second

    def _begin_again(self) -> None:
        try:
            self.begin()
        except Exception:
            self._rest(lived_long=False)
            log.exception("the %s could not be started; trying again in %.1f s", self._name, self._pause_s)

    def _mourn(self, child: Child) -> None:
        self._ever_lived |= take_beats(child.line)
        if not self._ever_lived and child.process.returncode > 0:  # not by a signal
            raise NeverStartedError(f"the {self._name} could not be started")
        self._rest(lived_long=time.monotonic() - self._born > LONG_LIFE_S)
        log.warning(
            "the %s ended (%s); starting it again in %.1f s", self._name, child.process.returncode, self._pause_s
        )
        child.line.close()
        self._child = None

    def _rest(self, *, lived_long: bool) -> None:
        self._pause_s = FIRST_PAUSE_S if lived_long else min(2 * self._pause_s, LONGEST_PAUSE_S)
        self._restart_at = time.monotonic() + self._pause_s
