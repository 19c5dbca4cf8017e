"""Where a run goes when it is submitted: a batch's straight to the launcher, one of the portfolio into Dagster's queue.

However it was started (by a schedule, from Dagster's pages, by `tidemark backfill`), a run that touches an asset of the
portfolio, or says so in its tags, gets the portfolio's queue. The queue lets one of them execute at a time; one that
was lost with its process is tried again, and goes on where that one stopped.
"""

from dagster import DagsterInstance, DagsterRun, DagsterRunStatus
from dagster._core.run_coordinator import QueuedRunCoordinator, SubmitRunContext
from dagster._core.storage.tags import MAX_RETRIES_TAG, MAX_RUNTIME_SECONDS_TAG

from assets.core.runs import PORTFOLIO_ASSETS, QUEUE_TAG
from storage.core.models import Queue

TAGS = {
    QUEUE_TAG: Queue.PORTFOLIO.value,
    MAX_RETRIES_TAG: "10",  # of a lost run; one that failed by itself would fail again
    MAX_RUNTIME_SECONDS_TAG: str(24 * 3_600),
}


class PortfolioQueue(QueuedRunCoordinator[DagsterInstance]):
    """Named in `dagster.yaml` under `run_coordinator`."""

    def submit_run(self, context: SubmitRunContext) -> DagsterRun:
        run = context.dagster_run
        if is_of_the_portfolio(run):
            self._instance.add_run_tags(run.run_id, TAGS)
            return super().submit_run(context)
        if run.status is DagsterRunStatus.NOT_STARTED:
            return self._instance.launch_run(run.run_id, context.workspace)
        return run


def is_of_the_portfolio(run: DagsterRun) -> bool:
    touched = {key.path[-1] for key in run.asset_selection or ()}
    return run.tags.get(QUEUE_TAG) == Queue.PORTFOLIO or not PORTFOLIO_ASSETS.isdisjoint(touched)
