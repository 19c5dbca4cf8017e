"""Simulations as a kind of portfolio job: try a ruleset on past days of a client's portfolio."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import polars as pl

from assets.portfolio.kinds import day_end
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.figures.tallies import Tallies
from pipelines.monitoring import simulated, simulation
from pipelines.monitoring.simulation import FIRINGS, MOST_EVENTS, merge
from pipelines.monitoring.snapshots import AttributeChange, AttributeHistories, Day
from storage.core.database import Reading
from storage.core.store import Store
from storage.customers import customers
from storage.monitoring import attributes, simulations
from storage.monitoring.simulations import Request
from storage.portfolio.portfolio_jobs import PartialResult, Population, PortfolioJob


@dataclass(frozen=True)
class Simulation:
    """A simulation with everything that its slices share."""

    store: Store
    request: Request
    population: Population
    definition: simulation.Simulation

    def narrow(self, r: Reading, numbers: Sequence[int]) -> Sequence[int]:
        return numbers

    def compute(self, rows: pl.DataFrame, numbers: Sequence[int]) -> PartialResult:
        with self.store.db.reading() as r:
            histories = _read_histories(r, self.definition, numbers)
        parts = list(simulation.simulate(self.definition, rows, histories, simulation.MAX_FIRINGS))
        firings = pl.concat([pl.DataFrame(schema=FIRINGS), *(part.firings for part in parts)])
        return PartialResult(firings, merge(part.tallies for part in parts), len(numbers))

    def merge(self, parts: Iterable[Tallies]) -> Tallies:
        return merge(parts)

    def result(self, r: Reading, tallies: Tallies) -> object:
        ids = customers.ids_of(r, tallies[MOST_EVENTS][BY_CUSTOMER].unique())
        return simulated.describe_result(self.definition.ruleset, self.request.first, self.request.last, tallies, ids)


def open_simulation(r: Reading, store: Store, job: PortfolioJob) -> Simulation:
    """Read everything that the simulation's slices share.

    Raises:
        Corrupt: the ruleset's stored version is damaged.
    """
    request, ruleset = Request.from_json(job.request), simulations.simulated_ruleset(r, job)
    days = _days(store, request, job.started_at or job.created_at)
    return Simulation(
        store, request, simulations.population(job, ruleset), simulation.Simulation(job.subject_id, ruleset, days)
    )


def _days(store: Store, request: Request, now: datetime) -> list[Day]:
    every = (request.first + timedelta(days=nth) for nth in range((request.last - request.first).days + 1))
    return [Day(day, day_end(day, store.settings.zone, now)) for day in every]


def _read_histories(r: Reading, definition: simulation.Simulation, numbers: Sequence[int]) -> AttributeHistories:
    """Return the history of the customers' attributes that the ruleset reads."""
    histories: dict[int, dict[str, list[AttributeChange]]] = {}
    for number, each in attributes.find_changes(r, numbers, definition.plan.attributes):
        stated = AttributeChange(each.set_at, each.value, each.expires_at)
        histories.setdefault(number, {}).setdefault(each.name, []).append(stated)
    return histories
