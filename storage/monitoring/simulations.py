"""Simulations: for which ruleset and days one was asked, how far it has come, and what came of it.

A run that is lost begins anew. Its firings are written at the end, in the transaction that ends the job: until then
nothing names a file.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import msgspec
import polars as pl
from sqlalchemy import insert, select, update

from pipelines.monitoring import Listed, Ruleset
from pipelines.vocabulary.errors import NotFound
from storage.core.database import AnyRow, AnySelect, Reading, Writing, values_of
from storage.core.lake import Lake, Stored
from storage.core.models import Flow, JobStatus, customers, jobs, segments, simulations
from storage.core.paging import Page, Paged, limited, total_of
from storage.core.segments import register
from storage.jobs.jobs import Job
from storage.monitoring import rulesets
from storage.monitoring.rulesets import StoredRuleset
from storage.portfolio import portfolio_jobs
from storage.portfolio.maintenance import with_transactions

FOLDER = "simulations"
MOST_FIRINGS = 200_000  # that are listed; of more, all are counted
SLICE_ROWS = 1_000

_encode = msgspec.json.Encoder(decimal_format="number").encode


@dataclass(frozen=True)
class Request:
    """`first` to `last` day, both included. `customers`: only these (None: all). `document`: what the ruleset shall
    say, as canonical JSON (None: what its version says).
    """

    first: date
    last: date
    customers: tuple[UUID, ...] | None = None
    document: str | None = None

    def as_json(self) -> str:
        return _encode(vars(self)).decode()

    @classmethod
    def of_json(cls, text: str) -> "Request":
        said = json.loads(text)
        only = said["customers"]
        return cls(
            date.fromisoformat(said["first"]),
            date.fromisoformat(said["last"]),
            None if only is None else tuple(map(UUID, only)),
            said["document"],
        )


@dataclass(frozen=True)
class Simulation:
    """One as it stands. `customers_total` is null until it has begun, `firings` until it is done."""

    job_id: UUID
    client_id: UUID
    ruleset_id: UUID
    version: int
    request: Request
    customers_total: int | None
    customers_done: int
    customers_failed: int
    created_at: datetime
    created_by: str
    status: JobStatus

    @property
    def is_done(self) -> bool:
        return self.status in (JobStatus.COMPLETED, JobStatus.COMPLETED_WITH_ERRORS)


def request(w: Writing, stored: StoredRuleset, asked: Request, who: str, now: datetime) -> Job:
    """Accept a simulation of the ruleset by its newest version."""
    job = portfolio_jobs.request(w, stored.client_id, Flow.RULESET_SIMULATION, now)
    w.execute(
        insert(simulations).values(
            job_id=job.job_id,
            client_id=stored.client_id,
            ruleset_id=stored.ruleset_id,
            version=stored.version,
            request=asked.as_json(),
            customers_done=0,
            customers_failed=0,
            created_at=now,
            created_by=who,
        )
    )
    return job


def get(r: Reading, client_id: UUID, job_id: UUID) -> Simulation:
    """The client's simulation, whichever ruleset's it is.

    Raises:
        NotFound: unknown, or another client's.
    """
    return _one(r, _SHOWN.where(simulations.c.client_id == client_id, simulations.c.job_id == job_id))


def with_id(r: Reading, job_id: UUID) -> Simulation:
    """Whoever's it is: for whoever does the work. NotFound where there is none."""
    return _one(r, _SHOWN.where(simulations.c.job_id == job_id))


def find(r: Reading, stored: StoredRuleset, page: Page | None = None) -> Paged[Simulation]:
    """The ruleset's, newest first."""
    query = _SHOWN.where(simulations.c.ruleset_id == stored.ruleset_id).order_by(
        simulations.c.created_at.desc(), simulations.c.job_id
    )
    rows = r.execute(limited(query, page))
    return Paged([_simulation(row) for row in rows], total_of(r, query), page)


def simulated_ruleset(r: Reading, simulation: Simulation) -> Ruleset:
    """What was simulated: the document that was sent along, or the version.

    Raises:
        Corrupt: the version is not what was written.
    """
    if simulation.request.document is not None:
        return Ruleset.model_validate_json(simulation.request.document)
    return rulesets.version(r, simulation.ruleset_id, simulation.version).ruleset


def result(r: Reading, simulation: Simulation) -> Any:
    """What it came to (`simulated.told`); None until it is done."""
    query = select(simulations.c.result).where(simulations.c.job_id == simulation.job_id)
    text = r.execute(query).scalar_one()
    return None if text is None else json.loads(text, parse_float=Decimal)


# Firings


@dataclass(frozen=True)
class Firings:
    """The file of `simulation.FIRINGS` with `customer_id`, and how many there are in it."""

    path: str
    sha256: bytes
    rows: int


def firings(r: Reading, simulation: Simulation) -> Firings:
    """Those of a simulation that is done."""
    query = select(segments.c.path, segments.c.sha256, segments.c.rows).join_from(simulations, segments)
    return Firings(*r.execute(query.where(simulations.c.job_id == simulation.job_id)).one())


def listed(lake: Lake, of: Firings, page: Page | None) -> Iterator[pl.DataFrame]:
    """The firings of a page, customer by customer, some at a time.

    Raises:
        Corrupt: the file is not what was written.
    """
    first, count = (0, of.rows) if page is None else (page.offset, page.count)
    rows = pl.scan_parquet(lake.verified(of.path, of.sha256)).slice(first, count).collect()
    yield from rows.iter_slices(SLICE_ROWS)


# The work


def customers_of(r: Reading, simulation: Simulation, ruleset: Ruleset) -> list[int]:
    """Numbers of the client's customers with transactions that are meant: asked for, and listed by the ruleset."""
    theirs = (customers.c.client_id == simulation.client_id, with_transactions())
    query = select(customers.c.number, customers.c.customer_id).where(*theirs).order_by(customers.c.number)
    narrowed = [simulation.request.customers]
    narrowed += [ruleset.applies_to.customers] if isinstance(ruleset.applies_to, Listed) else []
    wanted = [set(ids) for ids in narrowed if ids is not None]
    return [number for number, id_ in r.execute(query) if all(id_ in ids for ids in wanted)]


def begin(w: Writing, simulation: Simulation, customers_total: int, now: datetime) -> None:
    """A run begins."""
    fresh = {"customers_total": customers_total, "customers_done": 0, "customers_failed": 0}
    w.execute(update(simulations).where(simulations.c.job_id == simulation.job_id).values(fresh))
    portfolio_jobs.begin(w, simulation.job_id, now)


def count_done(w: Writing, simulation: Simulation, done: int) -> None:
    mine = update(simulations).where(simulations.c.job_id == simulation.job_id)
    w.execute(mine.values(customers_done=simulations.c.customers_done + done))


def path_of(simulation: Simulation) -> str:
    """Where its firings are written."""
    return f"{FOLDER}/{simulation.job_id}/{uuid4()}.parquet"


def end(
    w: Writing,
    lake: Lake,
    simulation: Simulation,
    described: Mapping[str, Any],
    file: tuple[Stored, int],
    failed: int,
    now: datetime,
) -> None:
    """It is done; `failed` customers are not in it.

    Args:
        file: the firings, durable, and how many they are.
    """
    segment_id = register(w, file, now)
    values = {"result": _encode(described).decode(), "customers_failed": failed, "segment_id": segment_id}
    w.execute(update(simulations).where(simulations.c.job_id == simulation.job_id).values(values))
    portfolio_jobs.end(w, simulation.client_id, simulation.job_id, failed, now)
    lake.require(file[0].path)


_SHOWN: AnySelect = select(
    *(column for column in simulations.c if column.name not in ("result", "segment_id")), jobs.c.status
).join_from(simulations, jobs, jobs.c.job_id == simulations.c.job_id)


def _one(r: Reading, query: AnySelect) -> Simulation:
    row = r.execute(query).first()
    if row is None:
        raise NotFound("Simulation.NotFound", "There is no simulation with this id.")
    return _simulation(row)


def _simulation(row: AnyRow) -> Simulation:
    return Simulation(**values_of(row, request=Request.of_json(row.request), status=JobStatus(row.status)))
