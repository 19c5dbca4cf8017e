"""A process that is fed and listened to, with a bound on time and on what it says, and is never left behind."""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

PIECE: Final = 1024 * 1024  # bytes that are read at once, and offered at once
POLL_EVERY_S: Final = 0.05  # at how much memory it has
GRACE_S: Final = 2.0  # between its last word and its end


class Overdue(Exception):
    """It took longer than it may."""


class Process:
    """Started with the block and gone at its end, together with whatever it started.

    Its standard error goes nowhere: it may quote the file.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], within_s: float) -> None:
        nothing, pipe = subprocess.DEVNULL, subprocess.PIPE
        self._process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=nothing, env=environment, cwd="/", bufsize=0,
            start_new_session=True,
        )  # fmt: skip
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        self._unsent: list[memoryview] = []
        self._last = False
        self._deadline = time.monotonic() + within_s
        self._measured_at = 0.0
        self.peak_bytes = 0  # of addresses, as far as it was seen

    def __enter__(self) -> Self:
        os.set_blocking(self._input.fileno(), False)
        os.set_blocking(self._output.fileno(), False)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end_group()
        self._process.wait()
        self._input.close()
        self._output.close()

    def send(self, *pieces: bytes, last: bool = False) -> None:
        """To be written as it reads, while `said` is awaited. After the last its input is closed."""
        self._unsent += [memoryview(piece) for piece in pieces]
        self._last = last

    def allow(self, more_s: float) -> None:
        """It waited for others so long."""
        self._deadline += more_s

    def said(self) -> Iterator[bytes]:
        """What it writes, in pieces, until it closes its output.

        Raises:
            Overdue: it isn't done in time.
        """
        while (piece := self._next_piece()) != b"":
            yield piece

    def end(self) -> int:
        """Its exit status, a negative one for a signal; one that doesn't end by itself is killed.

        It isn't reaped before its group is ended, for then its number may be another's.
        """
        last = time.monotonic() + GRACE_S
        while self._runs() and time.monotonic() < last:
            time.sleep(0.002)
        self._end_group()
        return self._process.wait()

    def _next_piece(self) -> bytes:
        with selectors.DefaultSelector() as ready:
            ready.register(self._output, selectors.EVENT_READ)
            if self._unsent:
                ready.register(self._input, selectors.EVENT_WRITE)
            while True:
                self._measure()
                for key, _ in ready.select(POLL_EVERY_S):
                    if key.fileobj is self._output:
                        return os.read(self._output.fileno(), PIECE)
                    if not self._write():
                        ready.unregister(self._input)
                        self._close_after_last()

    def _write(self) -> bool:
        """Some of what is to be sent; False when nothing is left, or nobody reads it."""
        try:
            written = os.write(self._input.fileno(), self._unsent[0][:PIECE])
        except BrokenPipeError:
            self._unsent.clear()
            return False
        self._unsent[0] = self._unsent[0][written:]
        if not self._unsent[0]:
            del self._unsent[0]
        return bool(self._unsent)

    def _close_after_last(self) -> None:
        if self._last:
            self._input.close()

    def _measure(self) -> None:
        """Raises Overdue."""
        now = time.monotonic()
        if now > self._deadline:
            raise Overdue
        if now - self._measured_at > POLL_EVERY_S:
            self._measured_at = now
            self.peak_bytes = max(self.peak_bytes, _peak_bytes(self._process.pid))

    def _runs(self) -> bool:
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def _end_group(self) -> None:
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):  # of one that has ended, macOS says the latter
                os.killpg(self._process.pid, signal.SIGKILL)


def _peak_bytes(pid: int) -> int:
    """The most bytes of addresses that a process has had; 0 where the system doesn't say."""
    with suppress(OSError), open(f"/proc/{pid}/status", "rb") as file:
        for line in file:
            if line.startswith(b"VmPeak:"):
                return int(line.split()[1]) * 1024
    return 0
