"""What a warm process does with runs, and what it logs about them."""

from io import StringIO
from pathlib import Path

import pytest
from dagster import DagsterEventType, DagsterInstance, DagsterRunStatus

from assets.core.processes import spawn
from assets.dagster_internals import dagster_home, warm
from storage.core.settings import Settings
from tests.assets.trivial_location import definitions
from tests.waiting import until


def test_a_failed_step_is_logged_with_error_types_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """An error's message may quote a row; Dagster would print it."""
    settings = Settings(home=tmp_path / "home")
    dagster_home.prepare(settings)
    repository = warm.warm_repository("tests.assets.trivial_location")
    with DagsterInstance.from_config(str(settings.dagster_home)) as instance:
        run = instance.create_run_for_job(definitions.resolve_job_def("enrichment_batch"), tags={"fail": "yes"})
        warm.execute(instance, repository, run.run_id)
        ended = instance.get_run_by_id(run.run_id)
        recorded = [event.message for event in instance.all_logs(run.run_id)]
    assert ended is not None
    assert ended.status is DagsterRunStatus.FAILURE
    assert any("failed" in message for message in recorded)
    names = "DagsterExecutionStepExecutionError < ValueError"
    assert caplog.messages == [f"step behaving_as_tagged of run {run.run_id} failed with {names}"]
    assert "as told" not in "".join(capfd.readouterr())


@pytest.mark.parametrize("status", [DagsterRunStatus.SUCCESS, DagsterRunStatus.STARTED])
def test_a_run_that_comes_again_after_it_began_is_not_executed(tmp_path: Path, status: DagsterRunStatus) -> None:
    """A broker may deliver it twice. Its first worker may be dead, or only have lost the broker."""
    settings = Settings(home=tmp_path / "home")
    dagster_home.prepare(settings)
    repository = warm.warm_repository("tests.assets.trivial_location")
    with DagsterInstance.from_config(str(settings.dagster_home)) as instance:
        run = instance.create_run_for_job(definitions.resolve_job_def("enrichment_batch"), status=status)
        warm.execute(instance, repository, run.run_id)
        again = instance.get_run_by_id(run.run_id)
        events = [event.dagster_event_type for event in instance.all_logs(run.run_id)]
    assert again is not None
    assert again.status is status
    assert DagsterEventType.STEP_START not in events
    assert events[-1] is DagsterEventType.ENGINE_EVENT, "which says that it was ignored"


@pytest.mark.service  # a process that imports Dagster
def test_a_process_that_waits_for_its_database_ends_with_its_parent(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    away = Settings(home=tmp_path / "home", database_url="postgresql://127.0.0.1:1/nothing")
    environment = {**dagster_home.prepare(away), "TIDEMARK_HOME": str(away.home)}
    child = spawn("assets.dagster_internals.warm", "refresh", environment=environment)
    printed = StringIO()

    def waits() -> bool:
        printed.write(capfd.readouterr().err)
        return "waiting for PostgreSQL" in printed.getvalue()

    until(waits)
    child.line.close()
    try:
        assert child.process.wait(timeout=30) == 1
    finally:
        child.process.kill()
