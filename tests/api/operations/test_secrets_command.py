"""`tidemark secrets`: status and rotation of keys, and never a key on the terminal."""

import json
from base64 import b64encode
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from api.cli import app
from pipelines.vocabulary.errors import Conflict
from pipelines.webhooks.events import EventType
from storage.core import vault
from storage.core.settings import Settings, SettingsError
from storage.webhooks import subscriptions
from tests.conftest import open_store
from tests.storage.examples import a_client

NEW = b64encode(b"n" * 32).decode()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Tidemark with one webhook secret."""
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(vault, "FRESH_FOR_S", 0.0)
    now = datetime.now(UTC)
    store = open_store(Settings())
    client_id = a_client(store, now)
    with store.db.writing() as w:
        subscriptions.create(w, client_id, EventType.JOB_COMPLETED, "https://example.com/", [], store.vault, now)
    store.close()
    return tmp_path / "home"


def run(*arguments: str) -> Any:
    result = CliRunner().invoke(app, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_status_counts_the_secrets_of_each_key_and_shows_no_key(home: Path) -> None:
    reported = run("secrets", "status")
    assert (reported["source"], reported["rotationUnfinished"]) == (str(home / "master.key"), False)
    sealing, names = reported["dataKeys"]
    assert (sealing["purpose"], sealing["state"], sealing["webhookSecrets"]) == ("sealing", "in use", 1)
    assert (names["purpose"], names["webhookSecrets"], names["originals"]) == ("names", 0, 0)
    assert {sealing["wrappedBy"], names["wrappedBy"]} == {reported["masterKey"]}
    shown = CliRunner().invoke(app, ["secrets", "status"]).output
    for output in (shown, json.dumps(reported)):
        assert (home / "master.key").read_text() not in output


def test_the_master_key_in_the_home_is_replaced(home: Path) -> None:
    text, before = (home / "master.key").read_text(), run("secrets", "status")
    rotated = run("secrets", "rotate")
    assert (rotated["before"], rotated["resumed"]) == (before["masterKey"], False)
    after = run("secrets", "status")
    assert after["masterKey"] == rotated["masterKey"] != before["masterKey"]
    assert [key["id"] for key in after["dataKeys"]] == [key["id"] for key in before["dataKeys"]]
    assert (home / "master.key").read_text() != text
    assert run("audit", "list")[0]["action"] == "MasterKey.Rotated"


def test_a_master_key_from_the_environment_is_replaced(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_MASTER_KEY", (home / "master.key").read_text())
    assert run("secrets", "status")["source"] == "TIDEMARK_MASTER_KEY"
    result = CliRunner().invoke(app, ["secrets", "rotate"])
    assert isinstance(result.exception, SettingsError)
    monkeypatch.setenv("TIDEMARK_NEW_MASTER_KEY", NEW)
    rotated = run("secrets", "rotate")
    assert run("secrets", "rotate")["resumed"] is True
    monkeypatch.setenv("TIDEMARK_MASTER_KEY", NEW)
    assert run("secrets", "status")["masterKey"] == rotated["masterKey"]


def test_rotation_encrypts_every_secret_again(home: Path) -> None:
    done = run("secrets", "rotate", "--reseal")
    assert (done["made"], done["webhookSecrets"], done["unreadable"], done["forgottenKeys"]) == (True, 1, [], [])
    reported = {key["id"]: (key["state"], key["webhookSecrets"]) for key in run("secrets", "status")["dataKeys"]}
    assert reported[1] == ("retired", 0)
    assert reported[done["dataKey"]] == ("in use", 1)
    assert (home / "master.key").exists()


def test_secrets_that_can_not_be_encrypted_again_are_named_with_exit_status_1(home: Path) -> None:
    (home / "master.key").unlink()
    run("secrets", "abandon", "--yes")
    result = CliRunner().invoke(app, ["secrets", "rotate", "--reseal", "--json"])
    assert result.exit_code == 1
    (named,) = json.loads(result.stdout)["unreadable"]
    assert named.startswith("webhook secret of subscription ")
    states = [(key["purpose"], key["state"]) for key in run("secrets", "status")["dataKeys"]]
    assert states.count(("sealing", "lost")) == states.count(("names", "lost")) == 1


@pytest.mark.usefixtures("home")
def test_a_key_in_use_is_not_removed() -> None:
    for arguments, code in (([], "Key.NotConfirmed"), (["--yes"], "Key.StillUsable")):
        result = CliRunner().invoke(app, ["secrets", "abandon", *arguments])
        assert isinstance(result.exception, Conflict)
        assert result.exception.code == code


@pytest.mark.usefixtures("home")
def test_a_backup_says_which_master_key_it_needs(tmp_path: Path) -> None:
    made = run("backup", str(tmp_path / "backup"))
    assert made["masterKey"] == run("secrets", "status")["masterKey"]
    assert not list((tmp_path / "backup").rglob("master.key*"))


@pytest.mark.parametrize("command", [("clients", "list"), ("secrets", "status")])
def test_with_another_master_key_no_command_starts(
    home: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setenv("TIDEMARK_MASTER_KEY", NEW)
    result = CliRunner().invoke(app, list(command))
    assert isinstance(result.exception, SettingsError)
    assert "\n" not in str(result.exception)
    assert home.exists()
