"""Dagster's launcher in a fleet learns which runs execute, and which workers there are, from the database alone."""

from collections.abc import Iterator
from uuid import uuid4

import pytest
from dagster import DagsterInstance, DagsterRun, DagsterRunStatus
from dagster._core.errors import DagsterLaunchFailedError, DagsterUserCodeUnreachableError
from dagster._core.launcher import WorkerStatus
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin
from dagster._daemon.run_coordinator.queued_run_coordinator_daemon import QueuedRunCoordinatorDaemon
from sqlalchemy.exc import OperationalError

from assets.core.runs import QUEUE_TAG
from assets.workers.fleet import FleetWorkers
from storage.core import leases
from storage.core.database import Database
from storage.core.models import Queue
from storage.core.store import Store
from tests.assets.conftest import prepare_dagster
from tests.assets.trivial_location import definitions


@pytest.fixture
def instance(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[DagsterInstance]:
    """Provide Dagster in a home whose broker can't be reached."""
    variables = {
        **prepare_dagster(store.settings),
        "TIDEMARK_HOME": str(store.settings.home),
        "TIDEMARK_DATABASE_URL": store.settings.database_url,
        "TIDEMARK_BROKER_URL": "amqp://127.0.0.1:1",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with DagsterInstance.from_config(str(store.settings.dagster_home)) as instance:
        yield instance


def a_run(
    instance: DagsterInstance, queue: Queue, status: DagsterRunStatus = DagsterRunStatus.NOT_STARTED
) -> DagsterRun:
    job = definitions.resolve_job_def("enrichment_batch")
    origin = RemoteJobOrigin(RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("here"), "__repository__"), job.name)
    return instance.create_run_for_job(job, tags={QUEUE_TAG: queue.value}, status=status, remote_job_origin=origin)


def hold(store: Store, name: str) -> None:
    now = leases.clock(store.db)
    with store.db.writing() as w:
        assert leases.hold(w, name, uuid4(), 60, now)


def fail(_: Database) -> None:
    raise OperationalError("", None, Exception())


def test_a_run_executes_as_long_as_its_lease_is_held(
    store: Store, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = a_run(instance, Queue.REFRESH, DagsterRunStatus.STARTED)

    def health() -> WorkerStatus:
        return instance.run_launcher.check_run_worker_health(run).status

    assert health() is WorkerStatus.NOT_FOUND
    hold(store, leases.run_role(run.run_id))
    assert health() is WorkerStatus.RUNNING
    with store.db.writing() as w:
        leases.revoke(w, leases.run_role(run.run_id))
    assert health() is WorkerStatus.NOT_FOUND

    monkeypatch.setattr(leases, "clock", fail)
    assert health() is WorkerStatus.RUNNING, "without the database, no run is reported as lost"


def test_a_terminated_run_loses_its_lease_or_is_cancelled_if_it_had_none(
    store: Store, instance: DagsterInstance
) -> None:
    executing, waiting = (a_run(instance, Queue.REFRESH, DagsterRunStatus.STARTED) for _ in range(2))
    hold(store, leases.run_role(executing.run_id))
    for run in (executing, waiting):
        assert instance.run_launcher.terminate(run.run_id)
    with store.db.reading() as r:
        assert leases.list_held(r, leases.RUN, leases.clock(store.db)) == []
    states = [instance.get_run_by_id(run.run_id) for run in (executing, waiting)]
    assert [state and state.status for state in states] == [DagsterRunStatus.CANCELING, DagsterRunStatus.CANCELED]


@pytest.mark.parametrize(
    ("queue", "refusal"),
    [(Queue.ENRICHMENT, DagsterLaunchFailedError), (Queue.PORTFOLIO, DagsterUserCodeUnreachableError)],
)
def test_a_run_that_can_not_be_sent_is_refused_so_that_dagsters_queue_keeps_it(
    store: Store, instance: DagsterInstance, queue: Queue, refusal: type[Exception]
) -> None:
    def launch() -> None:
        instance.launch_run(a_run(instance, queue).run_id, workspace=None)  # pyrefly: ignore[bad-argument-type]  # ours needs none

    with pytest.raises(refusal, match="No Tidemark worker of the fleet is running"):
        launch()
    hold(store, f"{leases.FLEET}/here/1")
    with pytest.raises(refusal, match="The broker can't be reached"):
        launch()


def test_dagsters_queue_executes_a_portfolio_run_for_each_worker_that_is_there(
    store: Store, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = QueuedRunCoordinatorDaemon(interval_seconds=1)

    def count_dequeued() -> int:
        queue = instance.get_concurrency_config()
        return len(daemon._get_runs_to_dequeue(instance, queue, fixed_iteration_time=None))

    for _ in range(4):
        a_run(instance, Queue.PORTFOLIO, DagsterRunStatus.QUEUED)
    assert count_dequeued() == 0, "without a worker"
    for count, machine in enumerate(("here", "there", "elsewhere"), start=1):
        hold(store, f"{leases.FLEET}/{machine}/1")
        assert count_dequeued() == count
    a_run(instance, Queue.PORTFOLIO, DagsterRunStatus.STARTED)
    a_run(instance, Queue.REFRESH, DagsterRunStatus.STARTED)
    assert count_dequeued() == 2, "one worker already has a run of the portfolio"

    monkeypatch.setattr(leases, "clock", fail)
    assert count_dequeued() == 0, "while workers can't be counted, nothing is added to what executes"


def test_the_launchers_connections_are_closed_with_the_instance(
    store: Store, instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[FleetWorkers] = []
    close = FleetWorkers.close

    def record(workers: FleetWorkers) -> None:
        closed.append(workers)
        close(workers)

    monkeypatch.setattr(FleetWorkers, "close", record)
    with DagsterInstance.from_config(str(store.settings.dagster_home)) as other:
        other.run_launcher.check_run_worker_health(a_run(instance, Queue.REFRESH))
    assert len(closed) == 1
