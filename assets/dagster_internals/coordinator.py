"""Dagster's run coordinator: a batch's run goes straight to the launcher, a run of the portfolio into Dagster's queue.

A run belongs to the portfolio if it materialises one of the portfolio's assets or has the tag of its queue, whether a
schedule, Dagster's pages or `tidemark backfill` started it. The queue executes `TIDEMARK_PORTFOLIO_RUNS` of these at a
time. A run that was lost with its process is retried, and continues where the lost one stopped.
"""

from dagster import DagsterInstance, DagsterRun, DagsterRunStatus
from dagster._core.run_coordinator import QueuedRunCoordinator, SubmitRunContext
from dagster._core.storage.tags import MAX_RETRIES_TAG, MAX_RUNTIME_SECONDS_TAG

from assets.core.runs import PORTFOLIO_ASSETS, QUEUE_TAG
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


def is_portfolio_run(run: DagsterRun) -> bool:
    assets = {key.path[-1] for key in run.asset_selection or ()}
    return run.tags.get(QUEUE_TAG) == Queue.PORTFOLIO or not PORTFOLIO_ASSETS.isdisjoint(assets)
