"""Ruleset evaluations of many customers by many rulesets equal those of an oracle that takes them one by one."""

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID

import polars as pl
import pytest

from pipelines.decisions import evaluate, nodes, numbers, readings
from pipelines.decisions.nodes import Leaf
from pipelines.decisions.policy import Reference
from pipelines.decisions.readings import Attribute, Attributes
from pipelines.metrics import METRICS
from pipelines.monitoring import (
    Ruleset,
    VersionedRuleset,
    describing,
    observe_customers,
    observing,
    plan_rulesets,
    planning,
)
from pipelines.monitoring.observing import UNAVAILABLE
from pipelines.monitoring.planning import PlannedRuleset
from pipelines.monitoring.transitions import OUTCOMES
from tests.pipelines.decisions.drawn import NOW
from tests.pipelines.metrics.customers import facts
from tests.pipelines.monitoring.comparing import Case, Interpreted, differs, engine_results, observe
from tests.pipelines.monitoring.drawn import DrawnCustomer


def test_evaluations_equal_the_oracles(evaluations: Sequence[Interpreted]) -> None:
    for each in evaluations:
        assert engine_results(each.case) == each.results


def test_drawn_cases_have_every_outcome(evaluations: Sequence[Interpreted]) -> None:
    came = [each.holds for interpreted in evaluations for each in interpreted.results.values()]
    assert min(came.count(True), came.count(False), came.count(None)) > len(came) // 20
    every = sum(
        len(of.document["rules"]) * len(each.case.customers)
        for each in evaluations
        for of in each.case.rulesets.values()
    )
    assert len(came) < every * 0.8, "some aren't evaluated"


def test_outcomes_are_sorted(evaluations: Sequence[Interpreted]) -> None:
    outcomes = observe(evaluations[0].case).outcomes
    assert outcomes.schema == OUTCOMES
    assert outcomes.equals(outcomes.sort("customer_number", "ruleset_id", "rule"))


def test_rulesets_together_have_the_outcomes_of_each_alone(evaluations: Sequence[Interpreted]) -> None:
    for each in evaluations[:6]:
        alone = [engine_results(replace(each.case, rulesets={key: of})) for key, of in each.case.rulesets.items()]
        assert {key: one for some in alone for key, one in some.items()} == engine_results(each.case)


def test_less_data_can_only_make_outcomes_unknown(evaluations: Sequence[Interpreted]) -> None:
    """Conditions that ask whether a value is known are removed."""
    chance = random.Random(3)
    came = 0
    for each in evaluations[:12]:
        case = _without_is_known(each.case)
        before, after = engine_results(case), engine_results(_with_less(case, chance))
        for key in before.keys() & after.keys():
            came += before[key].holds is not after[key].holds
            assert after[key].holds in (None, before[key].holds)
    assert came > 20


def _without_is_known(case: Case) -> Case:
    def asks(rule: Mapping[str, Any]) -> bool:
        return "isKnown" in json.dumps(rule)

    plain = {"code": "PLAIN", "message": "Plain.", "condition": {"atLeast": [{"metric": "days_behind"}, "1"]}}
    rulesets = {
        key: replace(
            of, document=of.document | {"rules": [plain, *(rule for rule in of.document["rules"] if not asks(rule))]}
        )
        for key, of in case.rulesets.items()
    }
    return replace(case, rulesets=rulesets)


def _with_less(case: Case, chance: random.Random) -> Case:
    def less(who: DrawnCustomer) -> DrawnCustomer:
        metrics = {each: "stale" if chance.random() < 0.4 else value for each, value in who.metrics.items()}
        return DrawnCustomer(metrics, {name: each for name, each in who.attributes.items() if chance.random() < 0.6})

    return replace(case, customers={number: less(who) for number, who in case.customers.items()})


# Mutants


CACHED = (evaluate._value, readings._value_of_metric, readings._cause_of_metric)


@pytest.fixture
def is_detected(evaluations: Sequence[Interpreted]) -> Iterator[Callable[[], bool]]:
    def is_found_out() -> bool:
        for each in CACHED:
            each.cache_clear()
        try:
            return differs(evaluations)
        except (pl.exceptions.PolarsError, ArithmeticError, LookupError, ValueError, AssertionError):
            return True

    yield is_found_out
    for each in CACHED:
        each.cache_clear()


def mutate_is_evaluated(
    unknown_where: bool = False, unknown_muted: bool = False, listed: bool = True, muted: bool = True
) -> Callable[[PlannedRuleset], pl.Expr]:
    def expression(planned: PlannedRuleset) -> pl.Expr:
        applies = pl.repeat(value=True, n=pl.len())
        if planned.source.customers is not None and listed:
            applies = pl.col("customer_number").is_in(sorted(planned.source.customers))
        if planned.where is not None:
            applies = pl.col(planned.where).fill_null(unknown_where)
        mutes = planned.muted is not None and muted
        return applies & ~pl.col(planned.muted).fill_null(unknown_muted) if mutes and planned.muted else applies

    return expression


def of_one_kind(names: planning._Names, reference: Reference) -> Leaf:
    kind, subject = LEAF(names, reference)
    return kind, subject[:1]


def by_slug(metrics: planning._SharedMetrics, slug: str, ruleset: Ruleset) -> str:
    if slug in ruleset.own_metrics:
        metrics.by_name.setdefault(slug, ruleset.own_metrics[slug])
    return slug


LEAF = planning._Names.leaf
PARTS: Mapping[str, tuple[object, str, object]] = {
    "an unknown scope applies": (observing, "_is_evaluated", mutate_is_evaluated(unknown_where=True)),
    "what may be muted is": (observing, "_is_evaluated", mutate_is_evaluated(unknown_muted=True)),
    "nobody is muted": (observing, "_is_evaluated", mutate_is_evaluated(muted=False)),
    "a list is everybody": (observing, "_is_evaluated", mutate_is_evaluated(listed=False)),
    "unknown is false": (observing, "_UNKNOWN", 0),
    "unknown is true": (observing, "_UNKNOWN", 1),
    "an attribute is of one kind": (planning._Names, "leaf", of_one_kind),
    "a slug is one metric": (planning._SharedMetrics, "name_of", by_slug),
    "a baseline is today": (planning._SharedMetrics, "read_since", lambda _, _since, name: name),
    "one baseline for all": (planning, "since_text", lambda _: "since"),
    "rules by their codes": (
        planning.MonitoringPlan,
        "rules",
        property(lambda plan: [(each, "A") for each, of in plan.rulesets.items() for _ in of.rules]),
    ),
    "another customer's record": (
        observing.Observations,
        "_customer_rows",
        property(lambda seen: dict.fromkeys(seen.evaluated["customer_number"], 0)),
    ),
    "nothing compared told": (describing, "_comparisons", lambda *_: []),
    "a metric in the plan's own words": (PlannedRuleset, "name_leaf", lambda _, leaf: leaf.label),
    "too large a number read": (readings, "round_column", lambda value: value.cast(numbers.NUMBER, strict=False)),
    "no level before another": (
        nodes.Graph,
        "levels",
        property(lambda graph: tuple((node,) for node in reversed(graph.nodes.values()))),
    ),
}


@pytest.mark.parametrize("mutant", PARTS)
def test_mutant_is_detected(mutant: str, monkeypatch: pytest.MonkeyPatch, is_detected: Callable[[], bool]) -> None:
    target, name, wrong = PARTS[mutant]
    monkeypatch.setattr(target, name, wrong)
    assert is_detected()


# Small examples


ID = UUID(int=7)
TODAY = date(2026, 11, 20)
LOW = {"lessThan": [{"attribute": "score"}, "500"]}
SCORE = {"name": "score", "kind": "decimal"}
NO_ATTRIBUTES: Attributes = {}


def ruleset_of(*rules: Any, **also: Any) -> VersionedRuleset:
    document = {"slug": "small", "name": "Small", "attributes": [SCORE], "rules": rules, **also}
    return VersionedRuleset(ID, 1, Ruleset.model_validate(document), None)


def rule(condition: Any = LOW, code: str = "LOW", **also: Any) -> Any:
    return {"code": code, "message": "The score is low.", "condition": condition, **also}


def test_a_customer_without_rows_is_evaluated_by_attributes() -> None:
    held = {4: {"score": Attribute(Decimal(400))}, 2: {}}
    seen = observe_customers(plan_rulesets([ruleset_of(rule())]), facts([], TODAY), held, NOW)
    assert seen.outcomes.rows() == [(2, ID.bytes, "LOW", None), (4, ID.bytes, "LOW", True)]
    assert seen.causes.rows() == [(2, ID.bytes, "LOW", "attribute", "score", "not_set")]


def test_no_customers_and_no_rules_can_be_evaluated() -> None:
    for rulesets in ([], [ruleset_of(rule())], [ruleset_of(rule({"atLeast": [{"metric": "history_days"}, "1"]}))]):
        seen = observe_customers(plan_rulesets(rulesets), facts([], TODAY), NO_ATTRIBUTES, NOW)
        assert (seen.outcomes.schema, seen.outcomes.height) == (OUTCOMES, 0)
        assert (seen.causes.schema, seen.causes.height) == (UNAVAILABLE, 0)
    assert observe_customers(plan_rulesets([]), facts([], TODAY), {1: {}}, NOW).outcomes.height == 0


def test_an_attribute_that_expires_now_is_unknown() -> None:
    held = {1: {"score": Attribute(Decimal(400), NOW)}}
    assert observe_customers(plan_rulesets([ruleset_of(rule())]), facts([], TODAY), held, NOW).outcomes[
        "holds"
    ].to_list() == [None]


def test_a_record_says_what_was_read_and_how_it_compared() -> None:
    condition = {"all": [LOW, {"not": {"isKnown": {"metric": "revenue_90d"}}}]}
    plan = plan_rulesets([ruleset_of(rule(condition, severity="critical", recommendedActions=["Call."]))])
    seen = observe_customers(plan, facts([], TODAY), {1: {"score": Attribute(Decimal(400))}}, NOW)
    score = {"kind": "attribute", "name": "score", "value": Decimal(400), "cause": None, "format": None}
    revenue = {"kind": "metric", "name": "revenue_90d", "value": None, "cause": "no_transactions"}
    of_registry = {
        "metricId": str(METRICS["revenue_90d"].id),
        "title": METRICS["revenue_90d"].name,
        "format": "currency",
        "baseline": None,
    }
    assert seen.describe_firings(1, ID, ["LOW"]) == {
        "rules": [
            {
                "code": "LOW",
                "message": "The score is low.",
                "severity": "critical",
                "recommendedActions": ["Call."],
                "read": [score, revenue | of_registry],
                "trace": [
                    {
                        "operator": "lessThan",
                        "left": {"attribute": "score", "value": Decimal(400)},
                        "right": {"constant": "500", "value": Decimal(500)},
                        "holds": True,
                    },
                    {
                        "operator": "isKnown",
                        "left": {"metric": "revenue_90d", "value": None, "cause": "no_transactions"},
                        "right": None,
                        "holds": False,
                    },
                ],
            }
        ]
    }


def test_a_trace_names_bounds_and_texts() -> None:
    between, one_of = (
        {"between": [{"attribute": "score"}, "1", "2"]},
        {"oneOf": {"of": {"attribute": "a"}, "texts": ["x"]}},
    )
    texts = {"attributes": [SCORE, {"name": "a", "kind": "string"}]}
    seen = observe_customers(
        plan_rulesets([ruleset_of(rule({"any": [between, one_of]}), **texts)]), facts([], TODAY), {1: {}}, NOW
    )
    first, second = seen.describe_firings(1, ID, ["LOW"])["rules"][0]["trace"]
    assert [each["constant"] for each in first["right"]] == ["1", "2"]
    assert second["right"] == ["x"]
