"""Launchers and workers with a real broker: runs are carried, executed once, and given back."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from uuid import uuid4

import psutil
import pytest
from kombu import Connection

from assets.core.processes import Child, spawn
from assets.workers import broker as broker_module
from assets.workers.broker import receiving
from assets.workers.fleet import FleetWorkers
from assets.workers.heads import FleetHead
from assets.workers.ledgers import FleetLedger
from assets.workers.queues import WarmQueue
from assets.workers.workers import Run
from storage.core import leases
from storage.core.brokers import queue_name
from storage.core.models import JobStatus, Queue, jobs
from storage.core.settings import Settings
from storage.core.store import Store
from storage.jobs import batches
from tests.brokers import RABBITMQ, REDIS, broker, waiting
from tests.conftest import new_database, open_store
from tests.network import network
from tests.storage.examples import a_client, a_customer, a_submission
from tests.waiting import until

pytestmark = pytest.mark.service  # each test starts child processes

CONCERNED = (Queue.ENRICHMENT, Queue.REFRESH)


class RecordingLedger(FleetLedger):
    """A ledger that also records what happened to each run."""

    def __init__(self, store: Store) -> None:
        super().__init__(store, uuid4())
        self.released: list[Run] = []
        self.given_back: list[Run] = []

    def release(self, run: Run) -> None:
        self.released.append(run)
        super().release(run)

    def give_back(self, run: Run) -> None:
        self.given_back.append(run)
        super().give_back(run)


class Fleet:
    """One worker in this process, whose warm processes are obedient ones, and what a launcher does."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.settings = store.settings
        self.launcher = FleetWorkers(store.settings)
        self.ledger = RecordingLedger(store)
        self.children: list[Child] = []
        self.is_ready = threading.Event()

    @contextmanager
    def working(self) -> Iterator[Callable[[], None]]:
        """Run the worker until the end of the block. Yield a function that ends it earlier."""
        stop, ended = threading.Event(), threading.Event()
        queues = {queue: WarmQueue(queue, self._start, self.ledger) for queue in CONCERNED}
        head = FleetHead(self.store, queues, self.ledger, f"{leases.FLEET}/here/1", uuid4())
        renewal = threading.Thread(target=head.keep_leases, args=(ended,))

        def end() -> None:
            stop.set()
            head.leave()
            for queue in queues.values():
                queue.end(grace_s=0)

        for queue in queues.values():
            queue.begin()
        renewal.start()
        try:
            with receiving(
                self.settings, partial(head.execute, stop=stop), self.is_ready.is_set, stop
            ) as head.broker_answers:
                assert not head.broker_answers()
                self.is_ready.set()
                until(self.is_counted)
                yield end
                end()
        finally:
            ended.set()
            renewal.join()
            end()

    def is_counted(self) -> bool:
        with self.store.db.reading() as r:
            return leases.count_holders(r, leases.FLEET, leases.clock(self.store.db)) == 1

    def launch(self, run: Run, queue: Queue = Queue.ENRICHMENT) -> Run:
        self.launcher.launch(run, queue)
        return run

    def a_batch(self) -> int:
        now = leases.clock(self.store.db)
        a_submission(self.store, a_customer(self.store, a_client(self.store, now), now), now)
        with self.store.db.writing() as w:
            batch = batches.claim(w, Queue.ENRICHMENT, self.store.settings, now)
        assert batch is not None
        return batch.token

    def job(self) -> tuple[str, int]:
        with self.store.db.reading() as r:
            row = r.execute(jobs.select()).one()
        return row.status, row.attempts

    def waiting(self, queue: Queue = Queue.ENRICHMENT) -> int:
        return waiting(self.settings, queue)

    def _start(self) -> Child:
        self.children.append(spawn("tests.assets.obedient", environment={}))
        return self.children[-1]


@contextmanager
def a_fleet(request: pytest.FixtureRequest, home: Path, settings: dict[str, str]) -> Iterator[Fleet]:
    shared = {**settings, "database_url": new_database(request, "postgresql"), "lake_url": str(home / "lake")}
    store = open_store(Settings(home=home, **shared))
    fleet = Fleet(store)
    with closing(store), closing(fleet.launcher):
        yield fleet
    assert [child for child in fleet.children if child.process.poll() is None] == []


@pytest.fixture
def fleet(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Fleet]:
    with broker(RABBITMQ) as settings, a_fleet(request, tmp_path / "home", settings) as fleet:
        yield fleet


def messages_left(settings: Settings) -> int:
    """Return how many messages a stopped worker left, whether or not it had received them."""
    with Connection(settings.broker_url) as connection:
        return sum(connection.default_channel.queue_purge(queue_name(settings, queue)) or 0 for queue in CONCERNED)


def by_hand(behaviour: str = "quick") -> Run:
    return Run(f"{behaviour}-{uuid4()}", None)


def test_a_message_holds_ids_only(fleet: Fleet) -> None:
    with fleet.store.db.writing() as w:
        leases.hold(w, f"{leases.FLEET}/elsewhere/1", uuid4(), 60, leases.clock(fleet.store.db))
    run = fleet.launch(Run(str(uuid4()), 7))
    with Connection(fleet.settings.broker_url) as connection:
        message = connection.default_channel.basic_get(queue_name(fleet.settings, Queue.ENRICHMENT))
    arguments, options, embedded = json.loads(message.body)
    assert (arguments, options) == ([run.run_id, 7], {})
    assert not any(embedded.values())
    assert message.properties["delivery_mode"] == 2, "it is on the disk"


@pytest.mark.parametrize("url", [RABBITMQ, REDIS])
def test_runs_are_carried_to_their_queues_executed_and_acknowledged(
    request: pytest.FixtureRequest, tmp_path: Path, url: str
) -> None:
    with broker(url) as settings, a_fleet(request, tmp_path / "home", settings) as fleet:
        with fleet.working():
            runs = [fleet.launch(Run(str(uuid4()), fleet.a_batch())), fleet.launch(by_hand(), Queue.REFRESH)]
            until(lambda: len(fleet.ledger.released) == 2)
            assert set(fleet.ledger.released) == set(runs)
            until(lambda: not any(fleet.launcher.has_run(run.run_id) for run in runs))
        assert messages_left(fleet.settings) == 0


def test_a_run_that_is_delivered_twice_executes_once(fleet: Fleet) -> None:
    with fleet.working():
        run = fleet.launch(fleet.launch(Run(str(uuid4()), fleet.a_batch())))
        last = fleet.launch(by_hand())
        until(lambda: last in fleet.ledger.released)
        assert fleet.ledger.released == [run, last]
    assert fleet.waiting() == 0


def test_a_worker_takes_one_run_of_a_queue_at_a_time_and_no_queue_waits_for_another(fleet: Fleet) -> None:
    with fleet.working() as end:
        busy = fleet.launch(by_hand("longer"))
        fleet.launch(by_hand())
        other = fleet.launch(by_hand(), Queue.REFRESH)
        until(lambda: other in fleet.ledger.released)
        assert fleet.launcher.has_run(busy.run_id)
        assert fleet.waiting() == 1
        end()


def test_the_head_answers_the_broker_and_keeps_its_leases_while_its_process_computes(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker_module, "HEARTBEAT_S", 1)  # after two seconds of silence RabbitMQ closes the connection
    monkeypatch.setattr(Settings, "run_lease_s", 1.0)
    with fleet.working() as end:
        run = fleet.launch(Run(f"longer-{uuid4()}", fleet.a_batch()))
        until(lambda: fleet.launcher.has_run(run.run_id))
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            assert fleet.launcher.has_run(run.run_id)
            assert fleet.is_counted()
            assert fleet.waiting() == 0, "it was not delivered again"
            time.sleep(0.1)
        assert fleet.job() == (JobStatus.RUNNING, 1)
        end()


def test_an_interrupted_run_ends(fleet: Fleet) -> None:
    with fleet.working():
        run = fleet.launch(by_hand("longer"))
        until(lambda: fleet.launcher.has_run(run.run_id))
        assert fleet.launcher.interrupt(run.run_id)
        until(lambda: fleet.ledger.released == [run])


@pytest.mark.parametrize("of_batch", [True, False])
def test_a_draining_worker_gives_its_run_back_and_leaves_others_in_the_queue(fleet: Fleet, *, of_batch: bool) -> None:
    with fleet.working() as end:
        run = fleet.launch(Run(f"longer-{uuid4()}", fleet.a_batch() if of_batch else None))
        until(lambda: fleet.launcher.has_run(run.run_id))
        fleet.launch(by_hand())
        end()
        assert fleet.ledger.given_back == [run]
        assert not fleet.launcher.has_run(run.run_id)
        assert not fleet.is_counted()
    assert fleet.waiting() == 1, "the given back run is acknowledged: SQL says what becomes of it"
    if of_batch:
        assert fleet.job() == (JobStatus.QUEUED, 0)


def test_a_run_is_not_begun_again_after_its_worker_lost_the_broker_for_a_moment(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    with broker(RABBITMQ) as settings, network(("127.0.0.1", 5672)) as line:
        near = {**settings, "broker_url": settings["broker_url"].replace("5672", str(line.port))}
        with a_fleet(request, tmp_path / "home", near) as fleet, fleet.working() as end:
            run = fleet.launch(Run(f"longer-{uuid4()}", fleet.a_batch()))
            until(lambda: fleet.launcher.has_run(run.run_id))
            line.cut()
            until(lambda: waiting(Settings(**settings), Queue.ENRICHMENT) == 1)
            line.mend()
            until(lambda: waiting(Settings(**settings), Queue.ENRICHMENT) == 0)
            assert fleet.launcher.has_run(run.run_id), "it still executes"
            end()
            assert (fleet.ledger.released, fleet.ledger.given_back) == ([], [run])


def test_warm_processes_are_children_that_never_were_forked_from_the_head(fleet: Fleet) -> None:
    with fleet.working():
        commands = [psutil.Process(child.process.pid).cmdline() for child in fleet.children]
        assert [command[1:3] for command in commands] == [["-m", "tests.assets.obedient"]] * len(CONCERNED)
