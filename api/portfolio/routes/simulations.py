"""Simulations: how often, and for whom, a ruleset would have fired over past days."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import HTMLResponse, Response

from api.core.schemas.common import Paging
from api.core.schemas.jobs import JobView
from api.http.answers import accepted_job, answer, streamed, totals
from api.http.dependencies import Allow, Caller, RulesetId, SimulationId, as_uuid
from api.http.documented import DAMAGED_FILE, Page, enveloped, refuses, shows
from api.http.idempotency import IDEMPOTENT
from api.http.route import Route
from api.portfolio import simulating
from api.portfolio.schemas.simulations import FiringListView, SentSimulation, SimulationListView, SimulationResultView
from pipelines.pages import CONTENT_POLICY
from pipelines.vocabulary.errors import Conflict
from storage.core.database import Reading
from storage.core.paging import Paged
from storage.monitoring import simulations
from storage.monitoring.simulations import Simulation

router = APIRouter(route_class=Route, prefix="/v1/monitoring", tags=["Monitoring"])
Watcher = Annotated[Caller, Depends(Allow("monitoring:rules"))]
CORRUPT = "Ruleset.Corrupt"
UNFINISHED = "Simulation.Unfinished"


@router.post(
    "/rulesets/{rulesetId}/simulate",
    status_code=202,
    response_model=enveloped(JobView),
    responses=shows(202, "simulation") | refuses(CORRUPT, *simulating.REFUSES),
    dependencies=[IDEMPOTENT],
)
def simulate_ruleset(caller: Watcher, ruleset_id: RulesetId, sent: SentSimulation) -> Response:
    """Try a ruleset, or what it might say instead, on past days, before it is switched on; poll the job.

    An archived or inactive ruleset can be looked at, too. Nobody is told, and nothing of the ruleset changes.
    """
    with caller.reading() as r:
        stored = caller.ruleset(r, ruleset_id)
        asked = simulating.asked(r, stored, sent, caller.today)
    with caller.writing() as w:
        job = simulations.request(w, stored, asked, caller.actor.who, caller.now)
        caller.audit(w, "Ruleset.SimulationRequested", rulesetId=stored.ruleset_id, jobId=job.job_id)
        return caller.keep(w, accepted_job(job))


@router.get(
    "/rulesets/{rulesetId}/simulations", response_model=enveloped(SimulationListView), responses=refuses(CORRUPT)
)
def list_simulations(caller: Watcher, ruleset_id: RulesetId, query: Annotated[Paging, Query()]) -> Response:
    """List the ruleset's simulations, newest first."""
    with caller.reading() as r:
        found = simulations.find(r, caller.ruleset(r, ruleset_id), query.asked())
    return answer({"simulations": [simulating.shown(each) for each in found.items], **totals(found)})


@router.get("/simulations/{simulationId}", response_model=enveloped(SimulationResultView))
def get_simulation(caller: Watcher, simulation_id: SimulationId) -> Response:
    """Read a simulation: what was asked for, how far it has come, and what came of it, month by month."""
    with caller.reading() as r:
        simulation = _one(caller, r, simulation_id)
        return answer({**simulating.shown(simulation), "result": simulations.result(r, simulation)})


@router.get(
    "/simulations/{simulationId}/firings",
    response_model=enveloped(FiringListView),
    responses=refuses(UNFINISHED, *DAMAGED_FILE),
)
def list_firings(caller: Watcher, simulation_id: SimulationId, query: Annotated[Paging, Query()]) -> Response:
    """List what would have fired, customer by customer and day by day, with the values that matched."""
    with caller.reading() as r:
        simulation, page = _done(caller, r, simulation_id), query.asked()
        of = simulations.firings(r, simulation)
    counts = totals(Paged(range(of.rows), of.rows, page))
    return streamed("firings", counts, simulating.as_json(simulating.firings(caller.store.lake, of, page)))


@router.get(
    "/simulations/{simulationId}/page.html", response_class=Page, responses=refuses(UNFINISHED, CORRUPT, *DAMAGED_FILE)
)
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
