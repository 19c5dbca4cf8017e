"""Fixtures of the fault harness, and its summary at the end of a test run."""

from collections.abc import Iterator

import pytest

from api.listen import Receiver
from tests.faults.survival import INJECTED, SURVIVED, TRIED, never_injected
from tests.faults.world import World, running


@pytest.fixture(scope="session")
def receiver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    with Receiver(home=tmp_path_factory.mktemp("receiver")) as listening:
        yield listening


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, receiver: Receiver) -> Iterator[World]:
    """One running service for all experiments of a module: what one leaves behind, the next must live with."""
    with running(tmp_path_factory.mktemp("world") / "tidemark", receiver) as ready:
        yield ready


def pytest_sessionfinish(session: pytest.Session) -> None:
    if never_injected():
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not TRIED and not INJECTED:
        return
    kinds = ", ".join(f"{kind} {SURVIVED[kind]}/{count}" for kind, count in sorted(INJECTED.items()))
    terminalreporter.write_sep("=", "faults")
    terminalreporter.write_line(f"{INJECTED.total()} faults injected, {SURVIVED.total()} survived ({kinds})")
    for kind in never_injected():
        terminalreporter.write_line(f"FAILED: {kind} was tried {TRIED[kind]} times and never happened", red=True)
