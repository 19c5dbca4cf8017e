"""The worker (`python -m assets.service.worker`, or `tidemark worker`): runs in warm processes, and webhook deliveries.

This process, the head, doesn't import Dagster. It accepts runs from the launcher, sends each to its queue's warm
process, renews the leases of their batches, and returns the jobs of a run that died to the queue. Its processes end
with it. Several workers may share a home's work. Each takes a numbered slot, and cleans up what the slot's last worker
left behind. With a broker, workers of any home and machine share the work, and need no slots.
"""

import argparse
import os
import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from functools import partial
from uuid import uuid4

from assets.core.processes import AlreadyRunningError, Child, hold_slot, spawn, stop_requested
from assets.core.runs import DEFINITIONS_MODULE
from assets.dagster_internals import dagster_home
from assets.webhooks import delivery
from assets.webhooks.sending import tls_context
from assets.workers.heads import FleetHead, Head, HomeHead
from assets.workers.ledgers import BatchLedger, FleetLedger
from assets.workers.queues import Ledger, WarmQueue
from assets.workers.worker_calls import SLOT, serve_calls
from storage.core import homes, logs
from storage.core.models import Queue
from storage.core.settings import Settings, SettingsError
from storage.core.store import Store

FINISH_WITHIN_S = 8.0  # at a stop: for the current runs, and for the deliveries in progress
IDLE_S = {Queue.EXTRACTION: 600.0, Queue.PORTFOLIO: 30.0}  # without a run, until the process ends. Our judgement
PORTFOLIO_NICE = 10  # a tenth of a contended core; with a smaller share, live jobs would wait for locks that it holds


def run(settings: Settings, stop: threading.Event, module: str = DEFINITIONS_MODULE) -> None:
    """Work until `stop` is set; then finish the current runs, or give them back.

    Raises:
        AlreadyRunningError: all worker slots of this home are taken.
        SettingsError: a setting can't be used, or the file with the receivers' certificate authority can't be read.
    """
    tls_context(settings)
    environment = dagster_home.prepare(settings)
    work = _work_in_fleet if settings.broker_url else _work_in_home
    work(settings, stop, partial(_make_queue, settings, module, environment))


def _work_in_home(settings: Settings, stop: threading.Event, make_queue: Callable[[Queue, Ledger], WarmQueue]) -> None:
    with hold_slot(settings.dagster_home, SLOT) as (slot, holder), closing(Store.open(settings)) as store:
        ledger = BatchLedger(store, holder)
        queues = {queue: make_queue(queue, ledger) for queue in Queue}
        head = HomeHead(store, queues, ledger, f"{dagster_home.worker_role(settings)}/{slot}", holder)
        with serve_calls(settings.dagster_home, slot, head.answer):
            _work(head, partial(delivery.run, store, stop, holder), queues.values(), stop)


def _work_in_fleet(settings: Settings, stop: threading.Event, make_queue: Callable[[Queue, Ledger], WarmQueue]) -> None:
    from assets.workers.broker import receiving  # noqa: PLC0415  # with Celery, which only a fleet needs

    holder = uuid4()
    with closing(Store.open(settings)) as store:
        ledger = FleetLedger(store, holder)
        queues = {queue: make_queue(queue, ledger) for queue in Queue}
        home = f"{socket.gethostname()}/{homes.identity(settings)}"
        name = f"{dagster_home.worker_role(settings)}/{home}/{os.getpid()}-{holder.hex[:4]}"
        head = FleetHead(store, queues, ledger, name, holder)
        with receiving(settings, partial(head.execute, stop=stop), head.is_warm, stop) as broker_answers:
            head.broker_answers = broker_answers
            _work(head, partial(delivery.run, store, stop, holder), queues.values(), stop)


def _work(head: Head, deliver: Callable[[], None], queues: Iterable[WarmQueue], stop: threading.Event) -> None:
    ended = threading.Event()
    deliveries = threading.Thread(target=deliver, name="deliveries", daemon=True)
    renewal = threading.Thread(target=head.keep_leases, args=(ended,), name="leases")
    for queue in queues:
        queue.begin()
    deliveries.start()
    renewal.start()
    stop.wait()
    head.leave()
    _end(queues)
    ended.set()
    renewal.join()
    deliveries.join(FINISH_WITHIN_S)


def _make_queue(
    settings: Settings, module: str, environment: Mapping[str, str], queue: Queue, ledger: Ledger
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
    parser.add_argument("--end-with-parent", action="store_true", help="end when the standard input ends")
    parser.add_argument("--module", default=DEFINITIONS_MODULE, help="the code location")
    options = parser.parse_args()
    try:
        settings = Settings()
        logs.log_to_stderr("worker", settings)
        run(settings, stop_requested(options.end_with_parent), options.module)
    except (AlreadyRunningError, SettingsError) as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    main()
