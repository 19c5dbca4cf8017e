"""Fixtures for all tests: a store in its own folder, on SQLite and on PostgreSQL."""

import gc
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast
from uuid import uuid4

import psycopg
import pytest
from hypothesis import settings
from psycopg.sql import SQL, Identifier
from sqlalchemy import Connection, Dialect, Engine, event
from sqlalchemy.engine.default import DefaultDialect

from storage.core.database import Database
from storage.core.settings import Settings
from storage.core.store import Store

pytest_plugins = ["tests.faults.counts"]

# No deadline, because a loaded machine is not a bug. `make test` has few examples per property, `make test-slow` many.
LIGHT, THOROUGH = 10, 100
settings.register_profile("tidemark", deadline=None, max_examples=LIGHT)
settings.register_profile("thorough", deadline=None, max_examples=THOROUGH)
settings.load_profile("tidemark")

IN_PROCESS = "not slow and not service"  # what `make test` runs
WHOLLY_MARKED = re.compile(
    r"(?m)^pytestmark = \[?pytest\.mark\.(slow|service)\b|item\.add_marker\(pytest\.mark\.service\)"
)

POSTGRES = "postgresql://127.0.0.1:5432"
DATABASES = ("sqlite", "postgresql")
SQLITE_FIRST = ("sqlite", pytest.param("postgresql", marks=pytest.mark.slow))
END_OTHERS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
TABLES = """
SELECT format('%I.%I', schemaname, tablename) FROM pg_tables
WHERE schemaname = 'public' AND tablename <> 'alembic_version'
"""
# A function's statements are planned once in a session, so that emptying takes a twentieth of the time.
EMPTYING = """
CREATE FUNCTION pg_temp.empty() RETURNS void LANGUAGE plpgsql AS $$ BEGIN
    {deletions}
    PERFORM setval(format('%I.%I', schemaname, sequencename)::regclass, start_value, false) FROM pg_sequences;
END $$
"""
DROPPING = f"""
import sys, psycopg
with psycopg.connect("{POSTGRES}/test", autocommit=True) as connection:
    for name in sys.argv[1:]:
        connection.execute(f"DROP DATABASE IF EXISTS {{name}} WITH (FORCE)")
"""
# What identifies tables, columns, constraints, triggers and revision: a copy of a template has the template's object
# ids; objects that are made later have others. PostgreSQL's own objects have ids below 16384.
SHAPE = """
SELECT (SELECT array_agg((oid, relname)::text ORDER BY oid) FROM pg_class WHERE relnamespace = 'public'::regnamespace),
       (SELECT array_agg((oid, tgenabled)::text ORDER BY oid) FROM pg_trigger),
       (SELECT array_agg(oid ORDER BY oid) FROM pg_constraint),
       (SELECT sum(hashnameextended(attname, attrelid::bigint)) FROM pg_attribute WHERE attrelid >= 16384),
       (SELECT array_agg(nspname ORDER BY nspname) FROM pg_namespace WHERE nspname !~ '^pg_'),
       (SELECT array_agg(version_num) FROM public.alembic_version)
"""
NOW = datetime(2026, 11, 20, 3, 0, tzinfo=UTC)
IN_MEMORY = Path("/dev/shm")
NEEDED_BYTES = 4 * 2**30


gc.disable()  # until thousands of tests have been collected


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Don't import what `make test` runs no test of: files and folders whose tests are all slow or need a service."""
    if config.getoption("markexpr") != IN_PROCESS or collection_path.suffix not in ("", ".py"):
        return None
    file = collection_path / "conftest.py" if collection_path.is_dir() else collection_path
    return True if file.exists() and WHOLLY_MARKED.search(file.read_text()) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with tests that mostly wait, as for deliveries: at the end, nothing else would use the cores meanwhile."""
    items.sort(key=lambda item: not item.nodeid.startswith("tests/assets/"))


def pytest_collection_finish() -> None:
    """Exempt the collected tests from garbage collection, because they stay until the end."""
    gc.freeze()
    gc.set_threshold(200_000, 20, 20)
    gc.enable()


def pytest_configure() -> None:
    """Keep the folders of tests in memory, if enough of it is free and programs can run there.

    Tidemark waits for the disk at every commit, which would make tests slower without proving more.
    """
    if not IN_MEMORY.is_dir():
        return
    system = os.statvfs(IN_MEMORY)
    if system.f_bavail * system.f_frsize >= NEEDED_BYTES and not system.f_flag & os.ST_NOEXEC:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))


def times(light: int) -> int:
    """Return how often a loop over drawn cases runs; proportionally more often in `make test-slow`."""
    return light * settings().max_examples // LIGHT


def examples(light: int) -> settings:
    """Set the number of examples of a slow property; `make test-slow` has proportionally more."""
    return settings(max_examples=times(light))


class Subtests(pytest.Subtests):
    """Subtests of which only failures are reported: capturing the output and reporting of each takes a millisecond."""

    def __init__(self, reporting: pytest.Subtests) -> None:
        self._reporting = reporting

    @contextmanager
    def test(self, msg: str | None = None, **kwargs: object) -> Iterator[None]:  # pyrefly: ignore[bad-override]  # the class of the result is private
        try:
            yield
        except BaseException:
            with self._reporting.test(msg, **kwargs):
                raise


@pytest.fixture(name="subtests")
def _subtests(subtests: pytest.Subtests) -> pytest.Subtests:
    return Subtests(subtests)


@pytest.fixture
def now() -> datetime:
    return NOW


class PostgresDatabases:
    """Makes new, migrated databases. Calling it returns the name of a new one."""

    def __init__(self, admin: "psycopg.Connection[tuple[object, ...]]") -> None:
        self._admin = admin
        self._prefix = f"tidemark_{uuid4().hex[:12]}"
        self._count = 0
        self._retained = set[str]()
        self._spare: list[str] = []
        self._emptying: dict[str, psycopg.Connection[tuple[object, ...]]] = {}  # by the name of the database
        self._migrated = self._make("template1")
        template = Database(url_of(self._migrated))
        template.migrate()
        template.close()
        with psycopg.connect(f"{POSTGRES}/{self._migrated}") as connection:
            self._shape = connection.execute(SHAPE).fetchone()

    def __call__(self) -> str:
        return self._make(self._migrated)

    def lend(self) -> str:
        """Return an empty, migrated database, perhaps a used one: emptying is ten times as fast as
        dropping and making.
        """
        return self._spare.pop() if self._spare else self()

    def copy(self, filled: str) -> str:
        """Return a copy of a database that nobody uses."""
        return self._make(filled)

    def take_back(self, name: str) -> None:
        """Empty a database for the next test, or drop it if its tables no longer are those of the migrations."""
        connection = self._emptying.get(name) or self._prepare_emptying(name)
        while connection.execute(END_OTHERS).rowcount:  # the server itself would wait in steps of 100 ms
            time.sleep(0.001)
        if connection.execute(SHAPE).fetchone() == self._shape:
            connection.execute("SELECT pg_temp.empty()")
            self._spare.append(name)
        else:
            self.drop(name)

    def _prepare_emptying(self, name: str) -> "psycopg.Connection[tuple[object, ...]]":
        """Open a connection that remains for all tests, because a new one costs as much as emptying."""
        connection = psycopg.connect(f"{POSTGRES}/{name}", autocommit=True)
        connection.execute("SET session_replication_role = replica")  # disables foreign keys and the audit log's guard
        tables = connection.execute(TABLES).fetchall()
        deletions = SQL(" ").join(SQL("DELETE FROM {};").format(SQL(table)) for (table,) in tables)  # quoted already
        connection.execute(SQL(EMPTYING).format(deletions=deletions))
        self._emptying[name] = connection
        return connection

    def drop(self, name: str) -> None:
        """Drop a database early, so that it need not be flushed to the disk."""
        if name in self._emptying:
            self._emptying.pop(name).close()
        self._admin.execute(SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(Identifier(name)))
        self._retained.discard(name)

    def drop_all(self) -> None:
        """Drop all databases in a process that outlives the tests: each waits a second or two for the disk."""
        for connection in self._emptying.values():
            connection.close()
        nothing = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDWR, 0),
            *((os.POSIX_SPAWN_DUP2, 0, output) for output in (1, 2)),
        ]
        arguments = [sys.executable, "-c", DROPPING, *self._retained]
        os.posix_spawn(sys.executable, arguments, os.environ, file_actions=nothing, setsid=True)

    def _make(self, template: str) -> str:
        self._count += 1
        name = f"{self._prefix}_{self._count}"
        made = Identifier(name)
        self._admin.execute(SQL("CREATE DATABASE {} TEMPLATE {}").format(made, Identifier(template)))
        # Commits don't wait for the disk.
        self._admin.execute(SQL("ALTER DATABASE {} SET synchronous_commit = off").format(made))
        self._retained.add(name)
        return name


@pytest.fixture(scope="session")
def postgres_database() -> Iterator[PostgresDatabases]:
    """Provide databases on this machine's PostgreSQL; all are dropped at the end."""
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


def url_of(database: str) -> str:
    """Return `database_url` for a database of this machine's PostgreSQL."""
    return f"postgresql+psycopg://127.0.0.1:5432/{database}"


def new_database(request: pytest.FixtureRequest, kind: str) -> str:
    """Return `database_url` for an empty database of a kind in DATABASES, which lasts as long as the requesting
    fixture.
    """
    if kind == "sqlite":
        return ""
    databases: PostgresDatabases = request.getfixturevalue("postgres_database")
    name = databases.lend()
    request.addfinalizer(lambda: databases.take_back(name))
    return url_of(name)


@cache
def migrated_file() -> bytes:
    """Return a SQLite database file with empty tables of the newest revision. Migrations run once in a process."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "tidemark.db"
        database = Database(f"sqlite:///{file}")
        database.migrate()
        database.close()  # the last connection moves the write-ahead log into the file
        return file.read_bytes()


def prepare_home(home: Path) -> Path:
    """Put empty tables into a home that has no SQLite database yet, so that opening it needs no migrations."""
    file = home / "tidemark.db"
    if not file.exists():
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.write_bytes(migrated_file())
    return home


def copy_home(filled: Path, home: Path) -> Path:
    """Copy a home on SQLite whose stores are closed, so that an expensive home is built once and copied
    for each test.
    """
    return shutil.copytree(filled, home, dirs_exist_ok=True)


def open_store(settings: Settings) -> Store:
    """Do what Store.open does, without running the migrations of a new SQLite database."""
    if not settings.database_url:
        prepare_home(settings.home)
    return Store.open(settings)


@event.listens_for(Engine, "engine_connect")
def share_compiled(connection: Connection) -> None:
    """Let all stores of a process use the same compiled statements, which take longer to compile than to execute.

    SQLAlchemy remembers them by dialect, so equal engines share the first one's.
    """
    engine = connection.engine
    if "compiled_cache" in engine.get_execution_options():
        return
    dialect = cast(DefaultDialect, engine.dialect)
    alike = dialect.name, dialect.statement_compiler, dialect._on_connect_isolation_level
    engine.dialect, statements = _compiled.setdefault(alike, (dialect, {}))
    connection.dialect = engine.dialect
    engine.update_execution_options(compiled_cache=statements)
    connection.execution_options(compiled_cache=statements)


_compiled: dict[object, tuple[Dialect, dict[object, object]]] = {}  # by what makes engines alike


@pytest.fixture(params=DATABASES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Provide an empty Tidemark, on each database."""
    url = new_database(request, request.param)
    opened = open_store(Settings(home=tmp_path / "home", database_url=url))
    yield opened
    opened.close()
