"""The head of a worker: it accepts runs, sends them to warm processes, and renews the leases.

A head doesn't import Dagster, and never computes. So it answers while its processes work.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from datetime import timedelta
from uuid import UUID

from sqlalchemy.exc import SQLAlchemyError

from assets.workers.ledgers import BatchLedger, FleetLedger
from assets.workers.queues import WarmQueue
from assets.workers.worker_calls import Call, Verb
from assets.workers.workers import Run
from storage.core import leases
from storage.core.heartbeat import watched_loop
from storage.core.models import Queue
from storage.core.store import Store
from storage.jobs import batches

POLL_AGAIN_S = 0.25  # while a queue is not warm yet
RETRY_DATABASE_S = 1.0
FORGOTTEN_AFTER = timedelta(hours=1)  # after a lease ended; by then no holder, even a suspended one, will renew it

log = logging.getLogger(__name__)


class Head:
    """The parts that the heads of all workers have in common.

    Args:
        lease: the name of the worker's own lease.
        holder: the id under which the worker holds leases.
    """

    def __init__(
        self, store: Store, queues: Mapping[Queue, WarmQueue], ledger: BatchLedger, lease: str, holder: UUID
    ) -> None:
        self._store = store
        self._queues = queues
        self._ledger = ledger
        self._lease = lease
        self._holder = holder
        self._cleaned_up = False
        self._leaving = False
        self._lease_lock = threading.Lock()  # so that the worker's lease isn't renewed after it was given up

    def is_warm(self) -> bool:
        return all(queue.ready for queue in self._queues.values())

    def keep_leases(self, stop: threading.Event) -> None:
        """Clean up once. Then renew the leases of all runs held here and, while it can be reached, the worker's own."""
        every_s = min(leases.RENEW_EVERY_S, self._store.settings.run_lease_s / leases.RENEWALS_PER_RUN_LEASE)
        with watched_loop("leases") as report_round:
            while not stop.is_set():
                report_round()
                self._try_to_renew()
                stop.wait(every_s if self.is_warm() else min(every_s, POLL_AGAIN_S))

    def _try_to_renew(self) -> None:
        try:
            if not self._cleaned_up:
                self._clean_up()
                self._cleaned_up = True
            self._renew()
        except SQLAlchemyError as error:
            log.warning("leases could not be renewed: %s", type(error).__name__)
        except Exception:
            log.exception("leases could not be renewed")

    def leave(self) -> None:
        """Give up the worker's lease, so that nothing more is dispatched to it. Leases of runs are still renewed."""
        try:
            with self._lease_lock, self._store.db.writing() as w:
                self._leaving = True
                leases.release(w, self._lease, self._holder)
        except SQLAlchemyError as error:
            log.warning("the worker's lease could not be given up: %s", type(error).__name__)

    def _can_be_reached(self) -> bool:
        """Return whether a run that is launched now begins soon."""
        return self.is_warm()

    def _clean_up(self) -> None:
        """Remove what a dead worker left behind."""

    def _list_runs(self) -> list[Run]:
        return [run for queue in self._queues.values() for run in queue.list_runs()]

    def _renew(self) -> None:
        runs = self._list_runs()
        if not runs and not self._can_be_reached():
            return
        now = leases.clock(self._store.db)
        with self._lease_lock, self._store.db.writing() as w:
            stopped = [run for run in runs if not self._ledger.renew(w, run, now)]
            if self._can_be_reached() and not self._leaving:
                leases.hold(w, self._lease, self._holder, leases.LEASE_S, now)
        for run in stopped:
            self._interrupt(run.run_id)

    def _interrupt(self, run_id: str) -> bool:
        return any(queue.interrupt(run_id) for queue in self._queues.values())


class HomeHead(Head):
    """The head of a worker that serves the launchers of its own home. It holds leases under its slot's id."""

    def answer(self, call: Call) -> bool:
        match call.verb:
            case Verb.TAKE:
                return self._take(call)
            case Verb.HOLDS:
                return any(run.run_id == call.run_id for run in self._list_runs())
            case Verb.INTERRUPT:
                return self._interrupt(call.run_id)

    def _take(self, call: Call) -> bool:
        run = Run(call.run_id, call.batch)
        if not self._cleaned_up or call.queue is None:
            return False
        taken = self._queues[call.queue].take(run, call.only_if_free)
        if taken:
            self._ledger.record_launch(run)
        return taken

    def _clean_up(self) -> None:
        """Release the leases and batches of the slot's previous worker, which is dead.

        This comes before the first run, because batches of this worker have the same holder.
        """
        now = leases.clock(self._store.db)
        with self._store.db.writing() as w:
            leases.release(w, self._lease, self._holder)
            batches.release_of_worker(w, self._holder, self._store.settings, now)


class FleetHead(Head):
    """The head of a worker that gets its runs from a broker."""

    def __init__(
        self, store: Store, queues: Mapping[Queue, WarmQueue], ledger: FleetLedger, lease: str, holder: UUID
    ) -> None:
        super().__init__(store, queues, ledger, lease, holder)
        self._fleet_ledger = ledger
        self.broker_answers: Callable[[], bool] = lambda: False

    def execute(self, run: Run, queue: Queue, stop: threading.Event) -> bool:
        """Execute a run that was delivered. Return when it has ended, was lost or was given back.

        Return at once if it must not begin here: it was delivered before, or its batch went to another run. Return
        False if `stop` is set before the run could begin, so that another worker must get it.
        """
        while not stop.is_set():
            try:
                ended = self._fleet_ledger.begin(run)
            except SQLAlchemyError as error:
                log.warning("run %s can't begin without the database: %s", run.run_id, type(error).__name__)
                stop.wait(RETRY_DATABASE_S)
                continue
            if ended is not None and not self._queues[queue].take(run):
                self._ledger.give_back(run)
            if ended is not None:
                ended.wait()
            return True
        return False

    def _can_be_reached(self) -> bool:
        return super()._can_be_reached() and self.broker_answers()

    def _clean_up(self) -> None:
        ended_before = leases.clock(self._store.db) - FORGOTTEN_AFTER
        with self._store.db.writing() as w:
            for family in (leases.RUN, leases.FLEET):
                leases.forget_ended(w, family, ended_before)
