"""The dispatcher: as soon as jobs wait in a queue and a worker is free, it claims a batch of them and launches one run.

While all workers are busy, new jobs accumulate; they are claimed when a run commits. So an idle system starts a single
job immediately, and a busy one puts hundreds into a run. One process leads, under a lease in SQL, and only while
Dagster answers. It claims only while its launcher reaches a free worker that is warm (its processes have started), so
that no job wastes an attempt on a run that can't begin. A sensor makes the same claim when no process leads.
"""

import logging
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
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

POLL_AGAIN_S = 1.0  # even without a change in the database, because leases may have expired
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.25, 10.0  # after a failure; doubled each time
# Shorter than the lease, so that this process stops leading before another can start.
UNSURE_AFTER_S = leases.LEASE_S - leases.RENEW_EVERY_S / 2

Launch = Callable[[Batch], str]


class DispatchOutcome(Enum):
    """The outcome of one check of a queue."""

    NOTHING_TO_DO = auto()
    LAUNCHED = auto()
    REFUSED = auto()


def dispatch_queue(store: Store, queue: Queue, launch: Launch, now: datetime) -> DispatchOutcome:
    """Claim the queue's waiting jobs, if a worker is free, and launch their run."""
    batch = claim(store, queue, now)
    if batch is None:
        return DispatchOutcome.NOTHING_TO_DO
    try:
        launch(batch)
    except (RefusedError, requests.ConnectionError) as error:
        log.warning("batch %s was not launched: %s", batch.token, _summarise(error))
        with store.db.writing() as w:
            batches.give_back(w, batch.token)  # the attempt doesn't count
        return DispatchOutcome.REFUSED
    except requests.RequestException as error:
        log.warning("batch %s may not have been launched: %s", batch.token, _summarise(error))
        with store.db.writing() as w:
            batches.release(w, batch.token, store.settings, now)  # the attempt counts: the run may have begun
        return DispatchOutcome.REFUSED
    return DispatchOutcome.LAUNCHED


def _summarise(error: Exception) -> str:
    return str(error).splitlines()[0] if isinstance(error, RefusedError) else type(error).__name__


def claim(store: Store, queue: Queue, now: datetime) -> Batch | None:
    """Release expired batches, then claim the queue's waiting jobs. Return None if there are none or no worker is free.

    It checks in a read transaction first, because only one transaction at a time can write to SQLite.
    """
    with store.db.reading() as r:
        claimable = batches.waiting_since(r, queue, store.settings, now) is not None and _is_worker_free(
            r, store, queue, now
        )
        if not claimable and not batches.has_expired(r, store.settings, now):
            return None
    with store.db.writing() as w:
        batches.release_expired(w, store.settings, now)
        batches.lock_claiming(w)
        return batches.claim(w, queue, store.settings, now) if _is_worker_free(w, store, queue, now) else None


def _is_worker_free(r: Reading, store: Store, queue: Queue, now: datetime) -> bool:
    """Return whether more warm workers can get a run from this home's launcher than the queue has open batches."""
    return batches.count_open(r, queue) < leases.count_holders(r, dagster_home.worker_role(store.settings), now)


def dispatch(store: Store, queue: Queue, launch: Launch, leads: Callable[[], bool], stop: threading.Event) -> None:
    """Dispatch a queue's jobs until `stop` is set."""
    with watched_loop(f"dispatch {queue}") as report_round:
        _dispatch(store, queue, launch, leads, stop, report_round)


def _dispatch(
    store: Store,
    queue: Queue,
    launch: Launch,
    leads: Callable[[], bool],
    stop: threading.Event,
    report_round: Callable[[], None],
) -> None:
    pause_s = FIRST_PAUSE_S
    while not stop.is_set():
        report_round()
        try:
            with Changes(store.db) as changes:
                while not stop.is_set():
                    report_round()
                    now = leases.clock(store.db)
                    if leads() and dispatch_queue(store, queue, launch, now) is DispatchOutcome.REFUSED:
                        break
                    pause_s = FIRST_PAUSE_S
                    changes.wait(POLL_AGAIN_S)
        except (SQLAlchemyError, psycopg.Error, sqlite3.Error) as error:
            log.warning("the %s dispatcher lost its database: %s", queue, type(error).__name__)
        except Exception:
            log.exception("the %s dispatcher failed and restarts", queue)
        stop.wait(pause_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


class Leadership:
    """The lease of the one process that dispatches.

    It is renewed while Dagster answers (`can_lead`). A process that can't renew it in time stops leading by itself.
    """

    def __init__(self, store: Store, holder: UUID, can_lead: Callable[[], bool]) -> None:
        self._store = store
        self._holder = holder
        self._can_lead = can_lead
        self._leads_until = 0.0

    def leads(self) -> bool:
        """Return whether this process leads now."""
        return time.monotonic() < self._leads_until

    def keep(self, stop: threading.Event) -> None:
        """Take the lease when possible and renew it until `stop` is set; then give it up."""
        with watched_loop("leadership") as report_round:
            while not stop.is_set():
                report_round()
                self._try_to_renew()
                stop.wait(leases.RENEW_EVERY_S if self.leads() else 0.1)
        self._leads_until = 0.0
        with suppress(SQLAlchemyError), self._store.db.writing() as w:  # a lease that can't be given up expires
            leases.release(w, leases.DISPATCHER, self._holder)

    def _try_to_renew(self) -> None:
        try:
            self.renew(leases.clock(self._store.db))
        except SQLAlchemyError as error:
            log.warning("the dispatcher's lease could not be renewed: %s", type(error).__name__)
        except Exception:
            log.exception("the dispatcher's leadership failed and restarts")

    def renew(self, now: datetime) -> None:
        """Take or renew the lease, if this process can lead."""
        started_at = time.monotonic()
        if not self._can_lead():
            return
        with self._store.db.writing() as w:
            held = leases.hold(w, leases.DISPATCHER, self._holder, leases.LEASE_S, now)
        self._leads_until = started_at + UNSURE_AFTER_S if held else 0.0
