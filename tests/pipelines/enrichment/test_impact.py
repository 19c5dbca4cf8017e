"""What another category changes for whom: ratings, decisions by recorded inputs, and conditions of rulesets."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import polars as pl
import pytest

from pipelines.decisions import Policy, plan_policy
from pipelines.figures.facts import Facts
from pipelines.monitoring import Ruleset, VersionedRuleset, plan_rulesets
from pipelines.portfolio.impact import (
    Deciders,
    Impact,
    TriedPolicy,
    compare,
    compare_decisions,
    compare_matches,
    merge,
)
from pipelines.vocabulary.taxonomy import GROUPS
from tests.pipelines.enrichment.examples import held_rows
from tests.pipelines.monitoring.test_planning import own

AS_OF = date(2026, 4, 1)
NOW = datetime(2026, 4, 1, 1, tzinfo=UTC)
AMOUNTS = (700, 700, -10)
OWN = own(
    "sales", source="transactions", measure="money_in", aggregate="sum", where={"categories": ["customer_transfer"]}
)
POLICY = {
    "slug": "loan",
    "name": "Loan",
    "defaultOutcome": "blocked",
    "declaredInputs": [{"name": "amount", "kind": "decimal"}],
    "metrics": [OWN],
    "products": [{"slug": "loan", "name": "Loan"}],
    "steps": [
        {
            "name": "Sales",
            "outcome": "proceed",
            "rules": [
                {
                    "code": "SALES",
                    "message": "m",
                    "customerMessage": "c",
                    "condition": {"moreThan": [{"metric": "sales"}, {"input": "amount"}]},
                }
            ],
        }
    ],
    "limits": [{"product": "loan", "amount": {"metric": "sales"}}],
}
RULESET = {
    "slug": "watch",
    "name": "MonitoringPlan",
    "metrics": [OWN],
    "rules": [
        {"code": "LOW", "message": "m", "condition": {"lessThan": [{"metric": "sales"}, "1000"]}},
        {"code": "HIGH", "message": "m", "condition": {"moreThan": [{"metric": "sales"}, "1000"]}},
    ],
}


def customers(**categories: tuple[str, ...]) -> pl.DataFrame:
    """Return the rows of customers, whose numbers are in the names (`_1`), with these categories, in AMOUNTS."""
    rows: list[dict[str, Any]] = [
        {
            "customer_number": int(name[1:]),
            "category": slug,
            "category_group": GROUPS[slug],
            "amount": Decimal(amount),
            "revision": 1,
            "is_transfer": False,
            "flags": [],
        }
        for name, slugs in categories.items()
        for slug, amount in zip(slugs, AMOUNTS, strict=True)
    ]
    return held_rows(*rows)


SALES, ONE, NONE = ("customer_transfer",) * 2, ("customer_transfer", "grant"), ("grant", "grant")
INPUTS = {1: 1000, 2: 1000, 3: 600}
BEFORE = customers(_1=(*SALES, "rent"), _2=(*SALES, "rent"), _3=(*ONE, "rent"))
AFTER = customers(_1=(*ONE, "rent"), _2=(*SALES, "rent"), _3=(*NONE, "fuel"))


def deciders(inputs: dict[int, int]) -> Deciders:
    tried = TriedPolicy(
        "loan",
        plan_policy(Policy.model_validate(POLICY)),
        {number: {"amount": Decimal(amount)} for number, amount in inputs.items()},
    )
    ruleset = VersionedRuleset(UUID(int=7), 1, Ruleset.model_validate(RULESET), None)
    return Deciders(NOW, policies=[tried], plan=plan_rulesets([ruleset]))


@pytest.fixture
def impact(monkeypatch: pytest.MonkeyPatch) -> Impact:
    """The impact on all customers. Making their reports takes seconds, so their ratings are given."""
    given = iter([[(1, "B"), (2, "A"), (3, None)], [(1, "C"), (2, "A"), (3, "E")]])
    figures = {"customer_number": pl.Int64, "report": pl.String, "figure": pl.String, "reading": pl.Decimal(38, 4)}

    def read_reports(_: Facts) -> tuple[pl.DataFrame, pl.DataFrame]:
        schema = {"customer_number": pl.Int64, "rating": pl.String}
        return pl.DataFrame(schema=figures), pl.DataFrame(next(given), schema, orient="row")

    monkeypatch.setattr("pipelines.portfolio.impact.read_reports", read_reports)
    return merge([compare(BEFORE, AFTER, AS_OF, deciders(INPUTS))])


def test_changes_are_reported_by_customer(impact: Impact) -> None:
    outcomes = impact.decisions.select("customer_number", "policy", "change", "before", "after").rows()
    assert outcomes == [(1, "loan", "outcome", "proceed", "blocked"), (3, "loan", "outcome", "proceed", "blocked")]
    assert impact.decisions["limits"][0].to_list() == [{"product": "loan", "before": 1400, "after": 0}]
    assert impact.matches.rows() == [(1, "watch", "HIGH", False), (1, "watch", "LOW", True)]
    assert impact.of_customers.rows() == [(1, 1, 700), (3, 2, 710)]


def test_another_rating_is_reported_with_both(impact: Impact) -> None:
    assert impact.ratings.rows() == [(1, "B", "C"), (3, None, "E")]


def test_customers_are_listed_by_what_matters_most(impact: Impact) -> None:
    assert impact.changed_customers() == [3, 1], "both have another decision; most dollars first"


def test_parts_have_the_decisions_and_matches_of_the_whole(impact: Impact) -> None:
    for whose in (pl.col("customer_number") == 1, pl.col("customer_number") > 1):
        before, after = (Facts(rows.filter(whose), AS_OF) for rows in (BEFORE, AFTER))
        assert compare_decisions(before, after, deciders(INPUTS)).equals(impact.decisions.filter(whose))
        assert compare_matches(before, after, deciders(INPUTS)).equals(impact.matches.filter(whose))


def test_the_decision_uses_the_inputs_of_each_customers_last_one() -> None:
    changed = compare_decisions(Facts(BEFORE, AS_OF), Facts(AFTER, AS_OF), deciders({1: 100, 3: 100_000}))
    assert changed.select("customer_number", "change", "before").rows() == [(1, "limits", "proceed")]


def test_a_customer_without_a_decision_has_no_inputs() -> None:
    """It is undecided on both sides, so nothing changes."""
    assert compare_decisions(Facts(BEFORE, AS_OF), Facts(AFTER, AS_OF), deciders({})).is_empty()


def test_equal_rows_change_nothing_for_nobody() -> None:
    facts = Facts(BEFORE, AS_OF)
    assert compare_decisions(facts, facts, deciders(INPUTS)).is_empty()
    assert compare_matches(facts, facts, deciders(INPUTS)).is_empty()
