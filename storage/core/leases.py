"""Named roles that one process holds at a time, until it lets go or falls silent; and what their holders imply.

A role that many may have at once is a family of names: `worker/…` is a worker.

A lease says who may act, never who did: whatever a holder wrongly believed dead still does, batches fence.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from sqlalchemy import ColumnElement, delete, func, or_, select, update

from pipelines.vocabulary.errors import Conflict
from storage.core.database import Database, Reading, Writing, insert_into
from storage.core.models import leases

DISPATCHER = "dispatcher"  # pushes batches to the orchestrator
PLATFORM = "platform"  # runs Dagster on this database
WORKER = "worker"  # has a warm process for every queue; one of many
FILE_KEEPER = "file keeper"  # removes files, or copies them all and needs them to stay: a sweep, or a backup
LEASE_S = 10.0
RENEW_EVERY_S = 3.0
POLL_EVERY_S = 0.5
LONG_LEASE_S = 300.0  # of work that must not be done twice at once, but may well wait when its holder died
LONGEST_LEASE_S = 600.0  # one that ends later was given before the clock was set back


def hold(w: Writing, name: str, holder: UUID, ttl_s: float, now: datetime) -> bool:
    """Take or prolong the role for `ttl_s` seconds; False while another holds it."""
    expires = now + timedelta(seconds=ttl_s)
    statement = insert_into(w, leases).values(name=name, holder=holder, expires_at=expires)
    mine_or_free = or_(leases.c.holder == holder, over(leases.c.expires_at, now))
    taken = statement.on_conflict_do_update(
        index_elements=[leases.c.name], set_={"holder": holder, "expires_at": expires}, where=mine_or_free
    )
    return w.execute(taken.returning(leases.c.name)).first() is not None


def prolonged(w: Writing, name: str, holder: UUID, ttl_s: float, now: datetime) -> bool:
    """Prolong the role, even when it ran out, if nobody else has had it since."""
    statement = update(leases).where(leases.c.name == name, leases.c.holder == holder)
    return w.execute(statement.values(expires_at=now + timedelta(seconds=ttl_s))).rowcount == 1


def let_go(w: Writing, name: str, holder: UUID) -> None:
    """Give the role up at once, if `holder` has it."""
    w.execute(delete(leases).where(leases.c.name == name, leases.c.holder == holder))


def held(r: Reading, name: str, now: datetime) -> bool:
    return holders(r, name, now) > 0


def holders(r: Reading, name: str, now: datetime) -> int:
    """How many have the role, or one of its family."""
    named = or_(leases.c.name == name, leases.c.name.startswith(f"{name}/", autoescape=True))
    return r.execute(select(func.count()).where(named, ~over(leases.c.expires_at, now))).scalar_one()


def over(expires_at: ColumnElement[datetime], now: datetime, longest_s: float = LONGEST_LEASE_S) -> ColumnElement[bool]:
    """Whether a lease has ended; one that ends impossibly late was given before the clock was set back, and has too."""
    return or_(expires_at <= now, expires_at > now + timedelta(seconds=longest_s))


def ready(r: Reading, now: datetime) -> bool:
    """Whether jobs are being processed: someone dispatches them, and someone is warm to run them."""
    return held(r, DISPATCHER, now) and held(r, WORKER, now)


@contextmanager
def exclusively(
    db: Database, name: str, clock: Callable[[], datetime], patience_s: float = 0.0
) -> Iterator[Callable[[], None]]:
    """Hold a role for a long piece of work. What is given prolongs it: to be called every few minutes.

    Args:
        patience_s: how long to wait for another who has the role.

    Raises:
        Conflict: another has the role, or took it while this one was held up.
    """
    holder, deadline = uuid4(), time.monotonic() + patience_s
    held_by_another = Conflict("Lease.Held", f"Another process holds the role of {name}: try again when it is done.")

    def take() -> bool:
        with db.writing() as w:
            return hold(w, name, holder, LONG_LEASE_S, clock())

    def prolong() -> None:
        with db.writing() as w:
            if not prolonged(w, name, holder, LONG_LEASE_S, clock()):
                raise held_by_another

    while not take():
        if time.monotonic() >= deadline:
            raise held_by_another
        time.sleep(POLL_EVERY_S)
    try:
        yield prolong
    finally:
        with db.writing() as w:
            let_go(w, name, holder)
