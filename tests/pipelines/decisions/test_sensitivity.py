"""The nearest change of the outcome is found exactly, for random policies and customers."""

import random
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import polars as pl
import pytest

from pipelines.decisions import readings
from pipelines.decisions.enclosures import Range, depending_nodes, fixed_values, half_even, possible_outcomes
from pipelines.decisions.evaluate import evaluate_plan
from pipelines.decisions.numbers import as_number, units
from pipelines.decisions.plan import Plan, plan_policy
from pipelines.decisions.policy import Policy
from pipelines.decisions.readings import Attribute
from pipelines.decisions.sensitivity import (
    Axis,
    Sensitivity,
    evaluate_grid,
    find_sensitivities,
    numeric_leaves,
    repeat_with,
    step_of,
)
from tests.pipelines.decisions import drawn
from tests.pipelines.decisions.comparing import Case, cases, metrics_of

SCORE, DEBT = {"attribute": "score"}, {"attribute": "debt"}


def policy(*conditions: Any, **fields: Any) -> Plan:
    """Return the plan of a policy in which each condition blocks in its own step; the default is to proceed."""
    steps = [
        {
            "name": f"Step {nth}",
            "outcome": "blocked" if nth == 0 else "conditional",
            "rules": [{"code": f"R{nth}", "message": "m", "customerMessage": "c", "condition": condition}],
        }
        for nth, condition in enumerate(conditions)
    ]
    names = [{"name": name, "kind": "decimal"} for name in ("score", "debt")]
    document = {"slug": "p", "name": "P", "defaultOutcome": "proceed", "attributes": names, "steps": steps}
    return plan_policy(Policy.model_validate(document | fields))


def read_attributes(plan: Plan, **attributes: str) -> pl.DataFrame:
    held = {1: {name: Attribute(Decimal(text)) for name, text in attributes.items()}}
    return readings.read_leaves(plan, pl.DataFrame({"customer_number": [1]}), held, {}, drawn.NOW)


def sensitivity_to(plan: Plan, leaf: str, **attributes: str) -> Sensitivity:
    return next(
        each for each in find_sensitivities(plan, read_attributes(plan, **attributes)) if each.node.label == leaf
    )


def change(found: Sensitivity, side: str) -> tuple[str, str] | None:
    described = getattr(found, side)
    return None if described is None else (f"{described.value.normalize():f}", described.outcome)


def test_the_nearest_change_below_and_above() -> None:
    plan = policy({"lessThan": [SCORE, "500"]}, {"moreThan": [SCORE, "700"]})
    found = sensitivity_to(plan, "score", score="684")
    assert (change(found, "below"), change(found, "above")) == (
        ("499.99999999", "blocked"),
        ("700.00000001", "conditional"),
    )
    assert found.nearest == found.above
    assert found.complete


def test_a_threshold_behind_arithmetic_is_found_to_the_last_digit() -> None:
    plan = policy({"moreThan": [{"divide": [DEBT, SCORE]}, "0.33333333"]})
    found = sensitivity_to(plan, "debt", debt="100", score="3000")
    assert change(found, "above") == (
        "1000.000005",
        "blocked",
    )  # a 3000th is 0.333333335, which rounds to 0.33333334
    assert change(found, "below") is None


def test_change_hidden_by_rounding_is_no_change() -> None:
    plan = policy({"atLeast": [{"multiply": [SCORE, "0.1"]}, "0.00000001"]})
    assert change(sensitivity_to(plan, "score", score="0"), "above") == (
        "0.00000006",
        "blocked",
    )  # half of the last place is 0


def test_both_sides_of_a_pole() -> None:
    """1000 / score: division by zero has no value, so the outcome is unknown there."""
    plan = policy({"moreThan": [{"divide": ["1000", SCORE]}, "500"]})
    found = sensitivity_to(plan, "score", score="-4")
    assert change(found, "above") == ("0", "indeterminate")
    assert change(found, "below") is None


def test_number_that_cannot_change_the_outcome_has_no_changes() -> None:
    plan = policy({"all": [{"lessThan": [SCORE, "500"]}, {"moreThan": [DEBT, "10"]}]})
    found = sensitivity_to(plan, "debt", score="600", debt="5")
    assert (found.below, found.above, found.nearest, found.complete) == (None, None, None, True)


def changes(found: Sensitivity) -> list[tuple[str, str]]:
    return [(f"{each.value.normalize():f}", each.outcome) for each in found.changes]


def test_number_without_value_has_values_for_other_outcomes() -> None:
    found = sensitivity_to(policy({"lessThan": [SCORE, "500"]}, {"moreThan": [SCORE, "700"]}), "score")
    assert (found.value, found.below, found.above) == (None, None, None)
    assert changes(found) == [("0", "blocked"), ("500", "proceed"), ("700.00000001", "conditional")]
    assert found.nearest == found.changes[0]
    assert found.complete


def test_negative_values_are_found() -> None:
    assert changes(sensitivity_to(policy({"lessThan": [SCORE, "-3"]}), "score")) == [
        ("0", "proceed"),
        ("-3.00000001", "blocked"),
    ]


def test_number_without_value_that_decides_nothing_alone_has_no_changes() -> None:
    """Both are missing: with any debt, the score could still block."""
    found = sensitivity_to(policy({"lessThan": [SCORE, "500"]}, {"moreThan": [DEBT, "10"]}), "debt")
    assert (found.changes, found.nearest, found.complete) == ((), None, True)
    assert changes(sensitivity_to(policy({"lessThan": [SCORE, "500"]}, {"moreThan": [DEBT, "10"]}), "score")) == [
        ("0", "blocked")
    ]


def test_missing_number_has_values_that_worsen_the_outcome() -> None:
    document = policy({"moreThan": [DEBT, "10"]}).policy.model_dump(by_alias=True)
    document["steps"][0]["rules"][0]["onUnavailable"] = "notMatched"
    plan = plan_policy(Policy.model_validate(document))
    assert changes(sensitivity_to(plan, "debt")) == [("10.00000001", "blocked")]


@pytest.mark.service  # searches until it gives up
def test_endless_search_is_given_up_and_marked_incomplete() -> None:
    """score − score is 0 at every value, but ranges don't show it."""
    plan = policy({"moreThan": [{"subtract": [{"multiply": [SCORE, SCORE]}, {"multiply": [SCORE, SCORE]}]}, "1"]})
    found = sensitivity_to(plan, "score", score="100")
    assert not found.complete
    assert found.above is None


def of_transactions(aggregate: str, **fields: Any) -> dict[str, Any]:
    return {"source": "transactions", "aggregate": aggregate, **fields}


def of_metrics(operation: str, *operands: str) -> dict[str, Any]:
    return {"source": "metrics", "operation": operation, "operands": operands}


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        (of_transactions("count"), "4"),
        (of_transactions("sum", measure="rows"), "4"),
        (of_transactions("distinct", by="day"), "4"),
        (of_transactions("sum", measure="money_out"), "3.01"),
        (of_transactions("max"), "3.01"),
        (of_transactions("monthly_min", window={"months": 3}), "3.01"),
        (of_transactions("mean"), "3.0001"),
        (of_transactions("median"), "3.0001"),
        ({"source": "balances", "window": {"days": 90}, "aggregate": "min"}, "3.01"),
        ({"source": "balances", "window": {"days": 90}, "aggregate": "mean"}, "3.0001"),
        ({"source": "balances", "window": {"days": 90}, "aggregate": "days_below", "threshold": "0"}, "4"),
        ({"source": "history", "figure": "days"}, "4"),
        ({"source": "series", "aggregate": "count"}, "4"),
        (of_metrics("subtract", "mean_balance_90d", "lowest_balance_180d"), "3.0001"),
        (of_metrics("subtract", "revenue_90d", "revenue_30d"), "3.01"),
        (of_metrics("add", "dishonours_90d", "dishonours_180d"), "4"),
        (of_metrics("add", "dishonours_90d", "0.5"), "3.5"),
        (of_metrics("divide", "revenue_90d", "3"), "3.0001"),
    ],
)
@pytest.mark.parametrize("format_", ["currency", "integer", "days"])
def test_metric_changes_in_steps_of_its_definition(definition: dict[str, Any], expected: str, format_: str) -> None:
    found = of_own({"definition": definition, "format": format_}, "2")
    assert change(found, "above") == (expected, "blocked")
    assert (found.nearest, found.complete) == (found.above, True)


def test_nearest_value_of_a_mean_may_be_a_fraction_of_a_cent() -> None:
    """The metric is the swing of a balance relative to revenue of 30,799.64."""
    swing = {"format": "currency", "definition": of_metrics("subtract", "mean_balance_90d", "lowest_balance_180d")}
    assert change(of_own(swing, "12678.0284", "30799.64"), "above") == ("30799.6401", "blocked")


def of_own(fields: dict[str, Any], value: str, threshold: str = "3") -> Sensitivity:
    """Return the sensitivity to a policy's own metric that blocks above the threshold."""
    own = {"slug": "own", "name": "Own", "meaning": "m", "unit": "AUD", "direction": "neutral"}
    plan = policy({"moreThan": [{"metric": "own"}, threshold]}, metrics=[own | fields])
    shown = pl.DataFrame(
        {"customer_number": [1], "own": [Decimal(value)], "cause of own": [None]},
        schema_overrides={"cause of own": pl.String(), "own": pl.Decimal(38, 4)},
    )
    [found] = find_sensitivities(plan, readings.read_leaves(plan, shown, {}, {}, drawn.NOW))
    return found


def test_a_grid_is_evaluated_for_each_pair() -> None:
    plan = policy({"lessThan": [SCORE, "500"]}, {"moreThan": [DEBT, "10"]})
    score, debt = numeric_leaves(plan)
    across = Axis(score, [Decimal(400), Decimal(500)])
    down = Axis(debt, [Decimal(10), Decimal(11), Decimal(12)])
    found = evaluate_grid(plan, read_attributes(plan), across, down)["outcome"].to_list()
    assert found == ["blocked", "proceed", "blocked", "conditional", "blocked", "conditional"]


def test_rounding_is_half_to_even_on_both_sides_of_zero() -> None:
    halves = [(5, 10), (15, 10), (25, 10), (-5, 10), (-15, 10), (26, 10), (-26, 10), (15, -10)]
    assert [half_even(*each) for each in halves] == [0, 2, 2, 0, -2, 3, -3, -2]


DRAWN = list(cases(seed=61, policies=30, customers=2))
HALVES = [DRAWN[:15], pytest.param(DRAWN[15:], marks=pytest.mark.slow)]
over_halves = pytest.mark.parametrize("half", HALVES, ids=["first", "second"])


def read_drawn(plan: Plan, case: Case) -> list[pl.DataFrame]:
    held = {number: customer.attributes for number, customer in enumerate(case.customers)}
    every = readings.read_leaves(plan, metrics_of(case.customers), held, case.inputs, drawn.NOW)
    return [every.slice(place, 1) for place in range(every.height)]


@over_halves
def test_ranges_of_one_value_equal_the_engines_values(half: Sequence[Case]) -> None:
    compared = 0
    for case in half:
        plan = plan_policy(Policy.model_validate(case.document))
        for row in read_drawn(plan, case):
            evaluated_row = evaluate_plan(plan, row).row(0, named=True)
            for leaf in numeric_leaves(plan):
                found = fixed_values(plan, evaluated_row)
                moving = depending_nodes(plan, leaf.name)
                assert possible_outcomes(plan, found, moving) == {evaluated_row["outcome"]}
                assert {node.name: found[node.name] for node in moving} == {
                    node.name: fixed_values(plan, evaluated_row)[node.name] for node in moving
                }
                compared += len(moving)
    assert compared > 500


@pytest.mark.service  # evaluates thousands of cases
@over_halves
def test_range_encloses_the_engines_values(half: Sequence[Case]) -> None:
    chance, compared = random.Random(62), 0
    for case in half:
        plan = plan_policy(Policy.model_validate(case.document))
        for row in read_drawn(plan, case):
            before = evaluate_plan(plan, row).row(0, named=True)
            for leaf in numeric_leaves(plan):
                inside = sorted(drawn.number(chance) for _ in range(3))
                rows = evaluate_plan(plan, repeat_with(row, [(leaf, inside)], len(inside)))
                found = fixed_values(plan, before) | {leaf.name: Range(units(inside[0]), units(inside[-1]))}
                may = possible_outcomes(plan, found, depending_nodes(plan, leaf.name))
                assert set(rows["outcome"].to_list()) <= may
                compared += 1
    assert compared > 100


@pytest.mark.service  # evaluates thousands of cases
@over_halves
def test_no_value_nearer_than_the_nearest_changes_the_outcome(half: Sequence[Case]) -> None:
    chance, changes = random.Random(63), 0
    for case in half:
        plan = plan_policy(Policy.model_validate(case.document))
        for row in read_drawn(plan, case):
            outcome = evaluate_plan(plan, row)["outcome"][0]
            for found in find_sensitivities(plan, row, most_steps=200_000):
                if found.value is None or not found.complete:
                    continue
                tried = sorted({*drawn.ANCHORS, *(drawn.number(chance) for _ in range(20))})
                grain = step_of(plan.policy, found.node)
                tried = [each for each in tried if units(each) % grain == 0]
                described = evaluate_plan(plan, repeat_with(row, [(found.node, tried)], len(tried)))[
                    "outcome"
                ].to_list()
                for value, tried_outcome in zip(tried, described, strict=True):
                    nearer_below = found.below is None or value > found.below.value
                    nearer_above = found.above is None or value < found.above.value
                    if nearer_below and nearer_above:
                        assert tried_outcome == outcome, (case.document, found, value)
                changes += (found.below is not None) + (found.above is not None)
    assert changes > 5


@pytest.mark.service  # evaluates thousands of cases
def test_no_value_nearer_to_zero_gives_another_outcome() -> None:
    chance, described = random.Random(64), 0
    for case in DRAWN:
        plan = plan_policy(Policy.model_validate(case.document))
        for row in read_drawn(plan, case):
            outcome = evaluate_plan(plan, row)["outcome"][0]
            for found in find_sensitivities(plan, row, most_steps=200_000):
                if found.value is not None or not found.complete:
                    continue
                nearest = {each.outcome: abs(each.value) for each in found.changes}
                tried = [*drawn.ANCHORS, *(drawn.number(chance) for _ in range(20))]
                tried = [each for each in tried if units(each) % step_of(plan.policy, found.node) == 0]
                outcomes = evaluate_plan(plan, repeat_with(row, [(found.node, tried)], len(tried)))["outcome"].to_list()
                for value, came_to in zip(tried, outcomes, strict=True):
                    assert came_to == outcome or nearest[came_to] <= abs(value), (case.document, found, value)
                described += len(found.changes)
    assert described > 10


def test_units_keep_every_digit() -> None:
    for value in (*drawn.ANCHORS, *drawn.HUGE):
        assert as_number(units(value)) == value
