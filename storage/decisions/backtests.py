"""Backtests: what was asked for, how far it has come, and what came of it.

A run that is lost begins anew: what it had written is named no more, and swept like any other orphan.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from io import BytesIO
from typing import Any
from uuid import UUID, uuid4

import msgspec
import polars as pl
from sqlalchemy import delete, func, insert, select, update

from pipelines.decisions import Recorded, Value
from pipelines.decisions.backtest import KNOWN_OUTCOMES, LIMITS_CHANGED, OUTCOME_CHANGED
from pipelines.vocabulary.errors import NotFound
from storage.core.database import AnyRow, AnySelect, Reading, Writing, values_of
from storage.core.lake import Lake, Stored
from storage.core.models import Flow, JobStatus, backtest_parts, backtests, customers, evaluations, jobs, segments
from storage.core.paging import Page, Paged, limited, total_of
from storage.core.segments import register
from storage.decisions.policies import StoredPolicy
from storage.jobs.jobs import Job
from storage.portfolio import portfolio_jobs

FOLDER = "backtests"
MOST_DAYS = 24
SLICE_ROWS = 1_000

_encode = msgspec.json.Encoder(decimal_format="number", order="deterministic").encode


class Against(StrEnum):
    """What a version is compared with."""

    VERSION = "version"  # another version
    RECORDED = "recorded"  # what was decided: of each customer the last evaluation that was answered
    CHALLENGER = "challenger"  # what was decided, and what the version's shadow runs made of the same


class Knowledge(StrEnum):
    """Of past days, what is looked at."""

    NOW = "now"  # all that is known by now of the time up to the day
    THEN = "then"  # what had been received, and which attributes were set, by the end of the day


@dataclass(frozen=True)
class Request:
    """`customers` and `attributes` narrow the portfolio down: these ids (None: all), with these values now."""

    against: Against
    other_version: int | None
    days: tuple[date, ...]
    knowledge: Knowledge
    inputs: Mapping[str, Value]
    customers: tuple[UUID, ...] | None = None
    attributes: Mapping[str, Value] | None = None

    def as_json(self) -> str:
        return _encode(vars(self)).decode()

    @classmethod
    def of_json(cls, text: str) -> "Request":
        said = json.loads(text, parse_int=Decimal, parse_float=Decimal)
        only, other = said["customers"], said["other_version"]
        return cls(
            Against(said["against"]),
            None if other is None else int(other),
            tuple(map(date.fromisoformat, said["days"])),
            Knowledge(said["knowledge"]),
            said["inputs"],
            None if only is None else tuple(map(UUID, only)),
            said["attributes"],
        )


@dataclass(frozen=True)
class Backtest:
    """One as it stands. `customers_total` is null until it has begun."""

    job_id: UUID
    client_id: UUID
    policy_id: UUID
    version: int
    request: Request
    knows_outcomes: bool
    customers_total: int | None
    customers_done: int
    customers_failed: int
    created_at: datetime
    created_by: str
    status: JobStatus

    @property
    def is_done(self) -> bool:
        return self.status in (JobStatus.COMPLETED, JobStatus.COMPLETED_WITH_ERRORS)


def request(
    w: Writing,
    policy: StoredPolicy,
    version: int,
    asked: Request,
    known_outcomes: pl.DataFrame | None,
    who: str,
    now: datetime,
) -> Job:
    """Accept a backtest.

    Args:
        known_outcomes: KNOWN_OUTCOMES.
    """
    job = portfolio_jobs.request(w, policy.client_id, Flow.POLICY_BACKTEST, now)
    w.execute(
        insert(backtests).values(
            job_id=job.job_id,
            client_id=policy.client_id,
            policy_id=policy.policy_id,
            version=version,
            request=asked.as_json(),
            known_outcomes=None if known_outcomes is None else _as_parquet(known_outcomes),
            customers_done=0,
            customers_failed=0,
            created_at=now,
            created_by=who,
        )
    )
    return job


def _as_parquet(frame: pl.DataFrame) -> bytes:
    buffer = BytesIO()
    frame.select(pl.col(name).cast(kind) for name, kind in KNOWN_OUTCOMES.items()).write_parquet(buffer)
    return buffer.getvalue()


def get(r: Reading, policy: StoredPolicy, job_id: UUID) -> Backtest:
    """The policy's backtest.

    Raises:
        NotFound: unknown, or another policy's.
    """
    return _one(r, _SHOWN.where(backtests.c.policy_id == policy.policy_id, backtests.c.job_id == job_id))


def with_id(r: Reading, job_id: UUID) -> Backtest:
    """Whoever's it is: for whoever does the work. NotFound where there is none."""
    return _one(r, _SHOWN.where(backtests.c.job_id == job_id))


def find(r: Reading, policy: StoredPolicy, page: Page | None = None) -> Paged[Backtest]:
    """The policy's, newest first."""
    query = _SHOWN.where(backtests.c.policy_id == policy.policy_id).order_by(
        backtests.c.created_at.desc(), backtests.c.job_id
    )
    rows = r.execute(limited(query, page))
    return Paged([_backtest(row) for row in rows], total_of(r, query), page)


def result(r: Reading, backtest: Backtest) -> Any:
    """What it came to (`backtest_result.told`), numbers as decimals; None until it is done."""
    text = r.execute(select(backtests.c.result).where(backtests.c.job_id == backtest.job_id)).scalar_one()
    return None if text is None else json.loads(text, parse_float=Decimal)


def known_outcomes(r: Reading, backtest: Backtest) -> pl.DataFrame:
    """KNOWN_OUTCOMES; empty where none were given."""
    query = select(backtests.c.known_outcomes).where(backtests.c.job_id == backtest.job_id)
    content: bytes | None = r.execute(query).scalar_one()
    return pl.DataFrame(schema=KNOWN_OUTCOMES) if content is None else pl.read_parquet(BytesIO(content))


# The swap set


@dataclass(frozen=True)
class Part:
    path: str
    sha256: bytes
    outcome_changed: int
    limits_changed: int

    def changed(self, change: str | None) -> int:
        counts = {OUTCOME_CHANGED: self.outcome_changed, LIMITS_CHANGED: self.limits_changed}
        return sum(counts.values()) if change is None else counts[change]


def parts(r: Reading, backtest: Backtest) -> list[Part]:
    query = select(
        segments.c.path, segments.c.sha256, backtest_parts.c.outcome_changed, backtest_parts.c.limits_changed
    )
    mine = query.join_from(backtest_parts, segments).where(backtest_parts.c.job_id == backtest.job_id)
    return [Part(*row) for row in r.execute(mine.order_by(backtest_parts.c.part))]


def changed(lake: Lake, of: Sequence[Part], change: str | None, page: Page | None) -> Iterator[pl.DataFrame]:
    """The swap set, in the order of the parts: only the files that hold rows of the page are read, one at a time.

    Raises:
        Corrupt: a file is not what was written.
    """
    first = 0 if page is None else page.offset
    left = sum(part.changed(change) for part in of) if page is None else page.count
    for part in of:
        if (count := part.changed(change)) <= first:
            first -= count
            continue
        if left <= 0:
            return
        wanted = pl.col("change").is_not_null() if change is None else pl.col("change").cast(pl.String) == change
        rows = pl.scan_parquet(lake.verified(part.path, part.sha256)).filter(wanted).slice(first, left).collect()
        yield from rows.iter_slices(SLICE_ROWS)
        first, left = 0, left - rows.height


# The work


def begin(w: Writing, backtest: Backtest, customers_total: int, now: datetime) -> None:
    """A run begins, with nothing of what an interrupted one had written."""
    mine = backtest_parts.c.job_id == backtest.job_id
    written = w.execute(select(backtest_parts.c.segment_id).where(mine)).scalars().all()
    w.execute(delete(backtest_parts).where(mine))
    w.execute(delete(segments).where(segments.c.segment_id.in_(written)))
    fresh = {"customers_total": customers_total, "customers_done": 0, "customers_failed": 0, "result": None}
    w.execute(update(backtests).where(backtests.c.job_id == backtest.job_id).values(fresh))
    portfolio_jobs.begin(w, backtest.job_id, now)


def path_of(backtest: Backtest) -> str:
    """Where a part is written."""
    return f"{FOLDER}/{backtest.job_id}/{uuid4()}.parquet"


def add_part(
    w: Writing, lake: Lake, backtest: Backtest, part: int, stored: Stored, rows: pl.DataFrame, done: int, now: datetime
) -> None:
    """Name a durable file of COMPARISON's rows, and count `done` customers in."""
    segment_id = register(w, (stored, rows.height), now)
    counts = dict(rows["change"].cast(pl.String).value_counts().iter_rows())
    row = {"job_id": backtest.job_id, "part": part, "segment_id": segment_id}
    w.execute(
        insert(backtest_parts).values(
            **row, outcome_changed=counts.get(OUTCOME_CHANGED, 0), limits_changed=counts.get(LIMITS_CHANGED, 0)
        )
    )
    mine = update(backtests).where(backtests.c.job_id == backtest.job_id)
    w.execute(mine.values(customers_done=backtests.c.customers_done + done))
    lake.require(stored.path)


def end(w: Writing, backtest: Backtest, described: Sequence[Mapping[str, Any]], failed: int, now: datetime) -> None:
    """It is done; `failed` customers are not in it."""
    values = {"result": _encode(described).decode(), "customers_failed": failed}
    w.execute(update(backtests).where(backtests.c.job_id == backtest.job_id).values(values))
    portfolio_jobs.end(w, backtest.client_id, backtest.job_id, failed, now)


def latest_records(
    r: Reading, backtest: Backtest, customer_numbers: Sequence[int], by: datetime, *, shadows: bool
) -> dict[int, tuple[Recorded, ...]]:
    """Of each customer the last evaluation by the policy that was answered by a time, what-ifs left out.

    Args:
        shadows: only evaluations that the backtest's version was shadow-run on; that run's record is the second.
    """
    shadow = evaluations.alias("shadow")
    ran = (shadow.c.shadow_of == evaluations.c.evaluation_id) & (shadow.c.version == backtest.version)
    beside = evaluations.join(shadow, ran) if shadows else evaluations
    last = (
        select(func.max(evaluations.c.number))
        .select_from(beside)
        .where(
            evaluations.c.policy_id == backtest.policy_id,
            evaluations.c.customer_number.in_(list(customer_numbers)),
            evaluations.c.shadow_of.is_(None),
            evaluations.c.what_if.is_(False),
            evaluations.c.at <= by,
        )
        .group_by(evaluations.c.customer_number)
    )
    columns = [evaluations.c.customer_number, evaluations.c.record, *([shadow.c.record] if shadows else [])]
    query = select(*columns).select_from(beside).where(evaluations.c.number.in_(last))
    return {number: tuple(map(Recorded.of, records)) for number, *records in r.execute(query)}


def customers_of(r: Reading, backtest: Backtest) -> list[int]:
    """Numbers of the client's customers that are meant, before attributes are looked at."""
    query = select(customers.c.number).where(customers.c.client_id == backtest.client_id)
    only = backtest.request.customers
    if only is None:
        return list(r.execute(query.order_by(customers.c.number)).scalars())
    wanted = set(only)
    named = select(customers.c.number, customers.c.customer_id).where(customers.c.client_id == backtest.client_id)
    return [number for number, id_ in r.execute(named.order_by(customers.c.number)) if id_ in wanted]


_SHOWN: AnySelect = select(
    *(column for column in backtests.c if column.name not in ("known_outcomes", "result", "request")),
    backtests.c.request,
    backtests.c.known_outcomes.is_not(None).label("knows_outcomes"),
    jobs.c.status,
).join_from(backtests, jobs, jobs.c.job_id == backtests.c.job_id)


def _one(r: Reading, query: AnySelect) -> Backtest:
    row = r.execute(query).first()
    if row is None:
        raise NotFound("Backtest.NotFound", "There is no backtest with this id.")
    return _backtest(row)


def _backtest(row: AnyRow) -> Backtest:
    return Backtest(**values_of(row, request=Request.of_json(row.request), status=JobStatus(row.status)))
