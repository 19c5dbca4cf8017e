"""Run jobs over a client's portfolio, such as backtests, slice by slice in the portfolio's queue.

A slice holds whole customers: a 64th of them but at least `MIN_SLICE_CUSTOMERS`, or fewer if these have more than
`SLICE_ROWS` rows. Its resulting rows become a file of the lake; its tallies are stored until they are added up. A
customer that can't be computed is left out and counted, without affecting others. If a run fails for any reason, its
job fails, too.

Several runs share a job: each computes slices that no other run holds under a lease. One of them waits until all slices
are recorded, takes over those of killed runs, and ends the job. A killed run is repeated by Dagster and joins again.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from math import ceil
from uuid import UUID

import polars as pl
from dagster import DefaultSensorStatus, OpExecutionContext, ResourceParam, RunRequest, SkipReason, job, op, sensor

from assets.core.batches import isolate_failures
from assets.core.runs import PORTFOLIO_JOB_TAG, QUEUE_TAG
from assets.core.waiting import waits_for_storage
from assets.dagster_internals import dagster_home
from assets.dispatch.sensors import EVERY_S
from assets.portfolio import backtests, simulations
from assets.portfolio.kinds import PortfolioWork
from assets.portfolio.maintenance import slices
from assets.reports.reports import compute_by_slice
from pipelines.figures.facts import COLUMNS
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.vocabulary.errors import TidemarkError
from pipelines.vocabulary.schemas import TRANSACTIONS
from storage.core import leases
from storage.core.database import UNREACHABLE, Reading
from storage.core.models import TERMINAL, Flow, Queue
from storage.core.store import Store
from storage.customers import customers
from storage.enrichment import transactions
from storage.portfolio import portfolio_jobs
from storage.portfolio.portfolio_jobs import Kind, PartialResult, PortfolioJob, Slice

# Our judgement: a killed run repeats a 64th of the portfolio or, of a small one, work of a second or two; a slice of so
# many rows takes about ten seconds for each evaluated day.
SLICES, MIN_SLICE_CUSTOMERS = 64, 1_000
SLICE_ROWS = 4_000_000
MAX_SILENT = 5_000  # customers without transactions that are computed together
NO_ROWS = pl.DataFrame(schema={name: TRANSACTIONS[name] for name in COLUMNS})

KINDS: Mapping[Flow, Callable[[Reading, Store, PortfolioJob], PortfolioWork]] = {
    Flow.POLICY_BACKTEST: backtests.open_backtest,
    Flow.RULESET_SIMULATION: simulations.open_simulation,
}


@op
@waits_for_storage()
def compute_slices(context: OpExecutionContext, store: ResourceParam[Store]) -> None:
    """Compute the remaining slices of the run's portfolio job, and end the job."""
    ended = run(store, UUID(context.run.tags[PORTFOLIO_JOB_TAG]), lambda: datetime.now(UTC))
    context.add_output_metadata({"customers": ended.customers_done, "customers failed": ended.customers_failed})


@job(tags={QUEUE_TAG: Queue.PORTFOLIO.value})
def portfolio_job() -> None:
    """Compare versions of a policy over a client's portfolio, or try a ruleset on its past."""
    compute_slices()


@sensor(
    job_name=portfolio_job.name,
    minimum_interval_seconds=EVERY_S,
    default_status=DefaultSensorStatus.RUNNING,
    description="Starts the runs of portfolio jobs that clients asked for, in order of receipt.",
)
def requested_portfolio_jobs_sensor(store: ResourceParam[Store]) -> list[RunRequest] | SkipReason:
    """Request a run of each job for every worker until the job has begun.

    Because of the run keys, Dagster starts each only once.
    """
    now = leases.clock(store.db)
    with store.db.reading() as r:
        waiting = portfolio_jobs.find_waiting(r)
        workers = leases.count_holders(r, dagster_home.worker_role(store.settings), now)
    return [
        RunRequest(run_key=f"{each.flow} {each.job_id} {nth}", tags={PORTFOLIO_JOB_TAG: str(each.job_id)})
        for each in waiting
        for nth in range(max(1, workers))
    ] or SkipReason("There are no requests.")


def run(store: Store, job_id: UUID, clock: Callable[[], datetime]) -> PortfolioJob:
    """Compute remaining slices of a job, and end it unless another run will; return the job.

    If the run fails or is stopped, the job fails, too. A job that has ended already is left unchanged, because Dagster
    may repeat a run that was lost just after it ended its job.
    """
    with store.db.reading() as r:
        job_ = portfolio_jobs.get_of_any_client(r, job_id)
    if job_.status not in TERMINAL:
        with _fail_job_on_error(store, job_, clock):
            _run(store, job_, clock)
    with store.db.reading() as r:
        return portfolio_jobs.get_of_any_client(r, job_id)


def _run(store: Store, waiting: PortfolioJob, clock: Callable[[], datetime]) -> None:
    with store.db.writing() as w:
        begun = portfolio_jobs.begin(w, waiting.job_id, clock())
    if begun.status in TERMINAL:
        return
    with store.db.reading() as r:
        work = KINDS[begun.kind.flow](r, store, begun)
        all_customers = portfolio_jobs.find_customers(r, work.population)
    customers_each = max(MIN_SLICE_CUSTOMERS, ceil(len(all_customers) / SLICES))
    with store.db.writing() as w:
        portfolio_jobs.list_slices(w, begun, slices(all_customers, customers_each, SLICE_ROWS))
    while any(_record_if_free(store, work, each, clock) for each in _remaining_slices(store, begun)):
        pass
    with leases.hold_if_free(store.db, f"portfolio job/{begun.job_id}") as is_mine_to_end:
        if is_mine_to_end:
            _end(store, work, begun, clock)


def _remaining_slices(store: Store, begun: PortfolioJob) -> Sequence[Slice]:
    with store.db.reading() as r:
        return portfolio_jobs.find_remaining_slices(r, begun)


def _record_if_free(store: Store, work: PortfolioWork, slice_: Slice, clock: Callable[[], datetime]) -> bool:
    """Compute and record a slice, unless another run computes it or has recorded it; return whether this run did."""
    with leases.hold_if_free(store.db, f"portfolio job/{slice_.job.job_id}/{slice_.number}") as is_mine:
        if not is_mine or slice_ not in _remaining_slices(store, slice_.job):
            return False
        part, failed = _compute_slice(store, work, slice_)
        file = portfolio_jobs.put_rows(store.lake, slice_.job, part.rows)
        with store.db.writing() as w:
            portfolio_jobs.record(w, store.lake, slice_, part, failed, file, clock())
        return True


def _end(store: Store, work: PortfolioWork, begun: PortfolioJob, clock: Callable[[], datetime]) -> None:
    """End the job when all slices are recorded; take over those whose run was killed."""
    while remaining := _remaining_slices(store, begun):
        if not any(_record_if_free(store, work, each, clock) for each in remaining):
            time.sleep(leases.POLL_EVERY_S)
    with store.db.reading() as r:
        if portfolio_jobs.get_of_any_client(r, begun.job_id).status in TERMINAL:  # another run ended it, or failed
            return
        result = work.result(r, work.merge(portfolio_jobs.read_tallies(r, begun)))
    with store.db.writing() as w:
        portfolio_jobs.end(w, begun, result, clock())


def _compute_slice(store: Store, work: PortfolioWork, slice_: Slice) -> tuple[PartialResult, int]:
    """Compute a slice: its customers with transactions in parallel pieces, then all others.

    Returns: the result, and the number of customers left out.
    """
    with store.db.reading() as r:
        numbers = work.narrow(r, [number for number, _ in portfolio_jobs.find_customers(r, work.population, slice_)])
        places = transactions.current_locations(r, numbers)
    good, damaged = transactions.separate_damaged(store.lake, places)
    failed = list(damaged)
    silent = sorted(set(numbers) - {place.customer_number for place in places})
    pieces = compute_by_slice(store.lake, good, partial(_compute_rows, work, failed)) if good else ()
    parts = list(chain.from_iterable(pieces))
    if not work.population.with_transactions:
        for start in range(0, len(silent), MAX_SILENT):
            parts += _compute_isolated(work, failed, NO_ROWS, silent[start : start + MAX_SILENT])
    merged = work.merge(part.tallies for part in parts)
    rows = _add_public_ids(store, parts, slice_.job.kind.most_listed)
    return PartialResult(rows, merged, sum(part.customers for part in parts)), len(failed)


def _compute_rows(work: PortfolioWork, failed: list[int], rows: pl.DataFrame) -> Sequence[PartialResult]:
    return _compute_isolated(work, failed, rows, rows[BY_CUSTOMER].unique().sort().to_list())


def _compute_isolated(
    work: PortfolioWork, failed: list[int], rows: pl.DataFrame, numbers: Sequence[int]
) -> Sequence[PartialResult]:
    def compute(subset: Sequence[int]) -> Sequence[PartialResult]:
        return [work.compute(rows.filter(pl.col(BY_CUSTOMER).is_in(list(subset))), subset)]

    return isolate_failures(compute, numbers, failed)


def _add_public_ids(store: Store, parts: Sequence[PartialResult], most: int | None) -> pl.DataFrame:
    """Return the rows of all parts, at most `most`, with `customer_id`."""
    if not parts:
        return pl.DataFrame()
    rows = pl.concat([part.rows for part in parts])
    rows = rows.head(most or rows.height)
    with store.db.reading() as r:
        ids = customers.ids_of(r, rows[BY_CUSTOMER].unique())
    public = [each.bytes for each in ids.values()]
    return rows.with_columns(customer_id=pl.col(BY_CUSTOMER).replace_strict(list(ids), public, return_dtype=pl.Binary))


@contextmanager
def _fail_job_on_error(store: Store, job_: PortfolioJob, clock: Callable[[], datetime]) -> Iterator[None]:
    try:
        yield
    except UNREACHABLE:  # the run is repeated
        raise
    except BaseException as error:  # also when the run is stopped from Dagster's pages
        with store.db.writing() as w:
            portfolio_jobs.fail(w, job_, _describe_error(error, job_.kind), clock())
        raise


def _describe_error(error: BaseException, kind: Kind) -> Mapping[str, str]:
    if isinstance(error, TidemarkError):
        return {"code": error.code, "message": error.detail}
    if not isinstance(error, Exception):
        return {"code": kind.code("Stopped"), "message": "The run was stopped."}
    return {"code": kind.code("Failed"), "message": f"The {kind.noun} could not be computed."}
