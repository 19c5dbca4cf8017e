"""Leases: named roles that one process holds at a time, until it releases the role or stops renewing it.

If many processes may have the same role at once, each holds a name of its own in the role's family: `worker/…`.

The database's clock decides when a lease ends (`clock`), so that machines whose clocks differ can share one database.

A lease says who may act, but does not stop a former holder that is still running. The fencing of batches refuses the
writes of such a process.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

from sqlalchemy import ColumnElement, delete, func, or_, select, update
from sqlalchemy.exc import SQLAlchemyError

from pipelines.vocabulary.errors import Conflict
from storage.core.database import Database, Reading, Writing, insert_into
from storage.core.models import leases

log = logging.getLogger(__name__)

DISPATCHER = "dispatcher"  # pushes batches to the orchestrator
PLATFORM = "platform"  # runs Dagster on this database
WORKER = "worker"  # has a warm process for every queue; one of many
FLEET = f"{WORKER}/fleet"  # the family of workers that a broker sends runs to
RUN = "run"  # executes a Dagster run that a broker sent
FILE_KEEPER = "file keeper"  # a sweep, which removes files, or a backup, which needs all of them to stay
LEASE_S = 10.0
RENEW_EVERY_S = 3.0  # a third of LEASE_S: two renewals may fail before the role is lost
RENEWALS_PER_RUN_LEASE = 5  # in `run_lease_s`, so that a few may fail before a batch's lease expires
POLL_EVERY_S = 0.5
LONG_LEASE_S = 300.0  # for work that may wait this long after its holder died
LONGEST_LEASE_S = 600.0  # a lease that ends later than this was taken before the clock was set back


def run_role(run_id: str) -> str:
    """Return the role of executing a run."""
    return f"{RUN}/{run_id}"


def clock(db: Database) -> datetime:
    """Return the time by which leases are counted: PostgreSQL's or, with SQLite, this machine's.

    Read it before the transaction that uses it. If that transaction waits, this time is a little old. That is
    safe: our lease ends a little early, and no running lease counts as ended.
    """
    if db.is_sqlite:
        return datetime.now(UTC)
    with db.engine.connect() as connection:
        connection.execution_options(isolation_level="AUTOCOMMIT")  # one round trip instead of a transaction's three
        now: datetime = connection.execute(select(func.clock_timestamp())).scalar_one()
    return now


def hold(w: Writing, name: str, holder: UUID, ttl_s: float, now: datetime) -> bool:
    """Take or renew the role for `ttl_s` seconds; return False while another process holds it."""
    expires = now + timedelta(seconds=ttl_s)
    statement = insert_into(w, leases).values(name=name, holder=holder, expires_at=expires)
    own_or_free = or_(leases.c.holder == holder, has_ended(leases.c.expires_at, now))
    insert_or_take = statement.on_conflict_do_update(
        index_elements=[leases.c.name], set_={"holder": holder, "expires_at": expires}, where=own_or_free
    )
    return w.execute(insert_or_take.returning(leases.c.name)).first() is not None


def renew(w: Writing, name: str, holder: UUID, ttl_s: float, now: datetime) -> bool:
    """Renew the role, even if it has expired, unless another process has taken it since."""
    statement = update(leases).where(leases.c.name == name, leases.c.holder == holder)
    return w.execute(statement.values(expires_at=now + timedelta(seconds=ttl_s))).rowcount == 1


def release(w: Writing, name: str, holder: UUID) -> None:
    """Give up the role, if `holder` has it."""
    w.execute(delete(leases).where(leases.c.name == name, leases.c.holder == holder))


def revoke(w: Writing, name: str) -> bool:
    """Take the role away from its holder, whoever that is. Return False if nobody had it."""
    return w.execute(delete(leases).where(leases.c.name == name)).rowcount == 1


def is_held(r: Reading, name: str, now: datetime) -> bool:
    return count_holders(r, name, now) > 0


def count_holders(r: Reading, name: str, now: datetime) -> int:
    """Return how many processes hold the role, or a role of its family."""
    return len(list_held(r, name, now))


def list_held(r: Reading, name: str, now: datetime) -> list[str]:
    """Return the role and the roles of its family that a process holds."""
    query = select(leases.c.name).where(_is_of_family(name), ~has_ended(leases.c.expires_at, now))
    return list(r.execute(query.order_by(leases.c.name)).scalars())


def forget_ended(w: Writing, name: str, before: datetime) -> None:
    """Delete a family's leases that ended before a time: their holders died."""
    w.execute(delete(leases).where(_is_of_family(name), leases.c.expires_at < before))


def _is_of_family(name: str) -> ColumnElement[bool]:
    return or_(leases.c.name == name, leases.c.name.startswith(f"{name}/", autoescape=True))


def has_ended(
    expires_at: ColumnElement[datetime], now: datetime, longest_s: float = LONGEST_LEASE_S
) -> ColumnElement[bool]:
    """Return the SQL condition that a lease has ended.

    A lease that ends later than any lease can was taken before the clock was set back, so it counts as ended.
    """
    return or_(expires_at <= now, expires_at > now + timedelta(seconds=longest_s))


def can_process_jobs(r: Reading, now: datetime) -> bool:
    """Return whether jobs can be processed: there is a dispatcher and a worker."""
    return is_held(r, DISPATCHER, now) and is_held(r, WORKER, now)


@contextmanager
def hold_if_free(db: Database, name: str) -> Iterator[bool]:
    """Hold a role unless another process holds it. Yield whether we hold it.

    A thread renews it, whereas the caller of `hold_or_raise` does so itself. If the process is killed, the role is free
    after `LEASE_S` seconds. A process that fails to renew it for that long loses the role without being notified.
    """
    holder, done = uuid4(), threading.Event()

    def renew_until_done() -> None:
        while not done.wait(RENEW_EVERY_S):
            try:
                _take(db, name, holder, LEASE_S)
            except SQLAlchemyError as error:
                log.warning("the role of %s could not be renewed: %s", name, type(error).__name__)

    is_ours = _take(db, name, holder, LEASE_S)
    renewal = threading.Thread(target=renew_until_done, name=f"lease {name}", daemon=True)
    if is_ours:
        renewal.start()
    try:
        yield is_ours
    finally:
        if is_ours:
            done.set()
            renewal.join()
            with suppress(SQLAlchemyError), db.writing() as w:  # a lease that can't be given up expires
                release(w, name, holder)


@contextmanager
def hold_or_raise(db: Database, name: str, patience_s: float = 0.0) -> Iterator[Callable[[], None]]:
    """Hold a role. Yield a function that renews it, which the caller must call every few minutes.

    Args:
        patience_s: how long to wait while another process holds the role.

    Raises:
        Conflict: another process holds the role, or took it because it was not renewed in time.
    """
    holder, deadline = uuid4(), time.monotonic() + patience_s

    def renew_lease() -> None:
        now = clock(db)
        with db.writing() as w:
            if not renew(w, name, holder, LONG_LEASE_S, now):
                raise Conflict("Lease.Held", f"The role of {name} was lost, because it was not renewed in time.")

    while not _take(db, name, holder, LONG_LEASE_S):
        if time.monotonic() >= deadline:
            raise Conflict("Lease.Held", f"Another process holds the role of {name}: try again when it is done.")
        time.sleep(POLL_EVERY_S)
    try:
        yield renew_lease
    finally:
        with db.writing() as w:
            release(w, name, holder)


def _take(db: Database, name: str, holder: UUID, ttl_s: float) -> bool:
    now = clock(db)
    with db.writing() as w:
        return hold(w, name, holder, ttl_s, now)
