"""A run that a broker delivers begins once, and its lease says whether it executes."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import cast
from uuid import UUID, uuid4

import pytest
from sqlalchemy.exc import OperationalError

from assets.workers import heads
from assets.workers.fleet import FleetWorkers
from assets.workers.heads import FleetHead
from assets.workers.ledgers import FleetLedger
from assets.workers.queues import WarmQueue
from assets.workers.workers import NoWorkerError, Run
from storage.core import leases
from storage.core.models import BatchState, JobStatus, Queue, batches, jobs
from storage.core.store import Store
from storage.jobs import batches as stored_batches
from tests.storage.examples import a_client, a_customer, a_submission

BY_HAND = Run(str(uuid4()), None)


class Busy:
    """A queue that holds the runs that it took until the test ends them."""

    def __init__(self, *, takes: bool = True) -> None:
        self.runs: list[Run] = []
        self.interrupted: list[str] = []
        self._takes = takes
        self.ready = True

    def take(self, run: Run) -> bool:
        self.runs += [run] * self._takes
        return self._takes

    def list_runs(self) -> list[Run]:
        return self.runs

    def interrupt(self, run_id: str) -> bool:
        self.interrupted.append(run_id)
        return True


@pytest.fixture
def now(store: Store) -> datetime:
    return leases.clock(store.db)


@pytest.fixture
def run(store: Store, now: datetime) -> Run:
    """The run of a batch with one job."""
    a_submission(store, a_customer(store, a_client(store, now), now), now)
    with store.db.writing() as w:
        batch = stored_batches.claim(w, Queue.ENRICHMENT, store.settings, now)
    assert batch is not None
    return Run(str(uuid4()), batch.token)


@pytest.fixture
def workers(store: Store) -> Iterator[FleetWorkers]:
    reached = FleetWorkers(store.settings.model_copy(update={"broker_url": "amqp://127.0.0.1:1"}))
    yield reached
    reached.close()


def a_head(store: Store, queue: Busy, ledger: FleetLedger | None = None) -> FleetHead:
    queues = cast(dict[Queue, WarmQueue], {Queue.ENRICHMENT: queue})
    return FleetHead(store, queues, ledger or FleetLedger(store, uuid4()), f"{leases.FLEET}/here/1", uuid4())


def state_of(store: Store, run: Run) -> tuple[str, UUID | None, str, int]:
    """Return the state and the worker of a run's batch, and the status and the attempts of its job."""
    with store.db.reading() as r:
        batch = r.execute(batches.select().where(batches.c.token == run.batch)).one()
        job = r.execute(jobs.select()).one()
    return batch.state, batch.worker, job.status, job.attempts


def test_a_run_that_is_delivered_twice_begins_once(store: Store, run: Run) -> None:
    first, second = FleetLedger(store, uuid4()), FleetLedger(store, uuid4())
    for delivered in (run, BY_HAND):
        assert first.begin(delivered) is not None
        begun = state_of(store, run)
        assert first.begin(delivered) is None, "to the same worker"
        assert second.begin(delivered) is None, "to another worker"
        assert state_of(store, run) == begun


def test_the_run_of_a_batch_does_not_begin_again_after_its_end(store: Store, run: Run) -> None:
    ledger = FleetLedger(store, uuid4())
    ended = ledger.begin(run)
    assert ended is not None
    ledger.release(run)
    assert ended.is_set()
    assert ledger.begin(run) is None
    assert ledger.begin(replace(run, run_id=str(uuid4()))) is None, "the batch is not open"
    with store.db.reading() as r:
        assert leases.list_held(r, leases.RUN, leases.clock(store.db)) == []


def test_a_launcher_sees_a_run_while_its_lease_lasts(store: Store, workers: FleetWorkers, run: Run) -> None:
    ledger = FleetLedger(store, uuid4())
    assert not workers.has_run(run.run_id)
    ledger.begin(run)
    assert workers.has_run(run.run_id)
    ledger.give_back(run)
    assert not workers.has_run(run.run_id)
    assert state_of(store, run)[2:] == (JobStatus.QUEUED, 0)


def test_a_dead_workers_run_is_seen_as_lost_when_its_lease_has_ended(
    store: Store, workers: FleetWorkers, now: datetime
) -> None:
    with store.db.writing() as w:
        ended = now - timedelta(seconds=store.settings.run_lease_s + 1)
        leases.hold(w, leases.run_role(BY_HAND.run_id), uuid4(), store.settings.run_lease_s, ended)
    assert not workers.has_run(BY_HAND.run_id)


def test_a_run_whose_lease_is_withdrawn_is_interrupted_once(store: Store, workers: FleetWorkers, run: Run) -> None:
    queue, ledger = Busy(), FleetLedger(store, uuid4())
    head = a_head(store, queue, ledger)
    ledger.begin(run)
    queue.take(run)
    head._renew()
    assert queue.interrupted == []
    assert workers.interrupt(run.run_id)
    assert not workers.interrupt(run.run_id)
    head._renew()
    head._renew()
    assert queue.interrupted == [run.run_id]
    ledger.release(run)


def test_no_run_is_sent_to_a_fleet_without_workers(workers: FleetWorkers) -> None:
    with pytest.raises(NoWorkerError, match="start `tidemark worker`"):
        workers.launch(BY_HAND, Queue.REFRESH)


def test_a_broker_that_can_not_be_reached_is_reported(store: Store, workers: FleetWorkers, now: datetime) -> None:
    with store.db.writing() as w:
        leases.hold(w, f"{leases.FLEET}/here/1", uuid4(), 60, now)
    with pytest.raises(NoWorkerError, match="broker"):
        workers.launch(BY_HAND, Queue.REFRESH)


def test_executing_ends_with_the_run(store: Store, run: Run) -> None:
    queue, ledger = Busy(), FleetLedger(store, uuid4())
    results: list[bool] = []
    head = a_head(store, queue, ledger)
    executing = threading.Thread(
        target=lambda: results.append(head.execute(run, Queue.ENRICHMENT, threading.Event())), daemon=True
    )
    executing.start()
    executing.join(0.3)
    assert (queue.runs, results) == ([run], [])
    ledger.release(run)
    executing.join(10)
    assert results == [True]


@pytest.mark.parametrize("of_batch", [True, False])
def test_a_run_that_an_ending_worker_can_not_execute_is_given_back(store: Store, run: Run, *, of_batch: bool) -> None:
    delivered = run if of_batch else BY_HAND
    assert a_head(store, Busy(takes=False)).execute(delivered, Queue.ENRICHMENT, threading.Event())
    with store.db.reading() as r:
        assert leases.list_held(r, leases.RUN, leases.clock(store.db)) == []
    assert state_of(store, run)[2:] == ((JobStatus.QUEUED, 0) if of_batch else (JobStatus.RUNNING, 1))


def test_a_stopping_worker_begins_no_run_so_that_another_gets_it(store: Store, run: Run) -> None:
    stop = threading.Event()
    stop.set()
    assert not a_head(store, Busy()).execute(run, Queue.ENRICHMENT, stop)
    assert state_of(store, run)[:2] == (BatchState.OPEN, None)


def test_a_run_begins_when_the_database_answers_again(
    store: Store, run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    failures = iter([OperationalError("", None, Exception())])

    class Failing(FleetLedger):
        def begin(self, run: Run) -> threading.Event | None:
            if failure := next(failures, None):
                raise failure
            ended = super().begin(run)
            assert ended is not None
            ended.set()
            return ended

    monkeypatch.setattr(heads, "RETRY_DATABASE_S", 0.01)
    queue = Busy()
    assert a_head(store, queue, Failing(store, uuid4())).execute(run, Queue.ENRICHMENT, threading.Event())
    assert queue.runs == [run]
    assert "can't begin without the database" in caplog.text


def test_a_fleet_worker_is_counted_while_its_broker_answers_and_until_it_leaves(store: Store) -> None:
    def count_heads() -> int:
        with store.db.reading() as r:
            return leases.count_holders(r, leases.FLEET, leases.clock(store.db))

    head, answers = a_head(store, Busy()), [False]
    head.broker_answers = lambda: answers[0]
    head._renew()
    assert count_heads() == 0
    answers[0] = True
    head._renew()
    assert count_heads() == 1
    head.leave()
    head._renew()
    assert count_heads() == 0


def test_a_new_worker_forgets_the_leases_of_those_that_died_long_ago(store: Store, now: datetime) -> None:
    long_ago = now - heads.FORGOTTEN_AFTER - timedelta(minutes=1)
    with store.db.writing() as w:
        for name, then in ((f"{leases.FLEET}/dead/1", long_ago), (leases.run_role("lost"), long_ago), ("run/new", now)):
            leases.hold(w, name, uuid4(), 10, then)
    a_head(store, Busy())._clean_up()
    with store.db.writing() as w:
        assert [leases.revoke(w, name) for name in (f"{leases.FLEET}/dead/1", "run/lost", "run/new")] == [
            False,
            False,
            True,
        ]
