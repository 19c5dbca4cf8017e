"""Expected errors are one line on standard error, never a traceback."""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from sqlalchemy import text
from typer.testing import CliRunner

from api import cli
from storage.core.settings import Settings
from storage.core.store import Store

LIST = ["clients", "list"]


def fails(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], home: Path, *command: str) -> str:
    """Return the one line that a command prints on standard error."""
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
        ("UPDATE alembic_version SET version_num = '9999'", "another version of Tidemark, older or newer"),
        ("ALTER TABLE clients RENAME TO others", "the database can't be used: no such table: clients"),
    ],
)
def test_foreign_tables_are_reported_in_one_line(
    tmp_path: Path, change: str, line: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    store = Store.open(Settings(home=tmp_path))
    with store.db.writing() as w:
        w.execute(text(change))
    store.close()
    assert line in fails(monkeypatch, capfd, tmp_path, *LIST)


def test_a_file_that_is_not_a_database_is_reported_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tidemark.db").write_bytes(b"no database" * 100)
    assert "file is not a database" in fails(monkeypatch, capfd, tmp_path, *LIST)


def test_an_unusable_database_url_is_reported_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TIDEMARK_DATABASE_URL", "nowhere")
    assert "the database can't be used" in fails(monkeypatch, capfd, tmp_path, *LIST)


def test_each_listed_command_has_help(subtests: pytest.Subtests) -> None:
    for name in cli.COMMANDS:
        with subtests.test(name):
            answer = CliRunner().invoke(cli.app, [name, "--help"])
            assert answer.exit_code == 0, answer.output
            assert f" {name} " in answer.stdout


def test_a_misspelt_command_is_answered_with_the_nearest_one() -> None:
    answer = CliRunner().invoke(cli.app, ["polices"])
    assert answer.exit_code == 2
    assert "Did you mean 'policies'?" in answer.output


def test_version_is_that_of_the_package() -> None:
    assert CliRunner().invoke(cli.app, ["--version"]).stdout == f"tidemark {version('tidemark')}\n"


def test_help_and_version_import_nothing_that_a_command_needs(subtests: pytest.Subtests) -> None:
    """They must answer at once, and importing everything that commands use takes seconds."""
    for option in ("--help", "--version"):
        with subtests.test(option):
            program = f"import runpy, sys; sys.argv = ['tidemark', '{option}']; sys.modules.pop('api.cli', None)\n"
            program += "try: runpy.run_module('api.cli', run_name='__main__')\nexcept SystemExit: print(*sys.modules)"
            loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
            assert "typer" in loaded.split()
            assert not {"polars", "sqlalchemy", "pydantic", "numpy", "storage", "pipelines"} & set(loaded.split())


def test_commands_that_serve_no_requests_do_not_import_fastapi() -> None:
    """It takes half a second, a fifth of `analyse` of a small file."""
    program = (
        "import sys; from api import cli; [cli.import_command(name) for name in sys.argv[1:]]; print(*sys.modules)"
    )
    command = [sys.executable, "-c", program, "analyse", "report", "policies", "evaluations"]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert "polars" in loaded
    assert not {"fastapi", "uvicorn"} & set(loaded)
