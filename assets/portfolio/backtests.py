"""Backtests as a kind of portfolio job: compare versions of a policy over a client's portfolio."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

import polars as pl

from assets.portfolio.kinds import day_end
from pipelines.decisions import Attribute, Attributes, Plan, Recorded, evaluate_plan, plan_policy, readings
from pipelines.decisions.backtest import COMPARISON, KNOWN_OUTCOMES, Side, compare, decide, merge, recorded, result
from pipelines.decisions.decision import compute_figures, compute_metrics
from pipelines.figures.facts import Facts, select_as_known
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.figures.tallies import Tallies
from storage.core.database import Reading
from storage.core.store import Store
from storage.decisions import backtests, context, policies
from storage.decisions.backtests import Against, Knowledge, Request
from storage.jobs import jobs
from storage.monitoring import attributes
from storage.monitoring.attributes import Value
from storage.portfolio import portfolio_jobs
from storage.portfolio.portfolio_jobs import PartialResult, Population, PortfolioJob


@dataclass(frozen=True)
class Moment:
    """A day of the backtest.

    `at`: attributes are read as of this time. `known_seq`: only jobs up to this `received_seq` count; None: all count.
    """

    day: date
    at: datetime
    known_seq: int | None


@dataclass(frozen=True)
class Backtest:
    """A backtest with all that its slices share.

    `now`: when it was started. `before`: the other version's plan; None: recorded decisions.
    """

    store: Store
    job: PortfolioJob
    now: datetime
    request: Request
    before: Plan | None
    after: Plan
    moments: Sequence[Moment]
    outcomes: pl.DataFrame

    @property
    def plans(self) -> Sequence[Plan]:
        return [self.after] if self.before is None else [self.before, self.after]

    @property
    def population(self) -> Population:
        ids = self.request.customers
        return Population(self.job.client_id, None if ids is None else frozenset(ids), with_transactions=False)

    def narrow(self, r: Reading, numbers: Sequence[int]) -> Sequence[int]:
        """Return the customers whose unexpired attributes now have the requested values."""
        if not (wanted := self.request.attributes):
            return numbers
        matching = dict.fromkeys(numbers, 0)  # attributes that have the requested value
        for number, each in attributes.find_current(r, numbers):
            matching[number] += each.is_available(self.now) and _equal(wanted.get(each.name), each.value)
        return [number for number, count in matching.items() if count == len(wanted)]

    def compute(self, rows: pl.DataFrame, numbers: Sequence[int]) -> PartialResult:
        days = [_compare_day(self, moment, rows, numbers) for moment in self.moments]
        frame = pl.concat([pl.DataFrame(schema=COMPARISON), *(compared for compared, _ in days)])
        return PartialResult(frame, merge(tallies for _, tallies in days), frame[BY_CUSTOMER].n_unique())

    def merge(self, parts: Iterable[Tallies]) -> Tallies:
        return merge(parts)

    def result(self, r: Reading, tallies: Tallies) -> object:
        return result.describe_days(tallies, self.request.days)


def open_backtest(r: Reading, store: Store, job: PortfolioJob) -> Backtest:
    """Read everything that the backtest's slices share.

    Raises:
        Corrupt: a stored version is damaged.
    """
    request = Request.from_json(job.request)
    now = job.started_at or job.created_at
    stored = policies.get_of_any_client(r, job.subject_id)
    other = None if request.other_version is None else policies.version(r, stored, request.other_version)
    outcomes = portfolio_jobs.read_attachment(r, job)
    return Backtest(
        store,
        job,
        now,
        request,
        None if other is None else plan_policy(other.policy),
        plan_policy(policies.version(r, stored, job.version).policy),
        [_moment(r, store, request, day, now) for day in request.days],
        pl.DataFrame(schema=KNOWN_OUTCOMES) if outcomes is None else outcomes,
    )


def _equal(one: Value | None, other: Value | None) -> bool:
    """Compare two attributes' values; unlike in Python, True is not 1."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _moment(r: Reading, store: Store, request: Request, day: date, now: datetime) -> Moment:
    at = day_end(day, store.settings.zone, now)
    return Moment(day, at, jobs.find_last_received_of_all(r, at) if request.knowledge is Knowledge.THEN else None)


def _compare_day(
    backtest: Backtest, moment: Moment, rows: pl.DataFrame, numbers: Sequence[int]
) -> tuple[pl.DataFrame, Tallies]:
    known = rows if moment.known_seq is None else select_as_known(rows, moment.known_seq)
    until = moment.at if backtest.request.knowledge is Knowledge.THEN else None
    with backtest.store.db.reading() as r:
        facts = Facts(known, moment.day, context.read_for_metrics(r, numbers, backtest.store.settings.zone, until))
        stated = _attributes(r, backtest, moment, numbers)
        records = _records(r, backtest, moment, numbers)
    if backtest.before is not None:
        before, after = _decide_by_two_versions(backtest, backtest.before, facts, stated, moment, numbers)
    elif backtest.request.against is Against.CHALLENGER:
        before, after = (recorded.side({number: each[side] for number, each in records.items()}) for side in (0, 1))
    else:
        decisions = {number: each[0] for number, each in records.items()}
        before, after = recorded.side(decisions), _decide_again(backtest, facts, stated, moment, decisions)
    return compare(moment.day, before, after, backtest.outcomes)


def _attributes(r: Reading, backtest: Backtest, moment: Moment, numbers: Sequence[int]) -> Attributes:
    """Return the customers' attributes that a plan reads."""
    read = {name for plan in backtest.plans for name in plan.labels("attribute")}
    until = moment.at if backtest.request.knowledge is Knowledge.THEN else None
    stated: dict[int, dict[str, Attribute]] = {}
    for number, each in attributes.find_current(r, numbers, until) if read else ():
        if each.name in read:
            stated.setdefault(number, {})[each.name] = Attribute(each.value, each.expires_at)
    return stated


def _records(
    r: Reading, backtest: Backtest, moment: Moment, numbers: Sequence[int]
) -> Mapping[int, Sequence[Recorded]]:
    """Return each customer's recorded decision and, if requested, the challenger's decision beside it."""
    if backtest.before is not None:
        return {}
    challenger = backtest.job.version if backtest.request.against is Against.CHALLENGER else None
    return backtests.latest_records(r, backtest.job.subject_id, numbers, moment.at, challenger)


def _decide_by_two_versions(
    backtest: Backtest, before: Plan, facts: Facts, stated: Attributes, moment: Moment, numbers: Sequence[int]
) -> tuple[Side, Side]:
    """Decide with both versions. Figures are computed only once, unless the versions define one of them differently."""
    earlier, later = _figures(facts, before, backtest.after, numbers)
    inputs = backtest.request.inputs

    def side(plan: Plan, figures: pl.DataFrame) -> Side:
        declared = {each.name: inputs[each.name] for each in plan.policy.declared_inputs}
        return decide(plan, evaluate_plan(plan, readings.read_leaves(plan, figures, stated, declared, moment.at)))

    return side(before, earlier), side(backtest.after, later)


def _figures(facts: Facts, before: Plan, after: Plan, numbers: Sequence[int]) -> tuple[pl.DataFrame, pl.DataFrame]:
    if any(after.metrics.get(slug, metric) != metric for slug, metric in before.metrics.items()):
        return compute_figures(facts, before, numbers), compute_figures(facts, after, numbers)
    both = compute_metrics(facts, {**before.metrics, **after.metrics}, numbers)
    return both, both


def _decide_again(
    backtest: Backtest, facts: Facts, stated: Attributes, moment: Moment, decisions: Mapping[int, Recorded]
) -> Side:
    """Apply the version to every customer with a recorded decision, using the recorded inputs."""
    plan = backtest.after
    figures = compute_figures(facts, plan, decisions).filter(pl.col("customer_number").is_in(list(decisions)))
    inputs = {number: {**backtest.request.inputs, **given} for number, given in recorded.inputs_of(decisions).items()}
    return decide(plan, evaluate_plan(plan, recorded.read_leaves(plan, figures, stated, inputs, moment.at)))
