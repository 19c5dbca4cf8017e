"""A process that brings the tables up to date, ended by SIGKILL in the middle: the next one does it, losing nothing.

Two beginnings: an empty database, and one of the first revision that holds a client.
"""

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import Boolean, Text, Uuid, column, insert, select, table

from api.core.commands.console import now
from storage.core import migrations
from storage.core.column_types import UtcDateTime
from storage.core.database import Database
from storage.core.models import metadata
from storage.core.settings import Settings
from storage.core.store import Store
from tests.faults.counts import INJECTED, SURVIVED
from tests.faults.faults import KillAtCall, need_strace
from tests.faults.postgres import USER, Server, server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
KILLS = 12  # of each kind, seeded, over all of its calls
FIRST = "0001"
NAME = "a lender"
OPEN: Final = """
from storage.core.settings import Settings
from storage.core.store import Store
Store.open(Settings()).db.migrate()
"""

Empty = Callable[[], Settings]  # an empty database with each call

# As the first revision made it.
clients = table(
    "clients",
    column("client_id", Uuid),
    column("name", Text),
    column("decision_policies", Boolean),
    column("created_at", UtcDateTime),
)


@pytest.fixture
def empty_sqlite(tmp_path: Path) -> Empty:
    number = count(1)
    return lambda: Settings(home=tmp_path / f"home-{next(number)}").prepared()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Server]:
    with server() as started:
        yield started


@pytest.fixture
def empty_postgres(cluster: Server, tmp_path: Path) -> Empty:
    def empty() -> Settings:
        name = f"empty_{uuid4().hex}"
        cluster.execute(f"CREATE DATABASE {name}", database="postgres")
        url = f"postgresql+psycopg://{USER}@127.0.0.1:{cluster.port}/{name}"
        return Settings(home=tmp_path / "home", database_url=url).prepared()

    return empty


@pytest.mark.parametrize("revision", [None, FIRST])
@pytest.mark.parametrize("call", ["pwrite64", "fdatasync"])
def test_killed_on_sqlite(empty_sqlite: Empty, tmp_path: Path, call: str, revision: str | None) -> None:
    survives_kills(empty_sqlite, revision, call, tmp_path)


@pytest.mark.parametrize("revision", [None, FIRST])
def test_killed_on_postgresql(empty_postgres: Empty, tmp_path: Path, revision: str | None) -> None:
    survives_kills(empty_postgres, revision, "sendto", tmp_path)


def survives_kills(empty: Empty, revision: str | None, call: str, folder: Path) -> None:
    most = calls_of_a_migration(begun(empty, revision), call, folder / "trace")
    for nth in sorted(random.Random(call).sample(range(1, most + 1), min(KILLS, most))):
        settings = begun(empty, revision)
        with KillAtCall(folder, call, nth) as kill:
            migrate(settings, *kill.strace)
        assert kill.injected, f"{call} {nth} of {most}"
        INJECTED[kill.kind] += 1
        assert_finished_by_the_next(settings, revision, f"killed at {call} {nth} of {most}")
        SURVIVED[kill.kind] += 1


def begun(empty: Empty, revision: str | None) -> Settings:
    """An empty database or, with a revision, one of it that holds a client."""
    settings = empty()
    if revision is not None:
        config = Config()
        config.set_main_option("script_location", str(migrations.FOLDER))
        db = Database(settings.database)
        with db.engine.begin() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, revision)
            client = {"client_id": uuid4(), "name": NAME, "decision_policies": False, "created_at": now()}
            connection.execute(insert(clients).values(client))
        db.close()
    return settings


def calls_of_a_migration(settings: Settings, call: str, log: Path) -> int:
    """How many there are when nothing disturbs it."""
    need_strace()
    assert migrate(settings, "strace", "-f", "-qq", "-o", str(log), "-e", f"trace={call}") == 0
    return log.read_text().count(f"{call}(")


def migrate(settings: Settings, *behind: str) -> int:
    """The exit status of a process that opens the store."""
    environment = {"TIDEMARK_HOME": str(settings.home), "TIDEMARK_DATABASE_URL": settings.database}
    return subprocess.run(
        [*behind, sys.executable, "-c", OPEN], env=os.environ | environment, timeout=120, check=False
    ).returncode


def assert_finished_by_the_next(settings: Settings, revision: str | None, after: str) -> None:
    left = Database(settings.database)
    current, newest = left.revisions()
    left.close()
    assert current in (revision, newest), after
    store = Store.open(settings)
    with store.db.reading() as r:
        assert compare_metadata(MigrationContext.configure(r), metadata) == [], after
        assert r.execute(select(clients.c.name)).scalars().all() == ([NAME] if revision else []), after
    assert store.db.revisions() == (newest, newest), after
    store.close()
