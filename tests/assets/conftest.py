"""Stores of these tests: copies of one empty home on SQLite, and of homes that were filled once."""

import copy
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pytest

from storage.settings import Settings
from storage.store import Store
from tests.conftest import new_database

Made = TypeVar("Made")
SQLITE_FIRST = ("sqlite", pytest.param("postgresql", marks=pytest.mark.slow))


@pytest.fixture(scope="session")
def empty_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose database is up to date, to be copied."""
    home = tmp_path_factory.mktemp("empty") / "home"
    Store.open(Settings(home=home)).close()
    return home


@pytest.fixture(params=SQLITE_FIRST)
def store(request: pytest.FixtureRequest, tmp_path: Path, empty_home: Path) -> Iterator[Store]:
    """An empty Tidemark: on SQLite, and with `make test-slow` on PostgreSQL, too."""
    home = shutil.copytree(empty_home, tmp_path / "home")
    opened = Store.open(Settings(home=home, database_url=new_database(request, request.param)))
    yield opened
    opened.close()


class Filled(Protocol):
    def __call__(self, fill: Callable[[Store], Made], /) -> Made: ...


@dataclass(frozen=True)
class Template:
    store: Store
    made: Any


@pytest.fixture(scope="session")
def templates() -> dict[Callable[[Store], Any], Template]:
    return {}


@pytest.fixture
def filled(
    store: Store,
    templates: dict[Callable[[Store], Any], Template],
    empty_home: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Filled:
    """Fills the empty store. On SQLite, what was made when first asked for is copied from then on."""

    def template(fill: Callable[[Store], Made]) -> Template:
        home = shutil.copytree(empty_home, tmp_path_factory.mktemp("filled") / "home")
        opened = Store.open(Settings(home=home))
        made = fill(opened)
        opened.close()
        return Template(opened, made)

    def copied(fill: Callable[[Store], Made]) -> Made:
        if not store.db.is_sqlite:
            return fill(store)
        if fill not in templates:
            templates[fill] = template(fill)
        of = templates[fill]
        store.close()  # its next transaction connects anew
        shutil.copytree(of.store.settings.home, store.settings.home, dirs_exist_ok=True)
        made: Made = copy.deepcopy(of.made, {id(of.store): store})
        return made

    return copied
