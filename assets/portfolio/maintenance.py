"""Long work over a bucket's customers, in slices, with a bounded share of the machine.

Each slice is a batch of its own: read, computed, and committed by compare-and-swap like any other. So a run may be
killed after any slice, and the next run does only what is left.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import ColumnElement

from assets.core.batches import Work, without_jobs
from pipelines.vocabulary.errors import Corrupt
from storage.core.database import UNREACHABLE
from storage.core.models import Queue
from storage.core.store import Store
from storage.portfolio import maintenance
from storage.portfolio.maintenance import Task

log = logging.getLogger(__name__)

SLICE_CUSTOMERS = 2_000
LONGEST_WAIT_S = 5.0  # for live jobs, after each slice; bounded, so that maintenance goes on if they never end
POLL_EVERY_S = 0.1


@dataclass(frozen=True)
class Counts:
    """Counts of customers by what became of them."""

    customers: int = 0
    changed: int = 0
    failed: int = 0
    skipped: int = 0  # no longer due, or left to an unfinished job that changes their transactions

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(*(one + another for one, another in zip(vars(self).values(), vars(other).values(), strict=True)))


def carry_out(
    store: Store,
    task: Task,
    bucket: int,
    condition: ColumnElement[bool],
    do: Callable[[Work], Counts],
    *,
    skips_unfinished: bool = True,
) -> Counts:
    """Do the task for each customer of the bucket that meets `condition`.

    If a file is damaged, the customers of its slice are tried again in parts, to find those whose file it is.

    Args:
        do: does the task for the customers of a slice.
        skips_unfinished: before each slice, leave out customers that are no longer due, or whose transactions an
            unfinished job changes, because it does the same work.
    """
    with store.db.writing() as w:
        maintenance.begin(w, task, bucket, datetime.now(UTC))
        due = maintenance.find_due(w, condition, bucket)
        maintenance.add_to_total(w, task, bucket, len(due))
    total = Counts()
    try:
        for customers in slices(due, SLICE_CUSTOMERS, store.settings.portfolio_slice_rows):
            began = time.monotonic()
            counts = (
                _attempt_due(store, condition, customers, do) if skips_unfinished else _attempt(store, customers, do)
            )
            total += counts
            with store.db.writing() as w:
                maintenance.advance(
                    w, task, bucket, datetime.now(UTC), len(customers), changed=counts.changed, failed=counts.failed
                )
            pause(store, time.monotonic() - began)
    except UNREACHABLE:  # the run is repeated, and continues after the slices that are done
        raise
    except BaseException as error:  # also when the run is stopped from Dagster's pages
        _end(store, task, bucket, type(error).__name__)
        raise
    _end(store, task, bucket, None)
    return total


def slices(due: Sequence[tuple[int, int]], most_customers: int, most_rows: int) -> Iterator[list[int]]:
    """Divide customers, given as (customer number, row count), into slices of customer numbers.

    A slice has at most `most_customers` customers, and at most `most_rows` rows unless it is a single customer.
    """
    customers: list[int] = []
    rows = 0
    for number, row_count in due:
        if customers and (rows + row_count > most_rows or len(customers) == most_customers):
            yield customers
            customers, rows = list[int](), 0
        customers.append(number)
        rows += row_count
    if customers:
        yield customers


def pause(store: Store, worked_s: float) -> None:
    """Pause in proportion to the time just worked. Then wait for unfinished jobs, for at most LONGEST_WAIT_S."""
    time.sleep(worked_s * (1 / store.settings.portfolio_share - 1))
    deadline = time.monotonic() + LONGEST_WAIT_S
    while time.monotonic() < deadline and _has_unfinished_jobs(store):
        time.sleep(POLL_EVERY_S)


def _attempt_due(
    store: Store, condition: ColumnElement[bool], customers: Sequence[int], do: Callable[[Work], Counts]
) -> Counts:
    with store.db.reading() as r:
        due = maintenance.select_still_due(r, condition, customers)
    return Counts(skipped=len(customers) - len(due)) + (_attempt(store, due, do) if due else Counts())


def _attempt(store: Store, customers: Sequence[int], do: Callable[[Work], Counts]) -> Counts:
    """Do the task for all customers at once; if a file is damaged, for each half, and so on down to one customer."""
    try:
        with without_jobs(store, Queue.PORTFOLIO, datetime.now(UTC).date(), customers) as work:
            return do(work)
    except Corrupt as error:
        if len(customers) == 1:
            log.error("customer %s was left out: %s", customers[0], error.detail)
            return Counts(customers=1, failed=1)
    middle = len(customers) // 2
    return _attempt(store, customers[:middle], do) + _attempt(store, customers[middle:], do)


def _has_unfinished_jobs(store: Store) -> bool:
    with store.db.reading() as r:
        return maintenance.has_unfinished_jobs(r)


def _end(store: Store, task: Task, bucket: int, error: str | None) -> None:
    with store.db.writing() as w:
        maintenance.end(w, task, bucket, datetime.now(UTC), error)
