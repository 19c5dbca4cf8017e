"""Compare ruleset evaluations with the oracle on the same rulesets and customers."""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any
from uuid import UUID

import polars as pl

from pipelines.metrics import Metric, cause_of
from pipelines.metrics.outcome import VALUE
from pipelines.monitoring import MonitoringPlan, Observations, Ruleset, VersionedRuleset, observe_figures, plan_rulesets
from tests.pipelines.decisions.drawn import NOW
from tests.pipelines.monitoring import drawn, oracle
from tests.pipelines.monitoring.drawn import DrawnCustomer, DrawnRuleset
from tests.pipelines.monitoring.oracle import RuleResult

Key = tuple[int, UUID, str]  # a customer, a ruleset, a rule


@dataclass(frozen=True)
class Case:
    rulesets: Mapping[UUID, DrawnRuleset]
    customers: Mapping[int, DrawnCustomer]


@dataclass(frozen=True)
class Interpreted:
    case: Case
    results: Mapping[Key, RuleResult]


def cases(seed: int, count: int, rulesets: int, customers: int) -> Iterator[Case]:
    chance = random.Random(seed)
    for _ in range(count):
        some = [drawn.ruleset(chance, f"drawn-{nth}", customers) for nth in range(rulesets)]
        numbers = sorted(chance.sample(range(10 * customers), customers))
        listed = [_renumber(each, numbers) for each in some]
        ids = [UUID(int=chance.getrandbits(128)) for _ in some]
        who = drawn.customers(chance, customers, some)
        yield Case(dict(zip(ids, listed, strict=True)), dict(zip(numbers, who, strict=True)))


def _renumber(of: DrawnRuleset, numbers: Sequence[int]) -> DrawnRuleset:
    return DrawnRuleset(of.document, of.metrics, of.listed and frozenset(numbers[each] for each in of.listed))


def interpret(cases: Iterable[Case]) -> Iterator[Interpreted]:
    for case in cases:
        results = {
            (number, ruleset_id, code): each
            for number, who in case.customers.items()
            for ruleset_id, of in case.rulesets.items()
            for code, each in oracle.rule_results(of, number, who, NOW).items()
        }
        yield Interpreted(case, results)


def differs(some: Iterable[Interpreted]) -> bool:
    return any(engine_results(each.case) != each.results for each in some)


# The engine's results


def plan_of(case: Case) -> MonitoringPlan:
    return plan_rulesets(
        [
            VersionedRuleset(ruleset_id, 1, Ruleset.model_validate(each.document), each.listed)
            for ruleset_id, each in case.rulesets.items()
        ]
    )


def observe(case: Case) -> Observations:
    plan = plan_of(case)
    attributes = {number: who.attributes for number, who in case.customers.items()}
    return observe_figures(plan, figures_of(plan, case), attributes, NOW)


def engine_results(case: Case) -> Mapping[Key, RuleResult]:
    observed = observe(case)
    causes: dict[Key, set[tuple[str, ...]]] = {}
    for number, ruleset_id, rule, *cause in observed.causes.iter_rows():
        causes.setdefault((number, UUID(bytes=ruleset_id), rule), set()).add(tuple(cause))
    results: dict[Key, RuleResult] = {}
    for number, ruleset_id, rule, holds in observed.outcomes.iter_rows():
        key = number, UUID(bytes=ruleset_id), rule
        (described,) = observed.describe_firings(number, key[1], [rule])["rules"]
        results[key] = RuleResult(holds, frozenset(causes.pop(key, ())), _readings(described), _comparisons(described))
    assert not causes, "there are causes of rules without an outcome"
    return results


def _readings(described: Mapping[str, Any]) -> tuple[tuple[Any, ...], ...]:
    return tuple((each["kind"], each["name"], each["value"], each["cause"]) for each in described["read"])


def _comparisons(described: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple((each["operator"], each["holds"]) for each in described["trace"])


def figures_of(plan: MonitoringPlan, case: Case) -> pl.DataFrame:
    """Return the case's metrics in the form of `compute_figures`, under the plan's names."""
    read: dict[str, tuple[str, str | None]] = {name: (meaning(each), None) for name, each in plan.metrics.items()}
    for baseline in plan.baselines:
        (since,) = baseline.since.model_dump(mode="json").values()
        read |= {column: (meaning(baseline.metrics[name]), since) for column, name in baseline.readings.items()}
    columns = [pl.Series("customer_number", list(case.customers), pl.Int64)]
    for name, metric in read.items():
        outcomes = [who.metrics[metric] for who in case.customers.values()]
        columns.append(pl.Series(name, [None if isinstance(each, str) else each for each in outcomes], VALUE))
        causes = [each if isinstance(each, str) else None for each in outcomes]
        columns.append(pl.Series(cause_of(name), causes, pl.String))
    days = [pl.Series(each.day, [date(2026, 3, 1)] * len(case.customers)) for each in plan.baselines]
    return pl.DataFrame([*columns, *days])


def meaning(metric: Metric) -> str:
    """Return what a metric is computed from: drawn metrics of rulesets state it in their meaning."""
    return metric.meaning if metric.meaning in drawn.DEFINITIONS else metric.slug
