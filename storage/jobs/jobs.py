"""Jobs: accepted work, its progress and its result. A job's counts do not change after its end."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from sqlalchemy import ColumnElement, bindparam, func, insert, select, text, update
from sqlalchemy.exc import IntegrityError

from pipelines.vocabulary.errors import Conflict, NotFound, Unprocessable
from pipelines.webhooks.events import JobOutcome
from storage.core import postgres
from storage.core.database import AnyRow, AnySelect, Reading, Writing, read_values
from storage.core.lake import StoredFile
from storage.core.models import LIVE, SUBMISSIONS, Flow, JobStatus, Stage, customers, jobs, statement_files
from storage.core.paging import Page, Paged, count_total, limit_to_page
from storage.customers.customers import Customer
from storage.webhooks import outbox

if TYPE_CHECKING:
    from pipelines.intake.accounts import Account  # imports Polars, which processes that only dispatch don't need

# Flows that bring no rows: corrections, related parties or the model have changed.
RECOMPUTING = (Flow.CORRECTION, Flow.REENRICHMENT)
# Flows whose end may change a customer's transactions.
CHANGING = (*SUBMISSIONS, Flow.RETRACTION, *RECOMPUTING)


@dataclass(frozen=True)
class Job:
    """A job's current state. Counts are null until it has ended."""

    received_seq: int
    job_id: UUID
    client_id: UUID
    customer_number: int  # 0: the job does not belong to one customer
    customer_id: UUID | None
    abn: str | None
    flow: Flow
    stage: Stage | None
    status: JobStatus
    submission: Mapping[str, Any] | None
    retracts: UUID | None
    landing_path: str | None
    landing_sha256: bytes | None
    received_rows: int
    pages_total: int | None
    pages_done: int | None
    refused_files: int
    repeated_rows: int | None
    statement_rows_path: str | None
    batch_token: int | None
    attempts: int
    data_version: int | None
    processed_rows: int | None
    enriched_rows: int | None
    duplicate_rows: int | None
    rejected_rows: int | None
    outcomes_path: str | None
    warnings: Sequence[Mapping[str, str]]
    error: Mapping[str, str] | None
    created_at: datetime
    created_by: str | None  # as in the audit trail; null: the service, or a portfolio job
    landed_at: datetime | None
    started_at: datetime | None
    stage_started_at: datetime | None
    completed_at: datetime | None

    @property
    def received_at(self) -> datetime:
        """When the rows were received. Rows of PDFs are received when the files have been read."""
        return self.landed_at or self.created_at


@dataclass(frozen=True)
class Ending:
    """How a job ended: decided by the batch, written by `finish`."""

    job: Job
    status: JobStatus
    data_version: int | None
    processed: int = 0
    enriched: int = 0
    duplicates: int = 0
    rejected: int = 0
    outcomes_path: str | None = None
    error: Mapping[str, str] | None = None
    warnings: Sequence[Mapping[str, str]] = ()  # more than the job has already


def select_jobs() -> AnySelect:
    """Select jobs with the fields of Job as columns. The customer's are null if the job does not belong to one."""
    of_customer = ("customer_number", "customer_id", "abn")
    own = [jobs.c[name] for name in Job.__dataclass_fields__ if name not in of_customer]
    number = func.coalesce(jobs.c.customer_number, 0).label("customer_number")
    return select(*own, number, customers.c.customer_id, customers.c.abn).join(customers, isouter=True)


def as_job(row: AnyRow) -> Job:
    stage = None if row.stage is None else Stage(row.stage)
    return Job(**read_values(row, flow=Flow(row.flow), stage=stage, status=JobStatus(row.status)))


def submit_enrichment(
    w: Writing,
    customer: Customer,
    account: "Account",
    *,
    appended: bool,
    landing: StoredFile,
    job_id: UUID,
    rows: int,
    warnings: Sequence[Mapping[str, str]],
    who: str | None,
    now: datetime,
) -> Job:
    """Accept a submission whose rows are already durable in the landing file."""
    row = _new_row(customer, Flow.ENRICHMENT, job_id, who, now) | {
        "submission": _submission(account, appended),
        "landing_path": landing.path,
        "landing_sha256": landing.sha256,
        "received_rows": rows,
        "warnings": list(warnings),
    }
    lock_receipt(w, customer.number)
    w.execute(insert(jobs), row)
    return get(w, customer.client_id, job_id)


def submit_extraction(w: Writing, customer: Customer, job_id: UUID, refused_files: int, who: str, now: datetime) -> Job:
    """Accept a submission of PDF files, which `storage.intake.statements` adds in the same transaction.

    When the files have been read and their rows stored, the job moves to the end of the order of receipt, because
    submissions received after it may have been enriched meanwhile.
    """
    own = {"stage": Stage.EXTRACTION, "refused_files": refused_files}
    row = _new_row(customer, Flow.EXTRACTION, job_id, who, now) | own
    w.execute(insert(jobs).values(row))
    return get(w, customer.client_id, job_id)


def draw_received_seq(w: Writing) -> int:
    """Draw the next `received_seq`, for a job whose rows are being stored now.

    Call `lock_receipt` first, as for a new job.
    """
    if w.dialect.name == "postgresql":
        drawn: int = w.execute(text("SELECT nextval(pg_get_serial_sequence('jobs', 'received_seq'))")).scalar_one()
        return drawn
    newest: int = w.execute(select(func.max(jobs.c.received_seq))).scalar_one()
    return newest + 1


def request_refresh(w: Writing, customer: Customer, who: str, now: datetime) -> Job:
    """Accept a refresh of all three reports.

    Raises:
        Unprocessable: the customer has no enriched transactions.
        Conflict: a refresh of the customer is live. A constraint of the database ensures that there is only one.
    """
    if customer.enriched_rows == 0:
        raise Unprocessable("Report.NoEnrichedTransactions", "The customer has no enriched transactions.")
    row = _new_row(customer, Flow.REPORT_REFRESH, uuid4(), who, now)
    try:
        w.execute(insert(jobs).values(row))
    except IntegrityError as error:
        raise Conflict("Report.RefreshRunning", "A report refresh is already running for this customer.") from error
    return get(w, customer.client_id, row["job_id"])


def request_retraction(w: Writing, customer: Customer, submission: Job, who: str, now: datetime) -> Job:
    """Accept the retraction of a submission, or return the one accepted before.

    Raises:
        NotFound: the job is not a submission.
        Conflict: the submission has not ended yet, or it failed and so added nothing.
    """
    if submission.flow not in SUBMISSIONS:
        raise NotFound("Job.NotFound", "There is no job with this id.")
    if submission.status in LIVE:
        raise Conflict("Submission.Unfinished", "The submission has not ended yet.")
    if submission.status is JobStatus.FAILED:
        raise Conflict("Submission.Failed", "The submission failed: it added no rows.")
    row = _new_row(customer, Flow.RETRACTION, uuid4(), who, now) | {"retracts": submission.job_id}
    lock_receipt(w, customer.number)
    try:
        with w.begin_nested():
            w.execute(insert(jobs).values(row))
    except IntegrityError:  # a constraint allows one retraction that did not fail
        own = jobs.c.customer_number == customer.number
        that_one = (jobs.c.retracts == submission.job_id, jobs.c.status != JobStatus.FAILED)
        return as_job(w.execute(select_jobs().where(own, *that_one)).one())
    return get(w, customer.client_id, row["job_id"])


def request_recomputation(w: Writing, customer: Customer, flow: Flow, now: datetime) -> Job:
    """Queue a job that enriches the customer again, with what is known about it when the job runs.

    Call this in the transaction that changes corrections, related parties or the model in use, so that neither happens
    without the other.
    """
    row = _queued_row(customer.client_id, customer.number, flow, uuid4(), now)
    w.execute(insert(jobs).values(row))
    return get(w, customer.client_id, row["job_id"])


def request_recomputations(
    w: Writing, client_id: UUID, customer_numbers: Iterable[int], flow: Flow, now: datetime
) -> None:
    """Queue a job of this flow for each of these customers of a client, as `request_recomputation` does for one."""
    rows = [_queued_row(client_id, number, flow, uuid4(), now) for number in sorted(customer_numbers)]
    if rows:
        w.execute(insert(jobs), rows)


def request_refreshes(w: Writing, client_id: UUID, concerned: AnySelect, now: datetime) -> None:
    """Queue a refresh for each of a client's customers, because something that all their reports read has changed.

    A refresh that is already live may have read the old state, so another one follows when it ends.

    Args:
        concerned: selects the customers' numbers.
    """
    live = (jobs.c.flow == Flow.REPORT_REFRESH, jobs.c.status.in_(LIVE), jobs.c.customer_number.in_(concerned))
    overtaken = update(jobs).where(*live).values(is_overtaken=True).returning(jobs.c.customer_number)
    followed = set(w.execute(overtaken).scalars())
    request_recomputations(w, client_id, {*w.execute(concerned).scalars()} - followed, Flow.REPORT_REFRESH, now)


def get(r: Reading, client_id: UUID, job_id: UUID) -> Job:
    """Return the client's job.

    Raises:
        NotFound: unknown, or another client's.
    """
    row = r.execute(_CLIENTS_JOB, {"job_id": job_id, "client_id": client_id}).first()
    if row is None:
        raise NotFound("Job.NotFound", "There is no job with this id.")
    return as_job(row)


_CLIENTS_JOB: AnySelect = select_jobs().where(
    jobs.c.job_id == bindparam("job_id"), jobs.c.client_id == bindparam("client_id")
)


def find(
    r: Reading,
    client_id: UUID,
    *,
    status: JobStatus | None = None,
    flow: Flow | None = None,
    customer_id: UUID | None = None,
    created_after: datetime | None = None,
    created_before: datetime | None = None,
    page: Page | None = None,
) -> Paged[Job]:
    """Return the client's jobs, newest first."""
    wanted = {jobs.c.status: status, jobs.c.flow: flow, customers.c.customer_id: customer_id}
    newest_first = (jobs.c.created_at.desc(), jobs.c.received_seq.desc())
    query = select_jobs().where(jobs.c.client_id == client_id).order_by(*newest_first)
    query = query.where(*(column == value for column, value in wanted.items() if value is not None))
    if created_after is not None:
        query = query.where(jobs.c.created_at > created_after)
    if created_before is not None:
        query = query.where(jobs.c.created_at < created_before)
    rows = r.execute(limit_to_page(query, page))
    return Paged([as_job(row) for row in rows], count_total(r, query), page)


def find_ended(r: Reading, job_ids: Sequence[UUID]) -> set[UUID]:
    """Return those of `job_ids` that have ended."""
    query = select(jobs.c.job_id).where(jobs.c.job_id.in_(job_ids), jobs.c.status.not_in(LIVE))
    return set(r.execute(query).scalars())


def find_of_batch(r: Reading, token: int) -> list[Job]:
    """Return the batch's jobs, in order of receipt."""
    query = select_jobs().where(jobs.c.batch_token == token).order_by(jobs.c.received_seq)
    return [as_job(row) for row in r.execute(query)]


def find_unretracted_submissions(r: Reading, customer_numbers: Iterable[int]) -> list[Job]:
    """Return the customers' submissions that added rows and were not retracted, in order of receipt."""
    query = select_jobs().where(
        jobs.c.customer_number.in_(list(customer_numbers)),
        jobs.c.flow.in_((*SUBMISSIONS, Flow.RETRACTION)),
        jobs.c.status.in_((JobStatus.COMPLETED, JobStatus.COMPLETED_WITH_ERRORS)),
    )
    ended = [as_job(row) for row in r.execute(query.order_by(jobs.c.received_seq))]
    retracted = {job.retracts for job in ended}
    return [job for job in ended if job.flow in SUBMISSIONS and job.job_id not in retracted]


def received_at() -> ColumnElement[datetime]:
    """Return the SQL expression for when a job was received: for PDFs, when they had been read.

    Jobs ordered by it are also ordered by `received_seq`.
    """
    return func.coalesce(jobs.c.landed_at, jobs.c.created_at)


def find_last_received(r: Reading, customer: Customer, until: datetime) -> int:
    """Return the `received_seq` of the customer's last job received up to a time; 0 if there is none."""
    selected = (jobs.c.customer_number == customer.number, received_at() <= until)
    last: int = r.execute(select(func.coalesce(func.max(jobs.c.received_seq), 0)).where(*selected)).scalar_one()
    return last


def find_last_received_of_all(r: Reading, until: datetime) -> int:
    """Return the `received_seq` of the last job of any customer received up to a time; 0 if there is none."""
    query = select(func.coalesce(func.max(jobs.c.received_seq), 0)).where(received_at() <= until)
    last: int = r.execute(query).scalar_one()
    return last


def count_duplicate_and_rejected_rows(r: Reading, versions: Mapping[int, int]) -> list[tuple[int, int, int]]:
    """Return for each customer its number and how many of its submitted rows were duplicates and were rejected.

    Args:
        versions: customer number → data version. Only submissions that added rows up to that version count. A
            submission that contains only duplicates added no rows, so it does not count.
    """
    query = (
        select(jobs.c.customer_number, jobs.c.job_id, jobs.c.retracts, jobs.c.data_version)
        .add_columns(jobs.c.enriched_rows, jobs.c.duplicate_rows, jobs.c.rejected_rows)
        .where(
            jobs.c.customer_number.in_(list(versions)),
            jobs.c.flow.in_((*SUBMISSIONS, Flow.RETRACTION)),
            jobs.c.status.in_((JobStatus.COMPLETED, JobStatus.COMPLETED_WITH_ERRORS)),
        )
    )
    ended = [row for row in r.execute(query) if (row.data_version or 0) <= versions[row.customer_number]]
    retracted = {row.retracts for row in ended}
    counts = dict.fromkeys(sorted(versions), (0, 0))
    for row in ended:
        if row.enriched_rows and row.job_id not in retracted:
            duplicates, rejected = counts[row.customer_number]
            counts[row.customer_number] = (duplicates + (row.duplicate_rows or 0), rejected + (row.rejected_rows or 0))
    return [(number, *both) for number, both in counts.items()]


def find_customers_with_jobs_on(r: Reading, day: date, flows: Sequence[Flow] = SUBMISSIONS) -> set[int]:
    """Return the numbers of the customers with a job of these flows received on a UTC day."""
    start = datetime.combine(day, time.min, UTC)
    query = select(jobs.c.customer_number).where(
        jobs.c.flow.in_(flows), received_at() >= start, received_at() < start + timedelta(days=1)
    )
    return set(r.execute(query).scalars())


def has_unfinished_change(r: Reading, customer_number: int) -> bool:
    """Return whether a live job may change the customer's transactions."""
    return bool(find_with_unfinished_change(r, [customer_number]))


def find_unfinished_changes(r: Reading, customer_number: int) -> tuple[UUID, ...]:
    """Return the live jobs that may change the customer's transactions, in order of receipt."""
    return tuple(r.execute(_UNFINISHED, {"customer_number": customer_number}).scalars())


_UNFINISHED = (
    select(jobs.c.job_id)
    .where(
        jobs.c.customer_number == bindparam("customer_number"),
        jobs.c.status.in_(LIVE),
        jobs.c.flow.in_(CHANGING),
    )
    .order_by(jobs.c.received_seq)
)


def find_waiting_feeds(r: Reading, customer_number: int) -> list[Job]:
    """Return the customer's live submissions of transactions as data (JSON, CSV, exports), in order of receipt."""
    return [as_job(row) for row in r.execute(_WAITING_FEEDS, {"customer_number": customer_number})]


_WAITING_FEEDS = (
    select_jobs()
    .where(
        jobs.c.customer_number == bindparam("customer_number"),
        jobs.c.status.in_(LIVE),
        jobs.c.flow == Flow.ENRICHMENT,
    )
    .order_by(jobs.c.received_seq)
)


def find_with_unfinished_change(r: Reading, customer_numbers: Iterable[int]) -> frozenset[int]:
    """Return the customers with a live job that may change their transactions."""
    query = select(jobs.c.customer_number).where(
        jobs.c.customer_number.in_(list(customer_numbers)), jobs.c.status.in_(LIVE), jobs.c.flow.in_(CHANGING)
    )
    return frozenset(r.execute(query).scalars())


def finish(w: Writing, endings: Sequence[Ending], now: datetime) -> None:
    """End jobs and put their events into the outbox, so that both are committed together."""
    if not endings:
        return
    statement = (
        update(jobs)
        .where(jobs.c.received_seq == bindparam("seq"))
        .values(
            status=bindparam("status_"),
            data_version=bindparam("data_version_"),
            processed_rows=bindparam("processed"),
            enriched_rows=bindparam("enriched"),
            duplicate_rows=bindparam("duplicates"),
            rejected_rows=bindparam("rejected"),
            outcomes_path=bindparam("outcomes"),
            error=bindparam("error_", type_=jobs.c.error.type),
            warnings=bindparam("warnings_", type_=jobs.c.warnings.type),
            completed_at=bindparam("now", type_=jobs.c.completed_at.type),
        )
    )
    w.execute(statement, [_end_values(ending, now) for ending in endings])
    _forget_passwords(w, endings)
    _follow_overtaken(w, endings, now)
    outbox.enqueue(w, [event for ending in endings for event in _events(ending, now)])


def _forget_passwords(w: Writing, endings: Sequence[Ending]) -> None:
    """Delete the passwords of files that will not be read any more."""
    extracting = [ending.job.job_id for ending in endings if ending.job.stage is Stage.EXTRACTION]
    if extracting:
        w.execute(update(statement_files).where(statement_files.c.job_id.in_(extracting)).values(password=None))


def _follow_overtaken(w: Writing, endings: Sequence[Ending], now: datetime) -> None:
    """Queue another refresh after each that was overtaken (see `request_refreshes`)."""
    ended = [ending.job.received_seq for ending in endings if ending.job.flow is Flow.REPORT_REFRESH]
    if ended:
        overtaken = select(jobs.c.client_id, jobs.c.customer_number).where(
            jobs.c.received_seq.in_(ended), jobs.c.is_overtaken
        )
        for client_id, number in w.execute(overtaken).all():
            request_recomputations(w, client_id, [number], Flow.REPORT_REFRESH, now)


def _end_values(ending: Ending, now: datetime) -> dict[str, Any]:
    return {
        "seq": ending.job.received_seq,
        "status_": ending.status,
        "data_version_": ending.data_version,
        "processed": ending.processed,
        "enriched": ending.enriched,
        "duplicates": ending.duplicates,
        "rejected": ending.rejected,
        "outcomes": ending.outcomes_path,
        "error_": ending.error,
        "warnings_": [*ending.job.warnings, *ending.warnings],
        "now": now,
    }


def _events(ending: Ending, now: datetime) -> list[outbox.NewEvent]:
    """Return the events of a job's end. Only submissions have any; clients poll other jobs."""
    if ending.job.flow not in SUBMISSIONS:
        return []
    return outbox.job_events(ending.job.customer_number, job_outcome(ending), now)


def job_outcome(ending: Ending) -> JobOutcome:
    job = ending.job
    assert job.customer_id is not None and job.abn is not None  # noqa: PT018  a submission is one customer's
    return JobOutcome(
        client_id=job.client_id,
        customer_id=job.customer_id,
        job_id=job.job_id,
        abn=job.abn,
        job_type=job.flow,
        failed=ending.status is JobStatus.FAILED,
        extracting=job.stage is Stage.EXTRACTION,
        received=job.received_rows,
        processed=ending.processed,
        enriched=ending.enriched,
        duplicates=ending.duplicates,
        error=ending.error,
    )


def _new_row(customer: Customer, flow: Flow, job_id: UUID, who: str | None, now: datetime) -> dict[str, Any]:
    """Return the row of a job that somebody requested."""
    return _queued_row(customer.client_id, customer.number, flow, job_id, now) | {"created_by": who}


def _queued_row(client_id: UUID, customer_number: int, flow: Flow, job_id: UUID, now: datetime) -> dict[str, Any]:
    return {
        "job_id": job_id,
        "client_id": client_id,
        "customer_number": customer_number,
        "flow": flow,
        "status": JobStatus.QUEUED,
        "warnings": [],
        "created_at": now,
    }


def lock_receipt(w: Writing, customer_number: int) -> None:
    """Make a customer's jobs commit in the order of their `received_seq`, which is drawn before the commit.

    Otherwise a batch could enrich the later of two overlapping submissions before the earlier one is visible, and rows
    that both contain would not be found as duplicates. The lock is not the customer's row: a batch that commits locks
    the rows of all its customers, and submitting must not wait for that. SQLite's writers take turns anyway.
    """
    if w.dialect.name == "postgresql":  # customers 2³¹ numbers apart share a lock, so one of them may wait needlessly
        w.execute(select(func.pg_advisory_xact_lock(postgres.Lock.RECEIPT, customer_number % 2**31)))


def _submission(account: "Account", appended: bool) -> dict[str, Any]:
    values: dict[str, Any] = {**vars(account), "account_id": account.account_id.hex, "appended": appended}
    limit: Decimal | None = account.credit_limit
    return values | {"credit_limit": None if limit is None else str(limit)}
