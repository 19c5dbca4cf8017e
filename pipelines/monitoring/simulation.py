"""Simulate a ruleset: how often, and for which customers, it would have fired over past days.

A day is evaluated with all rows stored today that are dated up to that day, as they are enriched today. Attributes have
the values that they had at the end of the day; an attribute that was not set yet has its current value. All rules start
ready, and then fire and are reset day by day as in production (`transitions`).

Customers are simulated in groups. Only the firings of a group, and tallies that add up, stay in memory.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from functools import cached_property
from uuid import UUID

import msgspec
import polars as pl

from pipelines.decisions.readings import Attributes
from pipelines.figures import tallies
from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.figures.tallies import Tallies, Tally, counts
from pipelines.metrics import Metric
from pipelines.metrics.sources import reach, reads_balances
from pipelines.monitoring import (
    Listed,
    MonitoringPlan,
    Observations,
    Ruleset,
    VersionedRuleset,
    compute_figures,
    compute_transitions,
    observe_figures,
    plan_rulesets,
)
from pipelines.monitoring.snapshots import (
    AttributeHistories,
    Day,
    FactsOfDays,
    attribute_at,
    snapshots,
    split_snapshots,
)
from pipelines.monitoring.transitions import FIRING, OUTCOMES
from pipelines.vocabulary.schemas import not_retracted

MAX_SNAPSHOTS = 50_000  # in a group of customers (our judgement: about what fits in memory)
ALL = "*"  # stands for any rule; no rule can have this code

MAX_CUSTOMERS = 1_000  # listed, those with the most events first
MAX_FIRINGS = 200_000  # listed, in order of the customers' numbers; further ones are only counted

FIRINGS = pl.Schema({BY_CUSTOMER: pl.Int64(), "date": pl.Date(), "rule": pl.String(), "read": pl.String()})
"""Firings of rules: `read` is the JSON of what the condition read that day. Sorted, rules in the document's order."""
CUSTOMERS = pl.Schema({BY_CUSTOMER: pl.Int64(), "rule": pl.String(), "fired": pl.UInt32(), "last": pl.Date()})
"""How often each rule fires for a customer, and when last. ALL counts the days on which any rule fires."""
_CAUSE = dict.fromkeys(("rule", "kind", "name", "cause"), pl.String())
TALLIES: Mapping[str, Tally] = {
    # Customers that were evaluated on any day.
    "evaluated": Tally(pl.Schema(), counts("customers")),
    # Customer days by month (its first day): evaluated, with a true condition, and with an unknown condition.
    "days": Tally(pl.Schema({"month": pl.Date(), "rule": pl.String()}), counts("observed", "held", "unknown")),
    # Customer days with an unknown condition, by the missing value; a day may have several.
    "causes": Tally(pl.Schema({**_CAUSE, "month": pl.Date()}), counts("days")),
    # How often a rule fires, and for how many customers. ALL: days on which any rule fires. `month` null: all months.
    "fired": Tally(pl.Schema({"month": pl.Date(), "rule": pl.String()}), counts("fired", "customers")),
    # Customers for whom a rule fires on the first day.
    "starts": Tally(pl.Schema({"rule": pl.String()}), counts("customers")),
}
MOST_EVENTS = "most_events"  # a further table of the tallies: CUSTOMERS of the MAX_CUSTOMERS with the most events

_encode = msgspec.json.Encoder(decimal_format="number").encode


@dataclass(frozen=True)
class Simulation:
    """A ruleset and the days, in order, on which it is evaluated."""

    ruleset_id: UUID
    ruleset: Ruleset
    days: Sequence[Day]

    @cached_property
    def plan(self) -> MonitoringPlan:
        """The plan for all given customers: if the ruleset lists customers, the caller has already selected them."""
        listed = isinstance(self.ruleset.applies_to, Listed)
        for_all = self.ruleset.model_copy(update={"applies_to": "all"}) if listed else self.ruleset
        return plan_rulesets([VersionedRuleset(self.ruleset_id, 0, for_all, None)])

    @cached_property
    def metrics(self) -> Sequence[Metric]:
        """All metrics that it reads, including those of baselines."""
        every = [self.plan.metrics, *(baseline.metrics for baseline in self.plan.baselines)]
        return [metric for metrics in every for metric in metrics.values()]

    @cached_property
    def reach(self) -> int:
        """The number of past days whose rows its metrics read (`sources.reach`)."""
        return max(map(reach, self.metrics), default=0)

    @cached_property
    def reads_balances(self) -> bool:
        return any(map(reads_balances, self.metrics))

    @property
    def codes(self) -> list[str]:
        return [rule.code for rule in self.ruleset.rules]


@dataclass(frozen=True)
class Simulated:
    """The result for some customers: tallies with MOST_EVENTS, and the first of their FIRINGS."""

    tallies: Tallies
    firings: pl.DataFrame


def simulate(
    simulation: Simulation, transactions: pl.DataFrame, past: AttributeHistories, keep: int
) -> Iterator[Simulated]:
    """Simulate the customers, group by group.

    Args:
        transactions: TRANSACTIONS of whole customers, in the order of SORT_KEY.
        past: the history of their attributes.
        keep: the number of firings to list; further ones are only counted.
    """
    rows = transactions.filter(not_retracted(), pl.col("date") <= simulation.days[-1].date)
    all_snapshots = snapshots(rows, simulation.ruleset, simulation.plan.metrics, past, simulation.days)
    for group in _group_customers(all_snapshots):
        part = _simulate_group(simulation, rows, group, past, keep)
        keep -= part.firings.height
        yield part


def merge(parts: Iterable[Tallies]) -> Tallies:
    """Add up the tallies of different customers."""
    listed = list(parts)
    customers = pl.concat([pl.DataFrame(schema=CUSTOMERS), *(part[MOST_EVENTS] for part in listed)])
    return {**tallies.merge(TALLIES, listed), MOST_EVENTS: _most_events(customers)}


def _most_events(customers: pl.DataFrame) -> pl.DataFrame:
    """Return CUSTOMERS of the MAX_CUSTOMERS with the most events, in this order, then by number and rule."""
    totals = customers.filter(pl.col("rule") == ALL).select(BY_CUSTOMER, events="fired")
    first = totals.sort("events", BY_CUSTOMER, descending=[True, False]).head(MAX_CUSTOMERS)
    theirs = customers.join(first, on=BY_CUSTOMER, validate="m:1")
    return theirs.sort("events", BY_CUSTOMER, "rule", descending=[True, False, False]).select(CUSTOMERS.names())


def _group_customers(all_snapshots: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Group whole customers, with about MAX_SNAPSHOTS snapshots in each group."""
    if all_snapshots.is_empty():
        return
    group = pl.col("snapshot").last().over(BY_CUSTOMER) // MAX_SNAPSHOTS
    yield from all_snapshots.with_columns(group=group).partition_by("group", maintain_order=True, include_key=False)


def _simulate_group(
    simulation: Simulation, rows: pl.DataFrame, group: pl.DataFrame, past: AttributeHistories, keep: int
) -> Simulated:
    theirs = rows.filter(pl.col(BY_CUSTOMER).is_in(group[BY_CUSTOMER].unique().implode()))
    plain = Facts(theirs, simulation.days[-1].date)
    parts = [
        _observe_snapshots(simulation, plain, part, past)
        for part in split_snapshots(plain, group, simulation.reach, balances=simulation.reads_balances)
    ]
    seen = pl.concat(part.outcomes.rename({BY_CUSTOMER: "snapshot"}) for part in parts)
    outcomes = seen.join(group, on="snapshot", validate="m:1")
    causes = pl.concat(part.causes.rename({BY_CUSTOMER: "snapshot"}) for part in parts)
    fired = _find_firings(simulation, outcomes)
    return Simulated(
        {
            "evaluated": outcomes.select(customers=pl.col(BY_CUSTOMER).n_unique()),
            "days": _tally_days(outcomes),
            "causes": _tally_causes(causes.join(group, on="snapshot", validate="m:1")),
            "fired": _count_firings(fired),
            "starts": _tally_starts(fired, simulation.days[0].date),
            MOST_EVENTS: _most_events(_count_by_customer(fired)),
        },
        _list_firings(simulation, fired.head(keep), parts),
    )


# Snapshots


def _observe_snapshots(
    simulation: Simulation, plain: Facts, part: pl.DataFrame, past: AttributeHistories
) -> Observations:
    """Evaluate some snapshots. Each counts as a customer, with the snapshot's number as the customer's number."""
    facts = FactsOfDays(plain, part, simulation.reach)
    stated, now = _attributes_of_snapshots(simulation, part, past), simulation.days[-1].at
    return observe_figures(
        simulation.plan, compute_figures(simulation.plan, facts, part["snapshot"].to_list(), stated, now), stated, now
    )


def _attributes_of_snapshots(simulation: Simulation, part: pl.DataFrame, past: AttributeHistories) -> Attributes:
    """Return for each snapshot the attributes that the ruleset reads."""
    at = {day.date: day.at for day in simulation.days}
    read = simulation.plan.attributes
    return {
        snapshot: {
            name: attribute_at(changes, at[day]) for name, changes in past.get(number, {}).items() if name in read
        }
        for snapshot, number, day in part.select("snapshot", BY_CUSTOMER, "date").iter_rows()
    }


# Days


def _find_firings(simulation: Simulation, outcomes: pl.DataFrame) -> pl.DataFrame:
    """Return the firings: customer, `rule`, `date` and the `snapshot` of that date; rules in the document's order.

    A condition that is unknown, or unchanged since it was last known, neither fires nor resets a rule. So only days
    with a change are computed, and every day for rules that fire again after some days.
    """
    known = outcomes.filter(pl.col("holds").is_not_null())
    before = pl.col("holds").shift().over(BY_CUSTOMER, "rule", order_by="date")
    turned = known.filter(before.ne_missing(pl.col("holds")))
    again = simulation.plan.repeats.filter(pl.col("repeat_after_days").is_not_null())
    still = known.filter("holds").join(again, on=("ruleset_id", "rule"), how="semi")
    every = still.with_columns(date=pl.date_ranges("date", "until", closed="left")).explode("date", empty_as_null=False)
    seen = pl.concat([turned, every.join(turned, on=(BY_CUSTOMER, "rule", "date"), how="anti")])
    firing, fired = pl.DataFrame(schema=FIRING), [pl.DataFrame(schema={**FIRING, "date": pl.Date()})]
    for (day,), of_day in sorted(seen.partition_by("date", as_dict=True).items()):
        now = datetime.combine(day, time.min, UTC)
        transitions = compute_transitions(
            of_day.select(OUTCOMES.names()), firing, simulation.plan.repeats, day, str(UTC)
        )
        new = transitions.fired.with_columns(fired_at=pl.lit(now, FIRING["fired_at"]))
        replaced = pl.concat([transitions.reset, transitions.fired])
        firing = pl.concat([firing.join(replaced, on=replaced.columns, how="anti"), new])
        fired.append(new.with_columns(date=pl.lit(day)))
    key = (BY_CUSTOMER, "ruleset_id", "rule", "date")
    found = pl.concat(fired).join(seen.select(*key, "snapshot"), on=key, validate="1:1")
    return found.select(BY_CUSTOMER, "date", "snapshot", pl.col("rule").cast(pl.Enum(simulation.codes))).sort(
        BY_CUSTOMER, "date", "rule"
    )


def _tally_days(outcomes: pl.DataFrame) -> pl.DataFrame:
    holds, days = pl.col("holds"), pl.col("days")
    return (
        _split_by_month(outcomes)
        .group_by("month", "rule")
        .agg(
            observed=days.sum(),
            held=days.filter(holds).sum(),
            unknown=days.filter(holds.is_null()).sum(),
        )
    )


def _tally_causes(causes: pl.DataFrame) -> pl.DataFrame:
    return _split_by_month(causes).group_by("rule", "kind", "name", "cause", "month").agg(pl.col("days").sum())


def _split_by_month(spans: pl.DataFrame) -> pl.DataFrame:
    """Split spans from `date` to before `until` by `month` (its first day), with the number of `days` in each."""
    first, until = pl.col("date"), pl.col("until")
    months = pl.date_ranges(first.dt.truncate("1mo"), until - pl.duration(days=1), "1mo")
    start = pl.max_horizontal("date", "month")
    end = pl.min_horizontal("until", pl.col("month").dt.offset_by("1mo"))
    return (
        spans.with_columns(month=months)
        .explode("month", empty_as_null=False)
        .with_columns(days=(end - start).dt.total_days())
    )


# Firings


def _add_firings_of_any_rule(fired: pl.DataFrame) -> pl.DataFrame:
    """Return the firings of each rule, and in addition one of ALL for each customer and day."""
    own = fired.select(BY_CUSTOMER, "date", pl.col("rule").cast(pl.String))
    return pl.concat([own, own.select(BY_CUSTOMER, "date", rule=pl.lit(ALL)).unique()])


def _count_firings(fired: pl.DataFrame) -> pl.DataFrame:
    of_month = _add_firings_of_any_rule(fired).with_columns(month=pl.col("date").dt.truncate("1mo"))
    total = of_month.with_columns(month=pl.lit(None, pl.Date))
    by_month = pl.concat([of_month, total]).group_by("month", "rule")
    return by_month.agg(fired=pl.len(), customers=pl.col(BY_CUSTOMER).n_unique())


def _tally_starts(fired: pl.DataFrame, first: date) -> pl.DataFrame:
    on_first = _add_firings_of_any_rule(fired).filter(pl.col("date") == first)
    return on_first.group_by("rule").agg(customers=pl.len())


def _count_by_customer(fired: pl.DataFrame) -> pl.DataFrame:
    by_rule = (
        _add_firings_of_any_rule(fired).group_by(BY_CUSTOMER, "rule").agg(fired=pl.len(), last=pl.col("date").max())
    )
    return by_rule.select(CUSTOMERS.names()).cast(CUSTOMERS)


def _list_firings(simulation: Simulation, fired: pl.DataFrame, parts: Sequence[Observations]) -> pl.DataFrame:
    read = [text for part in parts for text in _readings_as_json(simulation, part, fired)]
    return fired.with_columns(pl.col("rule").cast(pl.String), read=pl.Series(read, dtype=pl.String)).select(
        FIRINGS.names()
    )


def _readings_as_json(simulation: Simulation, part: Observations, fired: pl.DataFrame) -> Iterator[str]:
    """Yield as JSON what the firings in a part's snapshots read; a part's snapshots have consecutive numbers."""
    snapshots = part.evaluated[BY_CUSTOMER]
    own = fired.filter(pl.col("snapshot").is_between(snapshots[0], snapshots[-1]))
    for snapshot, rule in own.select("snapshot", pl.col("rule").cast(pl.String)).iter_rows():
        [described] = part.describe_firings(snapshot, simulation.ruleset_id, [rule])["rules"]
        yield _encode(described["read"]).decode()
