"""A queue executes one run after another, and starts a new process when one dies."""

import time
from collections.abc import Iterator
from functools import partial

import pytest

from assets.core.processes import Child, spawn
from assets.workers import queues
from assets.workers.queues import WarmQueue
from assets.workers.workers import Run
from storage.core import heartbeat
from tests.waiting import until

pytestmark = pytest.mark.service  # each test starts child processes


class RecordingLedger:
    """A ledger that only records its calls."""

    def __init__(self) -> None:
        self.released: list[str] = []
        self.given_back: list[str] = []

    def release(self, run: Run) -> None:
        self.released.append(run.run_id)

    def give_back(self, run: Run) -> None:
        self.given_back.append(run.run_id)


@pytest.fixture
def ledger() -> RecordingLedger:
    return RecordingLedger()


@pytest.fixture
def queue(ledger: RecordingLedger) -> Iterator[WarmQueue]:
    queue = WarmQueue("enrichment", partial(spawn, "tests.assets.obedient", environment={}), ledger)
    queue.begin()
    until(lambda: queue.ready)
    yield queue
    queue.end(grace_s=0)


def run(run_id: str) -> Run:
    return Run(run_id, batch=None)


def test_runs_are_executed_in_order(queue: WarmQueue, ledger: RecordingLedger) -> None:
    assert all(queue.take(run(str(number))) for number in range(20))
    until(lambda: len(ledger.released) == 20)
    assert ledger.released == [str(number) for number in range(20)]
    assert queue.list_runs() == []


def test_a_queue_lists_the_executing_and_the_waiting_runs(queue: WarmQueue) -> None:
    queue.take(run("longer"))
    queue.take(run("next"))
    assert queue.list_runs() == [run("longer"), run("next")]


def test_a_busy_queue_refuses_a_run_with_only_if_free(queue: WarmQueue, ledger: RecordingLedger) -> None:
    assert queue.take(run("long"), only_if_free=True)
    assert not queue.take(run("next"), only_if_free=True)
    until(lambda: ledger.released == ["long"])
    assert queue.take(run("next"), only_if_free=True)


def test_a_dead_process_ends_its_run_and_the_next_process_continues(queue: WarmQueue, ledger: RecordingLedger) -> None:
    queue.take(run("dies"))
    queue.take(run("next"))
    until(lambda: ledger.released == ["dies", "next"])


def test_a_hanging_process_ends_its_run_and_the_next_process_continues(
    queue: WarmQueue, ledger: RecordingLedger, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    queue.take(run("longer"))
    monkeypatch.setattr(heartbeat, "HUNG_AFTER_S", 3 * heartbeat.BEAT_EVERY_S)
    time.sleep(4 * heartbeat.BEAT_EVERY_S)
    assert queue.list_runs() == [run("longer")], "a long run doesn't count as hanging"
    assert queue.interrupt("longer")
    queue.take(run("hangs"))
    queue.take(run("next"))
    until(lambda: ledger.released == ["longer", "hangs", "next"])
    assert "the enrichment process hangs" in caplog.text


def test_an_executing_run_is_interrupted_and_ends_by_itself(queue: WarmQueue, ledger: RecordingLedger) -> None:
    queue.take(run("longer"))
    assert queue.interrupt("longer")
    until(lambda: ledger.released == ["longer"])


def test_a_run_that_ignores_an_interrupt_is_ended_and_the_next_process_continues(
    queue: WarmQueue, ledger: RecordingLedger, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(queues, "INTERRUPTED_WITHIN_S", 0.5)
    queue.take(run("blocked"))
    queue.take(run("next"))
    assert queue.interrupt("blocked")
    until(lambda: ledger.released == ["blocked", "next"])
    assert "does not end when interrupted" in caplog.text


def test_a_waiting_run_that_is_interrupted_is_given_back(queue: WarmQueue, ledger: RecordingLedger) -> None:
    queue.take(run("longer"))
    queue.take(run("next"))
    assert not queue.interrupt("next")
    assert not queue.interrupt("unheard of")
    assert ledger.given_back == ["next"]
    assert queue.list_runs() == [run("longer")]


def test_an_ending_queue_finishes_its_run_and_gives_the_others_back(queue: WarmQueue, ledger: RecordingLedger) -> None:
    queue.take(run("long"))
    queue.take(run("next"))
    queue.end(grace_s=10)
    assert (ledger.released, ledger.given_back) == (["long"], ["next"])
    assert not queue.take(run("too late"))


def test_a_run_that_exceeds_the_grace_period_is_given_back(queue: WarmQueue, ledger: RecordingLedger) -> None:
    queue.take(run("longer"))
    queue.end(grace_s=0.1)
    assert (ledger.released, ledger.given_back) == ([], ["longer"])


def test_an_idle_queue_has_a_process_only_while_there_is_work(ledger: RecordingLedger) -> None:
    started: list[Child] = []

    def start() -> Child:
        started.append(spawn("tests.assets.obedient", environment={}))
        return started[-1]

    queue = WarmQueue("portfolio", start, ledger, idle_s=0.2)
    queue.begin()
    assert queue.ready, "the worker needn't wait until this queue is warm"
    for number in (1, 2):
        assert started[number - 1 :] == []
        queue.take(run(f"first {number}"))
        queue.take(run("long"))  # a second, which is longer than `idle_s`
        until(lambda number=number: len(ledger.released) == 2 * number)
        until(lambda number=number: started[number - 1].process.poll() is not None)
    assert ledger.released == ["first 1", "long", "first 2", "long"]
    queue.end(grace_s=0)
    assert not queue.take(run("too late"))


def test_a_process_that_can_not_be_started_is_tried_again(ledger: RecordingLedger) -> None:
    failures = iter([BlockingIOError(11, "no process to be had"), OSError(12, "no memory")])

    def start() -> Child:
        if failure := next(failures, None):
            raise failure
        return spawn("tests.assets.obedient", environment={})

    queue = WarmQueue("enrichment", start, ledger)
    queue.begin()
    queue.take(run("patient"))
    until(lambda: ledger.released == ["patient"])
    queue.end(grace_s=0)


def test_a_failing_ledger_does_not_end_the_queue() -> None:
    class FailingLedger(RecordingLedger):
        def release(self, run: Run) -> None:
            super().release(run)
            if run.run_id == "first":
                raise RuntimeError("a page is torn")

    ledger = FailingLedger()
    queue = WarmQueue("enrichment", partial(spawn, "tests.assets.obedient", environment={}), ledger)
    queue.begin()
    queue.take(run("first"))
    queue.take(run("second"))
    until(lambda: "second" in ledger.released)
    assert queue.list_runs() == []
    queue.end(grace_s=0)
