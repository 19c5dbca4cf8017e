"""Connections to PostgreSQL that never wait for ever, whatever the server, another session or the network does.

The server ends statements and waits for locks that take too long. It can't help when it is not heard any more: then
the kernel notices a peer that acknowledges nothing, and `Connection` one that acknowledges everything and answers
nothing (a stalled proxy, a frozen host). The numbers below add up to less than ten seconds for a request: a free
connection, a look whether it still lives, and a new one; or one statement that is never answered.
"""

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
TURN_WITHIN_S = 3_600.0  # to bring tables up to date
KEEPALIVE = {"keepalives": 1, "keepalives_idle": 10, "keepalives_interval": 3, "keepalives_count": 3}
POOL_SIZE, POOL_OVERFLOW = 16, 16
DAGSTER_SCHEMA = "dagster"  # beside our tables; in no backup

T = TypeVar("T")


class Lock(IntEnum):
    """Our advisory locks: numbers that mean something only to us, and so must all stand here."""

    CLAIMING = 7460001  # of batches
    MIGRATION = 7460002  # of our tables
    PREPARATION = 7460003  # of Dagster's
    RECEIPT = 7460004  # of submissions; with a customer's number


class Connection(psycopg.Connection[Any]):
    """A connection that is closed, and raises OperationalError, once the server was silent for too long."""

    silence_s = SILENCE_S
    fresh = True  # nobody used it yet

    @contextmanager
    def bearing(self, silence_s: float) -> Iterator[None]:
        """Bear another length of silence for a while."""
        before, self.silence_s = self.silence_s, silence_s
        try:
            yield
        finally:
            self.silence_s = before

    def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
        """As psycopg's own; a wait that has a time limit already (for notifications) is left to it."""
        return super().wait(self._heard(gen) if timeout is None else gen, interval, timeout)

    def _heard(self, gen: PQGen[T]) -> PQGen[T]:
        """What `gen` does, for as long as its socket gets ready now and then."""
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


def engine(url: URL, isolation_level: IsolationLevel, **session: str) -> Engine:
    """A pool of such connections.

    Args:
        session: what each sets for itself beside our limits, like a `search_path`.
    """
    made = create_engine(
        url.set(drivername="postgresql+psycopg"),
        hide_parameters=True,  # errors are logged, customers' data are not
        isolation_level=isolation_level,
        connect_args=_parameters(**session),
        pool_timeout=POOL_WITHIN_S,
        pool_size=POOL_SIZE,
        max_overflow=POOL_OVERFLOW,
    )

    @event.listens_for(made, "do_connect")
    def connect(_dialect: Dialect, _record: Any, arguments: list[Any], parameters: dict[str, Any]) -> Connection:
        return Connection.connect(*arguments, **parameters)

    @event.listens_for(made, "checkout")
    def check(connection: Any, _record: Any, _fairy: Any) -> None:
        """As `pool_pre_ping` does, with less patience: on this error the pool lets go of all it has, and connects."""
        fresh, connection.fresh = connection.fresh, False
        if fresh:
            return
        try:
            with connection.bearing(ALIVE_WITHIN_S):
                made.dialect.do_ping(connection)
        except psycopg.Error as error:
            raise InvalidatePoolError from error

    return made


def connect(url: URL) -> Connection:
    """One connection outside the pool, that commits every statement."""
    text = url.set(drivername="postgresql").render_as_string(hide_password=False)
    return Connection.connect(text, autocommit=True, **_parameters())


@contextmanager
def in_turn(connection: sqlalchemy.Connection, lock: int) -> Iterator[None]:
    """Be the only one that has this advisory lock, until the transaction ends; and take all the time that it takes."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, Connection)
    with driver.bearing(TURN_WITHIN_S):
        for limit in ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"):
            connection.exec_driver_sql(f"SET LOCAL {limit} = 0")
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({lock})")
        yield


def _parameters(**session: str) -> dict[str, Any]:
    """What libpq is told of every connection."""
    session |= {
        "statement_timeout": str(STATEMENT_WITHIN_MS),
        "lock_timeout": str(LOCK_WITHIN_MS),
        "idle_in_transaction_session_timeout": str(IDLE_IN_TRANSACTION_MS),
        "timezone": "UTC",
        "jit": "off",  # compiling a plan takes seconds, and no statement here runs for one
    }
    options = " ".join(f"-c {name}={value}" for name, value in session.items())
    limits = {"connect_timeout": CONNECT_WITHIN_S, "tcp_user_timeout": int(SILENCE_S * 1_000)}
    return {**KEEPALIVE, **limits, "options": options}
