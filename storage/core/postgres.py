"""Connections to PostgreSQL with limits on every wait, whatever the server, another session or the network does.

The server aborts statements and lock waits that take too long. If the server itself can't be reached:

- a peer that doesn't even acknowledge packets is noticed by the kernel;
- a peer that acknowledges packets but never answers (a stalled proxy, a frozen host) is noticed by `Connection`.

So a request fails in less than ten seconds, whether it waits for a pooled connection, finds it dead and opens a new
one, or sends a statement that is never answered.
"""

import select
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any, TypeVar, cast

import psycopg
import sqlalchemy
from psycopg.abc import PQGen
from sqlalchemy import URL, Engine, create_engine, event
from sqlalchemy.engine.interfaces import Dialect, IsolationLevel
from sqlalchemy.exc import InvalidatePoolError

CONNECT_WITHIN_S = 3
ALIVE_WITHIN_S = 2.5
POOL_WITHIN_S = 3
LOCK_WITHIN_MS = 4_000
STATEMENT_WITHIN_MS = 7_000
SILENCE_S = 8.0
IDLE_IN_TRANSACTION_MS = 30_000
MIGRATION_WITHIN_S = 3_600.0  # a migration, and waiting while another process migrates
KEEPALIVE = {"keepalives": 1, "keepalives_idle": 10, "keepalives_interval": 3, "keepalives_count": 3}
POOL_SIZE, POOL_OVERFLOW = 16, 16
DAGSTER_SCHEMA = "dagster"  # in the same database as our tables; not backed up

T = TypeVar("T")


class Lock(IntEnum):
    """Our advisory locks. The numbers are arbitrary; all are listed here so that none is used twice."""

    CLAIMING = 7460001  # claiming batches
    MIGRATION = 7460002  # migrating our tables
    PREPARATION = 7460003  # preparing Dagster's tables
    RECEIPT = 7460004  # receiving submissions; combined with a customer's number


class Connection(psycopg.Connection[Any]):
    """A connection that closes and raises OperationalError when the server has been silent for too long."""

    silence_s = SILENCE_S
    used_at = 0.0  # by `time.monotonic`; set when it is opened, and when it returns to its pool

    def has_input(self) -> bool:
        """Return whether the server has sent something or closed the connection; neither is normal while it is idle."""
        poll = select.poll()
        poll.register(self.fileno(), select.POLLIN)
        return bool(poll.poll(0))

    @contextmanager
    def tolerating(self, silence_s: float) -> Iterator[None]:
        """Allow the server to be silent for another length of time inside the block."""
        before, self.silence_s = self.silence_s, silence_s
        try:
            yield
        finally:
            self.silence_s = before

    def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
        """Wait as psycopg does, but limit the silence, unless the caller sets a timeout (for notifications)."""
        return super().wait(self._limit_silence(gen) if timeout is None else gen, interval, timeout)

    def _limit_silence(self, gen: PQGen[T]) -> PQGen[T]:
        """Run `gen` as long as its socket becomes ready often enough."""
        try:
            wanted = next(gen)
            heard_at = time.monotonic()
            while True:
                ready = yield wanted
                if ready:
                    heard_at = time.monotonic()
                elif time.monotonic() - heard_at > self.silence_s:
                    self.pgconn.finish()
                    raise psycopg.OperationalError("PostgreSQL was silent for too long")
                wanted = gen.send(ready)
        except StopIteration as end:
            return cast(T, end.value)


def make_engine(url: URL, isolation_level: IsolationLevel, ping_after_s: float = 0.0, **session: str) -> Engine:
    """Create an engine with a pool of `Connection`s.

    Args:
        ping_after_s: how long a connection may be unused before it is pinged. A ping costs as much as most statements,
            but without one, a statement fails if the server has just ended the session.
        session: further parameters of each session, such as `search_path`.
    """
    engine = create_engine(
        url.set(drivername="postgresql+psycopg"),
        use_native_hstore=False,  # it would be looked up in every process
        hide_parameters=True,  # errors are logged, and parameters are customers' data
        isolation_level=isolation_level,
        connect_args=_parameters(**session),
        pool_timeout=POOL_WITHIN_S,
        pool_size=POOL_SIZE,
        max_overflow=POOL_OVERFLOW,
        pool_use_lifo=True,  # so that a connection that was just used, which needs no ping, is used again
    )

    @event.listens_for(engine, "do_connect")
    def connect(_dialect: Dialect, _record: Any, arguments: list[Any], parameters: dict[str, Any]) -> Connection:
        connection = Connection.connect(*arguments, **parameters)
        connection.used_at = time.monotonic()
        return connection

    @event.listens_for(engine, "checkin")
    def note_use(connection: Any, _record: Any) -> None:
        if connection is not None:  # None if it was invalidated
            connection.used_at = time.monotonic()

    @event.listens_for(engine, "checkout")
    def check(connection: Any, _record: Any, _fairy: Any) -> None:
        """Ping a connection that was idle or was closed, as `pool_pre_ping` does with all, and with a shorter limit.

        InvalidatePoolError makes the pool discard all its connections and open a new one.
        """
        if time.monotonic() - connection.used_at < ping_after_s and not connection.has_input():
            return
        try:
            with connection.tolerating(ALIVE_WITHIN_S):
                engine.dialect.do_ping(connection)
        except psycopg.Error as error:
            raise InvalidatePoolError from error

    return engine


def connect(url: URL) -> Connection:
    """Open a connection outside the pool that commits every statement."""
    text = url.set(drivername="postgresql").render_as_string(hide_password=False)
    return Connection.connect(text, autocommit=True, **_parameters())


@contextmanager
def hold_advisory_lock(connection: sqlalchemy.Connection, lock: int) -> Iterator[None]:
    """Hold an advisory lock until the transaction ends. Statements and waits have one limit: MIGRATION_WITHIN_S."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, Connection)
    with driver.tolerating(MIGRATION_WITHIN_S):
        for limit in ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"):
            connection.exec_driver_sql(f"SET LOCAL {limit} = 0")
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({lock})")
        yield


def _parameters(**session: str) -> dict[str, Any]:
    """Return libpq's parameters for a connection."""
    session |= {
        "statement_timeout": str(STATEMENT_WITHIN_MS),
        "lock_timeout": str(LOCK_WITHIN_MS),
        "idle_in_transaction_session_timeout": str(IDLE_IN_TRANSACTION_MS),
        "timezone": "UTC",
        "jit": "off",  # it can take seconds to compile a plan; all statements here are faster than that
    }
    options = " ".join(f"-c {name}={value}" for name, value in session.items())
    limits = {"connect_timeout": CONNECT_WITHIN_S, "tcp_user_timeout": int(SILENCE_S * 1_000)}
    return {**KEEPALIVE, **limits, "options": options}
