"""The worker and Dagster's launcher, together: warm processes, a real home, a trivial code location."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from dagster import DagsterInstance, DagsterRun, DagsterRunStatus
from dagster._core.errors import DagsterLaunchFailedError
from dagster._core.launcher import WorkerStatus
from sqlalchemy import select

from assets.core.runs import BATCH_TAG, QUEUE_TAG
from assets.dagster_internals import dagster_home
from assets.service import worker
from assets.workers.heads import Head
from assets.workers.ledgers import BatchLedger
from storage.core import heartbeat, leases
from storage.core.heartbeat import find_overdue_loops
from storage.core.models import Queue, jobs
from storage.core.settings import Settings
from storage.core.store import Store
from storage.jobs import batches
from tests.assets.trivial_location import definitions
from tests.conftest import open_store
from tests.storage.examples import a_client, a_customer, a_submission
from tests.waiting import until

LOCATION = "tests.assets.trivial_location"
needs_worker = pytest.mark.service  # each of its queues is a process that loads Dagster


class Bench:
    """A store with its Dagster home, in which runs can be launched."""

    def __init__(self, store: Store, instance: DagsterInstance) -> None:
        self.store = store
        self.instance = instance

    def launch(self, queue: Queue | None = None, batch: int | None = None, **behaviour: str) -> DagsterRun:
        tags = dict(behaviour)
        if queue:
            tags[QUEUE_TAG] = queue.value
        if batch is not None:
            tags[BATCH_TAG] = str(batch)
        run = self.instance.create_run_for_job(definitions.resolve_job_def("enrichment_batch"), tags=tags)
        return self.instance.launch_run(run.run_id, workspace=None)  # pyrefly: ignore[bad-argument-type]  # ours needs none

    def status(self, run: DagsterRun) -> DagsterRunStatus:
        current = self.instance.get_run_by_id(run.run_id)
        assert current is not None
        return current.status

    def health(self, run: DagsterRun) -> WorkerStatus:
        return self.instance.run_launcher.check_run_worker_health(run).status

    def pid_of(self, run: DagsterRun) -> int:
        """Return the id of the process that executes the run's steps; 0 before they begin."""
        messages = [event.message for event in self.instance.all_logs(run.run_id)]
        return next((int(m.split("(pid: ")[1].split(")")[0]) for m in messages if "(pid: " in m), 0)

    def a_batch(self) -> int:
        now = datetime.now(UTC)
        a_submission(self.store, a_customer(self.store, a_client(self.store, now), now), now)
        with self.store.db.writing() as w:
            batch = batches.claim(w, Queue.ENRICHMENT, self.store.settings, now)
        assert batch is not None
        return batch.token

    def job(self) -> tuple[str, int]:
        """Return the status of the newest job and the number of its attempts."""
        with self.store.db.reading() as r:
            newest = select(jobs.c.status, jobs.c.attempts).order_by(jobs.c.created_at.desc()).limit(1)
            row = r.execute(newest).one()
        return row.status, row.attempts

    def worker_is_warm(self) -> bool:
        return self.warm_workers() > 0

    def warm_workers(self) -> int:
        with self.store.db.reading() as r:
            return leases.count_holders(r, dagster_home.worker_role(self.store.settings), datetime.now(UTC))


def settings_in(folder: Path) -> Settings:
    return Settings(home=folder / "home", batch_lease_s=1.0)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return settings_in(tmp_path)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Return a bench with a warm worker, for tests that leave it warm."""
    settings = settings_in(tmp_path_factory.mktemp("bench"))
    with working(settings), open_bench(settings) as bench:
        until(bench.worker_is_warm)
        yield bench


@contextmanager
def open_bench(settings: Settings) -> Iterator[Bench]:
    store = Store.open(settings)
    until((settings.dagster_home / "dagster.yaml").exists)
    with DagsterInstance.from_config(str(settings.dagster_home)) as instance:
        try:
            yield Bench(store, instance)
        finally:
            store.close()


@contextmanager
def working(settings: Settings) -> Iterator[Callable[[], None]]:
    """Run a worker until the end of the block. Yield a function that ends it earlier."""
    stop = threading.Event()
    thread = threading.Thread(target=worker.run, args=(settings, stop, LOCATION))

    def end() -> None:
        stop.set()
        thread.join()

    thread.start()
    try:
        yield end
    finally:
        end()


@needs_worker
@pytest.mark.usefixtures("bench")
def test_the_loops_of_a_worker_are_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "ROUND_WITHIN_S", 0.0)
    queues = {f"queue {queue}" for queue in Queue if queue not in worker.IDLE_S}
    assert set(find_overdue_loops()) >= {"leases", "deliveries"} | queues


@needs_worker
def test_runs_of_a_queue_share_a_warm_process_and_each_queue_has_its_own(bench: Bench) -> None:
    first, second = bench.launch(Queue.ENRICHMENT), bench.launch(Queue.ENRICHMENT)
    other, by_hand = bench.launch(Queue.REFRESH), bench.launch()
    for run in (first, second, other, by_hand):
        until(lambda run=run: bench.status(run) is DagsterRunStatus.SUCCESS)
    assert bench.pid_of(first) == bench.pid_of(second) != bench.pid_of(other) == bench.pid_of(by_hand)


@needs_worker
def test_a_process_for_statements_starts_with_the_first_run_and_then_stays(bench: Bench) -> None:
    assert bench.warm_workers() == 1, "a run is accepted, though the process does not exist yet"
    first = bench.launch(Queue.EXTRACTION)
    until(lambda: bench.status(first) is DagsterRunStatus.SUCCESS)
    second = bench.launch(Queue.EXTRACTION)
    until(lambda: bench.status(second) is DagsterRunStatus.SUCCESS)
    assert bench.pid_of(first) == bench.pid_of(second)


@needs_worker
def test_the_lease_of_a_batch_is_renewed_while_its_run_executes_and_released_after_a_failure(bench: Bench) -> None:
    token = bench.a_batch()
    run = bench.launch(Queue.ENRICHMENT, token, sleep_s="2.5", fail="yes")  # two and a half leases
    until(lambda: bench.status(run) is DagsterRunStatus.STARTED)
    while bench.status(run) is DagsterRunStatus.STARTED:
        with bench.store.db.reading() as r:
            assert not batches.has_expired(r, bench.store.settings, datetime.now(UTC))
        time.sleep(0.05)
    assert bench.status(run) is DagsterRunStatus.FAILURE
    until(lambda: bench.job() == ("Queued", 1))


@needs_worker
def test_a_run_whose_process_dies_is_reported_lost_and_its_jobs_are_requeued_at_once(bench: Bench) -> None:
    run = bench.launch(Queue.ENRICHMENT, bench.a_batch(), sleep_s="30")
    until(lambda: bench.pid_of(run) > 0)
    assert bench.health(run) is WorkerStatus.RUNNING

    os.kill(bench.pid_of(run), signal.SIGKILL)
    until(lambda: bench.health(run) is WorkerStatus.NOT_FOUND, within_s=20)  # it would have run longer
    until(lambda: bench.job() == ("Queued", 1), within_s=20)

    after = bench.launch(Queue.ENRICHMENT)
    until(lambda: bench.status(after) is DagsterRunStatus.SUCCESS)


@needs_worker
def test_a_terminated_run_is_cancelled_and_its_process_continues(bench: Bench) -> None:
    run = bench.launch(Queue.ENRICHMENT, sleep_s="30")
    until(lambda: bench.pid_of(run) > 0)
    process = bench.pid_of(run)
    waiting = bench.launch(Queue.ENRICHMENT)

    assert bench.instance.run_launcher.terminate(waiting.run_id)
    assert bench.status(waiting) is DagsterRunStatus.CANCELED
    assert bench.instance.run_launcher.terminate(run.run_id)
    until(lambda: bench.status(run) is DagsterRunStatus.CANCELED)
    assert not bench.instance.run_launcher.terminate(run.run_id)

    after = bench.launch(Queue.ENRICHMENT)
    until(lambda: bench.status(after) is DagsterRunStatus.SUCCESS)
    assert bench.pid_of(after) == process


@needs_worker
def test_an_ending_worker_finishes_its_run_and_gives_waiting_ones_back_without_an_attempt(settings: Settings) -> None:
    with working(settings) as end, open_bench(settings) as bench:
        until(bench.worker_is_warm)
        running = bench.launch(Queue.ENRICHMENT, sleep_s="0.5")
        bench.launch(Queue.ENRICHMENT, bench.a_batch())
        until(lambda: bench.status(running) is DagsterRunStatus.STARTED)
        end()
        assert bench.status(running) is DagsterRunStatus.SUCCESS
        assert bench.job() == ("Queued", 0)
        assert not bench.worker_is_warm()
        with pytest.raises(DagsterLaunchFailedError, match="No Tidemark worker runs"):
            bench.launch(Queue.ENRICHMENT)
        with bench.store.db.reading() as r:
            assert batches.count_open(r, Queue.ENRICHMENT) == 0


def test_leases_are_renewed_after_an_unexpected_error(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    failures = iter([OSError(24, "too many open files")])

    def hold(*arguments: Any) -> bool:
        if failure := next(failures, None):
            raise failure
        return held(*arguments)

    held = leases.hold
    monkeypatch.setattr(leases, "hold", hold)
    store, ended, role = open_store(settings), threading.Event(), f"{leases.WORKER}/1"
    head = Head(store, {}, BatchLedger(store, uuid4()), role, uuid4())
    keeping = threading.Thread(target=head.keep_leases, args=(ended,))
    keeping.start()

    def is_held() -> bool:
        with store.db.reading() as r:
            return leases.is_held(r, role, datetime.now(UTC))

    try:
        until(is_held)
    finally:
        ended.set()
        keeping.join()
        store.close()


@pytest.mark.slow
def test_two_workers_of_a_home_share_runs(settings: Settings) -> None:
    with working(settings), working(settings), open_bench(settings) as bench:
        until(lambda: bench.warm_workers() == 2)
        both = [bench.launch(Queue.ENRICHMENT, sleep_s="8") for _ in range(2)]
        for run in both:
            until(lambda run=run: bench.pid_of(run) > 0)
            assert bench.health(run) is WorkerStatus.RUNNING
        assert bench.pid_of(both[0]) != bench.pid_of(both[1])
        for run in both:
            until(lambda run=run: bench.status(run) is DagsterRunStatus.SUCCESS)
