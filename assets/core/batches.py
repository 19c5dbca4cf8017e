"""The batch of a run: the one that its tag names or, if it was started by hand, a new one without jobs."""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from typing import TypeVar

import polars as pl
from dagster import AssetExecutionContext, DailyPartitionsDefinition
from sqlalchemy.exc import SQLAlchemyError

from assets.core.runs import BATCH_TAG
from storage.core import leases
from storage.core.database import UNREACHABLE
from storage.core.models import SUBMISSIONS, Flow, Queue
from storage.core.store import Store
from storage.jobs import batches, jobs
from storage.jobs.jobs import Job

FIRST_DAY = "2026-01-01"
FLOWS_OF = {
    Queue.ENRICHMENT: SUBMISSIONS,
    Queue.EXTRACTION: (Flow.EXTRACTION,),
    Queue.REFRESH: (Flow.REPORT_REFRESH,),
}

days = DailyPartitionsDefinition(start_date=FIRST_DAY, end_offset=1)  # UTC days of receipt; the offset includes today
log = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True)
class Work:
    """A batch as its run sees it: its jobs in order of receipt, and the customers to recompute."""

    token: int
    day: date  # UTC
    jobs: Sequence[Job]  # none if the run was started by hand, or is maintenance of the portfolio
    customers: frozenset[int]


@contextmanager
def batch_of(context: AssetExecutionContext, store: Store, queue: Queue) -> Iterator[Work]:
    """Yield the run's batch. A run started by hand gets a new one, for the customers with a job received that day."""
    day = date.fromisoformat(context.partition_key)
    tag = context.run.tags.get(BATCH_TAG)
    if tag is not None:
        try:
            yield read_claimed_batch(store, int(tag), day)
        except ConnectionError:  # of the lake's bucket: not the jobs' fault, however long it lasts
            now = leases.clock(store.db)
            with store.db.writing() as w:
                batches.postpone(w, int(tag), store.settings, now)
            raise
        return
    with store.db.reading() as r:
        customers = jobs.find_customers_with_jobs_on(r, day, FLOWS_OF[queue])
    with without_jobs(store, queue, day, customers) as work:
        yield work


@contextmanager
def without_jobs(store: Store, queue: Queue, day: date, customers: Iterable[int]) -> Iterator[Work]:
    """Open a batch without jobs, renew its lease in a thread, and release it at the end of the block.

    The lease of a batch with jobs is renewed and released by the worker that executes it instead.
    """
    now = leases.clock(store.db)
    with store.db.writing() as w:
        token = batches.open_without_jobs(w, queue, day, store.settings, now)
    ended = threading.Event()
    renewal = threading.Thread(target=_renew, args=(store, token, ended), name=f"lease of batch {token}", daemon=True)
    renewal.start()
    try:
        yield Work(token, day, (), frozenset(customers))
    finally:
        ended.set()
        renewal.join()
        now = leases.clock(store.db)
        with store.db.writing() as w:
            batches.release(w, token, store.settings, now)


def _renew(store: Store, token: int, ended: threading.Event) -> None:
    while not ended.wait(store.settings.run_lease_s / leases.RENEWALS_PER_RUN_LEASE):
        with suppress(SQLAlchemyError):  # the next renewal may succeed, or the lease expires
            now = leases.clock(store.db)
            with store.db.writing() as w:
                batches.renew(w, token, store.settings, now)


def read_claimed_batch(store: Store, token: int, day: date) -> Work:
    """Return a batch that a dispatcher claimed.

    Raises:
        Superseded: the batch is no longer open.
    """
    with store.db.reading() as r:
        if not batches.is_open(r, token):
            raise batches.Superseded(token)
        batch = jobs.find_of_batch(r, token)
    return Work(token, day, batch, frozenset(job.customer_number for job in batch))


def isolate_failures(
    compute: Callable[[Sequence[int]], Sequence[T]], customers: Sequence[int], failed: list[int]
) -> Sequence[T]:
    """Return the results of `compute` for all customers in one call. If it fails, split them into halves and retry.

    So one customer's data can't prevent the others' results. Customers that fail alone are appended to `failed`. An
    unavailable database is not a customer's fault: its error is raised, and the whole work is done again later.
    """
    try:
        return compute(customers)
    except UNREACHABLE:
        raise
    except (Exception, pl.exceptions.PanicException) as error:
        if len(customers) == 1:
            log.error("computing failed for one customer: %s", type(error).__name__)
            failed.append(customers[0])
            return []
    middle = len(customers) // 2
    return [
        *isolate_failures(compute, customers[:middle], failed),
        *isolate_failures(compute, customers[middle:], failed),
    ]
