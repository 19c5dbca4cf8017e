"""Commands that start processes."""

import os
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from api import cli
from storage.core.settings import Settings
from storage.core.store import Store
from storage.operations.sqlite_check import database_file, was_left_open


def test_up_does_not_open_the_database_before_its_log_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite would overwrite a damaged log."""
    store = Store.open(Settings(home=tmp_path / "running", database_url=""))
    shutil.copytree(tmp_path / "running", tmp_path / "killed")
    store.close()
    started: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda _, command: started.append(command))
    monkeypatch.setenv("TIDEMARK_HOME", "")  # so that it is restored
    assert CliRunner().invoke(cli.app, ["up", "--home", str(tmp_path / "killed")]).exit_code == 0
    assert "assets.service.up" in started[0]
    database = database_file(Settings(home=tmp_path / "killed", database_url=""))
    assert database is not None
    assert was_left_open(database)
