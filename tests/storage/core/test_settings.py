"""Invalid settings are refused with a message of one line; unknown ones with the nearest known name."""

import errno
from pathlib import Path

import pytest
from pydantic import ValidationError

from api.core.commands.failures import explained
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
        Settings(home=tmp_path / "home").prepared()
    line = explained(failure.value)
    assert line is not None
    assert "No space left on device" in line or "the disk is full" in line


@pytest.mark.parametrize("zone", ["Australia/Sidney", "Australia", "../zone", ""])
def test_wrong_time_zone_is_reported_in_one_line(monkeypatch: pytest.MonkeyPatch, zone: str) -> None:
    monkeypatch.setenv("TIDEMARK_TIMEZONE", zone)
    with pytest.raises(ValidationError) as refusal:
        Settings()
    line = explained(refusal.value)
    assert line is not None
    assert line.startswith("TIDEMARK_TIMEZONE: ")
    assert "\n" not in line
