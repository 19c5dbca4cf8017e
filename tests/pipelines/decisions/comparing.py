"""Compare the engine with the interpreter on the same policies, customers and inputs."""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from pipelines.decisions import readings
from pipelines.decisions.answer import build_answer, build_trace
from pipelines.decisions.evaluate import evaluate_plan
from pipelines.decisions.plan import Plan, plan_policy
from pipelines.decisions.policy import Policy
from pipelines.decisions.readings import Value
from pipelines.decisions.unsettled import Row
from pipelines.metrics import cause_of
from pipelines.metrics.outcome import VALUE
from tests.pipelines.decisions import drawn, interpreter
from tests.pipelines.decisions.interpreter import (
    Customer,
    Json,
    LimitResult,
    PolicyResult,
    Reason,
    RuleResult,
    Seen,
    StepResult,
)


@dataclass(frozen=True)
class Case:
    """A policy, and the portfolio to evaluate it for."""

    document: Json
    customers: Sequence[Customer]
    inputs: Mapping[str, Value]


@dataclass(frozen=True)
class Interpreted:
    """A case, and the interpreter's result for each of its customers."""

    case: Case
    results: Sequence[PolicyResult]


@dataclass(frozen=True)
class Compared:
    document: Json
    customer: Customer
    engine: PolicyResult
    interpreter: PolicyResult


def cases(seed: int, policies: int, customers: int) -> Iterator[Case]:
    chance = random.Random(seed)
    for _ in range(policies):
        yield Case(drawn.document(chance), list(drawn.customers(chance, customers)), drawn.inputs(chance))


def interpret(cases: Iterable[Case]) -> Iterator[Interpreted]:
    for case in cases:
        results = [
            interpreter.policy_result(case.document, customer, case.inputs, drawn.NOW) for customer in case.customers
        ]
        yield Interpreted(case, results)


def compare_all(some: Iterable[Interpreted]) -> Iterator[Compared]:
    for each in some:
        case, plan = each.case, plan_policy(Policy.model_validate(each.case.document))
        for customer, row, expected in zip(case.customers, rows(plan, case).to_dicts(), each.results, strict=True):
            yield Compared(case.document, customer, engine_result(plan, row, customer), expected)


def differing(some: Iterable[Interpreted]) -> Iterator[Compared]:
    return (each for each in compare_all(some) if each.engine != each.interpreter)


# The engine's results


def rows(plan: Plan, case: Case) -> pl.DataFrame:
    """Return the engine's result for a case, one row per customer; customers are numbered from 0."""
    held = {number: customer.attributes for number, customer in enumerate(case.customers)}
    return evaluate_plan(plan, readings.read_leaves(plan, metrics_of(case.customers), held, case.inputs, drawn.NOW))


def metrics_of(customers: Sequence[Customer]) -> pl.DataFrame:
    """Return the customers' metrics in the form of `metrics.values`."""
    slugs = customers[0].metrics
    columns = [each for slug in slugs for each in _metric(slug, [customer.metrics[slug] for customer in customers])]
    return pl.DataFrame([pl.Series("customer_number", range(len(customers)), pl.UInt32), *columns])


def _metric(slug: str, outcomes: Sequence[Any]) -> Iterator[pl.Series]:
    yield pl.Series(slug, [None if isinstance(each, str) else each for each in outcomes], VALUE)
    yield pl.Series(cause_of(slug), [each if isinstance(each, str) else None for each in outcomes], pl.String)


def engine_result(plan: Plan, row: Row, customer: Customer) -> PolicyResult:
    """Return the engine's answer and trace in the interpreter's form."""
    answer, trace = build_answer(plan, row, customer.attributes, {}), build_trace(plan, row)
    verdict = answer["verdict"]
    slugs = {plan.policy.metric_id(metric): slug for slug, metric in plan.metrics.items()}
    return PolicyResult(
        verdict["outcome"],
        row["step"],
        tuple(each["code"] for each in verdict["matchedRules"]),
        tuple(tuple(slugs[metric] for metric in each["metricIds"]) for each in verdict["matchedRules"]),
        _reasons(plan, verdict["reasons"]),
        tuple(_limit(plan, *each) for each in zip(answer["computedLimits"], trace["limits"], strict=True)),
        tuple(_step(each) for each in trace["steps"]),
    )


def _limit(plan: Plan, described: Json, trace: Json) -> LimitResult:
    seen = (_parse_seen(trace["amount"]), *(_parse_seen(cap["value"]) for cap in trace["caps"]))
    slugs = {product.id: product.slug for product in plan.policy.products}
    product = slugs[described["productId"]]
    assert product == trace["product"]
    if described["kind"] == "indeterminate":
        return LimitResult(product, None, None, False, _reasons(plan, described["reasons"]), seen)
    return LimitResult(product, described["amount"], described.get("uncappedAmount"), described["capped"], (), seen)


def _step(trace: Json) -> StepResult:
    rules = tuple(RuleResult(each["code"], each["counted"], _parse_seen(each["condition"])) for each in trace["rules"])
    return StepResult(trace["matched"], rules)


def _reasons(plan: Plan, reasons: Sequence[Json]) -> tuple[Reason, ...]:
    slugs = {plan.policy.metric_id(metric): slug for slug, metric in plan.metrics.items()}
    return tuple(
        Reason(each["code"], each["cause"], each["name"], tuple(slugs[metric] for metric in each["metricIds"]))
        for each in reasons
    )


def _parse_seen(tree: Json) -> Seen:
    return Seen(_what(tree), tree["value"], tree.get("cause"), tuple(map(_parse_seen, tree.get("of", ()))))


def _what(tree: Json) -> tuple[str, ...]:
    (operator, subject), *_ = tree.items()
    if operator == "operator":
        return (subject,)
    return (operator, *([subject] if isinstance(subject, str) else subject))
