"""Backtests: versions of a policy compared over a client's portfolio, slice by slice, in the portfolio's queue.

A slice is as many whole customers as memory is meant for; what stays of it is a file of rows in the lake, and tallies
that add up. A customer whom one slice can't decide is left out and counted: it takes nobody else with it.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from uuid import UUID

import polars as pl
from dagster import DefaultSensorStatus, OpExecutionContext, ResourceParam, RunRequest, SkipReason, job, op, sensor

from assets.core.batches import isolating
from assets.core.runs import BACKTEST_TAG, QUEUE_TAG
from assets.dispatch.sensors import EVERY_S
from assets.portfolio.portfolio_jobs import failing_with_its_run
from assets.reports.reports import each_slice
from pipelines.decisions import Attribute, Attributes, Plan, Recorded, evaluated, planned, readings
from pipelines.decisions.backtest import (
    COMPARISON,
    NO_TALLIES,
    Side,
    Tallies,
    compared,
    decided,
    merged,
    recorded,
    result,
)
from pipelines.decisions.decision import figures, figures_of
from pipelines.figures.facts import COLUMNS, Facts, as_known
from pipelines.vocabulary.schemas import TRANSACTIONS
from storage.core.database import Reading
from storage.core.models import TERMINAL, Flow, Queue
from storage.core.store import Store
from storage.customers import customers
from storage.decisions import backtests, policies
from storage.decisions.backtests import Against, Backtest, Knowledge, Request
from storage.enrichment import transactions
from storage.jobs import jobs
from storage.monitoring import attributes
from storage.portfolio import portfolio_jobs

CUSTOMERS_AT_ONCE = 20_000  # whose places are held at once
MOST_SILENT = 5_000  # customers without transactions that make a slice
NO_ROWS = pl.DataFrame(schema={name: TRANSACTIONS[name] for name in COLUMNS})

log = logging.getLogger(__name__)


@op
def compare_policies(context: OpExecutionContext, store: ResourceParam[Store]) -> None:
    """Compare over the portfolio what the run's backtest asks for."""
    done = run(store, UUID(context.run.tags[BACKTEST_TAG]), lambda: datetime.now(UTC))
    context.add_output_metadata({"customers": done.customers, "customers failed": done.failed, "files": done.files})


@job(tags={QUEUE_TAG: Queue.PORTFOLIO.value})
def policy_backtest() -> None:
    """Compare versions of a decision policy over a client's portfolio."""
    compare_policies()


@sensor(
    job_name=policy_backtest.name,
    minimum_interval_seconds=EVERY_S,
    default_status=DefaultSensorStatus.RUNNING,
    description="Starts the runs of backtests that clients asked for, in order of receipt.",
)
def requested_backtests_sensor(store: ResourceParam[Store]) -> list[RunRequest] | SkipReason:
    """Asks for each until it has begun; Dagster starts it once, by its key."""
    with store.db.reading() as r:
        waiting = portfolio_jobs.waiting(r, Flow.POLICY_BACKTEST)
    asked = [RunRequest(run_key=f"backtest {each.job_id}", tags={BACKTEST_TAG: str(each.job_id)}) for each in waiting]
    return asked or SkipReason("Nothing was asked for.")


# The work


@dataclass(frozen=True)
class Done:
    customers: int
    failed: int
    files: int


@dataclass(frozen=True)
class Moment:
    """A day that is looked at: when attributes are asked for, and the last receipt that counts (None: all)."""

    day: date
    at: datetime
    known_seq: int | None


@dataclass(frozen=True)
class Spec:
    """A backtest with all that its slices share. `before`: the other version's plan; None: what was recorded."""

    backtest: Backtest
    before: Plan | None
    after: Plan
    moments: Sequence[Moment]
    outcomes: pl.DataFrame

    @property
    def request(self) -> Request:
        return self.backtest.request

    @property
    def plans(self) -> Sequence[Plan]:
        return [self.after] if self.before is None else [self.before, self.after]


@dataclass
class Progress:
    tallies: Tallies = field(default_factory=lambda: NO_TALLIES)
    parts: int = 0
    failed: list[int] = field(default_factory=list)


Compared = tuple[pl.DataFrame, Tallies]


def run(store: Store, job_id: UUID, clock: Callable[[], datetime]) -> Done:
    """Compare, write, and end the job; where that fails or is stopped, the job fails, too. One that has ended is left
    alone: a run may be lost after its last word.
    """
    with store.db.reading() as r:
        backtest = backtests.with_id(r, job_id)
    if backtest.status in TERMINAL:
        return Done(0, 0, 0)
    with failing_with_its_run(store, backtest.client_id, backtest.job_id, "Backtest", clock):
        return _run(store, backtest, clock)


def _run(store: Store, backtest: Backtest, clock: Callable[[], datetime]) -> Done:
    with store.db.reading() as r:
        spec = _spec(r, store, backtest, clock())
        numbers = backtests.customers_of(r, backtest)
    with store.db.writing() as w:
        backtests.begin(w, backtest, len(numbers), clock())
    progress = Progress()
    for some in _some(numbers, CUSTOMERS_AT_ONCE):
        for part in _parts(store, spec, some, progress.failed):
            _keep(store, backtest, progress, part, clock())
    reported = result.described(progress.tallies, [moment.day for moment in spec.moments])
    with store.db.writing() as w:
        backtests.end(w, backtest, reported, len(progress.failed), clock())
    return Done(len(numbers), len(progress.failed), progress.parts)


def _spec(r: Reading, store: Store, backtest: Backtest, now: datetime) -> Spec:
    asked = backtest.request
    stored = policies.with_id(r, backtest.policy_id)
    other = None if asked.other_version is None else policies.version(r, stored, asked.other_version)
    return Spec(
        backtest,
        None if other is None else planned(other.policy),
        planned(policies.version(r, stored, backtest.version).policy),
        [_moment(r, store, asked, day, now) for day in asked.days],
        backtests.known_outcomes(r, backtest),
    )


def _moment(r: Reading, store: Store, asked: Request, day: date, now: datetime) -> Moment:
    """A day's end in the business's time zone, or now where that is earlier."""
    ends = datetime.combine(day + timedelta(days=1), time.min, store.settings.zone).astimezone(UTC)
    at = min(ends, now)
    return Moment(day, at, jobs.last_received_of_all(r, at) if asked.knowledge is Knowledge.THEN else None)


def _keep(store: Store, backtest: Backtest, progress: Progress, part: Compared, now: datetime) -> None:
    rows, tallies = part
    with store.db.reading() as r:
        ids = customers.ids_of(r, rows["customer_number"].unique().to_list())
    public = pl.col("customer_number").replace_strict(
        list(ids), [each.bytes for each in ids.values()], return_dtype=pl.Binary
    )
    stored = store.lake.put_frame(backtests.path_of(backtest), rows.with_columns(customer_id=public))
    with store.db.writing() as w:
        done = rows["customer_number"].n_unique()
        backtests.add_part(w, store.lake, backtest, progress.parts, stored, rows, done, now)
    progress.tallies = merged([progress.tallies, tallies])
    progress.parts += 1


def _parts(store: Store, spec: Spec, numbers: Sequence[int], failed: list[int]) -> Iterator[Compared]:
    """The customers, those with transactions first, slice by slice."""
    with store.db.reading() as r:
        meant = _with_attributes(r, spec.request, numbers)
        places = transactions.current_locations(r, meant)
    good, damaged = transactions.readable(store.lake, places)
    failed += damaged
    if good:
        for made in each_slice(store.lake, good, partial(_of_slice, store, spec, failed)):
            yield from made
    silent = sorted(meant - {place.customer_number for place in places})
    for some in _some(silent, MOST_SILENT):
        yield from _isolated(store, spec, NO_ROWS, some, failed)


def _with_attributes(r: Reading, asked: Request, numbers: Sequence[int]) -> set[int]:
    """Those of the customers who have the values that are asked for."""
    if not asked.attributes:
        return set(numbers)
    held: dict[int, int] = {}
    for number, each in attributes.of_all(r, numbers):
        if asked.attributes.get(each.name) == each.value:
            held[number] = held.get(number, 0) + 1
    return {number for number, count in held.items() if count == len(asked.attributes)}


def _of_slice(store: Store, spec: Spec, failed: list[int], rows: pl.DataFrame) -> list[Compared]:
    return _isolated(store, spec, rows, rows["customer_number"].unique().sort().to_list(), failed)


def _isolated(
    store: Store, spec: Spec, rows: pl.DataFrame, numbers: Sequence[int], failed: list[int]
) -> list[Compared]:
    compare = partial(_compared, store, spec, rows)
    made = isolating(lambda some: [compare(some)], list(numbers), failed)
    return [part for part in made if part[0].height]


def _compared(store: Store, spec: Spec, rows: pl.DataFrame, numbers: Sequence[int]) -> Compared:
    """The customers at every moment."""
    mine = rows.filter(pl.col("customer_number").is_in(list(numbers)))
    each = [_at(store, spec, moment, mine, numbers) for moment in spec.moments]
    frames = [pl.DataFrame(schema=COMPARISON), *(frame for frame, _ in each)]
    return pl.concat(frames), merged(tallies for _, tallies in each)


def _at(store: Store, spec: Spec, moment: Moment, rows: pl.DataFrame, numbers: Sequence[int]) -> Compared:
    known = rows if moment.known_seq is None else as_known(rows, moment.known_seq)
    facts = Facts(known, moment.day)
    with store.db.reading() as r:
        stated = _attributes(r, spec, moment, numbers)
        records = _records(r, spec, moment, numbers)
    if spec.before is not None:
        before, after = _two_versions(spec, spec.before, facts, stated, moment, numbers)
    elif spec.request.against is Against.CHALLENGER:
        before, after = (recorded.side({number: each[place] for number, each in records.items()}) for place in (0, 1))
    else:
        answered = {number: each[0] for number, each in records.items()}
        before, after = recorded.side(answered), _decided_again(spec, facts, stated, moment, answered)
    return compared(moment.day, before, after, spec.outcomes)


def _attributes(r: Reading, spec: Spec, moment: Moment, numbers: Sequence[int]) -> Attributes:
    """Those that a plan reads."""
    read = {name for plan in spec.plans for name in plan.labels("attribute")}
    by = moment.at if spec.request.knowledge is Knowledge.THEN else None
    stated: dict[int, dict[str, Attribute]] = {}
    for number, each in attributes.of_all(r, numbers, by) if read else ():
        if each.name in read:
            stated.setdefault(number, {})[each.name] = Attribute(each.value, each.expires_at)
    return stated


def _records(r: Reading, spec: Spec, moment: Moment, numbers: Sequence[int]) -> Mapping[int, Sequence[Recorded]]:
    """Of each customer the answered evaluation, and that of the challenger where it is asked for."""
    if spec.before is not None:
        return {}
    shadows = spec.request.against is Against.CHALLENGER
    return backtests.latest_records(r, spec.backtest, numbers, moment.at, shadows=shadows)


def _two_versions(
    spec: Spec, before: Plan, facts: Facts, stated: Attributes, moment: Moment, numbers: Sequence[int]
) -> tuple[Side, Side]:
    """Figures that both versions define alike are computed once."""
    earlier, later = _figures(facts, before, spec.after, numbers)
    inputs = spec.request.inputs

    def side(plan: Plan, shown: pl.DataFrame) -> Side:
        given = {each.name: inputs[each.name] for each in plan.policy.declared_inputs}
        return decided(plan, evaluated(plan, readings.read(plan, shown, stated, given, moment.at)))

    return side(before, earlier), side(spec.after, later)


def _figures(facts: Facts, before: Plan, after: Plan, numbers: Sequence[int]) -> tuple[pl.DataFrame, pl.DataFrame]:
    if any(after.metrics.get(slug, metric) != metric for slug, metric in before.metrics.items()):
        return figures(facts, before, numbers), figures(facts, after, numbers)
    both = figures_of(facts, {**before.metrics, **after.metrics}, numbers)
    return both, both


def _decided_again(
    spec: Spec, facts: Facts, stated: Attributes, moment: Moment, answered: Mapping[int, Recorded]
) -> Side:
    """What the version makes of the customers whose decisions were recorded, each with the inputs that it was given."""
    plan = spec.after
    shown = figures(facts, plan, answered).filter(pl.col("customer_number").is_in(list(answered)))
    inputs = {number: {**spec.request.inputs, **given} for number, given in recorded.inputs_of(answered).items()}
    return decided(plan, evaluated(plan, recorded.read(plan, shown, stated, inputs, moment.at)))


def _some(numbers: Iterable[int], most: int) -> Iterator[list[int]]:
    listed = list(numbers)
    return (listed[start : start + most] for start in range(0, len(listed), most))
