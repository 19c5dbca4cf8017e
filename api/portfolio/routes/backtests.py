"""Backtests: versions of a policy compared over the portfolio."""

from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import HTMLResponse, Response

from api.core.answers import accepted_job, answer, streamed, totals
from api.core.deferred import Body, JsonBody, Query, QueryOf
from api.core.dependencies import Allow, BacktestId, Caller, PolicySlug, as_uuid
from api.core.idempotency import idempotent
from api.core.in_turn import InTurn
from api.core.operations import DAMAGED_FILE, gives, shows_page
from api.core.schemas.common import Paging
from api.core.schemas.jobs import JobView
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

router = APIRouter(route_class=InTurn, prefix="/v1/decision-policies/{slug}", tags=["Decision policies"])
Author = Annotated[Caller, Depends(Allow("decision-policies:write"))]
BacktestBody = Annotated[Body[SentBacktest], Depends(JsonBody(SentBacktest))]
WhichPage = Annotated[Query[Paging], Depends(QueryOf(Paging))]
WhichOnes = Annotated[Query[WhichChanges], Depends(QueryOf(WhichChanges))]
NOT_ENABLED = "DecisionPolicy.NotEnabled"
NO_VERSION = "DecisionPolicy.VersionNotFound"
UNFINISHED = "Backtest.Unfinished"


@router.post(
    "/backtest",
    **gives(JobView, 202, refuses=[NOT_ENABLED, NO_VERSION, *backtesting.REFUSES], example="backtest"),
)
@idempotent
def backtest_decision_policy(caller: Author, slug: PolicySlug, body: BacktestBody) -> Response:
    """Compare a version with another one, or with what was decided, over the whole portfolio; poll the job.

    An archived policy can be looked at, too. Nothing is decided by it.
    """
    with caller.reading() as r:
        policy = caller.policy(r, slug)
        sent = body.read()
        version, asked = backtesting.asked(r, policy, sent, caller.today)
        outcomes = backtesting.known_outcomes(r, caller.client_id, sent)
    with caller.writing() as w:
        job = backtests.request(w, policy, version.version, asked, outcomes, caller.actor.who, caller.now)
        caller.audit(w, "Policy.BacktestRequested", policyId=policy.policy_id, jobId=job.job_id)
        return caller.keep(w, accepted_job(job))


@router.get("/backtests", **gives(BacktestListView, refuses=[NOT_ENABLED]))
def list_backtests(caller: Author, slug: PolicySlug, query: WhichPage) -> Response:
    """List the policy's backtests, newest first."""
    with caller.reading() as r:
        found = backtests.find(r, caller.policy(r, slug), query.read().asked())
    return answer({"backtests": [backtesting.shown(each) for each in found.items], **totals(found)})


@router.get("/backtests/{backtestId}", **gives(BacktestResultView, refuses=[NOT_ENABLED]))
def get_backtest(caller: Author, slug: PolicySlug, backtest_id: BacktestId) -> Response:
    """Read a backtest: what was asked for, how far it has come, and what came of it, day by day."""
    with caller.reading() as r:
        _, backtest = _one(caller, r, slug, backtest_id)
        return answer({**backtesting.shown(backtest), "days": backtests.result(r, backtest)})


@router.get(
    "/backtests/{backtestId}/customers", **gives(ChangedListView, refuses=[NOT_ENABLED, UNFINISHED, *DAMAGED_FILE])
)
def list_changed_customers(caller: Author, slug: PolicySlug, backtest_id: BacktestId, query: WhichOnes) -> Response:
    """List who changes, in outcome or in limits, with the rules that make it so."""
    with caller.reading() as r:
        _, backtest = _one(caller, r, slug, backtest_id)
        asked = query.read()
        _require_done(backtest)
        parts = backtests.parts(r, backtest)
    page, total = asked.asked(), sum(part.changed(asked.change) for part in parts)
    counts = totals(Paged(range(total), total, page))
    slices = backtesting.changes(caller.store.lake, parts, asked.change, page)
    return streamed("customers", counts, backtesting.as_json(slices))


@router.get("/backtests/{backtestId}/page.html", **shows_page([NOT_ENABLED, UNFINISHED, *DAMAGED_FILE]))
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
