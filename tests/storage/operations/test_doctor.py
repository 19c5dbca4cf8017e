"""`doctor` finds each kind of damage and delay, and changes nothing."""

import shutil
from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from pydantic import SecretStr
from sqlalchemy import text

from pipelines.webhooks.events import EventType
from storage.core import leases
from storage.core.models import Queue
from storage.core.settings import Settings
from storage.core.store import Store
from storage.jobs import batches
from storage.monitoring import evaluation_requests
from storage.operations import doctor, integrity, sqlite_check
from storage.operations.doctor import Finding, Severity, examine
from storage.webhooks import subscriptions
from tests.conftest import migrated_file, prepare_home
from tests.storage.examples import a_client, a_customer, a_submission
from tests.storage.operations.test_sqlite_check import flip, leave_open, with_flipped_pages
from tests.storage.values import commit, customers_of_a_bucket, on_postgresql, on_sqlite, place_of


@pytest.fixture
def now() -> datetime:
    """Return the real time: the doctor compares clocks, and that of the file system can't be set."""
    return datetime.now(UTC)


@pytest.fixture
def running(store: Store, now: datetime) -> Store:
    """Return a healthy store: with a dispatcher and a worker, and a complete integrity pass."""
    integrity.check(store, lambda: now)
    with store.db.writing() as w:
        for name in (leases.DISPATCHER, leases.WORKER):
            leases.hold(w, name, uuid4(), 300, now)
    return store


def examine_home(store: Store, now: datetime, *, deep: bool = False) -> list[Finding]:
    return examine(store.settings, lambda: now, deep=deep)


def test_a_healthy_tidemark_has_no_findings(running: Store, now: datetime) -> None:
    (number,) = customers_of_a_bucket(running, 1, now)
    commit(running, {number: 2}, now)
    assert examine_home(running, now, deep=True) == []


def test_summaries_that_differ_are_found_by_a_deep_examination(running: Store, now: datetime) -> None:
    customers_of_a_bucket(running, 2, now)
    with running.db.writing() as w:
        w.execute(text("UPDATE customer_summaries SET open_alerts = 1"))
    assert examine_home(running, now) == []
    [finding] = examine_home(running, now, deep=True)
    assert (finding.severity, finding.about) == (Severity.ERROR, "customers")
    assert "of 2 customers" in finding.problem


def test_an_examination_changes_nothing(tmp_path: Path, now: datetime) -> None:
    (finding,) = examine(Settings(home=tmp_path / "nowhere"), lambda: now)
    assert (finding.severity, finding.about) == (Severity.ERROR, "home")
    assert not (tmp_path / "nowhere").exists()


def test_flipped_pages_of_the_database_are_found(tmp_path: Path, now: datetime) -> None:
    settings = Settings(home=tmp_path / "home").prepare()
    (settings.home / "tidemark.db").write_bytes(with_flipped_pages(migrated_file()))
    damages = [each for each in examine(settings, lambda: now) if "is damaged" in each.problem]
    assert only(damages) == (Severity.ERROR, "database")


def test_a_damaged_log_is_found_before_the_database_is_opened(tmp_path: Path, now: datetime) -> None:
    settings = Settings(home=tmp_path / "home").prepare()
    leave_open(tmp_path, 10)
    flip(tmp_path / "killed.db-wal", 10_000)
    for end in ("", "-wal"):
        shutil.copy(tmp_path / f"killed.db{end}", settings.home / f"tidemark.db{end}")
    damages = [each for each in examine(settings, lambda: now) if "log is damaged" in each.problem]
    assert only(damages) == (Severity.ERROR, "database")


def test_a_database_check_that_takes_too_long_does_not_hide_other_findings(
    tmp_path: Path, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(home=prepare_home(tmp_path / "home")).prepare()
    monkeypatch.setattr(sqlite_check, "STEPS_BETWEEN_CHECKS", 1)
    monkeypatch.setattr(doctor, "QUICK_CHECK_WITHIN_S", -1.0)
    abouts = [(each.severity, each.about) for each in examine(settings, lambda: now)]
    assert (Severity.NOTE, "database") in abouts
    assert (Severity.NOTE, "processing") in abouts


def only(findings: list[Finding]) -> tuple[Severity, str]:
    (finding,) = findings
    assert finding.problem
    assert finding.remedy
    return finding.severity, finding.about


def no_key(store: Store) -> None:
    (store.settings.home / "master.key").unlink()


def readable_key(store: Store) -> None:
    (store.settings.home / "master.key").chmod(0o644)


def open_home(store: Store) -> None:
    store.settings.home.chmod(0o755)


def no_lake(store: Store) -> None:
    store.lake.root.rename(store.lake.root.with_name("unmounted"))


def older_tables(store: Store) -> None:
    with store.db.writing() as w:
        w.execute(text("UPDATE alembic_version SET version_num = '0000'"))


@pytest.mark.parametrize(
    ("harm", "severity", "about"),
    [
        (no_key, Severity.ERROR, "master key"),
        (readable_key, Severity.ERROR, "master key"),
        (open_home, Severity.WARNING, "home"),
        (no_lake, Severity.ERROR, "lake"),
        (older_tables, Severity.ERROR, "database"),
    ],
)
@on_sqlite
def test_problems_of_the_home_are_reported(
    running: Store, now: datetime, harm: Callable[[Store], None], severity: Severity, about: str
) -> None:
    harm(running)
    fresh = Settings(home=running.settings.home, database_url=running.settings.database_url)
    assert only(examine(fresh, lambda: now)) == (severity, about)


@on_sqlite
def test_an_unreachable_database_is_reported(running: Store, now: datetime) -> None:
    url = "postgresql+psycopg://127.0.0.1:1/test"
    (finding,) = examine(Settings(home=running.settings.home, database_url=url), lambda: now)
    assert (finding.severity, finding.about) == (Severity.ERROR, "database")
    assert "refused" in finding.problem


@on_sqlite
def test_another_master_key_is_noticed_before_a_webhook_fails(running: Store, now: datetime) -> None:
    client_id = a_client(running, now)
    with running.db.writing() as w:
        subscriptions.create(w, client_id, EventType.JOB_COMPLETED, "https://example.com/", [], running.vault, now)
    assert examine_home(running, now) == []
    other = b64encode(bytes(32)).decode()
    settings = running.settings.model_copy(update={"master_key": SecretStr(other)})
    assert only(examine(Settings(**dict(settings)), lambda: now)) == (Severity.ERROR, "master key")


@on_sqlite
def test_jobs_without_dispatcher_or_worker_are_an_error(store: Store, now: datetime) -> None:
    integrity.check(store, lambda: now)
    assert only(examine_home(store, now)) == (Severity.NOTE, "processing")
    a_submission(store, a_customer(store, a_client(store, now), now), now)
    assert only(examine_home(store, now)) == (Severity.ERROR, "processing")


@on_sqlite
def test_jobs_that_take_too_long_are_a_warning(running: Store, now: datetime) -> None:
    a_submission(running, a_customer(running, a_client(running, now), now), now - timedelta(hours=1))
    assert only(examine_home(running, now)) == (Severity.WARNING, "jobs")


@pytest.mark.parametrize("silent_for", [timedelta(minutes=10), -timedelta(minutes=10)])
def test_a_batch_that_expired_or_never_ends_is_a_warning(running: Store, now: datetime, silent_for: timedelta) -> None:
    began = now - timedelta(hours=2)
    with running.db.writing() as w:
        token = batches.open_without_jobs(w, Queue.ENRICHMENT, now.date(), running.settings, began)
        batches.renew(w, token, running.settings, now - silent_for)
    assert only(examine_home(running, now)) == (Severity.WARNING, "batches")


def test_a_job_from_the_future_means_that_the_clock_is_wrong(running: Store, now: datetime) -> None:
    a_submission(running, a_customer(running, a_client(running, now), now), now + timedelta(hours=2))
    assert only(examine_home(running, now)) == (Severity.ERROR, "clock")


@on_sqlite
def test_a_damaged_file_is_reported_with_its_customers_after_a_check(running: Store, now: datetime) -> None:
    (number,) = customers_of_a_bucket(running, 1, now)
    commit(running, {number: 2}, now)
    path = place_of(running, number).path
    (running.lake.root / path).write_bytes(b"rot")
    assert examine_home(running, now) == []
    (finding,) = examine_home(running, now, deep=True)
    assert finding.severity is Severity.ERROR
    assert path in finding.problem
    assert f"{now:%Y-%m-%d %H:%M}Z" in finding.problem
    assert examine_home(running, now) == [finding]


@on_sqlite
def test_versions_that_were_never_swept_are_a_warning(running: Store, now: datetime) -> None:
    (number,) = customers_of_a_bucket(running, 1, now)
    long_ago = now - running.settings.retention - timedelta(days=20)
    for _ in range(2):
        commit(running, {number: 2}, long_ago)
    assert only(examine_home(running, now)) == (Severity.WARNING, "retention")


def test_ruleset_evaluations_that_wait_too_long_are_a_warning(running: Store, now: datetime) -> None:
    client_id = a_client(running, now)
    for minutes in (59, 61, 62):
        customer = a_customer(running, client_id, now)
        with running.db.writing() as w:
            evaluation_requests.request_for_customers(w, [customer.number], now - timedelta(minutes=minutes))
        if minutes == 59:
            assert examine_home(running, now) == []
    [finding] = examine_home(running, now)
    assert (finding.severity, finding.about) == (Severity.WARNING, "monitoring")
    assert finding.problem.startswith("2 requested")
    assert f"{now - timedelta(minutes=62):%Y-%m-%d %H:%M}Z" in finding.problem


def test_a_paused_subscription_is_reported(running: Store, now: datetime) -> None:
    client = a_client(running, now)
    for by, severity in (("failures", Severity.WARNING), ("client", Severity.NOTE), ("operator", Severity.NOTE)):
        with running.db.writing() as w:
            url, kind = "https://lender.example/hook", EventType.JOB_COMPLETED
            made, _ = subscriptions.create(w, client, kind, url, (), running.vault, now)
            subscriptions.pause(w, None, made.subscription_id, by, now)
        [finding] = examine_home(running, now)
        assert (finding.severity, finding.about) == (severity, "webhooks")
        assert str(made.subscription_id) in finding.problem
        with running.db.writing() as w:
            subscriptions.resume(w, None, made.subscription_id)
    assert examine_home(running, now) == []


def test_the_workers_of_a_fleet_are_listed_and_its_broker_is_tried(running: Store, now: datetime) -> None:
    settings = running.settings.model_copy(update={"broker_url": "amqp://tidemark:secret@127.0.0.1:1/lending"})
    with running.db.writing() as w:
        for name in ("db-1/4711-ab12", "db-2/17-9f3a"):
            leases.hold(w, f"{leases.FLEET}/{name}", uuid4(), 300, now)
    findings = examine(settings, lambda: now)
    assert [(each.severity, each.about) for each in findings] == [
        (Severity.ERROR, "broker"),
        (Severity.WARNING, "fleet"),
        (Severity.NOTE, "fleet"),
    ]
    broker, outside, workers = findings
    assert "amqp://tidemark:**@127.0.0.1:1/lending can't be used" in broker.problem
    assert "1 workers on this database have no broker" in outside.problem
    assert "2 workers are registered: db-1/4711-ab12, db-2/17-9f3a" in workers.problem


@on_postgresql
def test_the_databases_clock_counts(running: Store, now: datetime) -> None:
    """A doctor whose own clock is wrong reports it, and nothing that would only follow from it."""
    findings = examine_home(running, now + timedelta(hours=3))
    assert {(each.severity, each.about) for each in findings} == {(Severity.WARNING, "clock")}
    assert any("the database's clock differs" in each.problem for each in findings)
