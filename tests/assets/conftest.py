"""Shared fixtures: empty stores, copies of stores that were filled once, and a certificate authority."""

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol, TypeVar

import pytest
import trustme
from dagster import DagsterInstance

from assets.dagster_internals import dagster_home
from assets.dagster_internals.dagster_storage import FILE_NAME
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


@cache
def dagsters_file() -> bytes:
    """Return Dagster's SQLite file with empty tables. They are made once in a process."""
    with TemporaryDirectory() as folder:
        settings = Settings(home=Path(folder) / "home")
        dagster_home.prepare(settings)
        DagsterInstance.from_config(str(settings.dagster_home)).dispose()
        return (settings.dagster_home / FILE_NAME).read_bytes()


def prepare_dagster(settings: Settings) -> Mapping[str, str]:
    """Prepare Dagster's home, with empty tables on SQLite; return the environment of Dagster's processes."""
    variables = dagster_home.prepare(settings)
    if not settings.database_url:
        (settings.dagster_home / FILE_NAME).write_bytes(dagsters_file())
    return variables


@pytest.fixture(scope="session", autouse=True)
def few_authorities(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let the system trust one certificate authority, because every sender reads all: usually 140 take 20 ms."""
    bundle = tmp_path_factory.mktemp("authorities") / "ca.pem"
    trustme.CA().cert_pem.write_to_path(str(bundle))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(bundle))
        patch.setenv("SSL_CERT_DIR", str(bundle.parent / "none"))
        yield


@pytest.fixture(scope="session")
def ca() -> trustme.CA:
    return trustme.CA()


class FillStore(Protocol):
    def __call__(self, fill: Callable[[Store], Made], /) -> Made: ...


@dataclass(frozen=True)
class Template:
    store: Store
    made: Any


@pytest.fixture(scope="session")
def templates() -> dict[Callable[[Store], Any], Template]:
    return {}


@pytest.fixture
def fill_store(
    store: Store, templates: dict[Callable[[Store], Any], Template], tmp_path_factory: pytest.TempPathFactory
) -> FillStore:
    """Return a function that fills the empty store. On SQLite, a store that was filled before is copied."""

    def template(fill: Callable[[Store], Made]) -> Template:
        opened = open_store(Settings(home=tmp_path_factory.mktemp("filled") / "home"))
        made = fill(opened)
        opened.close()
        return Template(opened, made)

    def copy_template(fill: Callable[[Store], Made]) -> Made:
        if not store.db.is_sqlite:
            return fill(store)
        if fill not in templates:
            templates[fill] = template(fill)
        of = templates[fill]
        store.close()  # its next transaction opens a new connection
        copy_home(of.store.settings.home, store.settings.home)
        made: Made = copy.deepcopy(of.made, {id(of.store): store})
        return made

    return copy_template
