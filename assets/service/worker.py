"""The worker (`python -m assets.service.worker`, or `tidemark worker`): warm processes for runs, and deliveries.

This process, the head, imports no Dagster. It takes runs from the launcher, gives each to its lane's warm process,
prolongs the leases of their batches, and puts the jobs of a run that died back into the queue. Its processes end with
it. Several workers share a home's work: each takes a numbered seat, and with it what the last one there left behind.
"""

import argparse
import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from uuid import UUID

from sqlalchemy.exc import SQLAlchemyError

from assets.core.processes import AlreadyRunningError, Child, a_seat, spawn, told_to_stop
from assets.core.runs import DEFINITIONS_MODULE
from assets.dagster_internals import dagster_home
from assets.webhooks import delivery
from assets.webhooks.sending import tls_context
from assets.workers.lanes import Run, WarmLane
from assets.workers.worker_calls import SEAT, Call, Verb, answering
from storage.core import leases, logs
from storage.core.database import Writing
from storage.core.models import Lane
from storage.core.settings import Settings, SettingsError
from storage.core.store import Store
from storage.jobs import batches

log = logging.getLogger(__name__)

OTHER_LANE = Lane.REFRESH  # for runs that somebody started by hand
RENEWALS_PER_LEASE = 5
FINISH_WITHIN_S = 8.0
LOOK_AGAIN_S = 0.25  # while a lane is not warm yet
PORTFOLIO_IDLE_S = 30.0
PORTFOLIO_NICE = 10  # a tenth of a contended core; less, and live jobs would wait for locks that it holds


class BatchLedger:
    """What becomes of a run's batch. A database that is down delays it: then the batch's lease runs out."""

    def __init__(self, store: Store, holder: UUID) -> None:
        self._store = store
        self._holder = holder

    def began(self, run: Run) -> None:
        self._write(run, lambda w, token: batches.launched(w, token, run.run_id, self._holder))

    def ended(self, run: Run) -> None:
        settings = self._store.settings
        self._write(run, lambda w, token: batches.release(w, token, settings, datetime.now(UTC)))

    def given_back(self, run: Run) -> None:
        self._write(run, batches.give_back)

    def _write(self, run: Run, change: Callable[[Writing, int], object]) -> None:
        if run.batch is None:
            return
        try:
            with self._store.db.writing() as w:
                change(w, run.batch)
        except SQLAlchemyError as error:
            log.warning("batch %s could not be updated: %s", run.batch, type(error).__name__)


class Worker:
    """The head: answers the launcher and keeps the leases alive.

    Args:
        lease: the name of its own: which of its home's workers it is.
        holder: its seat's id, under which it claims; so did the last worker in this seat, which is dead.
    """

    def __init__(
        self, store: Store, lanes: Mapping[str, WarmLane], ledger: BatchLedger, lease: str, holder: UUID
    ) -> None:
        self._store = store
        self._lanes = lanes
        self._ledger = ledger
        self._lease = lease
        self._holder = holder
        self._inherited = False
        self._leaving = False
        self._role = threading.Lock()  # between prolonging the worker's lease and giving it up

    def answer(self, call: Call) -> bool:
        match call.verb:
            case Verb.TAKE:
                return self._take(call)
            case Verb.HOLDS:
                return any(run.run_id == call.run_id for run in self._held())
            case Verb.INTERRUPT:
                return any(lane.interrupt(call.run_id) for lane in self._lanes.values())

    def keep_leases(self, stop: threading.Event) -> None:
        """Put back what the seat's last worker had; then prolong the leases of all batches held here, and, while every
        lane is warm, the worker's own.
        """
        every_s = min(leases.RENEW_EVERY_S, self._store.settings.batch_lease_s / RENEWALS_PER_LEASE)
        while not stop.is_set():
            try:
                self._inherit()
                self._renew()
            except SQLAlchemyError as error:
                log.warning("leases could not be renewed: %s", type(error).__name__)
            except Exception:
                log.exception("leases could not be renewed")
            stop.wait(every_s if self._is_warm() else min(every_s, LOOK_AGAIN_S))

    def leave(self) -> None:
        """Give the worker's lease up: nothing is dispatched any more. What is held here is still kept alive."""
        try:
            with self._role, self._store.db.writing() as w:
                self._leaving = True
                leases.let_go(w, self._lease, self._holder)
        except SQLAlchemyError as error:
            log.warning("the worker's lease could not be given up: %s", type(error).__name__)

    def _take(self, call: Call) -> bool:
        lane = self._lanes.get(call.lane or OTHER_LANE, self._lanes[OTHER_LANE])
        run = Run(call.run_id, call.batch)
        if not self._inherited:
            return False
        taken = lane.take(run, call.only_if_free)
        if taken:
            self._ledger.began(run)
        return taken

    def _held(self) -> list[Run]:
        return [run for lane in self._lanes.values() for run in lane.held()]

    def _is_warm(self) -> bool:
        return all(lane.ready for lane in self._lanes.values())

    def _inherit(self) -> None:
        """Once, and before a run is taken."""
        if self._inherited:
            return
        with self._store.db.writing() as w:
            leases.let_go(w, self._lease, self._holder)
            batches.release_of(w, self._holder, self._store.settings, datetime.now(UTC))
        self._inherited = True

    def _renew(self) -> None:
        tokens = [run.batch for run in self._held() if run.batch is not None]
        if not tokens and not self._is_warm():
            return
        now = datetime.now(UTC)
        with self._role, self._store.db.writing() as w:
            for token in tokens:
                batches.renew(w, token, self._store.settings, now)
            if self._is_warm() and not self._leaving:
                leases.hold(w, self._lease, self._holder, leases.LEASE_S, now)


def run(settings: Settings, stop: threading.Event, module: str = DEFINITIONS_MODULE) -> None:
    """Work until told to stop; then finish what executes, or give it back.

    Raises:
        AlreadyRunningError: no more workers fit into this home.
        SettingsError: the receivers' certificate authority can't be read.
    """
    tls_context(settings)
    environment = dagster_home.prepare(settings)
    with a_seat(settings.dagster_home, SEAT) as (seat, holder):
        store = Store.open(settings)
        ledger = BatchLedger(store, holder)
        lanes = {lane.value: _lane(lane, settings, module, environment, ledger) for lane in Lane}
        worker = Worker(store, lanes, ledger, f"{dagster_home.workers(settings)}/{seat}", holder)
        with answering(settings.dagster_home, seat, worker.answer):
            _work(worker, partial(delivery.run, store, stop, holder), lanes.values(), stop)
        store.close()


def _work(worker: Worker, deliver: Callable[[], None], lanes: Iterable[WarmLane], stop: threading.Event) -> None:
    ended = threading.Event()
    deliveries = threading.Thread(target=deliver, name="deliveries", daemon=True)
    keeping = threading.Thread(target=worker.keep_leases, args=(ended,), name="leases")
    for lane in lanes:
        lane.begin()
    deliveries.start()
    keeping.start()
    stop.wait()
    worker.leave()
    _end(lanes)
    ended.set()
    keeping.join()
    deliveries.join(FINISH_WITHIN_S)


def _lane(lane: Lane, settings: Settings, module: str, environment: Mapping[str, str], ledger: BatchLedger) -> WarmLane:
    """A lane that clients wait for is always warm; the portfolio's has a process only while it works, and one that
    gives way: few threads, and behind the others.
    """
    if lane is not Lane.PORTFOLIO:
        return WarmLane(lane, partial(_warm_process, lane, module, environment), ledger)
    threads = {"POLARS_MAX_THREADS": str(settings.portfolio_threads)}
    start = partial(_warm_process, lane, module, {**environment, **threads}, PORTFOLIO_NICE)
    return WarmLane(lane, start, ledger, idle_s=PORTFOLIO_IDLE_S)


def _warm_process(lane: Lane, module: str, environment: Mapping[str, str], nice: int = 0) -> Child:
    return spawn(
        "assets.dagster_internals.warm", lane, "--module", module, "--nice", str(nice), environment=environment
    )


def _end(lanes: Iterable[WarmLane]) -> None:
    """End all lanes side by side: each may need the whole grace."""
    ending = [threading.Thread(target=lane.end, args=(FINISH_WITHIN_S,)) for lane in lanes]
    for thread in ending:
        thread.start()
    for thread in ending:
        thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m assets.service.worker", description=__doc__)
    parser.add_argument("--tethered", action="store_true", help="end when the standard input ends")
    parser.add_argument("--module", default=DEFINITIONS_MODULE, help="the code location")
    options = parser.parse_args()
    try:
        settings = Settings()
        logs.to_stderr("worker", settings)
        run(settings, told_to_stop(options.tethered), options.module)
    except (AlreadyRunningError, SettingsError) as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    main()
