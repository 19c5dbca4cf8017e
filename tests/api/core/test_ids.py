"""Ids that are typed: whole, or their first digits."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
import typer
from sqlalchemy import insert
from typer.testing import CliRunner

from api import cli
from api.core.commands import ids
from storage.core.models import clients
from storage.core.store import Store

NOW = datetime.now(UTC)
TWINS = UUID("2f0c81d6-1d5e-4c0f-9a53-6f9b1d6f8a11"), UUID("2f0c81d6-2d5e-4c0f-9a53-6f9b1d6f8a11")


@pytest.fixture
def store(own_store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store with two clients whose ids start with the same eight digits."""
    monkeypatch.setenv("TIDEMARK_HOME", str(own_store.settings.home))
    with own_store.db.writing() as w:
        same = {"name": "A lender", "decision_policies": True, "created_at": NOW}
        w.execute(insert(clients), [{"client_id": each, **same} for each in TWINS])
    return own_store


@pytest.mark.usefixtures("store")
def test_an_id_is_found_by_as_many_digits_as_make_it_unique() -> None:
    for typed in (str(TWINS[1]), TWINS[1].hex, str(TWINS[1])[:10], "2F0C81D62"):
        assert ids.CLIENT(typed) == TWINS[1]
    unknown = uuid4()
    assert ids.CLIENT(str(unknown)) == unknown  # the command says what is not found


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("2f0c81", "more than one client's id starts with 2f0c81: give more digits"),
        ("abcdef", "no client's id starts with abcdef"),
        ("2f0c8", "'2f0c8' is not an id: give the client's whole id, or at least its first 6 digits"),
        ("harbour", "'harbour' is not an id: give the client's whole id, or at least its first 6 digits"),
        (f"{TWINS[0]}0", f"'{TWINS[0]}0' is not an id: give the client's whole id, or at least its first 6 digits"),
    ],
)
def test_anything_else_is_refused_in_one_sentence(typed: str, sentence: str) -> None:
    with pytest.raises(typer.BadParameter) as refused:
        ids.CLIENT(typed)
    assert refused.value.message == sentence
    ran = CliRunner().invoke(cli.app, ["keys", "list", "--client", typed])
    assert ran.exit_code == 2
    assert "Invalid value for '--client'" in ran.output


def test_a_file_is_preferred_to_an_id(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with store.db.reading() as r:
        assert ids.CLIENT.find_unless_file(r, "2f0c81d6-1") == TWINS[0]
        assert ids.CLIENT.find_unless_file(r, "model.json") is None
        (tmp_path / "2f0c81d6").write_text("a model")
        assert ids.CLIENT.find_unless_file(r, "2f0c81d6") is None


def parameters(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Yield the parameters of a command and of those in it."""
    for parameter in command.params:
        yield " ".join((*path, parameter.name)), parameter
    for name, inner in getattr(command, "commands", {}).items():
        yield from parameters(inner, (*path, name))


def test_every_id_of_a_command_can_be_given_by_its_first_digits() -> None:
    for name in cli.COMMANDS:
        for where, parameter in parameters(cli.import_command(name), (name,)):
            annotation, info = parameter.type_descriptor.annotation, parameter.type_descriptor.parameter_info
            assert "UUID" not in str(annotation) or isinstance(info.parser, ids.Ids), where
