"""Database connections: SQLite (WAL, full fsync) or PostgreSQL, with the same code for both.

`Reading` and `Writing` are different types, so that a function's signature shows whether it may change anything.
Write transactions are IMMEDIATE on SQLite: with deferred ones, concurrent writers would fail instead of waiting.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NewType, TypeAlias

from sqlalchemy import (
    Dialect,
    Engine,
    Row,
    Select,
    Table,
    create_engine,
    event,
    inspect,
    make_url,
    text,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import InterfaceError, InternalError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from storage.core import durable, migrations, postgres
from storage.core.index_choice import HintingCompiler

Reading = NewType("Reading", Connection)
Writing = NewType("Writing", Reading)
AnySelect: TypeAlias = Select[*tuple[Any, ...]]  # any number of columns: a Table's columns are unknown to type checkers
AnyRow: TypeAlias = Row[*tuple[Any, ...]]

BUSY_TIMEOUT_S = 5
CHANGES_CHANNEL = "tidemark_changes"
# Raised if the database is unreachable.
UNREACHABLE = (OperationalError, InterfaceError, InternalError, PoolTimeout, OSError)

_alembic = threading.Lock()  # Alembic's context is global to the process


class Database:
    """A database: `reading()` gives a consistent snapshot, `writing()` a transaction.

    The first use brings the tables up to date, so that a process can start while its database is down.

    `before_next_use` is called once with this database, and again if it raised.
    """

    def __init__(self, url: str) -> None:
        self.url = make_url(url)
        is_sqlite = self.url.get_backend_name() == "sqlite"
        self.engine = _make_sqlite_engine(url) if is_sqlite else postgres.make_engine(self.url, "READ COMMITTED")
        self._up_to_date = False
        self.before_next_use: Callable[[Database], None] | None = None
        self._one_writer = threading.Lock()

    @property
    def is_sqlite(self) -> bool:
        return self.engine.dialect.name == "sqlite"

    @contextmanager
    def reading(self) -> Iterator[Reading]:
        """Open a read-only transaction: everything read inside comes from one snapshot."""
        self._prepare()
        with self.engine.connect() as connection:
            if not self.is_sqlite:
                connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            with connection.begin():
                yield Reading(connection)

    @contextmanager
    def writing(self) -> Iterator[Writing]:
        """Open a transaction that is committed at the end, or rolled back on an exception."""
        self._prepare()
        with self._transaction() as connection:
            yield Writing(Reading(connection))
            if not self.is_sqlite:
                connection.exec_driver_sql(f"NOTIFY {CHANGES_CHANNEL}")

    def _prepare(self) -> None:
        self.migrate()
        if waiting := self.before_next_use:
            self.before_next_use = None  # it uses this database itself
            try:
                waiting(self)
            except BaseException:
                self.before_next_use = waiting
                raise

    def migrate(self) -> None:
        """Bring the tables to the newest revision, once per process; several processes may call this at once.

        Raises:
            PoolTimeout: another thread is still migrating.
            Unavailable: this program doesn't know the tables' revision.
        """
        if self.is_up_to_date():
            return
        if not _alembic.acquire(timeout=postgres.POOL_WITHIN_S):
            raise PoolTimeout("the tables are not up to date yet")
        try:
            self._upgrade()
        finally:
            _alembic.release()

    def is_up_to_date(self) -> bool:
        """Return whether the tables have the newest revision. Only reads, so that no process waits for another."""
        if not self._up_to_date:
            found, newest = self.revisions()
            self._up_to_date = found == newest
        return self._up_to_date

    def revisions(self) -> tuple[str | None, str | None]:
        """Return the revision of the tables, and the newest that this program knows."""
        with self.engine.connect() as connection:
            return _read_revision(connection), migrations.NEWEST

    def _upgrade(self) -> None:
        with self._transaction() as connection, self._in_turn(connection):
            if (revision := _read_revision(connection)) != migrations.NEWEST:
                # Alembic takes half a second to import: only a database that is behind pays for it.
                from storage.core import upgrading  # noqa: PLC0415

                bring_up_to_date = upgrading.create if revision is None else upgrading.upgrade
                bring_up_to_date(connection)
        self._up_to_date = True

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        with (
            self._writers_turn(),
            self.engine.connect().execution_options(tidemark_writes=True) as connection,
            connection.begin(),
        ):
            yield connection

    @contextmanager
    def _writers_turn(self) -> Iterator[None]:
        """Let one thread of this process write at a time.

        SQLite's waiting writers sleep for growing intervals; a lock wakes the next thread at once.
        """
        if not self.is_sqlite:
            yield
            return
        if not self._one_writer.acquire(timeout=BUSY_TIMEOUT_S):
            raise PoolTimeout("other threads have been writing for too long")
        try:
            yield
        finally:
            self._one_writer.release()

    @contextmanager
    def _in_turn(self, connection: Connection) -> Iterator[None]:
        """Let one process migrate at a time. SQLite's single writer ensures this by itself."""
        if self.is_sqlite:
            yield
            return
        with postgres.hold_advisory_lock(connection, postgres.Lock.MIGRATION):
            yield

    def close(self) -> None:
        self.engine.dispose()


def insert_into(w: Writing, table: Table) -> postgresql.Insert | sqlite.Insert:
    """Return an insert with `on_conflict_…` methods, which SQLAlchemy has only in each dialect's own class."""
    return postgresql.insert(table) if w.dialect.name == "postgresql" else sqlite.insert(table)


def read_values(row: AnyRow, **decoded: Any) -> dict[str, Any]:
    """Return a row's values by name, for a class with these fields. `decoded`: values that replace encoded ones."""
    return {**row._asdict(), **decoded}


def _read_revision(connection: Connection) -> str | None:
    """Return the revision of a database's tables, or None for a database without any."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    revision: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return revision


def _make_sqlite_engine(url: str) -> Engine:
    # isolation_level None: the driver begins no transaction itself; the listener below chooses the kind
    driver = {"timeout": BUSY_TIMEOUT_S, "isolation_level": None}
    engine = create_engine(url, connect_args=driver, pool_size=16, max_overflow=48, hide_parameters=True)
    engine.dialect.statement_compiler = HintingCompiler

    @event.listens_for(engine, "do_connect")
    def make_private(_dialect: Dialect, _record: Any, arguments: list[Any], _options: dict[str, Any]) -> None:
        """Create a new file with a private mode before SQLite does; SQLite gives `-wal` and `-shm` the same mode."""
        with suppress(OSError):  # SQLite reports the error when it opens the file
            os.close(os.open(arguments[0], os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, durable.FILE_MODE))

    @event.listens_for(engine, "connect")
    def configure(connection: DBAPIConnection, _record: Any) -> None:
        cursor = connection.cursor()
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "secure_delete=ON"):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("tidemark_writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine
