"""Plans share equal parts of several rulesets, and keep parts apart that only look alike."""

import random
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any
from uuid import UUID

import polars as pl
import pytest

from pipelines.metrics import METRICS
from pipelines.monitoring import Ruleset, VersionedRuleset, observe_customers, plan_rulesets
from tests.pipelines.decisions.drawn import NOW
from tests.pipelines.metrics.customers import START, customer, facts

Json = Any
AS_OF = START + timedelta(days=520)


def own(slug: str, **definition: Any) -> Json:
    words = {"name": slug, "meaning": slug, "unit": "AUD", "format": "decimal", "direction": "neutral"}
    return {"slug": slug, **words, "definition": definition}


def spend(slug: str) -> Json:
    return own(slug, source="transactions", measure="money_out", aggregate="sum")


def receipts(slug: str) -> Json:
    return own(slug, source="transactions", measure="money_in", aggregate="sum")


def twice(slug: str, of: str) -> Json:
    return own(slug, source="metrics", operation="add", operands=[of, of])


def ruleset(nth: int, *slugs: str, **also: Any) -> VersionedRuleset:
    """Return a ruleset with a rule for each slug: its metric is above the history's days."""
    rules = [
        {
            "code": f"R{place}",
            "message": "R.",
            "condition": {"moreThan": [{"metric": slug}, {"metric": "history_days"}]},
        }
        for place, slug in enumerate(slugs)
    ]
    document = {"slug": f"r-{nth}", "name": "R", "rules": rules, **also}
    return VersionedRuleset(UUID(int=nth), 1, Ruleset.model_validate(document), None)


def test_equal_definitions_of_rulesets_are_one_metric_and_one_column() -> None:
    plan = plan_rulesets([ruleset(1, "a", metrics=[spend("a")]), ruleset(2, "b", metrics=[spend("b")])])
    assert len(plan.metrics) == 2, "the registry's and the one of both"
    assert len(plan.nodes) == 3
    assert [of.slugs for of in plan.rulesets.values()] == [
        {"own.0": "a", "history_days": "history_days"},
        {"own.0": "b", "history_days": "history_days"},
    ]


def test_one_slug_with_two_definitions_is_two_metrics() -> None:
    plan = plan_rulesets([ruleset(1, "a", metrics=[spend("a")]), ruleset(2, "a", metrics=[receipts("a")])])
    assert len(plan.metrics) == 3


def test_metrics_with_other_needs_are_other_metrics() -> None:
    fresh = spend("a") | {"freshDays": 3}
    assert len(plan_rulesets([ruleset(1, "a", metrics=[fresh]), ruleset(2, "a", metrics=[spend("a")])]).metrics) == 3


def test_metrics_with_equal_operands_are_equal_under_any_name() -> None:
    some = ruleset(1, "b", metrics=[spend("a"), twice("b", "a")])
    same = ruleset(2, "y", metrics=[twice("y", "x"), spend("x")])
    other = ruleset(3, "b", metrics=[receipts("a"), twice("b", "a")])
    assert len(plan_rulesets([some, same]).metrics) == 3
    assert len(plan_rulesets([some, same, other]).metrics) == 5


def test_an_attribute_of_two_kinds_is_read_twice() -> None:
    kinds = [[{"name": "a", "kind": kind}] for kind in ("decimal", "boolean", "boolean")]
    known = [{"code": "K", "message": "K.", "condition": {"isKnown": {"attribute": "a"}}}]
    plan = plan_rulesets([ruleset(nth, attributes=each, rules=known) for nth, each in enumerate(kinds)])
    assert plan.labels("attribute") == ["a", "a"]
    assert plan.attributes == {"a"}


def test_only_metrics_that_are_read_are_computed() -> None:
    plan = plan_rulesets([ruleset(1, "revenue_90d", metrics=[spend("a")])])
    assert plan.metrics.keys() == {"revenue_90d", "history_days"}
    assert plan.metrics["revenue_90d"] is METRICS["revenue_90d"]


def test_rules_and_their_days_are_listed_in_order() -> None:
    rule = {"message": "R.", "condition": {"isKnown": {"metric": "history_days"}}}
    rules = [rule | {"code": "B", "repeatAfterDays": 3}, rule | {"code": "A"}]
    plan = plan_rulesets([ruleset(2, rules=rules), ruleset(1, rules=rules[:1])])
    one, two = UUID(int=1).bytes, UUID(int=2).bytes
    assert plan.repeats.rows() == [(one, "B", 3), (two, "A", None), (two, "B", 3)]


@pytest.fixture(scope="module")
def rulesets() -> Sequence[VersionedRuleset]:
    """Return rulesets whose metrics share names, some with equal and some with different definitions."""
    bases = (spend, receipts)
    return [
        ruleset(
            nth,
            "a",
            "b",
            "then",
            metrics=[bases[nth % 2]("a"), twice("b", "a")],
            baseline={"since": {"date": f"2024-0{3 + nth % 3}-01"}, "metrics": [{"slug": "then", "of": "b"}]},
        )
        for nth in range(6)
    ]


def test_rulesets_computed_together_have_the_outcomes_of_each_alone(rulesets: Sequence[VersionedRuleset]) -> None:
    chance = random.Random(1)
    rows = [row for number in range(20) for row in customer(chance, number, rows=chance.randint(1, 60), most=3_000)]
    some = facts(rows, AS_OF)
    together = observe_customers(plan_rulesets(rulesets), some, {}, NOW).outcomes
    alone = [observe_customers(plan_rulesets([each]), some, {}, NOW).outcomes for each in rulesets]
    assert together.equals(pl.concat(alone).sort("customer_number", "ruleset_id", "rule"))
    assert set(together["holds"].to_list()) == {True, False, None}
    by_ruleset = together.pivot("ruleset_id", index=["customer_number", "rule"], values="holds")
    assert not by_ruleset[:, 2].equals(by_ruleset[:, 3], null_equal=True), "what is spent isn't what is received"


def test_a_snapshot_ignores_rows_after_its_day() -> None:
    late = facts([row for row in customer(random.Random(2), 1) if row["date"] > date(2024, 6, 1)], date(2024, 6, 1))
    seen = observe_customers(plan_rulesets([ruleset(1, "a", metrics=[spend("a")])]), late, {}, NOW)
    assert seen.outcomes["holds"].to_list() == [None]
