"""The operator's maintenance commands: JSON for scripts, and an exit status for problems."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from api.cli import app
from tests.conftest import prepare_home


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    prepare_home(tmp_path / "home")
    run("clients", "list")
    return tmp_path / "home"


def run(*arguments: str, status: int = 0) -> Any:
    result = CliRunner().invoke(app, [*arguments, "--json"])
    assert result.exit_code == status, result.output
    return json.loads(result.stdout)


@pytest.mark.usefixtures("home")
def test_compact_reports_each_bucket() -> None:
    nothing = {"moved": 0, "skipped": 0, "unreadable": 0, "files": 0, "bytesRead": 0, "bytesWritten": 0}
    assert run("compact", "--bucket", "7", "--bucket", "9") == [{"bucket": 7, **nothing}, {"bucket": 9, **nothing}]
    assert len(run("compact")) == 64


@pytest.mark.usefixtures("home")
def test_sweep_reports_what_it_removed() -> None:
    assert run("sweep") == {"versions": 0, "files": 0, "orphans": 0, "idempotencyKeys": 0, "bytesFreed": 0}


def test_exit_status_of_doctor_says_whether_there_are_problems(home: Path) -> None:
    assert {finding["severity"] for finding in run("doctor")} == {"note"}
    (home / "master.key").unlink()
    (finding,) = run("doctor", status=1)
    assert (finding["severity"], finding["about"]) == ("error", "master key")


@pytest.mark.usefixtures("home")
def test_a_search_fails_if_a_place_could_not_be_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("find", "Ada Lovelace") == []
    away = {"LAKE_URL": "s3://lender/lake", "S3_ENDPOINT": "http://127.0.0.1:1", "S3_TIMEOUT_S": "1"}
    key = {"S3_REGION": "here", "S3_ACCESS_KEY_ID": "key", "S3_SECRET_ACCESS_KEY": "secret"}
    for name, value in (away | key).items():
        monkeypatch.setenv(f"TIDEMARK_{name}", value)
    result = CliRunner().invoke(app, ["find", "Ada Lovelace", "--json"])
    assert result.exit_code == 1
    assert [(each["place"], each["finding"]) for each in json.loads(result.stdout)] == [
        ("versions", "unsearched"),
        ("uploads", "unsearched"),
    ]
    assert "not searched: versions: the object store can't be reached: ConnectionError" in result.stderr


@pytest.mark.usefixtures("home")
def test_a_backup_names_its_snapshot(tmp_path: Path) -> None:
    made = run("backup", str(tmp_path / "backup"))
    assert made["snapshot"] == str(tmp_path / "backup" / "tidemark.db")
    assert made["damaged"] == []
