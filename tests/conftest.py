"""Fixtures that every room shares: a store in a folder of its own, on SQLite and on PostgreSQL."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from hypothesis import settings

from storage.database import Database
from storage.settings import Settings
from storage.store import Store

pytest_plugins = ["tests.sharing", "tests.faults.counts"]

settings.register_profile("tidemark", deadline=None)  # a loaded machine is no bug
settings.load_profile("tidemark")

POSTGRES = "postgresql://127.0.0.1:5432"
DATABASES = ("sqlite", "postgresql")
POSTGRES_FIRST = (pytest.param("sqlite", marks=pytest.mark.slow), "postgresql")  # of what takes half a minute on each
NOW = datetime(2026, 11, 20, 3, 0, tzinfo=UTC)


@pytest.fixture
def now() -> datetime:
    return NOW


class PostgresDatabases:
    """Makes fresh, migrated databases: called, it gives a new one's name."""

    def __init__(self, admin: "psycopg.Connection[tuple[object, ...]]") -> None:
        self._admin = admin
        self._prefix = f"tidemark_{uuid4().hex[:12]}"
        self._count = 0
        self._kept = set[str]()
        self._migrated = self._make("template1")
        template = Database(f"postgresql+psycopg://127.0.0.1:5432/{self._migrated}")
        template.migrate()
        template.close()

    def __call__(self) -> str:
        return self._make(self._migrated)

    def drop(self, name: str) -> None:
        """At once where possible: what was never flushed to the disk then never is."""
        self._admin.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        self._kept.discard(name)

    def drop_all(self) -> None:
        for name in tuple(self._kept):
            self.drop(name)

    def _make(self, template: str) -> str:
        self._count += 1
        name = f"{self._prefix}_{self._count}"
        self._admin.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        self._kept.add(name)
        return name


@pytest.fixture(scope="session")
def postgres_database() -> Iterator[PostgresDatabases]:
    """Databases on the PostgreSQL of this machine, all gone at the end."""
    try:
        admin = psycopg.connect(f"{POSTGRES}/test", autocommit=True, connect_timeout=3)
    except psycopg.OperationalError:
        if os.environ.get("CI"):
            raise
        pytest.skip("start PostgreSQL on 127.0.0.1:5432 (trust, database test) to run this")
    databases = PostgresDatabases(admin)
    yield databases
    databases.drop_all()
    admin.close()


def new_database(request: pytest.FixtureRequest, kind: str) -> str:
    """The setting `database_url` for an empty database of a kind of DATABASES, gone when the requesting fixture is."""
    if kind == "sqlite":
        return ""
    databases: PostgresDatabases = request.getfixturevalue("postgres_database")
    name = databases()
    request.addfinalizer(lambda: databases.drop(name))
    return f"postgresql+psycopg://127.0.0.1:5432/{name}"


@pytest.fixture(params=DATABASES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An empty Tidemark, on each database."""
    url = new_database(request, request.param)
    opened = Store.open(Settings(home=tmp_path / "home", database_url=url))
    yield opened
    opened.close()
