"""Jobs over a client's portfolio rather than one customer: their requests, progress and results.

When a job begins, its slices are listed. Runs, which may share a job, compute and record them one by one: tallies,
which can be added up, in the database, and rows in the lake. If a run is killed, only the slices that are not recorded
are computed again. Requests and tallies differ by kind of job. No webhook reports these jobs.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from io import BytesIO
from typing import Any
from uuid import UUID, uuid4

import msgspec
import polars as pl
from sqlalchemy import BigInteger, ColumnElement, cast, func, insert, select, update

from pipelines.figures.tallies import Tallies
from pipelines.monitoring.simulation import MAX_FIRINGS
from pipelines.vocabulary.errors import NotFound
from storage.core.database import AnyRow, AnySelect, Reading, Writing, read_values
from storage.core.lake import Lake, StoredFile
from storage.core.models import TERMINAL, Flow, JobStatus, customers, jobs, portfolio_jobs, segments
from storage.core.models import portfolio_job_slices as slices
from storage.core.paging import Page, Paged, count_total, limit_to_page
from storage.core.segments import register
from storage.jobs.jobs import Ending, Job, as_job, finish, select_jobs
from storage.jobs.jobs import get as get_job
from storage.portfolio.maintenance import has_transactions

ROWS_AT_ONCE = 1_000  # how many rows of a list are converted and sent at a time

_encode = msgspec.json.Encoder(decimal_format="number", order="deterministic").encode
_decode_frames = msgspec.msgpack.Decoder(dict[str, bytes]).decode


@dataclass(frozen=True)
class Kind:
    """A kind of portfolio job, with what storage has to know about it."""

    flow: Flow
    noun: str  # for messages and codes of errors
    listed_by: str | None  # rows with null in this column are stored but not listed; None: all are listed
    most_listed: int | None  # maximum number of listed rows; None: all

    @property
    def folder(self) -> str:
        """The folder of the lake for its rows."""
        return f"{self.noun}s"

    def code(self, reason: str) -> str:
        """Return the code of an error of this kind."""
        return f"{self.noun.capitalize()}.{reason}"


BACKTEST = Kind(Flow.POLICY_BACKTEST, "backtest", "change", None)
SIMULATION = Kind(Flow.RULESET_SIMULATION, "simulation", None, MAX_FIRINGS)
KINDS = {kind.flow: kind for kind in (BACKTEST, SIMULATION)}


@dataclass(frozen=True)
class NewPortfolioJob:
    """A requested portfolio job.

    Args:
        subject_id: the policy or the ruleset, with its `version`.
        request: JSON.
        attachment: further data of the request, such as known outcomes.
    """

    kind: Kind
    client_id: UUID
    subject_id: UUID
    version: int
    request: str
    attachment: pl.DataFrame | None = None


@dataclass(frozen=True)
class PortfolioJob:
    """A portfolio job with its progress. `customers_total` is null until it has begun."""

    job_id: UUID
    client_id: UUID
    kind: Kind
    status: JobStatus
    subject_id: UUID
    version: int
    request: str
    has_attachment: bool
    customers_total: int | None
    customers_done: int
    customers_failed: int
    created_at: datetime
    created_by: str
    started_at: datetime | None

    @property
    def is_done(self) -> bool:
        return self.status in (JobStatus.COMPLETED, JobStatus.COMPLETED_WITH_ERRORS)


def request(w: Writing, new: NewPortfolioJob, who: str, now: datetime) -> Job:
    """Accept a job."""
    job_id = uuid4()
    job: dict[str, Any] = {"job_id": job_id, "client_id": new.client_id, "flow": new.kind.flow, "warnings": []}
    w.execute(insert(jobs).values(**job, status=JobStatus.QUEUED, created_at=now))
    w.execute(
        insert(portfolio_jobs).values(
            job_id=job_id,
            subject_id=new.subject_id,
            version=new.version,
            request=new.request,
            attachment=None if new.attachment is None else _as_parquet(new.attachment),
            created_by=who,
        )
    )
    return get_job(w, new.client_id, job_id)


def _as_parquet(frame: pl.DataFrame) -> bytes:
    buffer = BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


def get(r: Reading, kind: Kind, client_id: UUID, job_id: UUID, subject_id: UUID | None = None) -> PortfolioJob:
    """Return the client's job of this kind.

    Args:
        subject_id: the policy or ruleset that the job must be about.

    Raises:
        NotFound: there is no such job of this client, kind and subject.
    """
    about = [] if subject_id is None else [portfolio_jobs.c.subject_id == subject_id]
    row = r.execute(
        _select().where(_has_id(job_id), jobs.c.client_id == client_id, jobs.c.flow == kind.flow, *about)
    ).first()
    if row is None:
        raise NotFound(kind.code("NotFound"), f"There is no {kind.noun} with this id.")
    return _portfolio_job(row)


def get_of_any_client(r: Reading, job_id: UUID) -> PortfolioJob:
    """Return a job by its id alone, for code that has no client: its run, and commands."""
    return _portfolio_job(r.execute(_select().where(_has_id(job_id))).one())


def find(r: Reading, subject_id: UUID, page: Page | None = None) -> Paged[PortfolioJob]:
    """Return the jobs about a policy or a ruleset, newest first."""
    query = _select().where(portfolio_jobs.c.subject_id == subject_id).order_by(jobs.c.received_seq.desc())
    rows = r.execute(limit_to_page(query, page))
    return Paged([_portfolio_job(row) for row in rows], count_total(r, query), page)


def find_waiting(r: Reading) -> list[Job]:
    """Return the jobs that have not begun, in order of receipt."""
    selected = select_jobs().where(jobs.c.flow.in_(KINDS), jobs.c.status == JobStatus.QUEUED)
    return [as_job(row) for row in r.execute(selected.order_by(jobs.c.received_seq))]


def read_attachment(r: Reading, job: PortfolioJob) -> pl.DataFrame | None:
    content: bytes | None = r.execute(select(portfolio_jobs.c.attachment).where(_has_id(job.job_id))).scalar_one()
    return None if content is None else pl.read_parquet(BytesIO(content))


def read_result(r: Reading, job: PortfolioJob) -> Any:
    """Return the job's result, with decimals for numbers with a point; None until it is done."""
    text = r.execute(select(portfolio_jobs.c.result).where(_has_id(job.job_id))).scalar_one()
    return None if text is None else json.loads(text, parse_float=Decimal)


# The customers of a job, and its slices


@dataclass(frozen=True)
class Population:
    """The customers of a job: all of the client's, or only those in `named`."""

    client_id: UUID
    named: frozenset[UUID] | None
    with_transactions: bool  # only customers that have transactions


@dataclass(frozen=True)
class Slice:
    """A part of a job's customers: a range of their numbers, both ends included."""

    job: PortfolioJob
    number: int
    first_customer: int
    last_customer: int


def find_customers(r: Reading, population: Population, within: Slice | None = None) -> list[tuple[int, int]]:
    """Return the numbers of the customers, in order, each with its number of rows."""
    query = select(customers.c.number, customers.c.enriched_rows, customers.c.customer_id).where(
        customers.c.client_id == population.client_id
    )
    if population.with_transactions:
        query = query.where(has_transactions())
    if within is not None:
        query = query.where(customers.c.number.between(within.first_customer, within.last_customer))
    named = population.named
    selected = r.execute(query.order_by(customers.c.number))
    return [(number, rows) for number, rows, id_ in selected if named is None or id_ in named]


def begin(w: Writing, job_id: UUID, now: datetime) -> PortfolioJob:
    """Record that a run begins, unless the job has ended; the run may follow a killed one, or join others."""
    begun = {"attempts": jobs.c.attempts + 1, "started_at": func.coalesce(jobs.c.started_at, now)}
    live = update(jobs).where(jobs.c.job_id == job_id, jobs.c.status.not_in(TERMINAL))
    w.execute(live.values(status=JobStatus.RUNNING, **begun))
    return get_of_any_client(w, job_id)


def list_slices(w: Writing, job: PortfolioJob, parts: Iterable[Sequence[int]]) -> None:
    """List the slices of a job, unless they are listed already. A job without customers has one empty slice.

    Args:
        parts: the customer numbers of each slice, in order.
    """
    w.execute(select(portfolio_jobs.c.job_id).where(_has_id(job.job_id)).with_for_update())  # a second run waits here
    if get_of_any_client(w, job.job_id).customers_total is not None:
        return
    rows = [
        {"slice": nth, "first_customer": part[0], "last_customer": part[-1], "customers": len(part)}
        for nth, part in enumerate(parts)
    ]
    empty = {"slice": 0, "first_customer": 0, "last_customer": 0, "customers": 0}
    w.execute(insert(slices), [{"job_id": job.job_id, **row} for row in rows or [empty]])


def find_remaining_slices(r: Reading, job: PortfolioJob) -> list[Slice]:
    """Return the slices that are not recorded, in order; none if the job has ended."""
    live = select(jobs.c.job_id).where(jobs.c.job_id == job.job_id, jobs.c.status.not_in(TERMINAL))
    left = (slices.c.job_id.in_(live), slices.c.completed_at.is_(None))
    query = select(slices.c.slice, slices.c.first_customer, slices.c.last_customer).where(*left)
    return [Slice(job, *row) for row in r.execute(query.order_by(slices.c.slice))]


@dataclass(frozen=True)
class PartialResult:
    """The result for some customers: rows for the lake, tallies, and the number of customers computed."""

    rows: pl.DataFrame
    tallies: Tallies
    customers: int


def put_rows(lake: Lake, job: PortfolioJob, rows: pl.DataFrame) -> StoredFile | None:
    """Write a slice's rows to a file of the lake, for `record`; return None if there are no rows."""
    return lake.put_frame(f"{job.kind.folder}/{job.job_id}/{uuid4()}.parquet", rows) if rows.height else None


def record(
    w: Writing, lake: Lake, slice_: Slice, part: PartialResult, failed: int, file: StoredFile | None, now: datetime
) -> None:
    """Record a slice. If two runs compute it, only the first is recorded.

    Args:
        failed: the number of customers left out.
        file: the result of `put_rows`.

    Raises:
        Unavailable: the file is gone; the transaction must not commit.
    """
    selected = update(slices).where(slices.c.job_id == slice_.job.job_id, slices.c.slice == slice_.number)
    counted = {"done": part.customers, "failed": failed, "row_counts": _row_counts(slice_.job.kind, part.rows)}
    values = {"completed_at": now, "tallies": _pack(part.tallies), **counted}
    is_first = w.execute(selected.where(slices.c.completed_at.is_(None)).values(values)).rowcount
    if is_first and file is not None:
        w.execute(selected.values(segment_id=register(w, lake, (file, part.rows.height), now)))


def read_tallies(r: Reading, job: PortfolioJob) -> list[Tallies]:
    """Return the tallies of the recorded slices."""
    query = select(slices.c.tallies).where(slices.c.job_id == job.job_id, slices.c.tallies.is_not(None))
    return [_unpack(content) for content in r.execute(query.order_by(slices.c.slice)).scalars()]


def end(w: Writing, job: PortfolioJob, result: Any, now: datetime) -> None:
    """End a job whose slices are all recorded, with its result as data for JSON."""
    failed = get_of_any_client(w, job.job_id).customers_failed
    status = JobStatus.COMPLETED_WITH_ERRORS if failed else JobStatus.COMPLETED
    _end(w, job, status, now, result=_encode(result).decode())


def fail(w: Writing, job: PortfolioJob, error: Mapping[str, str], now: datetime) -> None:
    _end(w, job, JobStatus.FAILED, now, error=error)


def _end(
    w: Writing,
    job: PortfolioJob,
    status: JobStatus,
    now: datetime,
    result: str | None = None,
    error: Mapping[str, str] | None = None,
) -> None:
    """End a job, unless another run has ended it already, and remove the tallies."""
    live = get_job(w, job.client_id, job.job_id)
    if live.status in TERMINAL:
        return
    w.execute(update(portfolio_jobs).where(_has_id(job.job_id)).values(result=result))
    w.execute(update(slices).where(slices.c.job_id == job.job_id).values(tallies=None))
    finish(w, [Ending(live, status, None, error=error)], now)


def _pack(tallies: Tallies) -> bytes:
    buffers = {name: BytesIO() for name in tallies}
    for name, buffer in buffers.items():
        tallies[name].write_ipc(buffer, compression="zstd")
    return msgspec.msgpack.encode({name: buffer.getvalue() for name, buffer in buffers.items()})


def _unpack(content: bytes) -> Tallies:
    return {name: pl.read_ipc(BytesIO(frame)) for name, frame in _decode_frames(content).items()}


# The rows of a finished job


def _row_counts(kind: Kind, rows: pl.DataFrame) -> dict[str, int]:
    if kind.listed_by is None or rows.is_empty():
        return {"all": rows.height}
    return dict(rows[kind.listed_by].drop_nulls().cast(pl.String).value_counts().iter_rows())


@dataclass(frozen=True)
class Listing:
    """The rows of a job that are listed: `is_listed` matches them in `files` (path, SHA-256, number of listed rows)."""

    files: Sequence[tuple[str, bytes, int]]
    is_listed: pl.Expr
    total: int


def read_listing(r: Reading, job: PortfolioJob, value: str | None = None) -> Listing:
    """Return the listing of a finished job.

    Args:
        value: list only rows with this value in the kind's column `listed_by`.
    """
    query = select(segments.c.path, segments.c.sha256, slices.c.row_counts).join_from(slices, segments)
    rows = r.execute(query.where(slices.c.job_id == job.job_id).order_by(slices.c.slice))
    files = [
        (path, sha256, sum(counts.values()) if value is None else counts.get(value, 0)) for path, sha256, counts in rows
    ]
    total = sum(count for _, _, count in files)
    return Listing(files, _is_listed_by(job.kind, value), min(total, job.kind.most_listed or total))


def _is_listed_by(kind: Kind, value: str | None) -> pl.Expr:
    if kind.listed_by is None:
        return pl.lit(value=True)
    column = pl.col(kind.listed_by)
    return column.is_not_null() if value is None else column.cast(pl.String) == value


def read_rows(lake: Lake, listing: Listing, page: Page | None) -> Iterator[pl.DataFrame]:
    """Yield a page's rows in pieces, in the order of the slices. Only files with rows of the page are read.

    Raises:
        Corrupt: a file is damaged.
    """
    first = 0 if page is None else page.offset
    left = listing.total - first if page is None else min(page.count, listing.total - first)
    for path, sha256, count in listing.files:
        if count <= first:
            first -= count
            continue
        if left <= 0:
            return
        rows = pl.scan_parquet(lake.verified_path(path, sha256)).filter(listing.is_listed).slice(first, left).collect()
        yield from rows.iter_slices(ROWS_AT_ONCE)
        first, left = 0, left - rows.height


def _has_id(job_id: UUID) -> ColumnElement[bool]:
    return portfolio_jobs.c.job_id == job_id


def _select() -> AnySelect:
    """Select jobs with the fields of PortfolioJob, but `flow` in place of `kind`."""
    return select(
        *(jobs.c[name] for name in ("job_id", "client_id", "flow", "status", "created_at", "started_at")),
        *(portfolio_jobs.c[name] for name in ("subject_id", "version", "request", "created_by")),
        portfolio_jobs.c.attachment.is_not(None).label("has_attachment"),
        _sum_over_slices(slices.c.customers).label("customers_total"),
        func.coalesce(_sum_over_slices(slices.c.done), 0).label("customers_done"),
        func.coalesce(_sum_over_slices(slices.c.failed), 0).label("customers_failed"),
    ).join_from(portfolio_jobs, jobs)


def _sum_over_slices(column: ColumnElement[int]) -> ColumnElement[int]:
    """Sum a column over a job's slices; null if there are none."""
    selected = slices.c.job_id == portfolio_jobs.c.job_id
    # PostgreSQL's sum of whole numbers is a decimal, hence the cast.
    return select(cast(func.sum(column), BigInteger)).where(selected).correlate(portfolio_jobs).scalar_subquery()


def _portfolio_job(row: AnyRow) -> PortfolioJob:
    values = read_values(row, kind=KINDS[Flow(row.flow)], status=JobStatus(row.status))
    del values["flow"]
    return PortfolioJob(**values)
