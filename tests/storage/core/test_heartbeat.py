"""A hung process is distinguished from a busy one, a suspended machine and a late check."""

import os
import subprocess
import sys
from collections.abc import Iterator
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from storage.core import heartbeat
from storage.core.heartbeat import (
    BEAT_EVERY_S,
    FIRST_BEAT_WITHIN_S,
    HUNG_AFTER_S,
    ROUND_WITHIN_S,
    Pulse,
    find_overdue_loops,
    send_heartbeats,
    take_beats,
    watched_loop,
)
from tests.waiting import until

POLL_EVERY_S = 0.25


@pytest.fixture(autouse=True)
def only_loops_of_this_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests run servers in this process, whose loops are watched, too."""
    monkeypatch.setattr(heartbeat, "_loops", set())


class Watched:
    """A pulse with a clock that the test sets."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.pulse = Pulse(lambda: self.now_s)

    def passes(self, seconds: float, check_every_s: float = POLL_EVERY_S) -> None:
        """Advance the clock without a heartbeat."""
        for _ in range(int(seconds / check_every_s)):
            self.now_s += check_every_s
            self.pulse.note(heard=False)


@pytest.fixture
def watched() -> Watched:
    """Return a pulse that has had its first beat."""
    watched = Watched()
    watched.pulse.note(heard=True)
    return watched


def test_process_that_is_silent_for_too_long_counts_as_hung(watched: Watched) -> None:
    watched.passes(HUNG_AFTER_S)
    assert not watched.pulse.hangs
    watched.passes(1)
    assert watched.pulse.hangs


def test_every_beat_restarts_the_count(watched: Watched) -> None:
    for _ in range(10):
        watched.passes(HUNG_AFTER_S)
        watched.pulse.note(heard=True)
        assert not watched.pulse.hangs


def test_time_between_late_checks_does_not_count(watched: Watched, subtests: pytest.Subtests) -> None:
    with subtests.test("a laptop was suspended, or the supervisor stopped"):
        watched.passes(8 * 3_600, check_every_s=3_600)
        assert not watched.pulse.hangs
    with subtests.test("so busy a machine that looks are half a minute apart"):
        watched.pulse.note(heard=True)
        watched.passes(5 * 30, check_every_s=30)
        assert not watched.pulse.hangs


def test_starting_process_has_more_time() -> None:
    starting = Watched()
    starting.passes(FIRST_BEAT_WITHIN_S)
    assert not starting.pulse.hangs
    starting.passes(1)
    assert starting.pulse.hangs


def test_a_loop_is_overdue_after_many_beats_without_a_round() -> None:
    bearable = int(ROUND_WITHIN_S / BEAT_EVERY_S)
    with watched_loop("leases") as report_round:
        for _ in range(2 * bearable):
            report_round()
            assert find_overdue_loops() == []
        for _ in range(bearable - 1):
            assert find_overdue_loops() == []
        assert find_overdue_loops() == ["leases"]
    assert find_overdue_loops() == [], "it has ended"


Line = tuple[Connection, Connection]


@pytest.fixture
def line() -> Iterator[Line]:
    """Yield the listener's and the process's end of a line."""
    ours, theirs = Pipe()
    with ours, theirs:
        yield ours, theirs


def test_beats_are_sent_repeatedly(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "BEAT_EVERY_S", 0.001)
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)  # put back what the test runner has there
    ours, theirs = line
    assert not take_beats(ours)
    send_heartbeats(theirs.fileno())
    for _ in range(3):
        until(lambda: take_beats(ours))


def test_beats_never_go_to_another_file_with_the_same_descriptor(
    line: Line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "BEAT_EVERY_S", 0.001)
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    ours, theirs = line
    send_heartbeats(theirs.fileno())
    with (tmp_path / "other").open("wb") as other:
        os.dup2(other.fileno(), theirs.fileno())
        for _ in range(3):
            until(lambda: take_beats(ours))
    assert (tmp_path / "other").read_bytes() == b""


WITHOUT_MEMORY_FOR_A_THREAD = """
import sys, time
from storage.core import heartbeat
heartbeat.BEAT_EVERY_S = 0.01
heartbeat.send_heartbeats(sys.stdout.fileno())
class Reported:  # in the way in which Python reports that a thread could not begin
    def __init__(self, failure): self.failure = failure
    def __del__(self): raise self.failure
Reported(ValueError("to be told and no more"))
time.sleep(0.5)
print("lives", flush=True)
Reported(MemoryError())
time.sleep(60)
"""


def test_process_in_which_a_thread_could_not_start_exits() -> None:
    command = [sys.executable, "-c", WITHOUT_MEMORY_FOR_A_THREAD]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert ended.returncode == 1
    assert "lives" in ended.stdout
    assert "to be told and no more" in ended.stderr
    assert "MemoryError" in ended.stderr


def test_beats_sent_without_a_listener_are_taken_at_once(line: Line) -> None:
    ours, theirs = line
    os.write(theirs.fileno(), b"." * 300)
    assert take_beats(ours)
    assert not take_beats(ours)


def test_closed_line_is_no_sign_of_life(line: Line) -> None:
    ours, theirs = line
    theirs.close()
    assert not take_beats(ours)


BLOCKED_LOOP = """
import logging, sys, threading, time
from storage.core import heartbeat
logging.basicConfig(stream=sys.stderr, format="%(message)s")
heartbeat.BEAT_EVERY_S, heartbeat.ROUND_WITHIN_S, heartbeat.LOGGING_S = 0.02, 0.4, 0.2
heartbeat.send_heartbeats(sys.stdout.fileno())
def work(name, rounds):
    with heartbeat.watched_loop(name) as report_round:
        for _ in range(rounds):
            report_round()
            time.sleep(0.05)
        threading.Event().wait()
threading.Thread(target=work, args=("leases", 10_000), daemon=True).start()
threading.Thread(target=work, args=("deliveries", 20), daemon=True).start()
time.sleep(60)
"""


def test_a_process_with_a_blocked_loop_logs_it_and_ends() -> None:
    ended = subprocess.run([sys.executable, "-c", BLOCKED_LOOP], capture_output=True, timeout=30, check=False)
    assert ended.returncode == 1
    assert ended.stderr.decode().startswith("ending this process because its work hangs (deliveries)")
    assert len(ended.stdout) > 20, "it worked for a while first"
