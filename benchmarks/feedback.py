"""Measure how long a developer waits for the command line, an API process and the tests.

`BASELINE=` may name a checkout of an earlier commit with its own `.venv`; then both are measured.
"""

import os
import resource
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from statistics import median
from urllib.request import urlopen

from benchmarks.table import Row

TITLE = "Feedback"
ABOUT = "CPU seconds of a whole process, or wall seconds where stated; medians of five."
RUNS = 5
ROWS = 100
READY_WITHIN_S = 60
HERE = Path(__file__).parents[1]


@dataclass(frozen=True)
class Checkout:
    root: Path

    def run(self, command: Sequence[str | Path], *, check: bool = True) -> subprocess.CompletedProcess[bytes]:
        """Run a program of the checkout's `.venv`, or `make`, in the checkout."""
        program = shutil.which(str(command[0]), path=f"{self.root / '.venv/bin'}:/usr/bin:/bin")
        assert program is not None, f"{self.root} has no {command[0]}: run `make .venv/bin/.dev` there"
        return subprocess.run([program, *command[1:]], cwd=self.root, capture_output=True, check=check)


def measure() -> Mapping[str, Sequence[Row]]:
    """Measure this checkout, and BASELINE if the environment sets it."""
    columns = {"this code": Checkout(HERE)}
    if baseline := os.environ.get("BASELINE"):
        columns["before"] = Checkout(Path(baseline).resolve())
    return {name: _rows(checkout) for name, checkout in columns.items()}


def _rows(checkout: Checkout) -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as name:
        folder = Path(name)
        statement = _statement(folder / "statement.csv")
        collect = ["pytest", "--collect-only", "-qq", "-m", "not slow", "-p", "no:cacheprovider"]
        return [
            Row("`tidemark --help`, CPU s", _median_cpu(checkout, ["tidemark", "--help"]), "0.5"),
            Row("`tidemark --version`, CPU s", _median_cpu(checkout, ["tidemark", "--version"]), "0.5"),
            Row(
                f"`tidemark analyse` of {ROWS} rows, CPU s",
                _median_cpu(checkout, ["tidemark", "analyse", statement]),
                "2.5",
            ),
            Row("collecting the tests, CPU s", _median_cpu(checkout, collect), "8"),
            Row("an API process answers, wall s", _median_start(checkout, folder), "half of before"),
            Row("`make test` without caches, wall s", _time_tests(checkout), "300"),
        ]


def _statement(path: Path) -> Path:
    texts = ("RENT,-950", "TYRO PAYMENTS,810.20", "COFFEE,-4.50")
    lines = [f"{date(2026, 1, 1) + timedelta(day)},{texts[day % 3]}" for day in range(ROWS)]
    path.write_text("\n".join(["Date,Description,Amount", *lines, ""]))
    return path


def _median_cpu(checkout: Checkout, command: Sequence[str | Path]) -> str:
    if checkout.run(command, check=False).returncode != 0:  # also warms the caches of the file system
        return "no such command"
    return f"{median(_measure_cpu(lambda: checkout.run(command)) for _ in range(RUNS)):.2f}"


def _measure_cpu(run: Callable[[], object]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _median_start(checkout: Checkout, folder: Path) -> str:
    """Return the time from the start of `tidemark api` on an existing home to its first response."""
    home = folder / "home"
    _measure_start(checkout, home)
    return f"{median(_measure_start(checkout, home) for _ in range(RUNS)):.2f}"


def _measure_start(checkout: Checkout, home: Path) -> float:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = os.environ | {"TIDEMARK_HOME": str(home)}
    command: list[str | Path] = [checkout.root / ".venv/bin/tidemark", "api", "--port", str(port)]
    began = time.monotonic()
    log = home.with_name("api.log")
    with (
        log.open("wb") as sink,
        subprocess.Popen(command, cwd=checkout.root, env=environment, stdout=sink, stderr=subprocess.STDOUT) as process,
    ):
        try:
            _wait_for_response(f"http://127.0.0.1:{port}/health/live", began + READY_WITHIN_S)
            return time.monotonic() - began
        except TimeoutError as error:
            raise TimeoutError(f"the API of {checkout.root} does not answer: {log.read_text()}") from error
        finally:
            process.terminate()


def _wait_for_response(url: str, deadline: float) -> None:
    while True:
        try:
            with urlopen(url, timeout=1):
                return
        except OSError:
            if time.monotonic() > deadline:
                raise TimeoutError from None
            time.sleep(0.01)


def _time_tests(checkout: Checkout) -> str:
    for cache in (".ruff_cache", ".pytest_cache", ".hypothesis"):
        shutil.rmtree(checkout.root / cache, ignore_errors=True)
    began = time.monotonic()
    ended = checkout.run(["make", "test"], check=False)
    took = f"{time.monotonic() - began:.0f}"
    return took if ended.returncode == 0 else f"{took}, failed: {last_line(ended.stdout.decode())}"


def last_line(output: str) -> str:
    """Return the last line that does not come from `make` itself, whose lines name folders of this machine."""
    lines = (line for line in reversed(output.splitlines()) if line.strip() and not line.startswith("make"))
    return next(lines, "no output")
