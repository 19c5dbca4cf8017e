"""Dagster's run launcher: it sends a run to a warm process instead of starting a new one, which takes seconds.

A free worker accepts the run and answers at once. From then on Dagster's monitoring asks whether a worker still has the
run, so that a run whose process died is marked failed within seconds. Its jobs don't wait for that: our own leases
return them to the queue.
"""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from dagster import DagsterError, DagsterInstance, DagsterRun, StringSource
from dagster._config.config_schema import UserConfigSchema
from dagster._core.errors import DagsterLaunchFailedError, DagsterUserCodeUnreachableError
from dagster._core.launcher import CheckRunHealthResult, LaunchRunContext, RunLauncher, WorkerStatus
from dagster._serdes import ConfigurableClass, ConfigurableClassData

from assets.core.runs import BATCH_TAG, QUEUE_TAG
from assets.workers.worker_calls import HomeWorkers
from assets.workers.workers import NoWorkerError, Run, Workers
from storage.core.models import Queue
from storage.core.settings import Settings

OTHER_QUEUE = Queue.REFRESH  # for runs that were started by hand


class WarmWorkerLauncher(RunLauncher[DagsterInstance], ConfigurableClass):
    """The launcher that `dagster.yaml` names under `run_launcher`.

    Workers of the Dagster home `home` get the runs or, with a broker, those of the whole fleet.
    """

    def __init__(self, home: str, inst_data: ConfigurableClassData | None = None) -> None:
        super().__init__()
        self._home = Path(home)
        self._inst_data = inst_data

    @cached_property
    def _workers(self) -> Workers:
        settings = Settings()
        if not settings.broker_url:
            return HomeWorkers(self._home)
        from assets.workers.fleet import FleetWorkers  # noqa: PLC0415  # with Celery, which only a fleet needs

        return FleetWorkers(settings)

    def launch_run(self, context: LaunchRunContext) -> None:
        run = context.dagster_run
        batch, queue = run.tags.get(BATCH_TAG), _queue_of(run)
        try:
            self._workers.launch(Run(run.run_id, None if batch is None else int(batch)), queue)
        except (NoWorkerError, TimeoutError) as error:
            raise _refusal(run, str(error)) from error

    def count_workers(self) -> int:
        """Return how many workers can take runs; one while that can't be found out."""
        try:
            return self._workers.count()
        except TimeoutError:
            return 1

    def terminate(self, run_id: str) -> bool:
        run = self._instance.get_run_by_id(run_id)
        if run is None or run.is_finished:
            return False
        self._instance.report_run_canceling(run)
        try:
            is_executing = self._workers.interrupt(run_id)
        except TimeoutError:  # a busy worker obeys when it has time; until then the run stays "canceling"
            return True
        if not is_executing:
            self._instance.report_run_canceled(run, "The run was not executing.")
        return True

    @property
    def supports_check_run_worker_health(self) -> bool:
        return True

    def check_run_worker_health(self, run: DagsterRun) -> CheckRunHealthResult:
        try:
            held = self._workers.has_run(run.run_id)
        except TimeoutError:
            return CheckRunHealthResult(WorkerStatus.RUNNING, "A worker is too busy to answer.")
        if held:
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        return CheckRunHealthResult(WorkerStatus.NOT_FOUND, "Its process died; its jobs went back to the queue.")

    def dispose(self) -> None:
        if "_workers" in vars(self):  # most processes launch no run
            self._workers.close()

    @property
    def inst_data(self) -> ConfigurableClassData | None:
        return self._inst_data

    @classmethod
    def config_type(cls) -> UserConfigSchema:
        return {"home": StringSource}

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData, config_value: Mapping[str, Any]) -> Self:
        return cls(config_value["home"], inst_data)


def _refusal(run: DagsterRun, reason: str) -> DagsterError:
    """Return the error for a run that no worker took.

    Runs of the portfolio come from Dagster's queue, which retries only after DagsterUserCodeUnreachableError.
    """
    if run.tags.get(QUEUE_TAG) == Queue.PORTFOLIO:
        return DagsterUserCodeUnreachableError(reason)
    return DagsterLaunchFailedError(reason)


def _queue_of(run: DagsterRun) -> Queue:
    tag = run.tags.get(QUEUE_TAG, OTHER_QUEUE)
    return Queue(tag) if tag in set(Queue) else OTHER_QUEUE
