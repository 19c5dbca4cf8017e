"""Simulations: how often, and for whom, a ruleset would have fired over past days."""

from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import HTMLResponse, Response

from api.core.answers import accepted_job, answer, streamed, totals
from api.core.deferred import Body, JsonBody, Query, QueryOf
from api.core.dependencies import Allow, Caller, RulesetId, SimulationId, as_uuid
from api.core.idempotency import idempotent
from api.core.in_turn import InTurn
from api.core.operations import DAMAGED_FILE, gives, shows_page
from api.core.schemas.common import Paging
from api.core.schemas.jobs import JobView
from api.portfolio import simulating
from api.portfolio.schemas.simulations import FiringListView, SentSimulation, SimulationListView, SimulationResultView
from pipelines.pages import CONTENT_POLICY
from pipelines.vocabulary.errors import Conflict
from storage.core.database import Reading
from storage.core.paging import Paged
from storage.monitoring import simulations
from storage.monitoring.simulations import Simulation

router = APIRouter(route_class=InTurn, prefix="/v1/monitoring", tags=["Monitoring"])
Watcher = Annotated[Caller, Depends(Allow("monitoring:rules"))]
SimulationBody = Annotated[Body[SentSimulation], Depends(JsonBody(SentSimulation))]
WhichPage = Annotated[Query[Paging], Depends(QueryOf(Paging))]
CORRUPT = "Ruleset.Corrupt"
UNFINISHED = "Simulation.Unfinished"


@router.post(
    "/rulesets/{rulesetId}/simulate",
    **gives(JobView, 202, refuses=[CORRUPT, *simulating.REFUSES], example="simulation"),
)
@idempotent
def simulate_ruleset(caller: Watcher, ruleset_id: RulesetId, body: SimulationBody) -> Response:
    """Try a ruleset, or what it might say instead, on past days, before it is switched on; poll the job.

    An archived or inactive ruleset can be looked at, too. Nobody is told, and nothing of the ruleset changes.
    """
    with caller.reading() as r:
        stored = caller.ruleset(r, ruleset_id)
        asked = simulating.asked(r, stored, body.read(), caller.today)
    with caller.writing() as w:
        job = simulations.request(w, stored, asked, caller.actor.who, caller.now)
        caller.audit(w, "Ruleset.SimulationRequested", rulesetId=stored.ruleset_id, jobId=job.job_id)
        return caller.keep(w, accepted_job(job))


@router.get("/rulesets/{rulesetId}/simulations", **gives(SimulationListView, refuses=[CORRUPT]))
def list_simulations(caller: Watcher, ruleset_id: RulesetId, query: WhichPage) -> Response:
    """List the ruleset's simulations, newest first."""
    with caller.reading() as r:
        found = simulations.find(r, caller.ruleset(r, ruleset_id), query.read().asked())
    return answer({"simulations": [simulating.shown(each) for each in found.items], **totals(found)})


@router.get("/simulations/{simulationId}", **gives(SimulationResultView))
def get_simulation(caller: Watcher, simulation_id: SimulationId) -> Response:
    """Read a simulation: what was asked for, how far it has come, and what came of it, month by month."""
    with caller.reading() as r:
        simulation = _one(caller, r, simulation_id)
        return answer({**simulating.shown(simulation), "result": simulations.result(r, simulation)})


@router.get("/simulations/{simulationId}/firings", **gives(FiringListView, refuses=[UNFINISHED, *DAMAGED_FILE]))
def list_firings(caller: Watcher, simulation_id: SimulationId, query: WhichPage) -> Response:
    """List what would have fired, customer by customer and day by day, with the values that matched."""
    with caller.reading() as r:
        simulation, page = _done(caller, r, simulation_id), query.read().asked()
        of = simulations.firings(r, simulation)
    counts = totals(Paged(range(of.rows), of.rows, page))
    return streamed("firings", counts, simulating.as_json(simulating.firings(caller.store.lake, of, page)))


@router.get("/simulations/{simulationId}/page.html", **shows_page([UNFINISHED, CORRUPT, *DAMAGED_FILE]))
def get_simulation_page(caller: Watcher, simulation_id: SimulationId) -> Response:
    """Read a simulation as one printable page with charts, which fetches nothing and runs no script."""
    with caller.reading() as r:
        simulation = _done(caller, r, simulation_id)
        ruleset = simulations.simulated_ruleset(r, simulation)
        result, of = simulations.result(r, simulation), simulations.firings(r, simulation)
    content = simulating.as_page(caller.store.lake, simulation, ruleset, result, of)
    return HTMLResponse(content, headers={"Content-Security-Policy": CONTENT_POLICY})


def _one(caller: Caller, r: Reading, simulation_id: str) -> Simulation:
    return simulations.get(r, caller.client_id, as_uuid(simulation_id))


def _done(caller: Caller, r: Reading, simulation_id: str) -> Simulation:
    simulation = _one(caller, r, simulation_id)
    if not simulation.is_done:
        raise Conflict(UNFINISHED, "The simulation has come to no result: see its job.")
    return simulation
