"""Shared fixtures: empty stores, copies of stores that were filled once, and a certificate authority."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pytest
import trustme

from storage.core.settings import Settings
from storage.core.store import Store
from tests.conftest import SQLITE_FIRST, copy_home, new_database, open_store

Made = TypeVar("Made")


@pytest.fixture(params=SQLITE_FIRST)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Return an empty store on SQLite and, with `make test-slow`, also on PostgreSQL."""
    opened = open_store(Settings(home=tmp_path / "home", database_url=new_database(request, request.param)))
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def ca() -> trustme.CA:
    return trustme.CA()


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
    store: Store, templates: dict[Callable[[Store], Any], Template], tmp_path_factory: pytest.TempPathFactory
) -> Filled:
    """Return a function that fills the empty store. On SQLite, a store that was filled before is copied."""

    def template(fill: Callable[[Store], Made]) -> Template:
        opened = open_store(Settings(home=tmp_path_factory.mktemp("filled") / "home"))
        made = fill(opened)
        opened.close()
        return Template(opened, made)

    def copied(fill: Callable[[Store], Made]) -> Made:
        if not store.db.is_sqlite:
            return fill(store)
        if fill not in templates:
            templates[fill] = template(fill)
        of = templates[fill]
        store.close()  # its next transaction opens a new connection
        copy_home(of.store.settings.home, store.settings.home)
        made: Made = copy.deepcopy(of.made, {id(of.store): store})
        return made

    return copied
