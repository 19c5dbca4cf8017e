"""`tidemark homes`: other homes are listed, and forgotten."""

import json
import shutil
from contextlib import closing
from pathlib import Path
from socket import gethostname

import pytest
from typer.testing import CliRunner

from api.cli import app
from storage.core import homes
from storage.core.settings import Settings
from storage.core.store import Store
from tests.storage.values import on_postgresql


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["homes", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


@on_postgresql
def test_homes_are_listed_and_forgotten(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_HOME", str(store.settings.home))
    monkeypatch.setenv("TIDEMARK_DATABASE_URL", store.settings.database)
    assert json.loads(run("list", "--json")) == []
    another = Settings(home=tmp_path / "another")
    another.home.mkdir()
    shutil.copy(store.settings.key_file, another.key_file)
    with closing(Store.open(another)) as opened, opened.db.reading():
        pass
    identity = homes.identity(another)
    [listed] = json.loads(run("list", "--json"))
    assert (listed["identity"], listed["machine"]) == (identity, gethostname())
    assert run("forget", identity) == f"Forgot home {identity}.\n"
    assert json.loads(run("list", "--json")) == []
    audited = json.loads(CliRunner().invoke(app, ["audit", "list", "--json"]).stdout)
    assert (audited[0]["action"], audited[0]["resource"]) == ("Home.Forgotten", {"home": identity})
    refused = CliRunner().invoke(app, ["homes", "forget", identity])
    assert refused.exit_code != 0
    assert getattr(refused.exception, "code", None) == "Home.NotFound"
