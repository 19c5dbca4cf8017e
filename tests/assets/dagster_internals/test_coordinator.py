"""Runs of the portfolio wait in Dagster's queue, however they are started; all others go straight to the launcher."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from dagster import AssetKey, DagsterInstance, DagsterRun, DagsterRunStatus
from dagster._core.errors import DagsterLaunchFailedError, DagsterUserCodeUnreachableError
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin
from dagster._core.run_coordinator import SubmitRunContext

from assets.core.runs import PORTFOLIO_ASSETS, QUEUE_TAG
from assets.dagster_internals.coordinator import TAGS
from assets.definitions import definitions
from storage.core.models import Queue
from storage.core.settings import Settings
from tests.assets.conftest import prepare_dagster


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[DagsterInstance]:
    """Return an instance in a home without a worker, where every launch is refused."""
    settings = Settings(home=tmp_path / "home")
    prepare_dagster(settings)
    with DagsterInstance.from_config(str(settings.dagster_home)) as instance:
        yield instance


def submit_run(instance: DagsterInstance, asset: str | None = None, **tags: str) -> DagsterRun:
    job = definitions().resolve_implicit_global_asset_job_def()
    origin = RemoteJobOrigin(
        RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("tidemark"), "__repository__"), job.name
    )
    selection = {AssetKey(asset)} if asset else None
    run = instance.create_run_for_job(job, tags=tags, asset_selection=selection, remote_job_origin=origin)
    context = SubmitRunContext(run, workspace=None)  # pyrefly: ignore[bad-argument-type]  # nothing here needs one
    return instance.run_coordinator.submit_run(context)


def test_a_run_of_a_portfolio_asset_is_queued(instance: DagsterInstance, subtests: pytest.Subtests) -> None:
    for asset in sorted(PORTFOLIO_ASSETS):
        with subtests.test(asset):
            run = submit_run(instance, asset)
            assert run.status is DagsterRunStatus.QUEUED
            assert run.tags.items() >= TAGS.items()


def test_a_run_with_the_portfolio_tag_is_queued(instance: DagsterInstance) -> None:
    run = submit_run(instance, **{QUEUE_TAG: Queue.PORTFOLIO.value})
    assert run.status is DagsterRunStatus.QUEUED


def test_every_other_run_is_launched_at_once(instance: DagsterInstance) -> None:
    with pytest.raises(DagsterLaunchFailedError, match="No Tidemark worker runs"):
        submit_run(instance, "extracted_statements")


def test_the_queue_retries_while_no_worker_runs(instance: DagsterInstance) -> None:
    run = submit_run(instance, "risk_portfolio")
    with pytest.raises(DagsterUserCodeUnreachableError, match="No Tidemark worker runs"):
        instance.launch_run(run.run_id, workspace=None)  # pyrefly: ignore[bad-argument-type]
    queue = instance.get_concurrency_config().run_queue_config
    assert queue is not None
    assert queue.max_user_code_failure_retries > 10**6, "and never gives up"
    assert queue.tag_concurrency_limits == [{"key": QUEUE_TAG, "value": "portfolio", "limit": 0}]
