"""Which batch a run works for: the one that its tag names, or, materialised by hand, one of its own without jobs."""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TypeVar

import polars as pl
from dagster import AssetExecutionContext, DailyPartitionsDefinition
from sqlalchemy.exc import SQLAlchemyError

from assets.core.runs import BATCH_TAG
from storage.core.database import AWAY
from storage.core.models import SUBMISSIONS, Flow, Queue
from storage.core.store import Store
from storage.jobs import batches, jobs
from storage.jobs.jobs import Job

FIRST_DAY = "2026-01-01"
HEARD_IN = {
    Queue.ENRICHMENT: SUBMISSIONS,
    Queue.EXTRACTION: (Flow.EXTRACTION,),
    Queue.REFRESH: (Flow.REPORT_REFRESH,),
}
RENEWALS_PER_LEASE = 5

days = DailyPartitionsDefinition(start_date=FIRST_DAY, end_offset=1)  # UTC days of receipt; today exists already
log = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True)
class Work:
    """A run's batch: its jobs, in order of receipt, and the customers that it recomputes."""

    token: int
    day: date  # UTC
    jobs: Sequence[Job]  # none where nobody waits: made by hand, or maintenance of the portfolio
    customers: frozenset[int]


@contextmanager
def batch_of(context: AssetExecutionContext, store: Store, queue: Queue) -> Iterator[Work]:
    """The run's batch; made by hand, one of its own for the customers heard from that day."""
    day = date.fromisoformat(context.partition_key)
    tag = context.run.tags.get(BATCH_TAG)
    if tag is not None:
        yield claimed(store, int(tag), day)
        return
    with store.db.reading() as r:
        customers = jobs.customers_with_jobs_on(r, day, HEARD_IN[queue])
    with without_jobs(store, queue, day, customers) as work:
        yield work


@contextmanager
def without_jobs(store: Store, queue: Queue, day: date, customers: Iterable[int]) -> Iterator[Work]:
    """A batch that nobody waits for: its lease is prolonged from here, and what isn't committed by the end is not
    done. (The worker prolongs those that it was sent; it closes them, too.)
    """
    with store.db.writing() as w:
        token = batches.open_without_jobs(w, queue, day, store.settings, datetime.now(UTC))
    ended = threading.Event()
    renewing = threading.Thread(target=_renew, args=(store, token, ended), name=f"lease of batch {token}", daemon=True)
    renewing.start()
    try:
        yield Work(token, day, (), frozenset(customers))
    finally:
        ended.set()
        renewing.join()
        with store.db.writing() as w:
            batches.release(w, token, store.settings, datetime.now(UTC))


def _renew(store: Store, token: int, ended: threading.Event) -> None:
    while not ended.wait(store.settings.batch_lease_s / RENEWALS_PER_LEASE):
        with suppress(SQLAlchemyError), store.db.writing() as w:  # the next one may succeed, or the lease runs out
            batches.renew(w, token, store.settings, datetime.now(UTC))


def claimed(store: Store, token: int, day: date) -> Work:
    """A batch that a dispatcher claimed.

    Raises:
        Superseded: it is no longer open.
    """
    with store.db.writing() as w:
        batches.guard(w, token)
        mine = jobs.of_batch(w, token)
    return Work(token, day, mine, frozenset(job.customer_number for job in mine))


def isolating(
    compute: Callable[[Sequence[int]], Sequence[T]], customers: Sequence[int], failed: list[int]
) -> Sequence[T]:
    """`compute` for all customers in one pass; where that fails, for each half, down to the customers to blame.

    One customer's data can then not take the others' results away; who failed is appended to `failed`. A database
    that is away is nobody's fault: it ends the work, which is done again.
    """
    try:
        return compute(customers)
    except AWAY:
        raise
    except (Exception, pl.exceptions.PanicException) as error:
        if len(customers) == 1:
            log.error("computing failed for one customer: %s", type(error).__name__)
            failed.append(customers[0])
            return []
    middle = len(customers) // 2
    return [
        *isolating(compute, customers[:middle], failed),
        *isolating(compute, customers[middle:], failed),
    ]
