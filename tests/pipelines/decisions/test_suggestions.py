"""Suggested changes are figures that people would write, of numbers that somebody can act on."""

from decimal import Decimal
from typing import Any

import polars as pl
import pytest

from pipelines.decisions.plan import Plan
from pipelines.decisions.readings import column_of
from pipelines.decisions.sensitivity import find_sensitivities
from pipelines.decisions.suggestions import suggest_changes
from pipelines.metrics import cause_of
from tests.pipelines.decisions.test_sensitivity import SCORE, policy, read_attributes


def list_suggestions(plan: Plan, row: pl.DataFrame) -> list[tuple[str, str]]:
    [changes] = suggest_changes(plan, row, find_sensitivities(plan, row))
    return [(f"{each.value.normalize():f}", each.outcome) for each in changes]


@pytest.mark.parametrize(
    ("conditions", "score", "expected"),
    [
        pytest.param([{"lessThan": [SCORE, "450"]}], "684", [("449", "blocked")], id="not 449.99999999"),
        pytest.param([{"moreThan": [SCORE, "0.2"]}], "0.12", [("0.201", "blocked")], id="not 0.20000001"),
        pytest.param([{"lessThan": [SCORE, "202609"]}], "202610", [("202608", "blocked")], id="every digit of a month"),
        pytest.param([{"lessThan": [SCORE, "450"]}], None, [("0", "blocked"), ("450", "proceed")], id="unknown"),
        pytest.param([{"atLeast": [{"multiply": [SCORE, "3"]}, "-5"]}], "7", [], id="neither negative nor overflow"),
        pytest.param(
            [{"between": [SCORE, "5.001", "5.002"]}], "5", [], id="no round figure has the outcome of the exact one"
        ),
    ],
)
def test_suggestions_are_round_and_can_be_aimed_at(
    conditions: list[Any], score: str | None, expected: list[tuple[str, str]]
) -> None:
    plan = policy(*conditions)
    assert list_suggestions(plan, read_attributes(plan, **({} if score is None else {"score": score}))) == expected


def of_metric(slug: str, condition: str, limit: str, value: str) -> list[tuple[str, str]]:
    plan = policy({condition: [{"metric": slug}, limit]})
    [column] = [column_of(node) for node in plan.nodes.values() if node.is_leaf]
    row = pl.DataFrame({"customer_number": [1], column: [Decimal(value)]}, schema_overrides={column: pl.Decimal(38, 8)})
    return list_suggestions(plan, row.with_columns(pl.lit(None, pl.String).alias(cause_of(column))))


@pytest.mark.parametrize(
    ("slug", "condition", "limit", "value", "expected"),
    [
        ("revenue_90d", "lessThan", "10000.50", "12000", [("10000", "blocked")]),
        ("dishonours_90d", "atLeast", "3", "1", [("3", "blocked")]),
        ("overdrawn_day_share_180d", "moreThan", "0.2", "0.05", [("0.201", "blocked")]),
        ("revenue_volatility_12m", "atMost", "0.5", "0.4", []),
        ("months_of_history", "lessThan", "6", "9", []),
        ("mean_balance_90d", "lessThan", "-200", "100", [("-201", "blocked")]),
    ],
)
def test_a_year_that_is_over_is_not_suggested(
    slug: str, condition: str, limit: str, value: str, expected: list[tuple[str, str]]
) -> None:
    assert of_metric(slug, condition, limit, value) == expected
