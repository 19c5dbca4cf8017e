"""Simulations: a ruleset tried over a client's past, slice by slice, in the portfolio's queue.

A slice is as many whole customers as memory is meant for; what stays of it are its firings, and tallies that add up. A
customer whose data can't be read is left out and counted: it takes nobody else with it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from uuid import UUID

import polars as pl
from dagster import DefaultSensorStatus, OpExecutionContext, ResourceParam, RunRequest, SkipReason, job, op, sensor

from assets.core.batches import isolating
from assets.core.runs import QUEUE_TAG, SIMULATION_TAG
from assets.dispatch.sensors import EVERY_S
from assets.portfolio.portfolio_jobs import failing_with_its_run
from assets.reports.reports import each_slice
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.monitoring import simulated, simulation
from pipelines.monitoring.simulation import NO_TALLIES, Simulated, Tallies
from pipelines.monitoring.snapshots import Day, Past, Stated
from storage.core.database import Reading
from storage.core.models import TERMINAL, Flow, Queue
from storage.core.store import Store
from storage.customers import customers
from storage.enrichment import transactions
from storage.monitoring import attributes, simulations
from storage.monitoring.simulations import MOST_FIRINGS, Simulation
from storage.portfolio import portfolio_jobs

CUSTOMERS_AT_ONCE = 20_000  # whose places are held at once
IDS_AT_ONCE = 10_000


@op
def try_ruleset(context: OpExecutionContext, store: ResourceParam[Store]) -> None:
    """Try the run's ruleset on past days."""
    done = run(store, UUID(context.run.tags[SIMULATION_TAG]), lambda: datetime.now(UTC))
    context.add_output_metadata({"customers": done.customers, "customers failed": done.failed, "firings": done.firings})


@job(tags={QUEUE_TAG: Queue.PORTFOLIO.value})
def ruleset_simulation() -> None:
    """Try a ruleset of monitoring on past days of a client's customers."""
    try_ruleset()


@sensor(
    job_name=ruleset_simulation.name,
    minimum_interval_seconds=EVERY_S,
    default_status=DefaultSensorStatus.RUNNING,
    description="Starts the runs of simulations that clients asked for, in order of receipt.",
)
def requested_simulations_sensor(store: ResourceParam[Store]) -> list[RunRequest] | SkipReason:
    """Asks for each until it has begun; Dagster starts it once, by its key."""
    with store.db.reading() as r:
        waiting = portfolio_jobs.waiting(r, Flow.RULESET_SIMULATION)
    asked = [
        RunRequest(run_key=f"simulation {each.job_id}", tags={SIMULATION_TAG: str(each.job_id)}) for each in waiting
    ]
    return asked or SkipReason("Nothing was asked for.")


# The work


@dataclass(frozen=True)
class Done:
    customers: int
    failed: int
    firings: int


@dataclass
class Progress:
    """What came of the slices so far. Of the firings only the first are kept one by one."""

    tallies: Tallies = field(default_factory=lambda: NO_TALLIES)
    firings: list[pl.DataFrame] = field(default_factory=lambda: [pl.DataFrame(schema=simulation.FIRINGS)])
    customers: list[pl.DataFrame] = field(default_factory=lambda: [pl.DataFrame(schema=simulation.CUSTOMERS)])
    evaluated: int = 0
    retained: int = 0
    failed: list[int] = field(default_factory=list)

    @property
    def keep(self) -> int:
        """How many more firings are kept."""
        return MOST_FIRINGS - self.retained

    def add(self, part: Simulated) -> None:
        """Slices are computed beside each other: a part may tell more firings than are kept."""
        firings = part.firings.head(self.keep)
        self.tallies = simulation.merged([self.tallies, part.tallies])
        self.firings.append(firings)
        self.customers.append(part.customers)
        self.evaluated += part.evaluated
        self.retained += firings.height


def run(store: Store, job_id: UUID, clock: Callable[[], datetime]) -> Done:
    """Simulate, write, and end the job; where that fails or is stopped, the job fails, too. One that has ended is left
    alone: a run may be lost after its last word.
    """
    with store.db.reading() as r:
        asked = simulations.with_id(r, job_id)
    if asked.status in TERMINAL:
        return Done(0, 0, 0)
    with failing_with_its_run(store, asked.client_id, asked.job_id, "Simulation", clock):
        return _run(store, asked, clock)


def _run(store: Store, asked: Simulation, clock: Callable[[], datetime]) -> Done:
    with store.db.reading() as r:
        ruleset = simulations.simulated_ruleset(r, asked)
        numbers = simulations.customers_of(r, asked, ruleset)
    days = list(_days(store, asked.request.first, asked.request.last, clock()))
    of = simulation.Simulation(asked.ruleset_id, ruleset, days)
    with store.db.writing() as w:
        simulations.begin(w, asked, len(numbers), clock())
    progress = Progress()
    for start in range(0, len(numbers), CUSTOMERS_AT_ONCE):
        for parts, done in _slices(store, of, numbers[start : start + CUSTOMERS_AT_ONCE], progress):
            for part in parts:
                progress.add(part)
            with store.db.writing() as w:
                simulations.count_done(w, asked, done)
    _end(store, asked, of, progress, clock)
    return Done(len(numbers), len(progress.failed), progress.retained)


def _days(store: Store, first: date, last: date, now: datetime) -> Iterator[Day]:
    """Each ends in the business's time zone, or now where that is earlier."""
    for nth in range((last - first).days + 1):
        day = first + timedelta(days=nth)
        ends = datetime.combine(day + timedelta(days=1), time.min, store.settings.zone).astimezone(UTC)
        yield Day(day, min(ends, now))


Slice = tuple[Sequence[Simulated], int]  # and of how many customers


def _slices(store: Store, of: simulation.Simulation, numbers: Sequence[int], progress: Progress) -> Iterator[Slice]:
    with store.db.reading() as r:
        places = transactions.current_locations(r, numbers)
    good, damaged = transactions.readable(store.lake, places)
    progress.failed += damaged
    if good:
        yield from each_slice(store.lake, good, partial(_of_slice, store, of, progress))


def _of_slice(store: Store, of: simulation.Simulation, progress: Progress, rows: pl.DataFrame) -> Slice:
    numbers = rows[BY_CUSTOMER].unique().sort().to_list()
    left_out: list[int] = []
    parts = isolating(partial(_simulated, store, of, rows, progress.keep), numbers, left_out)
    progress.failed += left_out
    return parts, len(numbers) - len(left_out)


def _simulated(
    store: Store, of: simulation.Simulation, rows: pl.DataFrame, keep: int, numbers: Sequence[int]
) -> Sequence[Simulated]:
    with store.db.reading() as r:
        past = _past(r, of, numbers)
    theirs = rows.filter(pl.col(BY_CUSTOMER).is_in(list(numbers)))
    return list(simulation.simulated(of, theirs, past, keep))


def _past(r: Reading, of: simulation.Simulation, numbers: Sequence[int]) -> Past:
    """What the ruleset reads of the customers' attributes, with all their changes."""
    past: dict[int, dict[str, list[Stated]]] = {}
    for number, each in attributes.changes_of_all(r, numbers, of.watch.attributes):
        stated = Stated(each.set_at, each.value, each.expires_at)
        past.setdefault(number, {}).setdefault(each.name, []).append(stated)
    return past


def _end(
    store: Store,
    asked: Simulation,
    of: simulation.Simulation,
    progress: Progress,
    clock: Callable[[], datetime],
) -> None:
    by_customer, firings = pl.concat(progress.customers), pl.concat(progress.firings)
    ids = _ids(store, {*simulated.most_events(by_customer), *firings[BY_CUSTOMER]})
    request = asked.request
    reported = simulated.described(
        of.ruleset,
        request.first,
        request.last,
        progress.evaluated,
        progress.tallies,
        by_customer,
        ids,
        progress.retained,
    )
    public = pl.col(BY_CUSTOMER).replace_strict(
        list(ids), [each.bytes for each in ids.values()], return_dtype=pl.Binary
    )
    stored = store.lake.put_frame(simulations.path_of(asked), firings.with_columns(customer_id=public))
    with store.db.writing() as w:
        file, failed = (stored, firings.height), len(progress.failed)
        simulations.end(w, store.lake, asked, reported, file, failed, clock())


def _ids(store: Store, numbers: set[int]) -> dict[int, UUID]:
    wanted, ids = sorted(numbers), dict[int, UUID]()
    with store.db.reading() as r:
        for start in range(0, len(wanted), IDS_AT_ONCE):
            ids |= customers.ids_of(r, wanted[start : start + IDS_AT_ONCE])
    return ids
