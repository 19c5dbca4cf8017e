"""Backtests: versions of a policy compared over the portfolio."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from api.core.schemas.common import Paging
from api.core.schemas.jobs import JobView
from api.decisions.schemas.policies import VersionQuery
from api.http.dependencies import Allow, BacktestId, Caller, PolicySlug
from api.http.documented import DAMAGED_FILE, Page, envelope, refuses, shows
from api.http.idempotency import IDEMPOTENT
from api.http.responses import respond, respond_accepted_job, totals
from api.http.route import Route, heavy
from api.portfolio import backtesting
from api.portfolio.portfolio_jobs import require_done, respond_page, respond_rows, start, unfinished_code
from api.portfolio.schemas.backtests import (
    BacktestListView,
    BacktestResultView,
    ChangedListView,
    ChangesQuery,
    PolicyCoverageView,
    SentBacktest,
)
from pipelines.pages import CONTENT_POLICY
from storage.decisions import policies
from storage.portfolio import portfolio_jobs
from storage.portfolio.portfolio_jobs import BACKTEST

router = APIRouter(route_class=Route, prefix="/v1/decision-policies/{slug}", tags=["Decision policies"])
Author = Annotated[Caller, Depends(Allow("decision-policies:write"))]
NO_VERSION = "DecisionPolicy.VersionNotFound"
UNFINISHED = unfinished_code(BACKTEST)


@router.post(
    "/backtest",
    status_code=202,
    response_model=envelope(JobView),
    responses=shows(202, "backtest") | refuses(NO_VERSION, *backtesting.REFUSES),
    dependencies=[IDEMPOTENT],
)
def backtest_decision_policy(caller: Author, slug: PolicySlug, sent: SentBacktest) -> Response:
    """Compare a version with another one, or with recorded decisions, over the whole portfolio; poll the job.

    Archived policies can be backtested, too. A backtest decides nothing.
    """
    with caller.reading() as r:
        new = backtesting.new_job(r, caller.policy(r, slug), sent, caller.today)
    with caller.writing() as w:
        return caller.store_response(w, respond_accepted_job(start(w, new, caller.actor, caller.now)))


@router.get("/backtests", response_model=envelope(BacktestListView))
def list_backtests(caller: Author, slug: PolicySlug, query: Annotated[Paging, Query()]) -> Response:
    """List the policy's backtests, newest first."""
    with caller.reading() as r:
        found = portfolio_jobs.find(r, caller.policy(r, slug).policy_id, query.requested_page())
    return respond({"backtests": [backtesting.describe(each) for each in found.items], **totals(found)})


@router.get("/backtests/{backtestId}", response_model=envelope(BacktestResultView))
def get_backtest(caller: Author, slug: PolicySlug, backtest_id: BacktestId) -> Response:
    """Read a backtest: its request, its progress, and its result for each day."""
    with caller.reading() as r:
        job = caller.backtest(r, slug, backtest_id)
        return respond(backtesting.describe_result(r, job))


@router.get("/coverage", response_model=envelope(PolicyCoverageView), responses=refuses(NO_VERSION))
def get_policy_coverage(caller: Author, slug: PolicySlug, query: Annotated[VersionQuery, Query()]) -> Response:
    """Read which rules of a version were reached, and which decided, in the newest finished backtest that used it."""
    with caller.reading() as r:
        policy = caller.policy(r, slug)
        version = policies.version(r, policy, query.version)
        return respond(backtesting.describe_version_coverage(r, policy, version.version))


@router.get(
    "/backtests/{backtestId}/customers",
    response_model=envelope(ChangedListView),
    responses=refuses(UNFINISHED, *DAMAGED_FILE),
)
def list_changed_customers(
    caller: Author, slug: PolicySlug, backtest_id: BacktestId, query: Annotated[ChangesQuery, Query()]
) -> Response:
    """List the customers whose outcome or limits change, with the rules that cause it."""
    with caller.reading() as r:
        job = caller.backtest(r, slug, backtest_id)
        changed = portfolio_jobs.read_listing(r, require_done(job), query.change)
    return respond_rows(caller.store.lake, changed, query.requested_page(), "customers", backtesting.describe_change)


@router.get("/backtests/{backtestId}/page.html", response_class=Page, responses=refuses(UNFINISHED, *DAMAGED_FILE))
@heavy
def get_backtest_page(caller: Author, slug: PolicySlug, backtest_id: BacktestId) -> Response:
    """Read a backtest as one printable page with charts, which fetches nothing and runs no script."""
    with caller.reading() as r:
        job = require_done(caller.backtest(r, slug, backtest_id))
        policy = caller.policy(r, slug)
        days, changes = portfolio_jobs.read_result(r, job), portfolio_jobs.read_listing(r, job)
    return respond_page(backtesting.render_page(caller.store, job, policy, days, changes), CONTENT_POLICY)
