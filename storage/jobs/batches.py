"""Batches: all queued jobs of a queue, claimed together under a lease, for one Dagster run.

A batch's token is its fencing token. A run commits only while its batch is open, so a run whose batch was released (its
lease expired, or its worker died) changes nothing if it comes back late. The jobs of a released batch go back to the
queue and are claimed again in smaller batches, so that a submission that breaks its run can't delay the others for
long. From the second interruption on, the jobs pause first: meanwhile the cause, such as a full disk, may disappear.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import accumulate, takewhile
from uuid import UUID, uuid4

from sqlalchemy import ColumnElement, and_, case, func, insert, literal, or_, select, update

from pipelines.vocabulary.errors import Conflict
from storage.core import leases, postgres
from storage.core.column_types import UtcDateTime
from storage.core.database import AnyRow, AnySelect, Reading, Writing
from storage.core.models import QUEUE_OF, BatchState, Flow, JobStatus, Queue, Stage, batches, customers, jobs
from storage.core.settings import Settings
from storage.jobs.jobs import Ending, as_job, finish, received_at, select_jobs

SHRINK_PER_ATTEMPT = 16  # a batch is 16 times smaller after each failed attempt: 2,000 jobs, then 125, then 7
MAX_EXTRACTIONS = 4  # each may have twenty files; a small batch leaves the other jobs to the next free worker


@dataclass(frozen=True)
class Batch:
    token: int
    batch_id: UUID
    queue: Queue
    partition_day: date  # UTC day of receipt
    jobs: int
    rows: int
    customers: int


class Superseded(Conflict):
    """The batch is no longer open: its jobs went to another run. Nothing was changed."""

    def __init__(self, token: int) -> None:
        super().__init__("Batch.Superseded", f"Batch {token} is no longer open.")


def claim(w: Writing, queue: Queue, settings: Settings, now: datetime) -> Batch | None:
    """Claim the jobs that wait in a queue, oldest first. Return None if there are none.

    Jobs keep waiting while another open batch of the queue has their customer, or another job of their customer pauses.
    So do jobs received on a later UTC day than the first, because a run belongs to one day's partition.
    """
    lock_claiming(w)
    most = min(settings.batch_max_jobs, MAX_EXTRACTIONS) if queue is Queue.EXTRACTION else settings.batch_max_jobs
    chosen = _select_fitting(_find_queued(w, queue, settings, now, most), most, settings.batch_max_rows)
    if not chosen:
        return None
    token, batch_id = _insert_open(w, queue, _day(chosen[0]), settings, now)
    _start(w, token, [row.received_seq for row in chosen], now)
    return Batch(
        token,
        batch_id,
        queue,
        _day(chosen[0]),
        jobs=len(chosen),
        rows=sum(row.received_rows for row in chosen),
        customers=len({row.customer_number for row in chosen}),
    )


def open_without_jobs(w: Writing, queue: Queue, day: date, settings: Settings, now: datetime) -> int:
    """Open a batch that recomputes stored values, such as a partition materialised by hand. Return its token."""
    return _insert_open(w, queue, day, settings, now)[0]


def record_launch(w: Writing, token: int, run_id: str, worker: UUID) -> None:
    w.execute(update(batches).where(batches.c.token == token).values(run_id=run_id, worker=worker))


def begin(w: Writing, token: int, run_id: str, worker: UUID) -> bool:
    """Record that a worker begins a batch's run. Return False if the batch is not open, or was begun before."""
    unbegun = (batches.c.token == token, batches.c.state == BatchState.OPEN, batches.c.worker.is_(None))
    return w.execute(update(batches).where(*unbegun).values(run_id=run_id, worker=worker)).rowcount == 1


def renew(w: Writing, token: int, settings: Settings, now: datetime) -> bool:
    """Extend the lease. Return False if the batch is no longer open."""
    expires = now + timedelta(seconds=settings.run_lease_s)
    statement = update(batches).where(batches.c.token == token, batches.c.state == BatchState.OPEN)
    return w.execute(statement.values(lease_expires_at=expires)).rowcount == 1


def count_open(r: Reading, queue: Queue) -> int:
    query = select(func.count()).where(batches.c.queue == queue, batches.c.state == BatchState.OPEN)
    return r.execute(query).scalar_one()


def release(w: Writing, token: int, settings: Settings, now: datetime) -> bool:
    """Release a batch whose run was interrupted. Its jobs go back to the queue, or fail after too many attempts."""
    if not _close(w, token, BatchState.RELEASED):
        return False
    selected = (jobs.c.batch_token == token, jobs.c.status == JobStatus.RUNNING)
    exhausted = w.execute(select_jobs().where(*selected, jobs.c.attempts >= settings.job_max_attempts)).all()
    finish(w, [_end_abandoned(row) for row in exhausted], now)
    pause_ends = now + timedelta(seconds=settings.job_retry_pause_s)
    requeued = {
        "status": JobStatus.QUEUED,
        "batch_token": None,
        "not_before": case((jobs.c.attempts > 1, literal(pause_ends, UtcDateTime))),
    }
    w.execute(update(jobs).where(*selected).values(requeued))
    return True


def give_back(w: Writing, token: int) -> bool:
    """Release a batch whose run never began, or was stopped on purpose. The attempt does not count."""
    if not _close(w, token, BatchState.RELEASED):
        return False
    requeue(w, token)
    return True


def postpone(w: Writing, token: int, settings: Settings, now: datetime) -> None:
    """Release a batch whose files can't be reached. Its jobs begin again after a pause; the attempt does not count."""
    pause_ends = now + timedelta(seconds=settings.job_retry_pause_s)
    w.execute(update(jobs).where(jobs.c.batch_token == token).values(not_before=pause_ends))
    give_back(w, token)


def requeue(w: Writing, token: int) -> None:
    """Put a batch's jobs that have not ended back into the queue. The attempt does not count."""
    unfinished = update(jobs).where(jobs.c.batch_token == token, jobs.c.status == JobStatus.RUNNING)
    w.execute(unfinished.values(status=JobStatus.QUEUED, batch_token=None, attempts=jobs.c.attempts - 1))


def release_expired(w: Writing, settings: Settings, now: datetime) -> int:
    """Release every open batch whose lease has expired. Return their number.

    If no worker has begun the run, because a broker has not delivered it, the attempt does not count.
    """
    query = select(batches.c.token, batches.c.worker).where(_has_expired_lease(settings, now))
    return sum(
        give_back(w, row.token) if row.worker is None else release(w, row.token, settings, now)
        for row in w.execute(query).all()
    )


def release_of_worker(w: Writing, worker: UUID, settings: Settings, now: datetime) -> int:
    """Release every open batch of a worker that has died. Return their number."""
    query = select(batches.c.token).where(batches.c.worker == worker, batches.c.state == BatchState.OPEN)
    return sum(release(w, token, settings, now) for token in w.execute(query).scalars().all())


def waiting_since(r: Reading, queue: Queue, settings: Settings, now: datetime) -> datetime | None:
    """Return when the job that would be claimed first was received; None if nothing can be claimed."""
    queued = _find_queued(r, queue, settings, now, limit=1)
    return queued[0].received_at if queued else None


def has_expired(r: Reading, settings: Settings, now: datetime) -> bool:
    """Return whether `release_expired` would find a batch."""
    return r.execute(select(batches.c.token).where(_has_expired_lease(settings, now)).limit(1)).first() is not None


def _has_expired_lease(settings: Settings, now: datetime) -> ColumnElement[bool]:
    longest_s = settings.run_lease_s + leases.LONGEST_LEASE_S
    return and_(batches.c.state == BatchState.OPEN, leases.has_ended(batches.c.lease_expires_at, now, longest_s))


def commit(w: Writing, token: int) -> None:
    """Close an open batch as done. This must be the first write of the transaction that ends its jobs.

    Raises:
        Superseded: the batch is no longer open.
    """
    if not _close(w, token, BatchState.COMMITTED):
        raise Superseded(token)


def is_open(r: Reading, token: int) -> bool:
    return r.execute(_select_open(token)).first() is not None


def require_open(w: Writing, token: int) -> None:
    """Raise Superseded unless the batch is open. It stays open until this transaction ends."""
    if w.execute(_select_open(token).with_for_update()).first() is None:
        raise Superseded(token)


def _select_open(token: int) -> AnySelect:
    return select(batches.c.token).where(batches.c.token == token, batches.c.state == BatchState.OPEN)


def lock_claiming(w: Writing) -> None:
    """Let nobody else claim jobs until this transaction ends. SQLite's writers take turns anyway."""
    if w.dialect.name == "postgresql":
        w.execute(select(func.pg_advisory_xact_lock(postgres.Lock.CLAIMING)))


def _find_queued(r: Reading, queue: Queue, settings: Settings, now: datetime, limit: int) -> list[AnyRow]:
    query = (
        select(
            jobs.c.received_seq,
            jobs.c.customer_number,
            jobs.c.received_rows,
            jobs.c.attempts,
            received_at().label("received_at"),
        )
        .where(jobs.c.status == JobStatus.QUEUED, _waits_in(queue), _may_begin(queue, settings, now))
        .order_by(jobs.c.received_seq)
        .limit(limit)
    )
    return list(r.execute(query))


def _waits_in(queue: Queue) -> ColumnElement[bool]:
    """Match the queue's jobs. An extraction whose rows have landed continues in the queue of enrichment."""
    flows = jobs.c.flow.in_([flow for flow, queue_of_flow in QUEUE_OF.items() if queue_of_flow is queue])
    landed = and_(jobs.c.flow == Flow.EXTRACTION, jobs.c.stage == Stage.ENRICHMENT)
    if queue is Queue.ENRICHMENT:
        return or_(flows, landed)
    return and_(flows, jobs.c.stage == Stage.EXTRACTION) if queue is Queue.EXTRACTION else flows


def _may_begin(queue: Queue, settings: Settings, now: datetime) -> ColumnElement[bool]:
    """Match jobs that may begin: no other batch of the queue has their customer, and no job of their customer pauses.
    Extraction changes no customer, so there only the job's own pause counts.
    """
    # A pause that would end later than this is over: it can only be due to a clock that was set back.
    longest = now + timedelta(seconds=settings.job_retry_pause_s)
    pauses = and_(jobs.c.not_before > now, jobs.c.not_before <= longest)
    if queue is Queue.EXTRACTION:
        return or_(jobs.c.not_before.is_(None), ~pauses)
    held = (
        select(jobs.c.customer_number)
        .join(batches, batches.c.token == jobs.c.batch_token)
        .where(batches.c.queue == queue, batches.c.state == BatchState.OPEN, jobs.c.status == JobStatus.RUNNING)
    )
    pausing = select(jobs.c.customer_number).where(pauses, _waits_in(queue))
    return and_(jobs.c.customer_number.not_in(held), jobs.c.customer_number.not_in(pausing))


def _select_fitting(queued: list[AnyRow], most_jobs: int, most_rows: int) -> list[AnyRow]:
    """Return the first jobs that fit into one batch: of one day, of limited rows, and fewer after failed attempts."""
    if not queued:
        return []
    most = max(1, most_jobs // SHRINK_PER_ATTEMPT ** queued[0].attempts)
    rows_before = accumulate((row.received_rows for row in queued), initial=0)
    fits = takewhile(
        lambda pair: pair[1] < most_rows and _day(pair[0]) == _day(queued[0]),
        zip(queued, rows_before, strict=False),
    )
    return [row for row, _ in fits][:most]


def _insert_open(w: Writing, queue: Queue, day: date, settings: Settings, now: datetime) -> tuple[int, UUID]:
    batch_id = uuid4()
    statement = insert(batches).values(
        batch_id=batch_id,
        queue=queue,
        state=BatchState.OPEN,
        partition_day=day,
        created_at=now,
        lease_expires_at=now + timedelta(seconds=settings.run_lease_s),
    )
    return w.execute(statement.returning(batches.c.token)).scalar_one(), batch_id


def _start(w: Writing, token: int, seqs: list[int], now: datetime) -> None:
    """Mark the jobs running. A refresh is pinned to the data version that it will cover."""
    version = select(customers.c.data_version).where(customers.c.number == jobs.c.customer_number)
    w.execute(
        update(jobs)
        .where(jobs.c.received_seq.in_(seqs))
        .values(
            status=JobStatus.RUNNING,
            batch_token=token,
            attempts=jobs.c.attempts + 1,
            not_before=None,
            is_overtaken=False,
            started_at=func.coalesce(jobs.c.started_at, now),
            stage_started_at=case((jobs.c.stage == Stage.ENRICHMENT, func.coalesce(jobs.c.stage_started_at, now))),
            data_version=version.scalar_subquery(),
        )
    )


def _close(w: Writing, token: int, state: BatchState) -> bool:
    statement = update(batches).where(batches.c.token == token, batches.c.state == BatchState.OPEN)
    return w.execute(statement.values(state=state)).rowcount == 1


def _end_abandoned(row: AnyRow) -> Ending:
    job = as_job(row)
    error = {"code": "Job.Abandoned", "message": f"The work was interrupted {job.attempts} times."}
    return Ending(job, JobStatus.FAILED, data_version=None, error=error)


def _day(row: AnyRow) -> date:
    received: datetime = row.received_at
    return received.astimezone(UTC).date()
