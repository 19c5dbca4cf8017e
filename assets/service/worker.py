"""The worker (`python -m assets.service.worker`, or `tidemark worker`): runs in warm processes, and webhook deliveries.

This process, the head, doesn't import Dagster. It accepts runs from the launcher, sends each to its queue's warm
process, renews the leases of their batches, and returns the jobs of a run that died to the queue. Its processes end
with it. Several workers may share a home's work. Each takes a numbered slot, and cleans up what the slot's last worker
left behind.
"""

import argparse
import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import partial
from uuid import UUID

from sqlalchemy.exc import SQLAlchemyError

from assets.core.processes import AlreadyRunningError, Child, hold_slot, spawn, stop_requested
from assets.core.runs import DEFINITIONS_MODULE
from assets.dagster_internals import dagster_home
from assets.webhooks import delivery
from assets.webhooks.sending import tls_context
from assets.workers.queues import WarmQueue
from assets.workers.worker_calls import SLOT, Call, Verb, answering
from assets.workers.workers import Run
from storage.core import leases, logs
from storage.core.database import Writing
from storage.core.heartbeat import watched_loop
from storage.core.models import Queue
from storage.core.settings import Settings, SettingsError
from storage.core.store import Store
from storage.jobs import batches

log = logging.getLogger(__name__)

RENEWALS_PER_LEASE = 5  # so that a few may fail before a lease expires
FINISH_WITHIN_S = 8.0  # at a stop: for the current runs, and for the deliveries in progress
POLL_AGAIN_S = 0.25  # while a queue is not warm yet
IDLE_S = {Queue.EXTRACTION: 600.0, Queue.PORTFOLIO: 30.0}  # without a run, until the process ends. Our judgement
PORTFOLIO_NICE = 10  # a tenth of a contended core; with a smaller share, live jobs would wait for locks that it holds


class BatchLedger:
    """Records in the database what happened to a run's batch. If the database is down, the batch's lease expires."""

    def __init__(self, store: Store, holder: UUID) -> None:
        self._store = store
        self._holder = holder

    def record_launch(self, run: Run) -> None:
        self._write(run, lambda w, token, _: batches.record_launch(w, token, run.run_id, self._holder))

    def release(self, run: Run) -> None:
        settings = self._store.settings
        self._write(run, lambda w, token, now: batches.release(w, token, settings, now))

    def give_back(self, run: Run) -> None:
        self._write(run, lambda w, token, _: batches.give_back(w, token))

    def _write(self, run: Run, change: Callable[[Writing, int, datetime], object]) -> None:
        if run.batch is None:
            return
        try:
            now = leases.clock(self._store.db)
            with self._store.db.writing() as w:
                change(w, run.batch, now)
        except SQLAlchemyError as error:
            log.warning("batch %s could not be updated: %s", run.batch, type(error).__name__)


class Worker:
    """The head of the worker: it answers the launcher and renews leases.

    Args:
        lease: the name of the worker's own lease, which says which of its home's workers it is.
        holder: the slot's id, under which it holds leases. The slot's last worker, which is dead, had the same.
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

    def answer(self, call: Call) -> bool:
        match call.verb:
            case Verb.TAKE:
                return self._take(call)
            case Verb.HOLDS:
                return any(run.run_id == call.run_id for run in self._list_runs())
            case Verb.INTERRUPT:
                return any(queue.interrupt(call.run_id) for queue in self._queues.values())

    def keep_leases(self, stop: threading.Event) -> None:
        """Release the batches of the slot's last worker. Then renew the leases of all batches held here and, while all
        queues are warm, the worker's own.
        """
        every_s = min(leases.RENEW_EVERY_S, self._store.settings.batch_lease_s / RENEWALS_PER_LEASE)
        with watched_loop("leases") as report_round:
            while not stop.is_set():
                report_round()
                self._try_to_renew()
                stop.wait(every_s if self._is_warm() else min(every_s, POLL_AGAIN_S))

    def _try_to_renew(self) -> None:
        try:
            self._clean_up()
            self._renew()
        except SQLAlchemyError as error:
            log.warning("leases could not be renewed: %s", type(error).__name__)
        except Exception:
            log.exception("leases could not be renewed")

    def leave(self) -> None:
        """Give up the worker's lease, so that nothing more is dispatched to it. Leases of batches are still renewed."""
        try:
            with self._lease_lock, self._store.db.writing() as w:
                self._leaving = True
                leases.release(w, self._lease, self._holder)
        except SQLAlchemyError as error:
            log.warning("the worker's lease could not be given up: %s", type(error).__name__)

    def _take(self, call: Call) -> bool:
        run = Run(call.run_id, call.batch)
        if not self._cleaned_up or call.queue is None:
            return False
        taken = self._queues[call.queue].take(run, call.only_if_free)
        if taken:
            self._ledger.record_launch(run)
        return taken

    def _list_runs(self) -> list[Run]:
        return [run for queue in self._queues.values() for run in queue.list_runs()]

    def _is_warm(self) -> bool:
        return all(queue.ready for queue in self._queues.values())

    def _clean_up(self) -> None:
        """Release what the slot's last worker held. This comes before the first run: its batch has the same holder."""
        if self._cleaned_up:
            return
        now = leases.clock(self._store.db)
        with self._store.db.writing() as w:
            leases.release(w, self._lease, self._holder)
            batches.release_of_worker(w, self._holder, self._store.settings, now)
        self._cleaned_up = True

    def _renew(self) -> None:
        tokens = [run.batch for run in self._list_runs() if run.batch is not None]
        if not tokens and not self._is_warm():
            return
        now = leases.clock(self._store.db)
        with self._lease_lock, self._store.db.writing() as w:
            for token in tokens:
                batches.renew(w, token, self._store.settings, now)
            if self._is_warm() and not self._leaving:
                leases.hold(w, self._lease, self._holder, leases.LEASE_S, now)


def run(settings: Settings, stop: threading.Event, module: str = DEFINITIONS_MODULE) -> None:
    """Work until `stop` is set; then finish the current runs, or give them back.

    Raises:
        AlreadyRunningError: all worker slots of this home are taken.
        SettingsError: the file with the receivers' certificate authority can't be read.
    """
    tls_context(settings)
    environment = dagster_home.prepare(settings)
    with hold_slot(settings.dagster_home, SLOT) as (slot, holder):
        store = Store.open(settings)
        ledger = BatchLedger(store, holder)
        queues = {queue: _make_queue(queue, settings, module, environment, ledger) for queue in Queue}
        worker = Worker(store, queues, ledger, f"{dagster_home.workers(settings)}/{slot}", holder)
        with answering(settings.dagster_home, slot, worker.answer):
            _work(worker, partial(delivery.run, store, stop, holder), queues.values(), stop)
        store.close()


def _work(worker: Worker, deliver: Callable[[], None], queues: Iterable[WarmQueue], stop: threading.Event) -> None:
    ended = threading.Event()
    deliveries = threading.Thread(target=deliver, name="deliveries", daemon=True)
    renewal = threading.Thread(target=worker.keep_leases, args=(ended,), name="leases")
    for queue in queues:
        queue.begin()
    deliveries.start()
    renewal.start()
    stop.wait()
    worker.leave()
    _end(queues)
    ended.set()
    renewal.join()
    deliveries.join(FINISH_WITHIN_S)


def _make_queue(
    queue: Queue, settings: Settings, module: str, environment: Mapping[str, str], ledger: BatchLedger
) -> WarmQueue:
    """Return a queue. Enrichment and refresh are always warm, because clients wait for them.

    The others have a process only while there is work, so that a lender without statements spends no memory on reading
    them. The price is that the first statement after a pause waits two seconds longer. The portfolio's process has few
    threads and a low priority, so that it gives way to the others.
    """
    start = partial(_warm_process, queue, module, environment)
    if queue is Queue.PORTFOLIO:
        threads = {"POLARS_MAX_THREADS": str(settings.portfolio_threads)}
        start = partial(_warm_process, queue, module, {**environment, **threads}, PORTFOLIO_NICE)
    return WarmQueue(queue, start, ledger, IDLE_S.get(queue))


def _warm_process(queue: Queue, module: str, environment: Mapping[str, str], nice: int = 0) -> Child:
    return spawn(
        "assets.dagster_internals.warm", queue, "--module", module, "--nice", str(nice), environment=environment
    )


def _end(queues: Iterable[WarmQueue]) -> None:
    """End all queues in parallel: each may need the whole grace period."""
    threads = [threading.Thread(target=queue.end, args=(FINISH_WITHIN_S,)) for queue in queues]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m assets.service.worker", description=__doc__)
    parser.add_argument("--tethered", action="store_true", help="end when the standard input ends")
    parser.add_argument("--module", default=DEFINITIONS_MODULE, help="the code location")
    options = parser.parse_args()
    try:
        settings = Settings()
        logs.log_to_stderr("worker", settings)
        run(settings, stop_requested(options.tethered), options.module)
    except (AlreadyRunningError, SettingsError) as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    main()
