"""PDF statements: the original files, encrypted; the statements read from them; and the landing of their rows.

A file goes through two transactions. The first, on receipt, stores the job and its files. The second, when all files of
the job have been read, stores the statements, gives the job its place in the order of receipt and queues it for
enrichment. If the process dies before that, the files are simply read again.

Statements of retracted or failed submissions are not found any more. So if a file of such a submission is sent again,
it is also read again.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import polars as pl
from sqlalchemy import ColumnElement, exists, insert, null, select, update

from pipelines.enrichment.matching.replacements import PERIODS
from pipelines.intake.accounts import Account
from pipelines.intake.pdf.page.result import Extraction, Kind, Reason, Refusal, Severity, Signal, Statement, Verdict
from pipelines.intake.statement_rows import entries_of
from pipelines.vocabulary.errors import NotFound
from pipelines.vocabulary.schemas import STATEMENT_ROWS
from storage.core.database import AnyRow, AnySelect, Reading, Writing, read_values
from storage.core.lake import Lake, StoredFile
from storage.core.models import Flow, JobStatus, Stage, segments, statement_files, statements
from storage.core.models import jobs as all_jobs
from storage.core.paging import Page, Paged, count_total, limit_to_page
from storage.core.segments import register
from storage.core.store import Store
from storage.core.vault import Vault
from storage.customers.customers import Customer
from storage.jobs import batches, jobs
from storage.jobs.jobs import Ending, Job
from storage.webhooks import outbox

FOLDER = "statements"


@dataclass(frozen=True)
class NewFile:
    """A received file. `stored` is None if it was refused on receipt."""

    file_id: UUID
    file_name: str
    sha256: bytes
    size: int
    stored: StoredFile | None = None
    data_key: int | None = None  # the data key that the original is sealed under
    password: bytes | None = None  # sealed
    refusal: Refusal | None = None
    message: str | None = None


@dataclass(frozen=True)
class StatementFile:
    """A file before or after it was read. Its position in the request counts from 1."""

    file_id: UUID
    job_id: UUID
    customer_number: int
    position: int
    file_name: str
    sha256: bytes
    path: str | None
    stored_sha256: bytes | None
    password: bytes | None
    had_password: bool
    repeats: UUID | None
    refusal: str | None
    message: str | None
    pages: int | None
    signals: Sequence[Signal]


@dataclass(frozen=True)
class StoredStatement:
    """A statement read from a file, for one account: a file with several accounts has several statements."""

    statement_id: UUID
    file_id: UUID
    job_id: UUID
    file_name: str
    account_id: UUID
    bank: str | None
    bank_name: str | None
    account_name: str | None
    bsb: str | None
    account_number: str | None
    account_type: str | None
    credit_limit: Decimal | None
    kind: Kind
    period_start: date | None
    period_end: date | None
    opening_balance: Decimal | None
    closing_balance: Decimal | None
    verdict: Verdict
    reasons: Sequence[Reason]
    row_count: int
    first_page: int
    last_page: int
    read_by_ocr: bool
    extracted_at: datetime


@dataclass(frozen=True)
class ReadFile:
    """A file with its extraction.

    If an identical file was read before, `repeats` is that file's id, and `accounts` holds the accounts of that file's
    statements: they can't be derived from the stored statements, in which card numbers are masked.
    """

    file: StatementFile
    extraction: Extraction
    repeats: UUID | None = None
    accounts: Sequence[UUID] = ()


@dataclass(frozen=True)
class ReadJob:
    """Everything that was read for one job. `landing` and `rows` are files that are durable in the lake.

    `statements`, `accounts` and `origin` (the id of the statement's file) are by statement id.
    """

    job: Job
    files: Sequence[ReadFile]
    statements: Mapping[UUID, Statement]
    accounts: Mapping[UUID, Account]
    origin: Mapping[UUID, UUID]
    landing: StoredFile
    rows: tuple[StoredFile, int]  # STATEMENT_ROWS, with their number
    landed_rows: int
    repeated_rows: int
    warnings: Sequence[Mapping[str, str]]

    @property
    def refused_files(self) -> int:
        """The number of files that were refused, wholly or in part."""
        return sum(file.extraction.message is not None for file in self.files)


def seal_original(vault: Vault, file_id: UUID, content: bytes) -> bytes:
    return vault.seal(content, original_context(file_id))


def seal_password(vault: Vault, file_id: UUID, password: str) -> bytes:
    return vault.seal(password.encode(), password_context(file_id))


def open_original(store: Store, file: StatementFile) -> bytes:
    """Return the file as it was sent.

    Raises:
        Corrupt: the stored file is missing or damaged.
    """
    path = store.lake.verified_path(file.path or "", file.stored_sha256 or b"")
    return store.vault.open(path.read_bytes(), original_context(file.file_id))


def open_password(vault: Vault, file: StatementFile) -> str | None:
    """Return the password that was sent with the file. It is stored only until the file has been read."""
    if file.password is None:
        return None
    return vault.open(file.password, password_context(file.file_id)).decode()


def original_context(file_id: UUID) -> bytes:
    """Return the context that a file's original is sealed for."""
    return b"statement original:" + file_id.bytes


def password_context(file_id: UUID) -> bytes:
    """Return the context that a file's password is sealed for."""
    return b"statement password:" + file_id.bytes


def submit(
    w: Writing, lake: Lake, customer: Customer, job_id: UUID, files: Sequence[NewFile], who: str, now: datetime
) -> Job:
    """Accept files whose sealed originals are already durable in the lake.

    Raises:
        Unavailable: one of them was removed as an orphan.
    """
    refused = sum(file.refusal is not None for file in files)
    job = jobs.submit_extraction(w, customer, job_id, refused, who, now)
    rows = [_file_row(customer, job_id, position, file, now) for position, file in enumerate(files, start=1)]
    w.execute(insert(statement_files), rows)
    for file in files:
        if file.stored is not None:
            lake.require(w, file.stored.path)
    return job


def _file_row(customer: Customer, job_id: UUID, position: int, file: NewFile, now: datetime) -> dict[str, Any]:
    return {
        "file_id": file.file_id,
        "job_id": job_id,
        "customer_number": customer.number,
        "position": position,
        "file_name": file.file_name,
        "sha256": file.sha256,
        "bytes": file.size,
        "path": file.stored and file.stored.path,
        "stored_sha256": file.stored and file.stored.sha256,
        "data_key": file.data_key,
        "password": file.password,
        "had_password": file.password is not None,
        "refusal": file.refusal,
        "message": file.message,
        "created_at": now,
    }


def list_files(r: Reading, job: Job) -> list[StatementFile]:
    """Return the job's files in the order of the request."""
    return [*find_files(r, job).items]


def find_files(r: Reading, job: Job, page: Page | None = None) -> Paged[StatementFile]:
    """Return a page of the job's files, in the order of the request."""
    query = _FILES.where(statement_files.c.job_id == job.job_id).order_by(statement_files.c.position)
    return Paged([_as_file(row) for row in r.execute(limit_to_page(query, page))], count_total(r, query), page)


def get_file(r: Reading, file_id: UUID) -> StatementFile:
    return _as_file(r.execute(_FILES.where(statement_files.c.file_id == file_id)).one())


def find_earlier_reading(r: Reading, lake: Lake, file: StatementFile) -> ReadFile | None:
    """Return what was read from an identical file of an earlier submission, unless that failed or was retracted.

    Raises:
        Corrupt: the file that stores the rows is damaged.
    """
    same = (
        statement_files.c.customer_number == file.customer_number,
        statement_files.c.sha256 == file.sha256,
        statement_files.c.job_id != file.job_id,
        statement_files.c.refusal.is_(None),
        statement_files.c.pages.is_not(None),
    )
    job = all_jobs.c.job_id == statement_files.c.job_id
    query = _FILES.join(all_jobs, job).where(*same, _is_valid()).order_by(all_jobs.c.received_seq.desc()).limit(1)
    row = r.execute(query).first()
    if row is None:
        return None
    earlier = _as_file(row)
    stored = _statements_of_file(r, earlier)
    read = tuple(_restore(lake, r, statement) for statement in stored)
    extraction = Extraction(earlier.pages or 0, read, tuple(earlier.signals), message=earlier.message)
    return ReadFile(file, extraction, earlier.file_id, [statement.account_id for statement in stored])


def record_progress(w: Writing, token: int, job: Job, done: int, total: int) -> None:
    """Record how many pages of a job were read, for requests of its status. No effect if the batch was given up."""
    selected = (
        all_jobs.c.job_id == job.job_id,
        all_jobs.c.batch_token == token,
        all_jobs.c.status == JobStatus.RUNNING,
    )
    w.execute(update(all_jobs).where(*selected).values(pages_done=done, pages_total=total))


def land(w: Writing, lake: Lake, token: int, read: ReadJob, now: datetime) -> None:
    """Store what was read, and queue the job for enrichment, as received now.

    Raises:
        Superseded: the batch or the job in it was given up, so that another run reads the files. Nothing was changed.
        Unavailable: a file was removed as an orphan.
    """
    batches.require_open(w, token)
    _close_files(w, read.files)
    if read.statements:
        w.execute(insert(statements), _statement_rows(read, now))
    register(w, lake, read.rows, now)
    jobs.lock_receipt(w, read.job.customer_number)
    _queue_for_enrichment(w, token, read, now)
    lake.require(w, read.landing.path)
    outcome = jobs.job_outcome(Ending(read.job, JobStatus.RUNNING, None))
    outcome = replace(outcome, received=read.landed_rows, duplicates=read.repeated_rows)
    outbox.enqueue(w, outbox.extraction_events(read.job.customer_number, outcome, now))


def refuse(
    w: Writing, token: int, job: Job, files: Sequence[ReadFile], warnings: Sequence[Mapping[str, str]],
    error: Mapping[str, str], now: datetime,
) -> None:  # fmt: skip
    """Fail a job because none of its files could be read.

    Raises:
        Superseded: as with `land`.
    """
    batches.require_open(w, token)
    _close_files(w, files)
    _update_job(w, token, job, {"warnings": list(warnings), "refused_files": len(files), **_pages(files)})
    jobs.finish(w, [Ending(job, JobStatus.FAILED, None, error=error)], now)


def _close_files(w: Writing, files: Sequence[ReadFile]) -> None:
    for file in files:
        extraction = file.extraction
        values = {
            "password": None,
            "repeats": file.repeats,
            "refusal": extraction.refusal,
            "message": extraction.message,
            "pages": extraction.pages,
            "signals": [asdict(signal) for signal in extraction.signals],
        }
        w.execute(update(statement_files).where(statement_files.c.file_id == file.file.file_id).values(values))


def _pages(files: Sequence[ReadFile]) -> dict[str, int]:
    pages = sum(file.extraction.pages for file in files)
    return {"pages_total": pages, "pages_done": pages}


def _queue_for_enrichment(w: Writing, token: int, read: ReadJob, now: datetime) -> None:
    landed = {
        "received_seq": jobs.draw_received_seq(w),
        "landed_at": now,
        "landing_path": read.landing.path,
        "landing_sha256": read.landing.sha256,
        "received_rows": read.landed_rows,
        "repeated_rows": read.repeated_rows,
        "statement_rows_path": read.rows[0].path,
        "refused_files": read.refused_files,
        "warnings": list(read.warnings),
        "stage": Stage.ENRICHMENT,
        "status": JobStatus.QUEUED,
        "batch_token": None,
        "attempts": 0,
        "not_before": None,
    }
    _update_job(w, token, read.job, landed | _pages(read.files))


def _update_job(w: Writing, token: int, job: Job, values: Mapping[str, Any]) -> None:
    """Update the job. Raise Superseded if it no longer belongs to this batch."""
    selected = (
        all_jobs.c.job_id == job.job_id,
        all_jobs.c.batch_token == token,
        all_jobs.c.status == JobStatus.RUNNING,
        all_jobs.c.stage == Stage.EXTRACTION,
    )
    if w.execute(update(all_jobs).where(*selected).values(dict(values))).rowcount == 0:
        raise batches.Superseded(token)


def _statement_rows(read: ReadJob, now: datetime) -> list[dict[str, Any]]:
    return [
        {
            "statement_id": statement_id,
            "file_id": read.origin[statement_id],
            "job_id": read.job.job_id,
            "customer_number": read.job.customer_number,
            "position": position,
            "extracted_at": now,
            **_account_values(statement, read.accounts[statement_id]),
            **_statement_values(statement),
        }
        for position, (statement_id, statement) in enumerate(read.statements.items(), start=1)
    ]


def _account_values(statement: Statement, account: Account) -> dict[str, Any]:
    return {
        "account_id": account.account_id,
        "bank": statement.bank,
        "bank_name": account.bank_name,
        "account_name": account.account_name,
        "bsb": account.bsb,
        "account_number": account.account_number,
        "account_type": account.account_type,
        "credit_limit": _text(account.credit_limit),
    }


def _statement_values(statement: Statement) -> dict[str, Any]:
    return {
        "kind": statement.kind,
        "period_start": statement.period_start,
        "period_end": statement.period_end,
        "opening_balance": _text(statement.opening_balance),
        "closing_balance": _text(statement.closing_balance),
        "verdict": statement.verdict,
        "reasons": [asdict(reason) for reason in statement.reasons],
        "row_count": len(statement.entries),
        "first_page": statement.first_page,
        "last_page": statement.last_page,
        "read_by_ocr": statement.read_by_ocr,
    }


def find(
    r: Reading, customer: Customer, page: Page | None = None, job_id: UUID | None = None
) -> Paged[StoredStatement]:
    """Return the customer's valid statements, the last read first; only those of a submission if its job is given."""
    query = _VALID_STATEMENTS.where(statements.c.customer_number == customer.number)
    if job_id is not None:
        query = query.where(statements.c.job_id == job_id)
    newest_first = (statements.c.extracted_at.desc(), statements.c.job_id, statements.c.position)
    rows = r.execute(limit_to_page(query.order_by(*newest_first), page))
    return Paged([_as_statement(row) for row in rows], count_total(r, query), page)


def find_periods(r: Reading, customer_numbers: Collection[int]) -> pl.DataFrame:
    """Return the customers' valid statements that were issued for a stated period, in schema PERIODS."""
    issued = (
        statements.c.customer_number.in_(customer_numbers),
        statements.c.kind == Kind.STATEMENT,
        statements.c.period_start.is_not(None),
        statements.c.period_end.is_not(None),
        statements.c.account_number.is_not(None),
    )
    columns = [statement_files.c.file_name if name == "file_name" else statements.c[name] for name in PERIODS]
    rows = r.execute(_VALID_STATEMENTS.with_only_columns(*columns).where(*issued))
    return pl.DataFrame([_as_period(row) for row in rows], schema=PERIODS)


def get(r: Reading, customer: Customer, statement_id: UUID) -> StoredStatement:
    """Return the customer's statement.

    Raises:
        NotFound: unknown, another customer's, or retracted.
    """
    selected = (statements.c.customer_number == customer.number, statements.c.statement_id == statement_id)
    row = r.execute(_VALID_STATEMENTS.where(*selected)).first()
    if row is None:
        raise NotFound("Statement.NotFound", "There is no statement with this id.")
    return _as_statement(row)


def read_rows(r: Reading, lake: Lake, statement: StoredStatement) -> pl.DataFrame:
    """Return the statement's rows in order, in schema STATEMENT_ROWS. Newer columns are null in older files.

    Raises:
        Corrupt: the file that stores them is damaged.
    """
    file = (
        select(segments.c.path, segments.c.sha256)
        .join(all_jobs, all_jobs.c.statement_rows_path == segments.c.path)
        .where(all_jobs.c.job_id == statement.job_id)
    )
    path, sha256 = r.execute(file).one()
    rows = pl.scan_parquet(lake.verified_path(path, sha256), schema=STATEMENT_ROWS, missing_columns="insert")
    return rows.filter(pl.col("statement_id") == statement.statement_id.bytes).sort("row").collect()


def _statements_of_file(r: Reading, file: StatementFile) -> list[StoredStatement]:
    query = _STATEMENTS.where(statements.c.file_id == file.file_id).order_by(statements.c.position)
    return [_as_statement(row) for row in r.execute(query)]


def _restore(lake: Lake, r: Reading, stored: StoredStatement) -> Statement:
    """Return the statement as it was extracted, except for masked numbers."""
    values = {
        name: getattr(stored, name)
        for name in Statement.__dataclass_fields__
        if name not in ("reasons", "entries", "currency")  # stored statements are all in the service's currency
    }
    return Statement(**values, reasons=tuple(stored.reasons), entries=entries_of(read_rows(r, lake, stored)))


def _is_valid() -> ColumnElement[bool]:
    """Return the condition that the job of a file or statement has not failed and was not retracted."""
    retraction = all_jobs.alias("retraction")
    retracted = exists(null()).where(
        retraction.c.retracts == all_jobs.c.job_id,
        retraction.c.flow == Flow.RETRACTION,
        retraction.c.status.in_((JobStatus.COMPLETED, JobStatus.COMPLETED_WITH_ERRORS)),
    )
    return ~retracted & (all_jobs.c.status != JobStatus.FAILED)


_FILES: AnySelect = select(*(statement_files.c[name] for name in StatementFile.__dataclass_fields__)).select_from(
    statement_files
)
_STATEMENTS: AnySelect = select(
    *(statements.c[name] for name in StoredStatement.__dataclass_fields__ if name != "file_name"),
    statement_files.c.file_name,
).join_from(statements, statement_files)
_VALID_STATEMENTS = _STATEMENTS.join(all_jobs, all_jobs.c.job_id == statements.c.job_id).where(_is_valid())


def _as_file(row: AnyRow) -> StatementFile:
    return StatementFile(**read_values(row, signals=_signals(row.signals)))


def _as_statement(row: AnyRow) -> StoredStatement:
    reasons = tuple(Reason(**reason) for reason in row.reasons)
    values = read_values(row, reasons=reasons, kind=Kind(row.kind), verdict=Verdict(row.verdict))
    for name in ("credit_limit", "opening_balance", "closing_balance"):
        values[name] = None if values[name] is None else Decimal(values[name])
    return StoredStatement(**{name: values[name] for name in StoredStatement.__dataclass_fields__})


def _as_period(row: AnyRow) -> dict[str, Any]:
    ids = {name: getattr(row, name).bytes for name in ("statement_id", "account_id", "job_id")}
    others = {name: getattr(row, name) for name in ("customer_number", "file_name", "period_start", "period_end")}
    opening = None if row.opening_balance is None else Decimal(row.opening_balance)
    return {**ids, **others, "opening_balance": opening}


def _signals(stored: Sequence[Mapping[str, Any]] | None) -> tuple[Signal, ...]:
    return tuple(_signal(**signal) for signal in stored or ())


def _signal(severity: str, **rest: Any) -> Signal:
    return Signal(severity=Severity(severity), **rest)


def _text(amount: Decimal | None) -> str | None:
    return None if amount is None else f"{amount:.2f}"
