"""Start, read and page portfolio jobs of every kind."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from starlette.responses import HTMLResponse, Response

from api.core.schemas.rules import MAX_FAULTS
from api.http.responses import encode, stream_list, totals
from pipelines.vocabulary.errors import Conflict, Fault, InvalidRequest
from storage.core import audit
from storage.core.audit import Actor
from storage.core.database import Reading, Writing
from storage.core.lake import Lake
from storage.core.paging import Page, Paged
from storage.customers import customers
from storage.jobs.jobs import Job
from storage.portfolio import portfolio_jobs
from storage.portfolio.portfolio_jobs import BACKTEST, SIMULATION, Kind, Listing, NewPortfolioJob, PortfolioJob

SHOWN_ON_THE_PAGE = 100
IDS_AT_ONCE = 10_000
# For the audit trail: the action, and the public name of the subject's id.
AUDITED = {
    BACKTEST: ("Policy.BacktestRequested", "policyId"),
    SIMULATION: ("Ruleset.SimulationRequested", "rulesetId"),
}
Row = Mapping[str, Any]


def unfinished_code(kind: Kind) -> str:
    """Return the code of the error for a job without a result."""
    return kind.code("Unfinished")


def start(w: Writing, new: NewPortfolioJob, actor: Actor, now: datetime) -> Job:
    """Accept a job, and record in the audit trail who asked for it."""
    action, subject = AUDITED[new.kind]
    job = portfolio_jobs.request(w, new, actor.who, now)
    ids = {subject: new.subject_id, "jobId": job.job_id}
    audit.append(w, actor, action, ids, now, client_id=new.client_id)
    return job


def require_known(r: Reading, client_id: UUID, ids: Sequence[UUID], code: str, pointer: str) -> Mapping[UUID, int]:
    """Return the numbers of the client's customers by their ids.

    Args:
        pointer: pointer to an id in the request, with `{nth}` for its index.

    Raises:
        InvalidRequest: with `code`, if a customer is unknown.
    """
    known = numbers_of(r, client_id, ids)
    faults = [
        Fault(pointer.format(nth=nth), code, "There is no customer with this id.")
        for nth, each in enumerate(ids)
        if each not in known
    ]
    if faults:
        raise InvalidRequest(code, "Some customers are unknown.", tuple(faults[:MAX_FAULTS]))
    return known


def numbers_of(r: Reading, client_id: UUID, ids: Sequence[UUID]) -> Mapping[UUID, int]:
    """Return the numbers of those customers that are the client's, in several queries if there are many ids."""
    slices = (ids[start : start + IDS_AT_ONCE] for start in range(0, len(ids), IDS_AT_ONCE))
    return {id_: number for part in slices for id_, number in customers.numbers(r, client_id, part).items()}


def describe(job: PortfolioJob, named: Sequence[UUID] | None) -> dict[str, Any]:
    """Return the public fields that all kinds of portfolio jobs share.

    Args:
        named: the customers in the request; None: the whole portfolio.
    """
    return {
        "jobId": job.job_id,
        "status": job.status,
        "version": job.version,
        "customersNamed": None if named is None else len(named),
        "customersTotal": job.customers_total,
        "customersDone": job.customers_done,
        "customersFailed": job.customers_failed,
        "dateCreated": job.created_at,
        "createdBy": job.created_by,
    }


def require_done(job: PortfolioJob) -> PortfolioJob:
    """Return the job.

    Raises:
        Conflict: it has no result, or has none yet.
    """
    if not job.is_done:
        raise Conflict(unfinished_code(job.kind), f"The {job.kind.noun} has no result: see the status of its job.")
    return job


def respond_rows(lake: Lake, rows: Listing, page: Page | None, name: str, public: Callable[[Row], Row]) -> Response:
    """Respond with a page of a job's rows, read and sent slice by slice.

    Args:
        name: the name of the list in the response.
        public: returns the public fields of a row of the lake.
    """
    counts = totals(Paged(range(rows.total), rows.total, page))
    frames = portfolio_jobs.read_rows(lake, rows, page)
    return stream_list(name, counts, (b",".join(encode(public(row)) for row in frame.to_dicts()) for frame in frames))


def first_rows(lake: Lake, rows: Listing, count: int, public: Callable[[Row], Row]) -> list[Row]:
    """Return the public fields of the first of a job's rows."""
    frames = portfolio_jobs.read_rows(lake, rows, Page(1, count))
    return [public(row) for frame in frames for row in frame.to_dicts()]


def respond_page(content: str, policy: str) -> Response:
    """Respond with an HTML page and its Content-Security-Policy."""
    return HTMLResponse(content, headers={"Content-Security-Policy": policy})
