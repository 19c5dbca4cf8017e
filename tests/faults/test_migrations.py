"""A process that creates or upgrades the tables is killed in the middle: the next one completes the work."""

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest

from storage.core.database import Database
from storage.core.settings import Settings
from storage.core.store import Store
from tests.faults.counts import INJECTED, SURVIVED
from tests.faults.faults import KillAtCall, need_strace
from tests.faults.postgres import USER, Server, server
from tests.storage.core.test_migrations import differences, go_back_to_16

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
KILLS = 12  # of each kind, seeded, over all of its calls
OPEN: Final = """
from storage.core.settings import Settings
from storage.core.store import Store
Store.open(Settings()).db.migrate()
"""

Empty = Callable[[], Settings]  # an empty database with each call, or one with older tables


@pytest.fixture
def empty_sqlite(tmp_path: Path) -> Empty:
    number = count(1)
    return lambda: Settings(home=tmp_path / f"home-{next(number)}").prepare()


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
        return Settings(home=tmp_path / "home", database_url=url).prepare()

    return empty


@pytest.mark.parametrize("older", [False, True])
@pytest.mark.parametrize("call", ["pwrite64", "fdatasync"])
def test_killed_on_sqlite(empty_sqlite: Empty, tmp_path: Path, call: str, *, older: bool) -> None:
    survives_kills(with_older_tables(empty_sqlite) if older else empty_sqlite, call, tmp_path)


@pytest.mark.parametrize("older", [False, True])
def test_killed_on_postgresql(empty_postgres: Empty, tmp_path: Path, *, older: bool) -> None:
    survives_kills(with_older_tables(empty_postgres) if older else empty_postgres, "sendto", tmp_path)


def with_older_tables(empty: Empty) -> Empty:
    def older() -> Settings:
        settings = empty()
        with closing(Database(settings.database)) as db, db.writing() as w:
            go_back_to_16(w)
        return settings

    return older


def survives_kills(empty: Empty, call: str, folder: Path) -> None:
    most = calls_of_a_migration(empty(), call, folder / "trace")
    for nth in sorted(random.Random(call).sample(range(1, most + 1), min(KILLS, most))):
        settings = empty()
        with KillAtCall(folder, call, nth) as kill:
            migrate(settings, *kill.strace)
        assert kill.injected, f"{call} {nth} of {most}"
        INJECTED[kill.kind] += 1
        assert_finished_by_the_next(settings, f"killed at {call} {nth} of {most}")
        SURVIVED[kill.kind] += 1


def calls_of_a_migration(settings: Settings, call: str, log: Path) -> int:
    """Return the number of these calls in an undisturbed migration."""
    need_strace()
    assert migrate(settings, "strace", "-f", "-qq", "-o", str(log), "-e", f"trace={call}") == 0
    return log.read_text().count(f"{call}(")


def migrate(settings: Settings, *behind: str) -> int:
    """Run a process that opens the store, and return its exit status."""
    environment = {"TIDEMARK_HOME": str(settings.home), "TIDEMARK_DATABASE_URL": settings.database}
    return subprocess.run(
        [*behind, sys.executable, "-c", OPEN], env=os.environ | environment, timeout=120, check=False
    ).returncode


def assert_finished_by_the_next(settings: Settings, after: str) -> None:
    left = Database(settings.database)
    current, newest = left.revisions()
    left.close()
    assert current in (None, "tables_16", newest), after
    store = Store.open(settings)
    with store.db.reading() as r:
        assert differences(r) == [], after
    assert store.db.revisions() == (newest, newest), after
    store.close()
