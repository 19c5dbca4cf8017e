"""The command `users`: what an operator does with the people of a client."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from api.cli import app
from storage.access import keys, users
from storage.access.roles import Role
from storage.core import audit
from storage.core.store import Store

EMAIL = "grace@lender.example"


@pytest.fixture(autouse=True)
def home(own_store: Store, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home that commands use."""
    monkeypatch.setenv("TIDEMARK_HOME", str(own_store.settings.home))
    return own_store.settings.home


def run(*arguments: str, exit_code: int = 0) -> str:
    result = CliRunner().invoke(app, ["users", *arguments])
    assert result.exit_code == exit_code, result.output
    return result.output


def list_users() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run("list", "--json"))
    return found


def test_an_operator_erases_even_the_last_admin(own_store: Store) -> None:
    with own_store.db.writing() as w:
        client_id = keys.create_client(w, "Lender", decision_policies=True, now=datetime.now(UTC)).client_id
    run("create", EMAIL, "--client", str(client_id), "--role", "admin", "--name", "Grace Hopper")
    [user] = list_users()
    assert (user["email"], user["role"]) == (EMAIL, Role.ADMIN)
    run("erase", EMAIL)
    assert list_users() == []
    run("erase", EMAIL, exit_code=1)
    with own_store.db.reading() as r:
        actions = [(each.action, each.who, each.resource) for each in audit.find(r, client_id)]
    assert actions[0] == (users.ERASED, "operator", {"userId": user["userId"]})
