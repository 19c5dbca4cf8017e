"""Simulations: how often, and for whom, a ruleset would have fired over past days."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from api.core.schemas.common import Paging
from api.core.schemas.jobs import JobView
from api.http.dependencies import Allow, Caller, RulesetId, SimulationId
from api.http.documented import DAMAGED_FILE, Page, envelope, refuses, shows
from api.http.idempotency import IDEMPOTENT
from api.http.responses import respond, respond_accepted_job, totals
from api.http.route import Route, heavy
from api.portfolio import simulating
from api.portfolio.portfolio_jobs import require_done, respond_page, respond_rows, start, unfinished_code
from api.portfolio.schemas.simulations import FiringListView, SentSimulation, SimulationListView, SimulationResultView
from pipelines.pages import CONTENT_POLICY
from storage.monitoring import simulations
from storage.portfolio import portfolio_jobs
from storage.portfolio.portfolio_jobs import SIMULATION

router = APIRouter(route_class=Route, prefix="/v1/monitoring", tags=["Monitoring"])
Watcher = Annotated[Caller, Depends(Allow("monitoring:rules"))]
CORRUPT = "Ruleset.Corrupt"
UNFINISHED = unfinished_code(SIMULATION)


@router.post(
    "/rulesets/{rulesetId}/simulate",
    status_code=202,
    response_model=envelope(JobView),
    responses=shows(202, "simulation") | refuses(CORRUPT, *simulating.REFUSES),
    dependencies=[IDEMPOTENT],
)
def simulate_ruleset(caller: Watcher, ruleset_id: RulesetId, sent: SentSimulation) -> Response:
    """Try a ruleset, or another document for it, on past days before it is switched on; poll the job.

    Archived and inactive rulesets can be simulated, too. No events are sent, and the ruleset doesn't change.
    """
    with caller.reading() as r:
        new = simulating.new_job(r, caller.ruleset(r, ruleset_id), sent, caller.today)
    with caller.writing() as w:
        return caller.store_response(w, respond_accepted_job(start(w, new, caller.actor, caller.now)))


@router.get(
    "/rulesets/{rulesetId}/simulations", response_model=envelope(SimulationListView), responses=refuses(CORRUPT)
)
def list_simulations(caller: Watcher, ruleset_id: RulesetId, query: Annotated[Paging, Query()]) -> Response:
    """List the ruleset's simulations, newest first."""
    with caller.reading() as r:
        found = portfolio_jobs.find(r, caller.ruleset(r, ruleset_id).ruleset_id, query.requested_page())
    return respond({"simulations": [simulating.describe(each) for each in found.items], **totals(found)})


@router.get("/simulations/{simulationId}", response_model=envelope(SimulationResultView))
def get_simulation(caller: Watcher, simulation_id: SimulationId) -> Response:
    """Read a simulation: its request, its progress, and its result for each month."""
    with caller.reading() as r:
        job = caller.simulation(r, simulation_id)
        return respond({**simulating.describe(job), "result": portfolio_jobs.read_result(r, job)})


@router.get(
    "/simulations/{simulationId}/firings",
    response_model=envelope(FiringListView),
    responses=refuses(UNFINISHED, *DAMAGED_FILE),
)
def list_firings(caller: Watcher, simulation_id: SimulationId, query: Annotated[Paging, Query()]) -> Response:
    """List the rules that would have fired, by customer and day, with the values that matched."""
    with caller.reading() as r:
        firings = portfolio_jobs.read_listing(r, require_done(caller.simulation(r, simulation_id)))
    return respond_rows(caller.store.lake, firings, query.requested_page(), "firings", simulating.describe_firing)


@router.get(
    "/simulations/{simulationId}/page.html", response_class=Page, responses=refuses(UNFINISHED, CORRUPT, *DAMAGED_FILE)
)
@heavy
def get_simulation_page(caller: Watcher, simulation_id: SimulationId) -> Response:
    """Read a simulation as one printable page with charts, which fetches nothing and runs no script."""
    with caller.reading() as r:
        job = require_done(caller.simulation(r, simulation_id))
        ruleset = simulations.simulated_ruleset(r, job)
        result, firings = portfolio_jobs.read_result(r, job), portfolio_jobs.read_listing(r, job)
    return respond_page(simulating.render_page(caller.store, job, ruleset, result, firings), CONTENT_POLICY)
