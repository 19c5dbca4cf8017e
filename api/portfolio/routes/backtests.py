"""Backtests: versions of a policy compared over the portfolio."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from api.core.schemas.common import Paging
from api.core.schemas.jobs import JobView
from api.http.answers import accepted_job, answer, totals
from api.http.dependencies import Allow, BacktestId, Caller, PolicySlug
from api.http.documented import DAMAGED_FILE, Page, enveloped, refuses, shows
from api.http.idempotency import IDEMPOTENT
from api.http.route import Route, heavy
from api.portfolio import backtesting
from api.portfolio.portfolio_jobs import page_answer, require_done, rows_answer, start, unfinished
from api.portfolio.schemas.backtests import (
    BacktestListView,
    BacktestResultView,
    ChangedListView,
    SentBacktest,
    WhichChanges,
)
from pipelines.pages import CONTENT_POLICY
from storage.decisions import policies
from storage.portfolio import portfolio_jobs
from storage.portfolio.portfolio_jobs import BACKTEST

router = APIRouter(route_class=Route, prefix="/v1/decision-policies/{slug}", tags=["Decision policies"])
Author = Annotated[Caller, Depends(Allow("decision-policies:write"))]
NO_VERSION = "DecisionPolicy.VersionNotFound"
UNFINISHED = unfinished(BACKTEST)


@router.post(
    "/backtest",
    status_code=202,
    response_model=enveloped(JobView),
    responses=shows(202, "backtest") | refuses(NO_VERSION, *backtesting.REFUSES),
    dependencies=[IDEMPOTENT],
)
def backtest_decision_policy(caller: Author, slug: PolicySlug, sent: SentBacktest) -> Response:
    """Compare a version with another one, or with what was decided, over the whole portfolio; poll the job.

    An archived policy can be looked at, too. Nothing is decided by it.
    """
    with caller.reading() as r:
        new = backtesting.asked(r, caller.policy(r, slug), sent, caller.today)
    with caller.writing() as w:
        return caller.keep(w, accepted_job(start(w, new, caller.actor, caller.now)))


@router.get("/backtests", response_model=enveloped(BacktestListView))
def list_backtests(caller: Author, slug: PolicySlug, query: Annotated[Paging, Query()]) -> Response:
    """List the policy's backtests, newest first."""
    with caller.reading() as r:
        found = portfolio_jobs.find(r, caller.policy(r, slug).policy_id, query.asked())
    return answer({"backtests": [backtesting.shown(each) for each in found.items], **totals(found)})


@router.get("/backtests/{backtestId}", response_model=enveloped(BacktestResultView))
def get_backtest(caller: Author, slug: PolicySlug, backtest_id: BacktestId) -> Response:
    """Read a backtest: what was asked for, how far it has come, and what came of it, day by day."""
    with caller.reading() as r:
        job = caller.backtest(r, slug, backtest_id)
        return answer({**backtesting.shown(job), "days": portfolio_jobs.result(r, job)})


@router.get(
    "/backtests/{backtestId}/customers",
    response_model=enveloped(ChangedListView),
    responses=refuses(UNFINISHED, *DAMAGED_FILE),
)
def list_changed_customers(
    caller: Author, slug: PolicySlug, backtest_id: BacktestId, query: Annotated[WhichChanges, Query()]
) -> Response:
    """List who changes, in outcome or in limits, with the rules that make it so."""
    with caller.reading() as r:
        job = caller.backtest(r, slug, backtest_id)
        changed = portfolio_jobs.listing(r, require_done(job), query.change)
    return rows_answer(caller.store.lake, changed, query.asked(), "customers", backtesting.changed)


@router.get("/backtests/{backtestId}/page.html", response_class=Page, responses=refuses(UNFINISHED, *DAMAGED_FILE))
@heavy
def get_backtest_page(caller: Author, slug: PolicySlug, backtest_id: BacktestId) -> Response:
    """Read a backtest as one printable page with charts, which fetches nothing and runs no script."""
    with caller.reading() as r:
        job = require_done(caller.backtest(r, slug, backtest_id))
        name = policies.version(r, caller.policy(r, slug), job.version).policy.name
        days, of = portfolio_jobs.result(r, job), portfolio_jobs.listing(r, job)
    return page_answer(backtesting.as_page(caller.store.lake, job, name, days, of), CONTENT_POLICY)
