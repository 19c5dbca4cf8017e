"""Maintenance of the portfolio: the customers for whom it is due, requests for it, and the progress of each bucket.

Which customers are due is derived from the data, not from a list. One commit brings a customer up to date, and it is
then no longer due. So a run that was killed continues where it stopped when it is started again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Update, and_, exists, or_, select, update

from storage.core.buckets import BUCKETS, in_bucket
from storage.core.database import AnyRow, Reading, Writing, insert_into, read_values
from storage.core.models import LIVE, QUEUE_OF, Queue, customers, jobs, maintenance, reports
from storage.jobs.jobs import find_with_unfinished_change

SILENT_AFTER = timedelta(minutes=2)  # without a heartbeat a run counts as dead; longer than a slice takes
_PORTFOLIO_FLOWS = [flow for flow, queue in QUEUE_OF.items() if queue is Queue.PORTFOLIO]


class Task(StrEnum):
    BACKFILL = "backfill"  # enrich customers again whose rows were enriched by another version of the enrichment
    REFRESH = "refresh"  # compute stale and old reports again
    MONITORING = "monitoring"  # evaluate customers by their clients' rulesets


class State(StrEnum):
    WAITING = "waiting"
    RUNNING = "running"
    INTERRUPTED = "interrupted"  # its run died; Dagster starts it again
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True)
class BucketProgress:
    """The latest request and run of a task for a bucket. The counts are of customers."""

    task: Task
    bucket: int
    requested_at: datetime | None
    started_at: datetime | None
    beat_at: datetime | None
    completed_at: datetime | None
    total: int
    done: int
    changed: int
    failed: int
    error: str | None

    def state(self, now: datetime) -> State:
        if self.started_at is None or (self.requested_at is not None and self.requested_at > self.started_at):
            return State.WAITING
        if self.completed_at is not None:
            return State.FAILED if self.error else State.DONE
        assert self.beat_at is not None
        return State.RUNNING if now - self.beat_at < SILENT_AFTER else State.INTERRUPTED

    def is_under_way(self, now: datetime) -> bool:
        """Return whether it runs or was requested recently. After a long wait, its run may have been lost."""
        if self.state(now) is not State.WAITING:
            return self.state(now) is State.RUNNING
        assert self.requested_at is not None
        return now - self.requested_at < SILENT_AFTER


def has_transactions() -> ColumnElement[bool]:
    return customers.c.data_version > 0


def is_outdated(enrichment_version: int) -> ColumnElement[bool]:
    """Select customers whose rows were enriched by another version of the enrichment."""
    return and_(has_transactions(), customers.c.enrichment_version != enrichment_version)


def has_stale_report(report_versions: Mapping[str, int], not_before: date) -> ColumnElement[bool]:
    """Select customers with a report that failed, covers older data, has another version, or is older than
    `not_before`.

    Customers without a report are not selected: the client requests the first one.
    """
    of_this_customer = reports.c.customer_number == customers.c.number
    versions = report_versions.items()
    other_version = or_(
        *(and_(reports.c.kind == kind, reports.c.report_version != newest) for kind, newest in versions)
    )
    behind = or_(reports.c.data_version != customers.c.data_version, reports.c.as_of < not_before)
    stale_report = exists().where(of_this_customer, or_(reports.c.failed.is_(True), other_version, behind))
    return and_(customers.c.enriched_rows > 0, stale_report)


def find_due(r: Reading, condition: ColumnElement[bool], bucket: int) -> list[tuple[int, int]]:
    """Return the bucket's customers that meet the condition, in order of number, each with its number of rows."""
    query = select(customers.c.number, customers.c.enriched_rows).where(in_bucket(bucket), condition)
    return [(number, rows) for number, rows in r.execute(query.order_by(customers.c.number))]


def find_buckets_due(r: Reading, condition: ColumnElement[bool]) -> list[int]:
    """Return the buckets with at least one customer that meets the condition."""
    query = select(customers.c.number % BUCKETS).where(condition).distinct()
    return sorted(r.execute(query).scalars())


def select_still_due(r: Reading, condition: ColumnElement[bool], customer_numbers: Sequence[int]) -> list[int]:
    """Return the customers that still meet the condition, without those whose transactions a live job may change.

    Such a job enriches the customer anyway, and makes a refreshed report stale again.
    """
    query = select(customers.c.number).where(customers.c.number.in_(customer_numbers), condition)
    changing = find_with_unfinished_change(r, customer_numbers)
    return [number for number in r.execute(query.order_by(customers.c.number)).scalars() if number not in changing]


def has_unfinished_jobs(r: Reading) -> bool:
    """Return whether an unfinished job of another queue exists; the portfolio's own jobs don't count."""
    unfinished = select(jobs.c.received_seq).where(jobs.c.status.in_(LIVE), jobs.c.flow.not_in(_PORTFOLIO_FLOWS))
    return r.execute(unfinished.limit(1)).first() is not None


def request(w: Writing, task: Task, buckets: Iterable[int], now: datetime) -> None:
    """Request a task for the buckets where it is not under way."""
    wanted = set(buckets)
    under_way = {each.bucket for each in read_progress(w, task, wanted) if each.is_under_way(now)}
    _upsert(w, [{"task": task, "bucket": bucket, "requested_at": now} for bucket in sorted(wanted - under_way)])


def find_waiting(r: Reading, task: Task) -> list[BucketProgress]:
    """Return the requests of a task that have not begun, oldest first."""
    requested, begun = maintenance.c.requested_at, maintenance.c.started_at
    query = select(maintenance).where(
        maintenance.c.task == task, requested.is_not(None), or_(begun.is_(None), begun < requested)
    )
    return [_progress(row) for row in r.execute(query.order_by(requested, maintenance.c.bucket))]


def read_progress(r: Reading, task: Task, buckets: Iterable[int]) -> list[BucketProgress]:
    """Return the task's progress in these buckets, by bucket, without those for which it was never requested or run."""
    query = select(maintenance).where(maintenance.c.task == task, maintenance.c.bucket.in_(list(buckets)))
    return [_progress(row) for row in r.execute(query.order_by(maintenance.c.bucket))]


def begin(w: Writing, task: Task, bucket: int, now: datetime) -> None:
    """Record that a run begins. The counts of an interrupted run are continued."""
    before = read_progress(w, task, [bucket])
    resumed = bool(before) and before[0].completed_at is None and before[0].state(now) is not State.WAITING
    done = before[0].done if resumed else 0
    fresh = {"total": done, "started_at": now, "beat_at": now, "completed_at": None, "error": None}
    zeros = {} if resumed else {"done": 0, "changed": 0, "failed": 0}
    _upsert(w, [{"task": task, "bucket": bucket, **fresh, **zeros}])


def add_to_total(w: Writing, task: Task, bucket: int, remaining: int) -> None:
    """Record the number of customers that the run still has to do."""
    w.execute(_update(task, bucket).values(total=maintenance.c.total + remaining))


def advance(w: Writing, task: Task, bucket: int, now: datetime, done: int, *, changed: int, failed: int) -> None:
    """Add a slice of customers to the counts."""
    more = {
        "done": maintenance.c.done + done,
        "changed": maintenance.c.changed + changed,
        "failed": maintenance.c.failed + failed,
    }
    w.execute(_update(task, bucket).values(beat_at=now, **more))


def end(w: Writing, task: Task, bucket: int, now: datetime, error: str | None = None) -> None:
    w.execute(_update(task, bucket).values(beat_at=now, completed_at=now, error=error))


def _update(task: Task, bucket: int) -> Update:
    return update(maintenance).where(maintenance.c.task == task, maintenance.c.bucket == bucket)


def _upsert(w: Writing, rows: Sequence[Mapping[str, Any]]) -> None:
    if not rows:
        return
    statement = insert_into(w, maintenance)
    new = {name: statement.excluded[name] for name in rows[0] if name not in ("task", "bucket")}
    key = [maintenance.c.task, maintenance.c.bucket]
    w.execute(statement.on_conflict_do_update(index_elements=key, set_=new), rows)


def _progress(row: AnyRow) -> BucketProgress:
    return BucketProgress(**read_values(row, task=Task(row.task)))
