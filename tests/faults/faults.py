"""Ways to break a running service. Each is a context manager that breaks something on entry and repairs it on exit.

`injected` says whether the fault was observed (`was_observed`), because it may not happen: a scenario with five writes
has no sixth at which to kill. Observed means: a kill was carried out, a system call failed, or a process stood still;
or the disk, the database or its network refused the harness itself, and so everybody else at that time.

With `lasting_s` the fault is repaired that many seconds after it was first observed, so that a client which keeps
trying gets its answer before the context ends.
"""

import errno
import json
import os
import re
import shutil
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import ClassVar, Final, Self
from uuid import uuid4

import psutil
import pytest
import requests

from tests.faults.world import PARTS, World

ATTACHED_WITHIN_S = 20.0
ENDS_WITHIN_S = 1.0
POLL_EVERY_S = 0.1
CLOCKS_AGREE_WITHIN = timedelta(minutes=1)
FAKETIME: Final = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")


@dataclass
class Fault(ABC):
    """A way to break a service. The dataclass's text names it in failure messages."""

    kind: ClassVar[str]
    jobs_may_fail: ClassVar[bool] = False  # with a proper error; the client then submits again
    lasting_s: float | None = field(default=None, kw_only=True)
    injected: bool = field(default=False, init=False, repr=False)

    @abstractmethod
    def breaks(self) -> None: ...

    @abstractmethod
    def was_observed(self) -> bool:
        """Return whether the fault has been observed. Called while it is active."""

    @abstractmethod
    def heals(self) -> None: ...

    def __enter__(self) -> Self:
        self._over = threading.Event()
        self._healing: Future[None] | None = None
        self.breaks()
        if self.lasting_s is not None:
            thread = ThreadPoolExecutor(1)
            self._healing = thread.submit(self._lasts, self.lasting_s)
            thread.shutdown(wait=False)
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._healing is None:
            self._lasts(0)
        else:
            self._healing.result()

    def _lasts(self, seconds: float) -> None:
        try:
            while not (self.injected or self._over.is_set()):
                self.injected = self.was_observed()
                self._over.wait(seconds if self.injected else POLL_EVERY_S)
            self.injected = self.injected or self.was_observed()
        finally:
            self.heals()


@dataclass
class KillAtWrite(Fault):
    """SIGKILL to a part's process at its n-th write, counted by the saboteur inside it (see saboteur/).

    Args:
        part: one of PARTS, or a piece of any other command line.
    """

    kind = "kill"
    world: World = field(repr=False)
    part: str
    nth: int

    def breaks(self) -> None:
        self._order, self._carried_out = (self.world.orders / name for name in ("order.json", "carried-out.json"))
        self._carried_out.unlink(missing_ok=True)
        draft = self._order.with_suffix(".draft")
        draft.write_text(json.dumps({"id": uuid4().hex, "process": PARTS.get(self.part, self.part), "nth": self.nth}))
        draft.rename(self._order)

    def was_observed(self) -> bool:
        return self._carried_out.exists()

    def heals(self) -> None:
        self._order.unlink(missing_ok=True)
        self.injected = self.was_observed()


@dataclass
class SystemCalls(Fault):
    """Faults that strace injects into a part's system calls, counted by thread from now on.

    Args:
        calls: their names, separated by commas.
        how: strace's own words, such as `signal=KILL:when=3` or `error=EIO:when=1+`.
    """

    kind = "system call"
    world: World = field(repr=False)
    part: str
    calls: str
    how: str

    @property
    def jobs_may_fail(self) -> bool:  # pyrefly: ignore[bad-override]  # it depends on `how`
        """Return whether the call fails repeatedly."""
        return self.how.endswith("+")

    def breaks(self) -> None:
        self._log = self.world.folder / f"strace-{uuid4().hex[:8]}.log"
        options = ["-e", f"trace={self.calls}", "-e", f"inject={self.calls}:{self.how}"]
        self._strace = attach_strace(self.world.process(self.part), self._log, *options)

    def was_observed(self) -> bool:
        text = self._log.read_text(errors="replace")
        return "(INJECTED)" in text or "killed by SIGKILL" in text

    def heals(self) -> None:
        untrace(self._strace)
        self.injected = self.was_observed()
        self._log.unlink()


@dataclass
class KillAtCall(Fault):
    """SIGKILL to a command at its n-th system call of a kind. The command must be started with `strace`.

    Args:
        folder: for strace's log.
        calls: their names, separated by commas; each is counted for itself.
    """

    kind = "killed command"
    folder: Path = field(repr=False)
    calls: str
    nth: int

    def breaks(self) -> None:
        need_strace()
        self._log = self.folder / f"strace-{uuid4().hex[:8]}.log"
        self._log.touch()
        options = ["-e", f"trace={self.calls}", "-e", f"inject={self.calls}:signal=KILL:when={self.nth}"]
        self.strace = ["strace", "-f", "-qq", "-o", str(self._log), *options]

    def was_observed(self) -> bool:
        return "killed by SIGKILL" in self._log.read_text(errors="replace")

    def heals(self) -> None:
        self._log.unlink()


def need_strace() -> None:
    if shutil.which("strace") is None or os.geteuid() != 0:
        pytest.skip("needs strace, and root to attach it to another process tree")


def attach_strace(process: psutil.Process, log: Path, *options: str) -> subprocess.Popen[bytes]:
    """Attach strace to all threads of a running process, or skip the test where that isn't possible."""
    need_strace()
    command = ["strace", "-f", "-qq", "-o", str(log), *options, "-p", str(process.pid)]
    tracer = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + ATTACHED_WITHIN_S
    while time.monotonic() < until and tracer.poll() is None:
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has just ended
            threads = list(Path(f"/proc/{process.pid}/task").iterdir())
            if all(re.search(r"TracerPid:\t[1-9]", (thread / "status").read_text()) for thread in threads):
                threading.Thread(target=_kill_stuck_tracer, args=(tracer, process), daemon=True).start()
                return tracer
        time.sleep(0.02)
    untrace(tracer)
    return pytest.skip("strace may not attach to a process here")


def _kill_stuck_tracer(tracer: subprocess.Popen[bytes], process: psutil.Process) -> None:
    """Kill a tracer that missed its process's end, as happens with many threads: no other can reap the process then."""
    with suppress(psutil.NoSuchProcess):
        while tracer.poll() is None:
            if process.status() == psutil.STATUS_ZOMBIE:
                time.sleep(ENDS_WITHIN_S)
                tracer.kill()
            time.sleep(POLL_EVERY_S)


def untrace(tracer: subprocess.Popen[bytes]) -> None:
    """Detach strace. A tracer whose process was killed has ended already."""
    tracer.terminate()
    tracer.wait(timeout=30)


@dataclass
class FullDisk(Fault):
    """A disk without a free byte (see `small_disk`)."""

    kind = "disk full"
    jobs_may_fail = True
    disk: Path = field(repr=False)

    def breaks(self) -> None:
        self._filler = self.disk / "filler"
        with self._filler.open("wb", buffering=0) as file:
            for size in (2**20, 2**12, 1):
                with suppress(OSError):
                    while file.write(b"\0" * size):
                        pass

    def was_observed(self) -> bool:
        """Return whether not even one byte can be written."""
        probe = self.disk / "probe"
        try:
            probe.write_bytes(b"\0")
        except OSError as error:
            return error.errno == errno.ENOSPC
        finally:
            probe.unlink(missing_ok=True)
        return False

    def heals(self) -> None:
        self._filler.unlink()


@dataclass
class Limited(Fault):
    """A limit on a resource of a part's process; strace observes when the process is refused more.

    Args:
        world: the world of the part.
        part: one of PARTS.
    """

    jobs_may_fail = True
    limit: ClassVar[int]
    calls: ClassVar[str]  # the system calls that request the resource
    refusal: ClassVar[str]  # the error that they then fail with
    world: World = field(repr=False)
    part: str

    @abstractmethod
    def most(self, process: psutil.Process) -> int: ...

    def breaks(self) -> None:
        self._process = self.world.process(self.part)
        self._log = self.world.folder / f"strace-{uuid4().hex[:8]}.log"
        self._strace = attach_strace(self._process, self._log, "-e", f"trace={self.calls}", "-Z")
        self._before = self._process.rlimit(self.limit)
        self._process.rlimit(self.limit, (self.most(self._process), self._before[1]))

    def was_observed(self) -> bool:
        return self.refusal in self._log.read_text(errors="replace")

    def heals(self) -> None:
        with suppress(psutil.NoSuchProcess):
            self._process.rlimit(self.limit, self._before)
        untrace(self._strace)
        self.injected = self.was_observed()
        self._log.unlink()


@dataclass
class FileSizeLimit(Limited):
    """A limit on the size of files that a part's process writes."""

    kind = "file size limit"
    limit = psutil.RLIMIT_FSIZE
    calls = "write,writev,pwrite64,pwritev,ftruncate,fallocate"
    refusal = "EFBIG"
    most_bytes: int

    def most(self, process: psutil.Process) -> int:
        return self.most_bytes


@dataclass
class MemoryLimit(Limited):
    """A limit on the memory of a part's process: no more than it has now."""

    kind = "out of memory"
    limit = psutil.RLIMIT_AS
    calls = "mmap,mremap,brk"
    refusal = "ENOMEM"

    def most(self, process: psutil.Process) -> int:
        return int(process.memory_info().vms)


@dataclass
class Frozen(Fault):
    """A part's process is stopped, and later continues as if no time had passed."""

    kind = "frozen process"
    world: World = field(repr=False)
    part: str

    def breaks(self) -> None:
        self._process = self.world.process(self.part)
        self._process.suspend()

    def was_observed(self) -> bool:
        return self._process.status() == psutil.STATUS_STOPPED

    def heals(self) -> None:
        self._process.resume()


@dataclass
class ClockJump(Fault):
    """The service's clock is set and stays so (the world must have been started with `faked_clock`).

    Args:
        to: the offset from the real time, as libfaketime writes it: `-2h`, `+400d`, `+0`.
    """

    kind = "clock jump"
    world: World = field(repr=False)
    to: str

    def breaks(self) -> None:
        set_clock(self.world.folder.parent, self.to)

    def was_observed(self) -> bool:
        """Return whether the service's answers have the new time."""
        answer = requests.get(f"{self.world.service.base_url}/health/live", timeout=10)
        reported = parsedate_to_datetime(answer.headers["date"])
        return abs(reported - datetime.now(UTC) - offset(self.to)) < CLOCKS_AGREE_WITHIN

    def heals(self) -> None: ...


def offset(to: str) -> timedelta:
    """Return the offset that libfaketime applies for this text."""
    units = {"h": timedelta(hours=1), "d": timedelta(days=1)}
    return int(to[:-1]) * units[to[-1]] if to[-1] in units else timedelta(seconds=int(to))


def faked_clock(folder: Path) -> dict[str, str]:
    """Return the environment of a service whose clock `set_clock` sets."""
    if not FAKETIME.exists():
        pytest.skip(f"libfaketime is not installed ({FAKETIME})")
    set_clock(folder, "+0")
    return {
        "LD_PRELOAD": str(FAKETIME),
        "FAKETIME_TIMESTAMP_FILE": str(folder / "clock"),
        "FAKETIME_NO_CACHE": "1",
        "DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_DISABLE_SHM": "1",
    }


def set_clock(folder: Path, to: str) -> None:
    draft = folder / "clock.draft"
    draft.write_text(f"{to}\n")
    draft.rename(folder / "clock")


@dataclass
class Repeated(Fault):
    """An action that is repeated while the fault is active."""

    every_s: ClassVar[float] = 0.2

    @abstractmethod
    def inject_once(self) -> bool:
        """Do it once. Return whether it was possible."""

    def was_observed(self) -> bool:
        return self._done > 0

    def breaks(self) -> None:
        self._done = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._repeat)
        self._thread.start()

    def heals(self) -> None:
        self._ended.set()
        self._thread.join()

    def _repeat(self) -> None:
        while not self._ended.wait(self.every_s):
            self._done += self.inject_once()


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[Path]:
    """Mount a small disk in memory, or skip the test where none can be mounted."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("needs root to mount a small disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def remount(disk: Path, how: str) -> None:
    """Remount a disk as `ro` or `rw`."""
    subprocess.run(["mount", "-o", f"remount,{how}", str(disk)], check=True)
