"""Dagster's storage over connections that stay open, which is several times faster than its stock storage.

Stock storage opens a connection for every one of a run's twenty-odd events. Here a process has one pool; runs, events,
schedules and sensor ticks share one SQLite file in WAL mode, or the schema `dagster` of Tidemark's own PostgreSQL
database, where the names of Dagster's tables can't clash with ours.

A commit is not fsynced (neither `synchronous=NORMAL` nor `synchronous_commit=off` can corrupt data). After a power cut
Dagster may have lost a run's last events. That does no harm: our own tables record what was done.
"""

import fcntl
import logging
import time
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Self

from alembic.config import Config
from dagster import DagsterInstance, StringSource
from dagster._config.config_schema import UserConfigSchema
from dagster._core.events.log import EventLogEntry
from dagster._core.storage.base_storage import DagsterStorage
from dagster._core.storage.event_log.polling_event_watcher import SqlPollingEventWatcher
from dagster._core.storage.event_log.schema import SqlEventLogStorageMetadata
from dagster._core.storage.event_log.sql_event_log import SqlEventLogStorage
from dagster._core.storage.event_log.sqlite.consolidated_sqlite_event_log import ConsolidatedSqliteEventLogStorage
from dagster._core.storage.runs.schema import RunStorageSqlMetadata
from dagster._core.storage.runs.sql_run_storage import SqlRunStorage
from dagster._core.storage.runs.sqlite import sqlite_run_storage
from dagster._core.storage.runs.sqlite.sqlite_run_storage import SqliteRunStorage
from dagster._core.storage.schedules.schema import ScheduleStorageSqlMetadata
from dagster._core.storage.schedules.sql_schedule_storage import SqlScheduleStorage
from dagster._core.storage.schedules.sqlite.sqlite_schedule_storage import SqliteScheduleStorage
from dagster._core.storage.sql import (
    check_alembic_revision,
    get_alembic_config,
    run_alembic_upgrade,
    stamp_alembic_rev,
)
from dagster._serdes import ConfigurableClass, ConfigurableClassData
from dagster_postgres.event_log import PostgresEventLogStorage
from dagster_postgres.run_storage import PostgresRunStorage
from dagster_postgres.schedule_storage import PostgresScheduleStorage
from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import SQLAlchemyError

from storage.core import postgres
from storage.core.postgres import DAGSTER_SCHEMA

FILE_NAME = "dagster.db"
BUSY_TIMEOUT_S = 30
POOL_SIZE = 8
POOL_OVERFLOW = 24
POLL_AGAIN_S = 1.0  # while the server is down
PING_AFTER_S = 1.0  # a run has dozens of statements, and if it fails, its jobs are processed again

log = logging.getLogger(__name__)


class PooledStorage(DagsterStorage[DagsterInstance], ConfigurableClass):
    """Runs, events and schedules over one pool. Several processes may open it at once; tables are created only once."""

    _engine: Engine
    _runs: SqlRunStorage
    _events: SqlEventLogStorage
    _schedules: SqlScheduleStorage

    def __init__(self, inst_data: ConfigurableClassData | None) -> None:
        super().__init__()
        self._inst_data = inst_data

    @abstractmethod
    def _one_process_at_a_time(self) -> AbstractContextManager[None]:
        """Return a lock. Without it, if two processes created the tables of a new home at once, one would fail."""

    @property
    def event_log_storage(self) -> SqlEventLogStorage:
        return self._events

    @property
    def run_storage(self) -> SqlRunStorage:
        return self._runs

    @property
    def schedule_storage(self) -> SqlScheduleStorage:
        return self._schedules

    def register_instance(self, instance: DagsterInstance) -> None:
        super().register_instance(instance)
        for part in (self._runs, self._events, self._schedules):
            if not part.has_instance:
                part.register_instance(instance)

    def _prepare_tables(self) -> None:
        """Create the tables if there are none, and migrate those of an older Dagster."""
        config = get_alembic_config(sqlite_run_storage.__file__)
        with self._one_process_at_a_time():
            with self._engine.begin() as connection:
                present, newest = check_alembic_revision(config, connection)
            if present is None:
                self._create_tables(config)
            elif present != newest:
                with self._engine.begin() as connection:
                    run_alembic_upgrade(config, connection)

    def _create_tables(self, config: Config) -> None:
        for metadata in (RunStorageSqlMetadata, SqlEventLogStorageMetadata, ScheduleStorageSqlMetadata):
            metadata.create_all(self._engine)
        self._runs.migrate()
        self._runs.optimize()
        self._events.reindex_events()
        self._events.reindex_assets()
        self._schedules.migrate()
        self._schedules.optimize()
        with self._engine.begin() as connection:
            stamp_alembic_rev(config, connection)

    @property
    def inst_data(self) -> ConfigurableClassData | None:
        return self._inst_data


class PooledSqliteStorage(PooledStorage):
    """Storage in one file in `base_dir`. `dagster.yaml` names this class under `storage: custom:`."""

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        super().__init__(inst_data)
        self._file = Path(base_dir) / FILE_NAME
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._engine = _sqlite_engine(self._file)
        self._runs = _SqliteRuns(self._file, self._engine)
        self._events = _SqliteEvents(self._file, self._engine)
        self._schedules = _SqliteSchedules(self._file, self._engine)
        self._prepare_tables()

    @contextmanager
    def _one_process_at_a_time(self) -> Iterator[None]:
        with (self._file.parent / "storage.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    @classmethod
    def config_type(cls) -> UserConfigSchema:
        return {"base_dir": StringSource}

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData, config_value: Mapping[str, Any]) -> Self:
        return cls(config_value["base_dir"], inst_data)


class PooledPostgresStorage(PooledStorage):
    """Storage in the schema `dagster` of the database at `url`. `dagster.yaml` names it under `storage: custom:`.

    If the server is down, opening waits until it is up.
    """

    def __init__(self, url: str, inst_data: ConfigurableClassData | None = None) -> None:
        super().__init__(inst_data)
        address = make_url(url).set(drivername="postgresql+psycopg")
        self._engine = postgres.make_engine(
            address, "AUTOCOMMIT", PING_AFTER_S, search_path=DAGSTER_SCHEMA, synchronous_commit="off"
        )
        self._runs = _PostgresRuns(address, self._engine)
        self._events = _PostgresEvents(address, self._engine)
        self._schedules = _PostgresSchedules(address, self._engine)
        self._wait_for_server()
        self._prepare_tables()

    def _wait_for_server(self) -> None:
        warned = False
        while True:
            try:
                self._engine.connect().close()
            except SQLAlchemyError as error:
                if not warned:
                    log.warning("waiting for PostgreSQL: %s", error)
                warned = True
                time.sleep(POLL_AGAIN_S)
            else:
                return

    @contextmanager
    def _one_process_at_a_time(self) -> Iterator[None]:
        transactional = self._engine.execution_options(isolation_level="READ COMMITTED")
        with transactional.begin() as connection, postgres.hold_advisory_lock(connection, postgres.Lock.PREPARATION):
            if not inspect(self._engine).has_schema(DAGSTER_SCHEMA):
                with self._engine.begin() as autocommit:
                    autocommit.exec_driver_sql(f"CREATE SCHEMA {DAGSTER_SCHEMA}")
            yield

    @classmethod
    def config_type(cls) -> UserConfigSchema:
        return {"url": StringSource}

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData, config_value: Mapping[str, Any]) -> Self:
        return cls(config_value["url"], inst_data)


class _MigratedRuns(SqlRunStorage):
    """Runs in tables of the newest version, which `PooledStorage` ensures. The database isn't asked which it has."""

    def has_run_stats_index_cols(self) -> bool:
        return True

    def has_backfill_id_column(self) -> bool:
        return True


class _MigratedEvents(SqlEventLogStorage):
    """Events in tables of the newest version, as `_MigratedRuns`."""

    def has_table(self, table_name: str) -> bool:
        return table_name in SqlEventLogStorageMetadata.tables

    def has_asset_key_col(self, column_name: str) -> bool:
        return True

    def _has_asset_key_col_on_connection(self, conn: Connection, column_name: str) -> bool:
        return True


class _MigratedSchedules(SqlScheduleStorage):
    """Schedules in tables of the newest version, as `_MigratedRuns`."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._built: set[str] = set()
        super().__init__(*arguments, **options)

    def has_instigators_table(self) -> bool:
        return True

    def _has_instigators_table(self, conn: Connection) -> bool:
        return True

    def has_secondary_index_table(self) -> bool:
        return True

    def has_built_index(self, migration_name: str) -> bool:
        if migration_name not in self._built and super().has_built_index(migration_name):
            self._built.add(migration_name)
        return migration_name in self._built


class _InOneFile:
    """A mixin for stock storages: each connection comes from the file's one pool, for one transaction."""

    def __init__(self, file: Path, engine: Engine) -> None:
        self._engine = engine
        super().__init__(_url(file))  # pyrefly: ignore[bad-argument-count]  # the stock storage is the next base class

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        with self._engine.begin() as connection:
            yield connection


class _SqliteRuns(_MigratedRuns, _InOneFile, SqliteRunStorage):
    pass


class _SqliteSchedules(_MigratedSchedules, _InOneFile, SqliteScheduleStorage):
    pass


class _SqliteEvents(_MigratedEvents, ConsolidatedSqliteEventLogStorage):
    """The event log. Watchers poll: the stock one watches the file, which in WAL mode doesn't change with a commit."""

    def __init__(self, file: Path, engine: Engine) -> None:
        self._engine = engine
        self._file = file
        super().__init__(str(file.parent))
        self._watcher = SqlPollingEventWatcher(self)

    def get_db_path(self) -> str:
        return str(self._file)

    def _init_db(self) -> None:
        """Do nothing: PooledStorage creates the tables."""

    @contextmanager
    def _connect(self) -> Iterator[Connection]:
        with self._engine.begin() as connection:
            yield connection

    def watch(self, run_id: str, cursor: str | None, callback: Any) -> None:
        self._watcher.watch_run(run_id, cursor, callback)

    def end_watch(self, run_id: str, handler: Any) -> None:
        self._watcher.unwatch_run(run_id, handler)

    def dispose(self) -> None:
        self._watcher.close()
        self._engine.dispose()


class _OverPool:
    """A mixin for stock storages over the shared pool. The engine that the stock class creates never connects."""

    def __init__(self, address: URL, engine: Engine) -> None:
        url = address.render_as_string(hide_password=False)
        super().__init__(url, should_autocreate_tables=False)  # pyrefly: ignore[bad-argument-count, unexpected-keyword]  # the stock storage is the next base class
        self._engine = engine

    def optimize_for_webserver(self, statement_timeout: int, pool_recycle: int, max_overflow: int) -> None:
        """Do nothing: the pool suits a web server as it is."""


class _PostgresRuns(_MigratedRuns, _OverPool, PostgresRunStorage):
    pass


class _PostgresEvents(_MigratedEvents, _OverPool, PostgresEventLogStorage):
    def store_event(self, event: EventLogEntry) -> None:
        """Store an event without the stock class's NOTIFY, because nothing listens to it."""
        SqlEventLogStorage.store_event(self, event)

    def dispose(self) -> None:
        super().dispose()
        self._engine.dispose()


class _PostgresSchedules(_MigratedSchedules, _OverPool, PostgresScheduleStorage):
    pass


def _url(file: Path) -> str:
    return f"sqlite:///{file.resolve()}"


def _sqlite_engine(file: Path) -> Engine:
    engine = create_engine(
        _url(file),
        pool_size=POOL_SIZE,
        max_overflow=POOL_OVERFLOW,
        connect_args={"timeout": BUSY_TIMEOUT_S},
    )

    @event.listens_for(engine, "connect")
    def configure(connection: DBAPIConnection, _record: Any) -> None:
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=NORMAL")
        cursor.close()

    return engine
