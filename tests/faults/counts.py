"""Counts over the whole test run: how often faults of each kind were tried, injected and survived.

Where several processes share the run, each hands its counts to the one that reports. This is a plugin of pytest.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Final

import pytest
from xdist.workermanage import WorkerController

OFTEN: Final = 5  # if a kind was tried less often, every try may have come too late to be injected
TRIED: Final[Counter[str]] = Counter()
INJECTED: Final[Counter[str]] = Counter()
SURVIVED: Final[Counter[str]] = Counter()
_COUNTS: Final[Mapping[str, Counter[str]]] = {"tried": TRIED, "injected": INJECTED, "survived": SURVIVED}


def never_injected() -> list[str]:
    """Return the kinds of faults that were tried often and never injected: their injection itself is broken."""
    return sorted(kind for kind, count in TRIED.items() if count >= OFTEN and not INJECTED[kind])


def pytest_testnodedown(node: WorkerController) -> None:
    for name, counts in getattr(node, "workeroutput", {}).get("faults", {}).items():
        _COUNTS[name].update(counts)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["faults"] = {name: dict(counts) for name, counts in _COUNTS.items()}
    elif never_injected():
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not TRIED and not INJECTED:
        return
    kinds = ", ".join(f"{kind} {SURVIVED[kind]}/{count}" for kind, count in sorted(INJECTED.items()))
    terminalreporter.write_sep("=", "faults")
    terminalreporter.write_line(f"{INJECTED.total()} faults injected, {SURVIVED.total()} survived ({kinds})")
    for kind in never_injected():
        terminalreporter.write_line(f"FAILED: {kind} was tried {TRIED[kind]} times and never happened", red=True)
