"""Starting, reading and paging portfolio jobs, whatever their kind."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from starlette.responses import HTMLResponse, Response

from api.core.schemas.rules import MAX_FAULTS
from api.http.answers import encode, streamed, totals
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
# As the audit trail has it: what was done, and the public name of the id of what it was done to.
AUDITED = {
    BACKTEST: ("Policy.BacktestRequested", "policyId"),
    SIMULATION: ("Ruleset.SimulationRequested", "rulesetId"),
}
Row = Mapping[str, Any]


def unfinished(kind: Kind) -> str:
    """Return the code of the error for a job without a result."""
    return kind.code("Unfinished")


def start(w: Writing, new: NewPortfolioJob, actor: Actor, now: datetime) -> Job:
    """Accept a job, and write down who asked for it."""
    action, subject = AUDITED[new.kind]
    job = portfolio_jobs.request(w, new, actor.who, now)
    ids = {subject: new.subject_id, "jobId": job.job_id}
    audit.append(w, actor, action, ids, now, client_id=new.client_id)
    return job


def require_known(r: Reading, client_id: UUID, ids: Sequence[UUID], code: str, pointer: str) -> Mapping[UUID, int]:
    """Return the numbers of the client's customers.

    Args:
        pointer: to an id in the request, with `{nth}` for its place.

    Raises:
        InvalidRequest: with this code, if a customer is not known.
    """
    known = numbers_of(r, client_id, ids)
    faults = [
        Fault(pointer.format(nth=nth), code, "There is no customer with this id.")
        for nth, each in enumerate(ids)
        if each not in known
    ]
    if faults:
        raise InvalidRequest(code, "Some customers are not known.", tuple(faults[:MAX_FAULTS]))
    return known


def numbers_of(r: Reading, client_id: UUID, ids: Sequence[UUID]) -> Mapping[UUID, int]:
    """Return the numbers of those customers who are the client's own, however many ids there are."""
    slices = (ids[start : start + IDS_AT_ONCE] for start in range(0, len(ids), IDS_AT_ONCE))
    return {id_: number for some in slices for id_, number in customers.numbers(r, client_id, some).items()}


def shown(job: PortfolioJob, named: Sequence[UUID] | None) -> dict[str, Any]:
    """Return what every kind's lists and results show.

    Args:
        named: the customers whom the request names; None: all customers are meant.
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
        Conflict: it has come to no result, or not yet.
    """
    if not job.is_done:
        raise Conflict(unfinished(job.kind), f"The {job.kind.noun} has come to no result: see its job.")
    return job


def rows_answer(lake: Lake, of: Listing, page: Page | None, name: str, public: Callable[[Row], Row]) -> Response:
    """Answer with a page of a job's rows, read and sent some at a time.

    Args:
        public: turns a row of the lake into what the API lists under `name`.
    """
    counts = totals(Paged(range(of.total), of.total, page))
    frames = portfolio_jobs.rows_of(lake, of, page)
    return streamed(name, counts, (b",".join(encode(public(row)) for row in frame.to_dicts()) for frame in frames))


def first_rows(lake: Lake, of: Listing, count: int, public: Callable[[Row], Row]) -> list[Row]:
    """Return the first of a job's rows as the API lists them."""
    return [public(row) for frame in portfolio_jobs.rows_of(lake, of, Page(1, count)) for row in frame.to_dicts()]


def page_answer(content: str, policy: str) -> Response:
    """Answer with a page under its content policy."""
    return HTMLResponse(content, headers={"Content-Security-Policy": policy})
