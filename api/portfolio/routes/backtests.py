"""Backtests: versions of a policy compared over the portfolio."""

from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import Response

from api.core.answers import accepted_job, answer, totals
from api.core.deferred import Body, JsonBody, Query, QueryOf
from api.core.dependencies import Allow, BacktestId, Caller, PolicySlug, as_uuid
from api.core.idempotency import idempotent
from api.core.in_turn import InTurn
from api.core.operations import DAMAGED_FILE, gives, shows_page
from api.core.schemas.common import Paging
from api.core.schemas.jobs import EXAMPLE_BACKTEST_JOB, JobView
from api.portfolio import backtesting
from api.portfolio.portfolio_jobs import page_answer, require_done, rows_answer, start, unfinished
from api.portfolio.schemas.backtests import (
    BacktestListView,
    BacktestResultView,
    ChangedListView,
    SentBacktest,
    WhichChanges,
)
from pipelines.decisions.backtest.page import CONTENT_POLICY
from storage.core.database import Reading
from storage.decisions import policies
from storage.portfolio import portfolio_jobs
from storage.portfolio.portfolio_jobs import BACKTEST, PortfolioJob

router = APIRouter(route_class=InTurn, prefix="/v1/decision-policies/{slug}", tags=["Decision policies"])
Author = Annotated[Caller, Depends(Allow("decision-policies:write"))]
BacktestBody = Annotated[Body[SentBacktest], Depends(JsonBody(SentBacktest))]
WhichPage = Annotated[Query[Paging], Depends(QueryOf(Paging))]
WhichOnes = Annotated[Query[WhichChanges], Depends(QueryOf(WhichChanges))]
NOT_ENABLED = "DecisionPolicy.NotEnabled"
NO_VERSION = "DecisionPolicy.VersionNotFound"
UNFINISHED = unfinished(BACKTEST)


@router.post(
    "/backtest",
    **gives(JobView, 202, refuses=[NOT_ENABLED, NO_VERSION, *backtesting.REFUSES], example=EXAMPLE_BACKTEST_JOB),
)
@idempotent
def backtest_decision_policy(caller: Author, slug: PolicySlug, body: BacktestBody) -> Response:
    """Compare a version with another one, or with what was decided, over the whole portfolio; poll the job.

    An archived policy can be looked at, too. Nothing is decided by it.
    """
    with caller.reading() as r:
        new = backtesting.asked(r, caller.policy(r, slug), body.read(), caller.today)
    with caller.writing() as w:
        return caller.keep(w, accepted_job(start(w, new, caller.actor, caller.now)))


@router.get("/backtests", **gives(BacktestListView, refuses=[NOT_ENABLED]))
def list_backtests(caller: Author, slug: PolicySlug, query: WhichPage) -> Response:
    """List the policy's backtests, newest first."""
    with caller.reading() as r:
        found = portfolio_jobs.find(r, caller.policy(r, slug).policy_id, query.read().asked())
    return answer({"backtests": [backtesting.shown(each) for each in found.items], **totals(found)})


@router.get("/backtests/{backtestId}", **gives(BacktestResultView, refuses=[NOT_ENABLED]))
def get_backtest(caller: Author, slug: PolicySlug, backtest_id: BacktestId) -> Response:
    """Read a backtest: what was asked for, how far it has come, and what came of it, day by day."""
    with caller.reading() as r:
        job = _one(caller, r, slug, backtest_id)
        return answer({**backtesting.shown(job), "days": portfolio_jobs.result(r, job)})


@router.get(
    "/backtests/{backtestId}/customers", **gives(ChangedListView, refuses=[NOT_ENABLED, UNFINISHED, *DAMAGED_FILE])
)
def list_changed_customers(caller: Author, slug: PolicySlug, backtest_id: BacktestId, query: WhichOnes) -> Response:
    """List who changes, in outcome or in limits, with the rules that make it so."""
    with caller.reading() as r:
        job = _one(caller, r, slug, backtest_id)
        asked = query.read()
        of = portfolio_jobs.listing(r, require_done(job), asked.change)
    return rows_answer(caller.store.lake, of, asked.asked(), "customers", backtesting.changed)


@router.get("/backtests/{backtestId}/page.html", **shows_page([NOT_ENABLED, UNFINISHED, *DAMAGED_FILE]))
def get_backtest_page(caller: Author, slug: PolicySlug, backtest_id: BacktestId) -> Response:
    """Read a backtest as one printable page with charts, which fetches nothing and runs no script."""
    with caller.reading() as r:
        job = require_done(_one(caller, r, slug, backtest_id))
        name = policies.version(r, caller.policy(r, slug), job.version).policy.name
        days, of = portfolio_jobs.result(r, job), portfolio_jobs.listing(r, job)
    return page_answer(backtesting.as_page(caller.store.lake, job, name, days, of), CONTENT_POLICY)


def _one(caller: Caller, r: Reading, slug: str, backtest_id: str) -> PortfolioJob:
    policy = caller.policy(r, slug)
    return portfolio_jobs.get(r, BACKTEST, caller.client_id, as_uuid(backtest_id), policy.policy_id)
