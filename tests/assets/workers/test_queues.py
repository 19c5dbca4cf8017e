"""A queue executes one run after another, and outlives its process."""

import time
from collections.abc import Iterator
from functools import partial

import pytest

from assets.core.processes import Child, spawn
from assets.workers import queues
from assets.workers.queues import Run, WarmQueue
from storage.core import heartbeat
from tests.patience import until


class Notes:
    """A ledger that only takes notes."""

    def __init__(self) -> None:
        self.ended_runs: list[str] = []
        self.returned_runs: list[str] = []

    def ended(self, run: Run) -> None:
        self.ended_runs.append(run.run_id)

    def given_back(self, run: Run) -> None:
        self.returned_runs.append(run.run_id)


@pytest.fixture
def notes() -> Notes:
    return Notes()


@pytest.fixture
def queue(notes: Notes) -> Iterator[WarmQueue]:
    queue = WarmQueue("enrichment", partial(spawn, "tests.assets.obedient", environment={}), notes)
    queue.begin()
    until(lambda: queue.ready)
    yield queue
    queue.end(grace_s=0)


def run(run_id: str) -> Run:
    return Run(run_id, batch=None)


def test_runs_are_executed_in_order(queue: WarmQueue, notes: Notes) -> None:
    assert all(queue.take(run(str(number))) for number in range(20))
    until(lambda: len(notes.ended_runs) == 20)
    assert notes.ended_runs == [str(number) for number in range(20)]
    assert queue.held() == []


def test_a_queue_holds_what_executes_and_what_waits(queue: WarmQueue) -> None:
    queue.take(run("longer"))
    queue.take(run("next"))
    assert queue.held() == [run("longer"), run("next")]


def test_a_queue_that_is_not_free_takes_no_run_that_asks_for_a_free_one(queue: WarmQueue, notes: Notes) -> None:
    assert queue.take(run("long"), only_if_free=True)
    assert not queue.take(run("next"), only_if_free=True)
    until(lambda: notes.ended_runs == ["long"])
    assert queue.take(run("next"), only_if_free=True)


def test_a_run_whose_process_dies_is_over_and_the_next_process_goes_on(queue: WarmQueue, notes: Notes) -> None:
    queue.take(run("dies"))
    queue.take(run("next"))
    until(lambda: notes.ended_runs == ["dies", "next"])


@pytest.mark.service
def test_a_run_whose_process_hangs_is_over_and_the_next_process_goes_on(
    queue: WarmQueue, notes: Notes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    queue.take(run("longer"))
    monkeypatch.setattr(heartbeat, "HUNG_AFTER_S", 3 * heartbeat.BEAT_EVERY_S)
    time.sleep(4 * heartbeat.BEAT_EVERY_S)
    assert queue.held() == [run("longer")], "a long run is no hang"
    assert queue.interrupt("longer")
    queue.take(run("hangs"))
    queue.take(run("next"))
    until(lambda: notes.ended_runs == ["longer", "hangs", "next"])
    assert "the enrichment process hangs" in caplog.text


def test_an_executing_run_is_interrupted_and_ends_by_itself(queue: WarmQueue, notes: Notes) -> None:
    queue.take(run("longer"))
    assert queue.interrupt("longer")
    until(lambda: notes.ended_runs == ["longer"])


def test_a_run_that_does_not_end_when_interrupted_is_over_and_the_next_process_goes_on(
    queue: WarmQueue, notes: Notes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(queues, "ENDED_WITHIN_S", 0.5)
    queue.take(run("blocked"))
    queue.take(run("next"))
    assert queue.interrupt("blocked")
    until(lambda: notes.ended_runs == ["blocked", "next"])
    assert "does not end when interrupted" in caplog.text


def test_a_waiting_run_that_is_interrupted_is_given_back(queue: WarmQueue, notes: Notes) -> None:
    queue.take(run("longer"))
    queue.take(run("next"))
    assert not queue.interrupt("next")
    assert not queue.interrupt("unheard of")
    assert notes.returned_runs == ["next"]
    assert queue.held() == [run("longer")]


def test_an_ending_queue_finishes_its_run_and_gives_the_others_back(queue: WarmQueue, notes: Notes) -> None:
    queue.take(run("long"))
    queue.take(run("next"))
    queue.end(grace_s=10)
    assert (notes.ended_runs, notes.returned_runs) == (["long"], ["next"])
    assert not queue.take(run("too late"))


def test_a_run_that_outlasts_the_grace_is_given_back(queue: WarmQueue, notes: Notes) -> None:
    queue.take(run("longer"))
    queue.end(grace_s=0.1)
    assert (notes.ended_runs, notes.returned_runs) == ([], ["longer"])


def test_a_queue_that_nobody_waits_for_has_a_process_only_while_there_is_work(notes: Notes) -> None:
    started: list[Child] = []

    def start() -> Child:
        started.append(spawn("tests.assets.obedient", environment={}))
        return started[-1]

    queue = WarmQueue("portfolio", start, notes, idle_s=0.2)
    queue.begin()
    assert queue.ready, "nobody has to wait for it to be warm"
    for number in (1, 2):
        assert started[number - 1 :] == []
        queue.take(run(f"first {number}"))
        queue.take(run("long"))  # a second: longer than it may be idle
        until(lambda number=number: len(notes.ended_runs) == 2 * number)
        until(lambda number=number: started[number - 1].process.poll() is not None)
    assert notes.ended_runs == ["first 1", "long", "first 2", "long"]
    queue.end(grace_s=0)
    assert not queue.take(run("too late"))


def test_a_process_that_can_not_be_started_is_tried_again(notes: Notes) -> None:
    failures = iter([BlockingIOError(11, "no process to be had"), OSError(12, "no memory")])

    def start() -> Child:
        if failure := next(failures, None):
            raise failure
        return spawn("tests.assets.obedient", environment={})

    queue = WarmQueue("enrichment", start, notes)
    queue.begin()
    queue.take(run("patient"))
    until(lambda: notes.ended_runs == ["patient"])
    queue.end(grace_s=0)


def test_a_ledger_that_fails_ends_no_queue() -> None:
    class Torn(Notes):
        def ended(self, run: Run) -> None:
            super().ended(run)
            if run.run_id == "first":
                raise RuntimeError("a page is torn")

    notes = Torn()
    queue = WarmQueue("enrichment", partial(spawn, "tests.assets.obedient", environment={}), notes)
    queue.begin()
    queue.take(run("first"))
    queue.take(run("second"))
    until(lambda: "second" in notes.ended_runs)
    assert queue.held() == []
    queue.end(grace_s=0)
