"""Dagster's run coordinator: a batch's run goes straight to the launcher, a run of the portfolio into Dagster's queue.

A run belongs to the portfolio if it materialises one of the portfolio's assets or has the tag of its queue, whether a
schedule, Dagster's pages or `tidemark backfill` started it. The queue executes as many of these at a time as there are
workers. A run that was lost with its process is retried, and continues where the lost one stopped.
"""

from dagster import DagsterInstance, DagsterRun, DagsterRunStatus
from dagster._core.run_coordinator import QueuedRunCoordinator, SubmitRunContext
from dagster._core.run_coordinator.queued_run_coordinator import RunQueueConfig
from dagster._core.storage.tags import MAX_RETRIES_TAG, MAX_RUNTIME_SECONDS_TAG

from assets.core.runs import PORTFOLIO_ASSETS, QUEUE_TAG
from assets.dagster_internals.launcher import WarmWorkerLauncher
from storage.core.models import Queue
from storage.core.settings import LONGEST_RUN_S

TAGS = {
    QUEUE_TAG: Queue.PORTFOLIO.value,
    MAX_RETRIES_TAG: "10",  # only if the process was lost (`run_retries`): a run that failed would fail again
    MAX_RUNTIME_SECONDS_TAG: str(LONGEST_RUN_S),
}


class PortfolioQueue(QueuedRunCoordinator[DagsterInstance]):
    """The coordinator that `dagster.yaml` names under `run_coordinator`."""

    def submit_run(self, context: SubmitRunContext) -> DagsterRun:
        run = context.dagster_run
        if is_portfolio_run(run):
            self._instance.add_run_tags(run.run_id, TAGS)
            return super().submit_run(context)
        if run.status is DagsterRunStatus.NOT_STARTED:
            return self._instance.launch_run(run.run_id, context.workspace)
        return run

    def get_run_queue_config(self) -> RunQueueConfig:
        """Limit the runs of the portfolio to the workers that are there now, each of which executes one at a time.

        Dagster asks whenever it looks into its queue. If it launched more runs, the surplus ones would wait for hours,
        and Dagster fails a run that has not started within minutes.
        """
        launcher = self._instance.run_launcher
        assert isinstance(launcher, WarmWorkerLauncher)
        limit = {"key": QUEUE_TAG, "value": Queue.PORTFOLIO.value, "limit": launcher.count_workers()}
        return super().get_run_queue_config()._replace(tag_concurrency_limits=[limit])


def is_portfolio_run(run: DagsterRun) -> bool:
    assets = {key.path[-1] for key in run.asset_selection or ()}
    return run.tags.get(QUEUE_TAG) == Queue.PORTFOLIO or not PORTFOLIO_ASSETS.isdisjoint(assets)
