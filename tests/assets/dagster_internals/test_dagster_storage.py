"""Any number of processes store Dagster's records in one place: one SQLite file, or a schema of our database."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from dagster import AssetKey, DagsterEventType, DagsterInstance, DagsterRunStatus, RunsFilter
from sqlalchemy import create_engine, inspect, text

from assets.dagster_internals import dagster_home
from assets.dagster_internals.coordinator import PortfolioQueue
from assets.dagster_internals.dagster_storage import PooledStorage
from assets.dagster_internals.launcher import WarmWorkerLauncher
from assets.workers.worker_calls import HomeWorkers
from storage.core.settings import Settings
from tests.assets.conftest import prepare_dagster
from tests.assets.trivial_location import definitions
from tests.conftest import DATABASES, new_database, open_store

OPEN = "from dagster import DagsterInstance; DagsterInstance.get().dispose()"


@pytest.fixture(params=DATABASES)
def settings(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Prepare a home on each database, and set its environment variables in this process."""
    settings = Settings(home=tmp_path / "home", database_url=new_database(request, request.param))
    for name, value in prepare_dagster(settings).items():
        monkeypatch.setenv(name, value)
    return settings


@pytest.fixture
def instance(settings: Settings) -> Iterator[DagsterInstance]:
    with DagsterInstance.from_config(str(settings.dagster_home)) as opened:
        yield opened


def test_the_home_makes_dagster_use_our_storage_launcher_and_queue(instance: DagsterInstance) -> None:
    for part in (instance.run_storage, instance.event_log_storage, instance.schedule_storage):
        assert type(part).__module__ == PooledStorage.__module__
    assert isinstance(instance.run_launcher, WarmWorkerLauncher)
    assert isinstance(instance.run_coordinator, PortfolioQueue)
    assert instance.run_monitoring_enabled
    assert instance.run_monitoring_max_resume_run_attempts == 0
    assert not instance.telemetry_enabled


def test_terminating_a_run_of_a_busy_worker_leaves_it_canceling(
    instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dagster's monitoring ends it later, if the worker doesn't."""

    def time_out(*_: object) -> bool:
        raise TimeoutError

    monkeypatch.setattr(HomeWorkers, "interrupt", time_out)
    run = instance.create_run_for_job(definitions.resolve_job_def("enrichment_batch"), status=DagsterRunStatus.STARTED)
    assert instance.run_launcher.terminate(run.run_id)
    assert instance.get_run_by_id(run.run_id).status is DagsterRunStatus.CANCELING  # pyrefly: ignore[missing-attribute]  # it exists


def test_a_home_is_private_to_its_user_and_holds_no_password(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home", database_url="postgresql://tidemark:secret@db/tidemark")
    dagster_home.prepare(settings)
    assert settings.home.stat().st_mode & 0o077 == 0
    assert settings.dagster_home.stat().st_mode & 0o077 == 0
    assert "secret" not in (settings.dagster_home / "dagster.yaml").read_text()


def test_one_process_reads_what_another_recorded(instance: DagsterInstance, settings: Settings) -> None:
    run_id = definitions.resolve_job_def("enrichment_batch").execute_in_process(instance=instance).run_id

    with DagsterInstance.from_config(str(settings.dagster_home)) as other:
        assert [run.run_id for run in other.get_runs(RunsFilter(statuses=[DagsterRunStatus.SUCCESS]))] == [run_id]
        assert other.all_logs(run_id, of_type=DagsterEventType.ASSET_MATERIALIZATION)
        assert other.get_latest_materialization_event(AssetKey("behaving_as_tagged"))


@pytest.mark.usefixtures("instance")
def test_dagsters_tables_are_separate_from_ours(settings: Settings) -> None:
    store = open_store(settings)
    store.db.migrate()
    ours = set(inspect(store.db.engine).get_table_names())
    engine = store.db.engine
    if store.db.is_sqlite:
        engine = create_engine(f"sqlite:///{settings.dagster_home / 'dagster.db'}")
        with engine.connect() as connection:
            assert connection.execute(text("PRAGMA journal_mode")).scalar() == "wal"
    theirs = set(inspect(engine).get_table_names(None if store.db.is_sqlite else "dagster"))
    engine.dispose()
    store.close()
    assert {"runs", "event_logs", "job_ticks", "daemon_heartbeats", "concurrency_limits"} <= theirs
    assert "batches" in ours - theirs
    assert "event_logs" not in ours


def test_deleting_a_run_deletes_its_records(instance: DagsterInstance) -> None:
    run_id = definitions.resolve_job_def("enrichment_batch").execute_in_process(instance=instance).run_id
    instance.delete_run(run_id)
    assert instance.get_run_by_id(run_id) is None
    assert instance.all_logs(run_id) == []


def test_a_watcher_of_a_run_gets_its_events(instance: DagsterInstance) -> None:
    heard = threading.Event()
    run_id = definitions.resolve_job_def("enrichment_batch").execute_in_process(instance=instance).run_id
    instance.watch_event_logs(run_id, None, lambda _event, _cursor: heard.set())
    assert heard.wait(60)


@pytest.mark.service
@pytest.mark.usefixtures("settings")
def test_several_processes_may_open_a_new_home_at_once() -> None:
    opening = [subprocess.Popen([sys.executable, "-c", OPEN], env=os.environ) for _ in range(3)]
    assert [process.wait(60) for process in opening] == [0, 0, 0]
