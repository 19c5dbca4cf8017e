"""Know which tests run a line, and how long each takes, from one run of the tests under coverage."""

import re
import shutil
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Final

from coverage import CoverageData

from tests.mutants.copies import Copy

# Left out: what runs the code in other processes, which are not measured, and thousands of requests for one contract.
RUN: Final = (
    *("-n", "2", "--no-loadscope-reorder", "-m", "not slow and not service", "--timeout=900"),
    *(f"--ignore={path}" for path in ("tests/flows", "tests/faults", "tests/api/test_contract.py")),
    *("--durations=0", "-vv", "--cov=pipelines", "--cov=storage", "--cov-context=test", "--cov-report="),
)
DURATION: Final = re.compile(r"^([\d.]+)s (?:call|setup|teardown) +(tests/.+?\.py(?:::\w+)+)", re.MULTILINE)
BUDGET_S: Final = 60  # as measured under coverage, which takes about twice as long: half of a run's limit
FILE_S: Final = 1  # what it costs to collect one more file


class Covering:
    """The tests of a commit, each a function with all its parameters, by the lines that they run."""

    def __init__(self, commit: str, folder: Path) -> None:
        data, log = folder / f"{commit}.coverage", folder / f"{commit}.log"
        if not data.exists():
            _measure(commit, data, log)
        self._data = CoverageData(str(data))
        self._data.read()
        self._durations: Mapping[str, float] = _read_durations(log.read_text(errors="replace"))

    def find_tests(self, path: str, lines: Iterable[int]) -> set[str]:
        """Return the tests that run the first of some lines that was run at all."""
        contexts = self._contexts(path)
        return next((tests for line in lines if (tests := contexts.get(line, set()))), set())

    def choose(self, path: str, tests: Iterable[str]) -> list[str]:
        """Return as many tests as fit into one run: first those named like the module, and of these the quickest."""
        chosen: list[str] = []
        files: dict[str, None] = {}
        left_s: float = BUDGET_S
        for test in sorted(tests, key=lambda test: (-_likeness(path, test), self._durations.get(test, 0), test)):
            file = test.partition("::")[0]
            cost_s = self._durations.get(test, 0) + FILE_S * (file not in files)
            if cost_s <= left_s or not chosen:
                chosen.append(test)
                files[file] = None
                left_s -= cost_s
        order = list(files)
        return sorted(chosen, key=lambda test: order.index(test.partition("::")[0]))  # fixtures of a file are made once

    @cache  # noqa: B019  # lives as long as the program
    def _contexts(self, path: str) -> Mapping[int, set[str]]:
        measured = (file for file in self._data.measured_files() if file.endswith(f"/{path}"))
        by_line = self._data.contexts_by_lineno(next(measured, path))
        return {line: {_function(context) for context in contexts if context} for line, contexts in by_line.items()}


def _function(context: str) -> str:
    """Return the function of a context such as `tests/test_x.py::test_y[1-a]|run`."""
    return context.rpartition("|")[0].partition("[")[0]


def _likeness(path: str, test: str) -> int:
    """Return how many words of a module's path are in that of the test: tests/core/test_x.py is near to core/x.py."""
    file = PurePosixPath(test.partition("::")[0])
    return len(set(PurePosixPath(path).with_suffix("").parts) & {*file.parts[1:-1], file.stem.removeprefix("test_")})


def _read_durations(log: str) -> Mapping[str, float]:
    durations = defaultdict[str, float](float)
    for seconds, test in DURATION.findall(log):
        durations[test] += float(seconds)
    return durations


def _measure(commit: str, data: Path, log: Path) -> None:
    with TemporaryDirectory(prefix="mutants-") as folder:
        copy = Copy(commit, Path(folder))
        copy.run_pytest(*RUN)
        shutil.copy(copy.output, log)
        shutil.copy(copy.coverage, data)
