"""A part that dies is restarted, and a part that is asked to end ends."""

import os
import resource
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from assets.service import parts as service_parts
from assets.service.parts import Address, NeverStartedError, Part, keep_running
from storage.core import heartbeat
from tests.waiting import until


def test_a_killed_part_is_restarted_and_ends_on_request() -> None:
    part = Part("obedient one", "tests.assets.obedient", environment={})
    first = part.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    deadline = time.monotonic() + 20
    while part.pid in (None, first):
        assert time.monotonic() < deadline
        part.check()
        time.sleep(0.05)
    second = part.pid
    assert second is not None
    part.end()
    with pytest.raises(ProcessLookupError):
        os.kill(second, 0)


def test_a_part_may_wait_for_an_event_before_its_first_start() -> None:
    event = threading.Event()
    part = Part("obedient one", "tests.assets.obedient", environment={}, after=event)
    part.check()
    part.end()
    assert part.pid is None
    event.set()
    part.check()
    assert part.pid is not None
    part.end()


@pytest.fixture
def little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a process that misses three heartbeats count as hanging."""
    monkeypatch.setattr(heartbeat, "HUNG_AFTER_S", 3 * heartbeat.BEAT_EVERY_S)


@pytest.mark.service
@pytest.mark.usefixtures("little_patience")
def test_a_hanging_part_is_killed_restarted_and_reported(caplog: pytest.LogCaptureFixture) -> None:
    part = Part("steadfast one", "tests.assets.steadfast", environment={})
    first = part.pid
    assert first is not None

    def check_for(until_s: float) -> None:
        deadline = time.monotonic() + until_s
        while part.pid == first and time.monotonic() < deadline:
            part.check()
            time.sleep(0.05)

    check_for(until_s=10)
    assert part.pid == first, "it works, however long"
    os.kill(first, signal.SIGSTOP)
    check_for(until_s=30)
    assert part.pid != first
    assert "the steadfast one hangs" in caplog.text
    until(lambda: part.check() or part.pid is not None)
    part.end()


def test_a_part_that_never_starts_ends_the_others_too() -> None:
    other = Part("obedient one", "tests.assets.obedient", environment={})
    broken = Part("broken one", "tests.assets.there_is_no_such_module", environment={})
    with pytest.raises(NeverStartedError, match="broken one"):
        keep_running([other, broken], threading.Event())
    assert other.pid is not None
    with pytest.raises(ProcessLookupError):
        os.kill(other.pid, 0)


@contextmanager
def no_more_files() -> Iterator[None]:
    """Prevent this process from opening files and sockets, and therefore from starting processes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_part_that_can_not_be_restarted_is_retried_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_parts, "FIRST_PAUSE_S", 0.1)
    part = Part("obedient one", "tests.assets.obedient", environment={})
    first = part.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    deadline = time.monotonic() + 1  # longer than the first pauses
    with no_more_files():
        while time.monotonic() < deadline:
            part.check()
            time.sleep(0.05)
    assert part.pid is None
    deadline += 20
    while part.pid is None:
        assert time.monotonic() < deadline
        part.check()
        time.sleep(0.05)
    part.end()


def test_parts_end_in_parallel(tmp_path: Path) -> None:
    marks = [tmp_path / str(number) for number in range(4)]
    parts = [Part("reluctant one", "tests.assets.reluctant", str(mark), "4", environment={}) for mark in marks]
    until(lambda: all(mark.exists() for mark in marks))
    stop = threading.Event()
    stop.set()
    keep_running(parts, stop)
    for part, mark in zip(parts, marks, strict=True):
        assert part.pid is not None
        with pytest.raises(ProcessLookupError):
            os.kill(part.pid, 0)
        assert mark.with_suffix(".ended").exists(), "it ended by itself and was not killed"


@pytest.mark.parametrize(
    ("host", "base"),
    [
        ("127.0.0.1", "http://127.0.0.1:3000"),
        ("0.0.0.0", "http://127.0.0.1:3000"),
        ("10.1.2.3", "http://10.1.2.3:3000"),
        ("::1", "http://[::1]:3000"),
    ],
)
def test_an_address_has_a_url_for_local_clients(host: str, base: str) -> None:
    assert Address(host, 3000).local_url == base
