"""Engines and sessions: SQLite with WAL and full fsync in one file, or PostgreSQL, by the same code.

`Reading` and `Writing` are different types so that a function's signature says whether it may change anything.
Writers begin IMMEDIATE on SQLite: with deferred transactions, concurrent writers fail instead of waiting their turn.
"""

import os
import threading
from collections.abc import Iterator
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

Reading = NewType("Reading", Connection)
Writing = NewType("Writing", Reading)
AnySelect: TypeAlias = Select[*tuple[Any, ...]]  # of any number of columns: tables tell theirs at run time only
AnyRow: TypeAlias = Row[*tuple[Any, ...]]

BUSY_TIMEOUT_S = 5
CHANGES_CHANNEL = "tidemark_changes"
AWAY = (OperationalError, InterfaceError, InternalError, PoolTimeout, OSError)  # what an unreachable database raises

_alembic = threading.Lock()  # its context is the process's


class Database:
    """One engine, two ways in: `reading()` for a consistent snapshot, `writing()` for one transaction.

    Whoever comes first brings the tables up to date: a process can start while its database is down.
    """

    def __init__(self, url: str) -> None:
        self.url = make_url(url)
        is_sqlite = self.url.get_backend_name() == "sqlite"
        self.engine = _sqlite(url) if is_sqlite else postgres.engine(self.url, "READ COMMITTED")
        self._up_to_date = False
        self._one_writer = threading.Lock()

    @property
    def is_sqlite(self) -> bool:
        return self.engine.dialect.name == "sqlite"

    @contextmanager
    def reading(self) -> Iterator[Reading]:
        """One snapshot for all that is read inside."""
        self.migrate()
        with self.engine.connect() as connection:
            if not self.is_sqlite:
                connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            with connection.begin():
                yield Reading(connection)

    @contextmanager
    def writing(self) -> Iterator[Writing]:
        """One transaction, committed at the end or not at all."""
        self.migrate()
        with self._transaction() as connection:
            yield Writing(Reading(connection))
            if not self.is_sqlite:
                connection.exec_driver_sql(f"NOTIFY {CHANGES_CHANNEL}")

    def migrate(self) -> None:
        """Bring the tables to the newest revision, once in a process; several processes may do so at once.

        Raises:
            PoolTimeout: another thread is still at it.
            Unavailable: they are of a revision that this program doesn't know.
        """
        if self._up_to_date:
            return
        if not _alembic.acquire(timeout=postgres.POOL_WITHIN_S):
            raise PoolTimeout("the tables are not up to date yet")
        try:
            self._upgrade()
        finally:
            _alembic.release()

    def revisions(self) -> tuple[str | None, str | None]:
        """The revision of the tables as they are, and the newest that this program knows."""
        with self.engine.connect() as connection:
            return _revision(connection), migrations.NEWEST

    def _upgrade(self) -> None:
        with self._transaction() as connection, self._in_turn(connection):
            if (revision := _revision(connection)) != migrations.NEWEST:
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
        """SQLite has one writer and lets the others sleep, longer and longer; a process's own are woken in its turn."""
        if not self.is_sqlite:
            yield
            return
        if not self._one_writer.acquire(timeout=BUSY_TIMEOUT_S):
            raise PoolTimeout("other threads write for too long")
        try:
            yield
        finally:
            self._one_writer.release()

    @contextmanager
    def _in_turn(self, connection: Connection) -> Iterator[None]:
        """One process after another (SQLite's writers take turns anyway)."""
        if self.is_sqlite:
            yield
            return
        with postgres.in_turn(connection, postgres.Lock.MIGRATION):
            yield

    def close(self) -> None:
        self.engine.dispose()


def insert_into(w: Writing, table: Table) -> postgresql.Insert | sqlite.Insert:
    """An insert that may say what to do where the row is there already: both databases can, each in its own class."""
    return postgresql.insert(table) if w.dialect.name == "postgresql" else sqlite.insert(table)


def values_of(row: AnyRow, **read: Any) -> dict[str, Any]:
    """A row's values by name, for the class with fields of these names; `read` instead of what columns only encode."""
    return {**row._asdict(), **read}


def _revision(connection: Connection) -> str | None:
    """Return the revision of a database's tables, or None for a database without any."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    revision: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return revision


def _sqlite(url: str) -> Engine:
    # isolation_level None: the driver never begins by itself, the listener below says which kind
    driver = {"timeout": BUSY_TIMEOUT_S, "isolation_level": None}
    engine = create_engine(url, connect_args=driver, pool_size=16, max_overflow=48, hide_parameters=True)

    @event.listens_for(engine, "do_connect")
    def make_private(_dialect: Dialect, _record: Any, arguments: list[Any], _options: dict[str, Any]) -> None:
        """Make a new file before SQLite does; it gives the files beside it (`-wal`, `-shm`) the same mode."""
        with suppress(OSError):  # SQLite says what is wrong
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
