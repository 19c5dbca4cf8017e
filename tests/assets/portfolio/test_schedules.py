"""Schedules and sensors request runs at the right times and for the right buckets, unless they are switched off."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from dagster import (
    DagsterInstance,
    DefaultScheduleStatus,
    RunRequest,
    SkipReason,
    build_sensor_context,
)
from sqlalchemy import update

from assets.definitions import definitions
from assets.portfolio import schedules
from pipelines.enrichment.enrichment import ENRICHMENT_VERSION
from storage.core import models
from storage.core.settings import Settings
from storage.core.store import Store
from storage.portfolio import maintenance
from storage.portfolio.maintenance import Task
from tests.assets.conftest import prepare_dagster
from tests.assets.trivial_location import definitions as trivial
from tests.storage.examples import a_client, a_customer


def with_data(store: Store, now: datetime, enrichment_version: int = ENRICHMENT_VERSION) -> int:
    customer = a_customer(store, a_client(store, now), now)
    held = {"data_version": 1, "location_version": 1, "enriched_rows": 5, "enrichment_version": enrichment_version}
    with store.db.writing() as w:
        w.execute(update(models.customers).where(models.customers.c.number == customer.number).values(held))
    return customer.number


def find_requested_partitions(
    schedule: Callable[[Store], list[RunRequest] | SkipReason], store: Store
) -> list[str | None]:
    """Return the partitions for which a tick requests runs."""
    answer = schedule(store)
    return [request.partition_key for request in answer] if isinstance(answer, list) else []


def test_runs_are_requested_only_for_buckets_with_work(store: Store, now: datetime) -> None:
    everyone = [schedules.weekly_backfill, schedules.nightly_refresh, schedules.nightly_compaction]
    assert [find_requested_partitions(schedule, store) for schedule in everyone] == [[], [], []]
    current, behind = with_data(store, now), with_data(store, now, ENRICHMENT_VERSION - 1)
    assert (current, behind) == (1, 2)
    assert [find_requested_partitions(schedule, store) for schedule in everyone] == [["02"], ["01", "02"], ["01", "02"]]


def test_a_backfill_requested_by_the_command_is_started_once_and_in_order(store: Store, now: datetime) -> None:
    with store.db.writing() as w:
        maintenance.request(w, Task.BACKFILL, [9, 3], now)
    first, again = tick(store), tick(store)
    assert [request.partition_key for request in first] == ["03", "09"]
    assert [request.run_key for request in first] == [request.run_key for request in again]
    with store.db.writing() as w:
        maintenance.begin(w, Task.BACKFILL, 3, now)
    assert [request.partition_key for request in tick(store)] == ["09"]


def test_a_run_that_never_began_is_started_again_when_it_is_requested_again(store: Store, now: datetime) -> None:
    keys: list[str | None] = []
    for asked_at in (now, now + maintenance.SILENT_AFTER):
        with store.db.writing() as w:
            maintenance.request(w, Task.BACKFILL, [3], asked_at)
        keys += [request.run_key for request in tick(store)]
    assert len(set(keys)) == 2


def tick(store: Store) -> list[RunRequest]:
    answer = schedules.requested_backfills_sensor(build_sensor_context(resources={"store": store}))
    assert isinstance(answer, (list, SkipReason))
    return answer if isinstance(answer, list) else []


def test_schedules_use_the_business_time_zone_and_avoid_the_hour_of_daylight_saving() -> None:
    repository = definitions().get_repository_def()
    assert {each.name for each in repository.schedule_defs} == {
        "weekly_backfill",
        "nightly_ruleset_evaluation",
        "nightly_refresh",
        "nightly_compaction",
        "nightly_peers",
        "nightly_retention",
        "nightly_feed",
        "weekly_integrity",
    }
    for each in repository.schedule_defs:
        assert each.execution_timezone == "Australia/Sydney"
        assert each.default_status is DefaultScheduleStatus.RUNNING
        assert str(each.cron_schedule).split()[1] != "2", "an hour that daylight saving skips or repeats"


def test_a_setting_switches_schedules_off(tmp_path: Path) -> None:
    off = schedules.schedules_for(Settings(home=tmp_path, schedules=False))
    assert {each.default_status for each in off} == {DefaultScheduleStatus.STOPPED}


def test_without_schedules_nothing_is_ever_late(monkeypatch: pytest.MonkeyPatch) -> None:
    def count_watched() -> int:
        return sum(spec.freshness_policy is not None for spec in definitions().resolve_all_asset_specs())

    assert count_watched() > 0
    monkeypatch.setenv("TIDEMARK_SCHEDULES", "off")
    assert count_watched() == 0


def test_old_finished_runs_are_deleted_from_dagster(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home")
    prepare_dagster(settings)
    job = trivial.resolve_job_def("enrichment_batch")
    with DagsterInstance.from_config(str(settings.dagster_home)) as instance:
        over = job.execute_in_process(instance=instance).run_id
        unfinished = instance.create_run_for_job(job).run_id
        soon = datetime.now(UTC) + timedelta(minutes=1)
        assert schedules.forget_runs(instance, soon - timedelta(days=30)) == 0
        assert schedules.forget_runs(instance, soon) == 1
        assert [run.run_id for run in instance.get_runs()] == [unfinished]
        assert instance.all_logs(over) == []
