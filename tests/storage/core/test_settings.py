"""Invalid settings are refused with a message of one line; unknown ones with the nearest known name."""

import errno
from pathlib import Path

import pytest
from pydantic import ValidationError

from api.core.commands.failures import explain_failure
from storage.core.settings import Settings, SettingsError


def test_misspelt_variable_is_refused_with_a_suggestion(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_RETENTOIN", "90d")
    with pytest.raises(SettingsError, match=r"TIDEMARK_RETENTOIN \(did you mean TIDEMARK_RETENTION\?\)"):
        Settings()


@pytest.mark.parametrize(
    ("file", "line"), [(".env", "TIDEMARK_RATELIMIT=60/1m"), ("home/tidemark.toml", "ratelimit=1")]
)
def test_misspelt_setting_in_a_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, line: str
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / file).write_text(f"{line}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TIDEMARK_HOME", "home")
    with pytest.raises(SettingsError, match="TIDEMARK_RATE_LIMIT"):
        Settings()


def test_full_disk_at_the_start_is_reported_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(Exception) as failure:  # noqa: PT011  # whichever step comes first
        Settings(home=tmp_path / "home").prepare()
    line = explain_failure(failure.value)
    assert line is not None
    assert "No space left on device" in line or "the disk is full" in line


@pytest.mark.parametrize("zone", ["Australia/Sidney", "Australia", "../zone", ""])
def test_wrong_time_zone_is_reported_in_one_line(monkeypatch: pytest.MonkeyPatch, zone: str) -> None:
    monkeypatch.setenv("TIDEMARK_TIMEZONE", zone)
    with pytest.raises(ValidationError) as refusal:
        Settings()
    line = explain_failure(refusal.value)
    assert line is not None
    assert line.startswith("TIDEMARK_TIMEZONE: ")
    assert "\n" not in line


@pytest.mark.parametrize(
    ("url", "refused"),
    [
        ("amqp://tidemark:secret@rabbit:5672/lending", None),
        ("amqps://rabbit", None),
        ("redis://redis:6379/1", None),
        ("rediss://redis:6379/1?visibility_timeout=86401&unacked_restore_interval=1", None),
        ("redis://redis:6379/1?visibility_timeout=3600", "visibility_timeout"),
        ("redis://redis:6379/1?visibility_timeout=86400", "above the longest run"),
        ("redis://redis:6379/1?visibility_timeout=soon", "visibility_timeout"),
        ("redis://redis:6379/1?socket_timeout=1", "no option of this name: socket_timeout"),
        ("redis://redis:6379/1?unacked_restore_interval=10", "unacked_restore_interval"),
        ("amqp://rabbit?heartbeat=0", "no option of this name"),
        ("sqla+sqlite:///queue.db", "write it like"),
        ("amqp:", "write it like"),
    ],
)
def test_broker_that_could_lose_runs_is_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch, url: str, refused: str | None
) -> None:
    monkeypatch.setenv("TIDEMARK_BROKER_URL", url)
    if refused is None:
        assert Settings().broker_url == url
        return
    with pytest.raises(ValidationError) as refusal:
        Settings()
    line = explain_failure(refusal.value)
    assert line is not None
    assert line.startswith("TIDEMARK_BROKER_URL: ")
    assert refused in line
    assert "\n" not in line


def test_broker_without_a_database_and_a_lake_for_all_machines_is_refused(tmp_path: Path) -> None:
    of_this_machine = Settings(home=tmp_path / "home", broker_url="amqp://rabbit")
    with pytest.raises(SettingsError, match="TIDEMARK_BROKER_URL needs PostgreSQL"):
        of_this_machine.prepare()
    with pytest.raises(SettingsError, match="TIDEMARK_BROKER_URL needs a lake that all machines reach"):
        of_this_machine.model_copy(update={"database_url": "postgresql://db/tidemark"}).prepare()
    assert not (tmp_path / "home").exists()


def test_leases_are_shorter_in_a_fleet() -> None:
    assert Settings().run_lease_s == Settings().batch_lease_s
    fleet = {"broker_url": "amqp://rabbit", "database_url": "postgresql://db/tidemark"}
    assert Settings(**fleet).run_lease_s < 10
    assert Settings(**fleet, batch_lease_s=2).run_lease_s == 2
