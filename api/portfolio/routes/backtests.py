"""Backtests: versions of a policy compared over the portfolio."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import HTMLResponse, Response

from api.core.schemas.common import Paging
from api.core.schemas.jobs import JobView
from api.http.answers import accepted_job, answer, streamed, totals
from api.http.dependencies import Allow, BacktestId, Caller, PolicySlug, as_uuid
from api.http.documented import DAMAGED_FILE, Page, enveloped, refuses, shows
from api.http.idempotency import IDEMPOTENT
from api.http.route import Route
from api.portfolio import backtesting
from api.portfolio.schemas.backtests import (
    BacktestListView,
    BacktestResultView,
    ChangedListView,
    SentBacktest,
    WhichChanges,
)
from pipelines.pages import CONTENT_POLICY
from pipelines.vocabulary.errors import Conflict
from storage.core.database import Reading
from storage.core.paging import Paged
from storage.decisions import backtests, policies
from storage.decisions.backtests import Backtest
from storage.decisions.policies import StoredPolicy

router = APIRouter(route_class=Route, prefix="/v1/decision-policies/{slug}", tags=["Decision policies"])
Author = Annotated[Caller, Depends(Allow("decision-policies:write"))]
NO_VERSION = "DecisionPolicy.VersionNotFound"
UNFINISHED = "Backtest.Unfinished"


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
        policy = caller.policy(r, slug)
        version, asked = backtesting.asked(r, policy, sent, caller.today)
        outcomes = backtesting.known_outcomes(r, caller.client_id, sent)
    with caller.writing() as w:
        job = backtests.request(w, policy, version.version, asked, outcomes, caller.actor.who, caller.now)
        caller.audit(w, "Policy.BacktestRequested", policyId=policy.policy_id, jobId=job.job_id)
        return caller.keep(w, accepted_job(job))


@router.get("/backtests", response_model=enveloped(BacktestListView))
def list_backtests(caller: Author, slug: PolicySlug, query: Annotated[Paging, Query()]) -> Response:
    """List the policy's backtests, newest first."""
    with caller.reading() as r:
        found = backtests.find(r, caller.policy(r, slug), query.asked())
    return answer({"backtests": [backtesting.shown(each) for each in found.items], **totals(found)})


@router.get("/backtests/{backtestId}", response_model=enveloped(BacktestResultView))
def get_backtest(caller: Author, slug: PolicySlug, backtest_id: BacktestId) -> Response:
    """Read a backtest: what was asked for, how far it has come, and what came of it, day by day."""
    with caller.reading() as r:
        _, backtest = _one(caller, r, slug, backtest_id)
        return answer({**backtesting.shown(backtest), "days": backtests.result(r, backtest)})


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
        _, backtest = _one(caller, r, slug, backtest_id)
        _require_done(backtest)
        parts = backtests.parts(r, backtest)
    page, total = query.asked(), sum(part.changed(query.change) for part in parts)
    counts = totals(Paged(range(total), total, page))
    slices = backtesting.changes(caller.store.lake, parts, query.change, page)
    return streamed("customers", counts, backtesting.as_json(slices))


@router.get("/backtests/{backtestId}/page.html", response_class=Page, responses=refuses(UNFINISHED, *DAMAGED_FILE))
def get_backtest_page(caller: Author, slug: PolicySlug, backtest_id: BacktestId) -> Response:
    """Read a backtest as one printable page with charts, which fetches nothing and runs no script."""
    with caller.reading() as r:
        policy, backtest = _one(caller, r, slug, backtest_id)
        _require_done(backtest)
        name = policies.version(r, policy, backtest.version).policy.name
        days, parts = backtests.result(r, backtest), backtests.parts(r, backtest)
    content = backtesting.as_page(caller.store.lake, backtest, name, days, parts)
    return HTMLResponse(content, headers={"Content-Security-Policy": CONTENT_POLICY})


def _one(caller: Caller, r: Reading, slug: str, backtest_id: str) -> tuple[StoredPolicy, Backtest]:
    policy = caller.policy(r, slug)
    return policy, backtests.get(r, policy, as_uuid(backtest_id))


def _require_done(backtest: Backtest) -> None:
    if not backtest.is_done:
        raise Conflict(UNFINISHED, "The backtest has come to no result: see its job.")
