"""What is expected to go wrong is one line on standard error, never a traceback."""

import sys
from pathlib import Path

import pytest
from sqlalchemy import text

from api import cli
from storage.settings import Settings
from storage.store import Store

LIST = ["clients", "list"]


def fails(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], home: Path, *command: str) -> str:
    """The one line that a command says on standard error."""
    monkeypatch.setattr(sys, "argv", ["tidemark", "--home", str(home), *command])
    monkeypatch.setenv("TIDEMARK_HOME", str(home))
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 1
    (line,) = capfd.readouterr().err.splitlines()
    return line


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ("UPDATE alembic_version SET version_num = '9999'", "newer version of Tidemark"),
        ("ALTER TABLE clients RENAME TO others", "the database can't be used: no such table: clients"),
    ],
)
def test_tables_that_are_not_ours(
    tmp_path: Path, change: str, line: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    store = Store.open(Settings(home=tmp_path))
    with store.db.writing() as w:
        w.execute(text(change))
    store.close()
    assert line in fails(monkeypatch, capfd, tmp_path, *LIST)


def test_a_file_that_is_no_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tidemark.db").write_bytes(b"no database" * 100)
    assert "file is not a database" in fails(monkeypatch, capfd, tmp_path, *LIST)


def test_a_database_without_an_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TIDEMARK_DATABASE_URL", "nowhere")
    assert "the database can't be used" in fails(monkeypatch, capfd, tmp_path, *LIST)
