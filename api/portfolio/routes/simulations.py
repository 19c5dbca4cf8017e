"""Simulations: how often, and for whom, a ruleset would have fired over past days."""

from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import Response

from api.core.answers import accepted_job, answer, totals
from api.core.deferred import Body, JsonBody, Query, QueryOf
from api.core.dependencies import Allow, Caller, RulesetId, SimulationId, as_uuid
from api.core.idempotency import idempotent
from api.core.in_turn import InTurn
from api.core.operations import DAMAGED_FILE, gives, shows_page
from api.core.schemas.common import Paging
from api.core.schemas.jobs import EXAMPLE_SIMULATION_JOB, JobView
from api.portfolio import simulating
from api.portfolio.portfolio_jobs import page_answer, require_done, rows_answer, start, unfinished
from api.portfolio.schemas.simulations import FiringListView, SentSimulation, SimulationListView, SimulationResultView
from pipelines.monitoring.page import CONTENT_POLICY
from storage.core.database import Reading
from storage.monitoring import simulations
from storage.portfolio import portfolio_jobs
from storage.portfolio.portfolio_jobs import SIMULATION, PortfolioJob

router = APIRouter(route_class=InTurn, prefix="/v1/monitoring", tags=["Monitoring"])
Watcher = Annotated[Caller, Depends(Allow("monitoring:rules"))]
SimulationBody = Annotated[Body[SentSimulation], Depends(JsonBody(SentSimulation))]
WhichPage = Annotated[Query[Paging], Depends(QueryOf(Paging))]
CORRUPT = "Ruleset.Corrupt"
UNFINISHED = unfinished(SIMULATION)


@router.post(
    "/rulesets/{rulesetId}/simulate",
    **gives(JobView, 202, refuses=[CORRUPT, *simulating.REFUSES], example=EXAMPLE_SIMULATION_JOB),
)
@idempotent
def simulate_ruleset(caller: Watcher, ruleset_id: RulesetId, body: SimulationBody) -> Response:
    """Try a ruleset, or what it might say instead, on past days, before it is switched on; poll the job.

    An archived or inactive ruleset can be looked at, too. Nobody is told, and nothing of the ruleset changes.
    """
    with caller.reading() as r:
        new = simulating.asked(r, caller.ruleset(r, ruleset_id), body.read(), caller.today)
    with caller.writing() as w:
        return caller.keep(w, accepted_job(start(w, new, caller.actor, caller.now)))


@router.get("/rulesets/{rulesetId}/simulations", **gives(SimulationListView, refuses=[CORRUPT]))
def list_simulations(caller: Watcher, ruleset_id: RulesetId, query: WhichPage) -> Response:
    """List the ruleset's simulations, newest first."""
    with caller.reading() as r:
        found = portfolio_jobs.find(r, caller.ruleset(r, ruleset_id).ruleset_id, query.read().asked())
    return answer({"simulations": [simulating.shown(each) for each in found.items], **totals(found)})


@router.get("/simulations/{simulationId}", **gives(SimulationResultView))
def get_simulation(caller: Watcher, simulation_id: SimulationId) -> Response:
    """Read a simulation: what was asked for, how far it has come, and what came of it, month by month."""
    with caller.reading() as r:
        job = _one(caller, r, simulation_id)
        return answer({**simulating.shown(job), "result": portfolio_jobs.result(r, job)})


@router.get("/simulations/{simulationId}/firings", **gives(FiringListView, refuses=[UNFINISHED, *DAMAGED_FILE]))
def list_firings(caller: Watcher, simulation_id: SimulationId, query: WhichPage) -> Response:
    """List what would have fired, customer by customer and day by day, with the values that matched."""
    with caller.reading() as r:
        job, page = require_done(_one(caller, r, simulation_id)), query.read().asked()
        of = portfolio_jobs.listing(r, job)
    return rows_answer(caller.store.lake, of, page, "firings", simulating.firing)


@router.get("/simulations/{simulationId}/page.html", **shows_page([UNFINISHED, CORRUPT, *DAMAGED_FILE]))
def get_simulation_page(caller: Watcher, simulation_id: SimulationId) -> Response:
    """Read a simulation as one printable page with charts, which fetches nothing and runs no script."""
    with caller.reading() as r:
        job = require_done(_one(caller, r, simulation_id))
        ruleset = simulations.simulated_ruleset(r, job)
        result, of = portfolio_jobs.result(r, job), portfolio_jobs.listing(r, job)
    return page_answer(simulating.as_page(caller.store.lake, job, ruleset, result, of), CONTENT_POLICY)


def _one(caller: Caller, r: Reading, simulation_id: str) -> PortfolioJob:
    return portfolio_jobs.get(r, SIMULATION, caller.client_id, as_uuid(simulation_id))
