"""Run a command with input and output through pipes, under a deadline. It never outlives the block that started it."""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

PIECE_BYTES: Final = 1024 * 1024  # of one read or write, at most
POLL_EVERY_S: Final = 0.05  # how often the process's memory is measured and the deadline checked
GRACE_S: Final = 2.0  # how long the process may take to exit after closing its output


class DeadlineExceeded(Exception):
    """The process exceeded its deadline."""


class Process:
    """A process that is killed at the end of the `with` block, together with all processes that it started.

    Its standard error is discarded because it may quote the input.
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
        self._closes_input = False  # once all bytes are sent
        self._deadline = time.monotonic() + within_s
        self._measured_at = 0.0
        self.peak_bytes = 0  # of address space, as last measured

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
        """Queue bytes for the process. `read_output` writes them to its input, and closes it after the `last` ones."""
        self._unsent += [memoryview(piece) for piece in pieces]
        self._closes_input = last

    def extend_deadline(self, more_s: float) -> None:
        """Extend the deadline by the time that the process waited for its parent."""
        self._deadline += more_s

    def read_output(self) -> Iterator[bytes]:
        """Yield the output in pieces until the process closes it.

        Raises:
            DeadlineExceeded: the process hasn't closed it by the deadline.
        """
        while (piece := self._next_piece()) != b"":
            yield piece

    def end(self) -> int:
        """Wait for the process and return its exit status, negative for a signal. Kill it after GRACE_S."""
        deadline = time.monotonic() + GRACE_S
        while self._is_running() and time.monotonic() < deadline:
            time.sleep(0.002)
        self._end_group()  # before it is reaped: afterwards its id may belong to another process
        return self._process.wait()

    def _next_piece(self) -> bytes:
        with selectors.DefaultSelector() as ready:
            ready.register(self._output, selectors.EVENT_READ)
            if self._unsent:
                ready.register(self._input, selectors.EVENT_WRITE)
            while True:
                self._check_deadline()
                self._measure_memory()
                for key, _ in ready.select(POLL_EVERY_S):
                    if key.fileobj is self._output:
                        return os.read(self._output.fileno(), PIECE_BYTES)
                    if not self._write_piece():
                        ready.unregister(self._input)
                        self._close_after_last()

    def _write_piece(self) -> bool:
        """Write a piece of the unsent bytes. Return False when none are left, or the process has closed its input."""
        try:
            sent = os.write(self._input.fileno(), self._unsent[0][:PIECE_BYTES])
        except BrokenPipeError:
            self._unsent.clear()
            return False
        self._unsent[0] = self._unsent[0][sent:]
        if not self._unsent[0]:
            del self._unsent[0]
        return bool(self._unsent)

    def _close_after_last(self) -> None:
        if self._closes_input:
            self._input.close()

    def _check_deadline(self) -> None:
        if time.monotonic() > self._deadline:
            raise DeadlineExceeded

    def _measure_memory(self) -> None:
        """Update `peak_bytes`, at most every POLL_EVERY_S."""
        now = time.monotonic()
        if now - self._measured_at > POLL_EVERY_S:
            self._measured_at = now
            self.peak_bytes = max(self.peak_bytes, _peak_bytes(self._process.pid))

    def _is_running(self) -> bool:
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def _end_group(self) -> None:
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):  # macOS raises the latter for a process that has ended
                os.killpg(self._process.pid, signal.SIGKILL)


def _peak_bytes(pid: int) -> int:
    """Return the peak address space of a process in bytes; 0 where the system doesn't report it."""
    with suppress(OSError), open(f"/proc/{pid}/status", "rb") as file:
        for line in file:
            if line.startswith(b"VmPeak:"):
                return int(line.split()[1]) * 1024
    return 0
