"""The dispatcher pushes: as soon as jobs wait and a worker is free in their queue, it claims them all and starts a run.

While every worker has a run, the next jobs gather; the moment one commits, they are claimed. So an idle system
answers one job at once, and a busy one puts hundreds into a run. One process leads, under a lease in SQL, and only
while Dagster answers; it claims only while a worker of its home is warm, so that no job wastes an attempt on a run that
can't begin. A sensor makes the same claim where nobody leads.
"""

import logging
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from enum import Enum, auto
from uuid import UUID

import psycopg
import requests
from sqlalchemy.exc import SQLAlchemyError

from assets.core.graphql import RefusedError
from assets.dagster_internals import dagster_home
from storage.core import leases
from storage.core.changes import Changes
from storage.core.database import Reading
from storage.core.heartbeat import watched_loop
from storage.core.models import Queue
from storage.core.store import Store
from storage.jobs import batches
from storage.jobs.batches import Batch

log = logging.getLogger(__name__)

POLL_AGAIN_S = 1.0  # without a change in the database: leases may have run out
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.25, 10.0
UNSURE_AFTER_S = leases.LEASE_S - leases.RENEW_EVERY_S / 2

Launch = Callable[[Batch], str]


class Turn(Enum):
    """What came of one look at a queue."""

    NOTHING_TO_DO = auto()
    LAUNCHED = auto()
    REFUSED = auto()


def turn(store: Store, queue: Queue, launch: Launch, now: datetime) -> Turn:
    """Claim what waits in the queue, if it may be claimed, and launch its run."""
    batch = claim(store, queue, now)
    if batch is None:
        return Turn.NOTHING_TO_DO
    try:
        launch(batch)
    except (RefusedError, requests.ConnectionError) as error:
        log.warning("batch %s was not launched: %s", batch.token, _briefly(error))
        with store.db.writing() as w:
            batches.give_back(w, batch.token)
        return Turn.REFUSED
    except requests.RequestException as error:
        log.warning("batch %s may not have been launched: %s", batch.token, _briefly(error))
        with store.db.writing() as w:
            batches.release(w, batch.token, store.settings, now)
        return Turn.REFUSED
    return Turn.LAUNCHED


def _briefly(error: Exception) -> str:
    return str(error).splitlines()[0] if isinstance(error, RefusedError) else type(error).__name__


def claim(store: Store, queue: Queue, now: datetime) -> Batch | None:
    """The queue's next batch, after those whose lease ran out were released; None where there is nothing to claim.

    It looks before it asks for the database's one writer.
    """
    with store.db.reading() as r:
        claimable = (
            _a_worker_is_free(r, store, queue, now) and batches.waiting_since(r, queue, store.settings, now) is not None
        )
        if not claimable and not batches.expired(r, store.settings, now):
            return None
    with store.db.writing() as w:
        batches.reap(w, store.settings, now)
        batches.lock_claiming(w)
        return batches.claim(w, queue, store.settings, now) if _a_worker_is_free(w, store, queue, now) else None


def _a_worker_is_free(r: Reading, store: Store, queue: Queue, now: datetime) -> bool:
    """Whether this home has more warm workers than the queue has open batches."""
    return batches.count_open(r, queue) < leases.holders(r, dagster_home.workers(store.settings), now)


def dispatch(store: Store, queue: Queue, launch: Launch, leading: Callable[[], bool], stop: threading.Event) -> None:
    """Serve a queue until told to stop."""
    with watched_loop(f"dispatch {queue}") as come_around:
        _dispatch(store, queue, launch, leading, stop, come_around)


def _dispatch(
    store: Store,
    queue: Queue,
    launch: Launch,
    leading: Callable[[], bool],
    stop: threading.Event,
    come_around: Callable[[], None],
) -> None:
    pause_s = FIRST_PAUSE_S
    while not stop.is_set():
        come_around()
        try:
            with Changes(store.db) as changes:
                while not stop.is_set():
                    come_around()
                    if leading() and turn(store, queue, launch, datetime.now(UTC)) is Turn.REFUSED:
                        break
                    pause_s = FIRST_PAUSE_S
                    changes.wait(POLL_AGAIN_S)
        except (SQLAlchemyError, psycopg.Error, sqlite3.Error) as error:
            log.warning("the %s dispatcher lost its database: %s", queue, type(error).__name__)
        except Exception:
            log.exception("the %s dispatcher failed and begins anew", queue)
        stop.wait(pause_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


class Leadership:
    """Who dispatches. Held while Dagster answers; doubted as soon as it could not be prolonged in time."""

    def __init__(self, store: Store, holder: UUID, able: Callable[[], bool]) -> None:
        self._store = store
        self._holder = holder
        self._able = able
        self._sure_until = 0.0

    def leading(self) -> bool:
        return time.monotonic() < self._sure_until

    def keep(self, stop: threading.Event) -> None:
        """Take the lease when possible and prolong it, until told to stop; then let go."""
        with watched_loop("leadership") as come_around:
            while not stop.is_set():
                come_around()
                self._try_to_renew()
                stop.wait(leases.RENEW_EVERY_S if self.leading() else 0.1)
        self._sure_until = 0.0
        with suppress(SQLAlchemyError), self._store.db.writing() as w:  # a lease that can't be given up runs out
            leases.let_go(w, leases.DISPATCHER, self._holder)

    def _try_to_renew(self) -> None:
        try:
            self.renew(datetime.now(UTC))
        except SQLAlchemyError as error:
            log.warning("the dispatcher's lease could not be renewed: %s", type(error).__name__)
        except Exception:
            log.exception("the dispatcher's leadership failed and begins anew")

    def renew(self, now: datetime) -> None:
        asked_at = time.monotonic()
        if not self._able():
            return
        with self._store.db.writing() as w:
            held = leases.hold(w, leases.DISPATCHER, self._holder, leases.LEASE_S, now)
        self._sure_until = asked_at + UNSURE_AFTER_S if held else 0.0
