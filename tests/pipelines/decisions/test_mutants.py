"""Mutants of the engine: mistakes made on purpose, each of which the comparison with the interpreter must detect.

An exception because of one customer's data counts as detected, too.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

import polars as pl
import pytest

from pipelines.decisions import answer, evaluate, numbers, plan, readings, unsettled
from pipelines.decisions.nodes import Node
from pipelines.decisions.numbers import NUMBER, Combine, constant, round_column
from pipelines.decisions.plan import Plan, PlannedRule
from pipelines.decisions.policy import Limit
from pipelines.decisions.unsettled import Row
from tests.pipelines.decisions.comparing import Interpreted, differing

Columns = Sequence[pl.Expr]
PLACES = 10**numbers.SCALE
DIVIDE = numbers.ARITHMETIC["divide"]

pytestmark = pytest.mark.slow  # each mutant decides 1,500 cases, to test the comparison, not the engine


CACHED = (evaluate._value, evaluate._columns, readings._value_of_metric, readings._cause_of_metric)


@pytest.fixture
def is_detected(interpreted_cases: Sequence[Interpreted]) -> Iterator[Callable[[], bool]]:
    """Return a function that says whether the engine, as changed by the test, differs from the interpreter."""

    def differs() -> bool:
        forget()
        try:
            return next(differing(interpreted_cases), None) is not None
        except (pl.exceptions.PolarsError, ArithmeticError, LookupError, ValueError):
            return True

    yield differs
    forget()


def forget() -> None:
    """Clear the cached expressions that another engine made."""
    for each in CACHED:
        each.cache_clear()


# Arithmetic


def in_floats(combine: Combine) -> Callable[[Columns], pl.Expr]:
    return lambda of: round_column(reduce(combine, [each.cast(pl.Float64) for each in of]).round(numbers.SCALE))


def step_by_step(combine: Combine) -> Callable[[Columns], pl.Expr]:
    return lambda of: reduce(combine, of)


def without_zero(bottom: pl.Expr) -> pl.Expr:
    return pl.when(bottom != 0).then(bottom)


def floor_divided(of: Columns) -> pl.Expr:
    top, bottom = of
    return round_column(((top * PLACES) // without_zero(bottom)) / PLACES)


def halves_up(combine: Combine, left: pl.Expr, right: pl.Expr) -> pl.Expr:
    """Round halves away from zero. Numbers too large for more places are left to the engine."""
    more = pl.Decimal(38, 2 * numbers.SCALE)
    small = pl.all_horizontal(each.abs() < 10**5 for each in (left, right))
    exact = combine(*(pl.when(small).then(each).cast(more) for each in (left, right)))
    up = exact.round(numbers.SCALE, mode="half_away_from_zero").cast(NUMBER)
    return pl.when(small).then(round_column(up)).otherwise(round_column(combine(left, right)))


def bands_including_bound(of: Columns, bounds: Sequence[str]) -> pl.Expr:
    placed, *values, chosen = of
    for below, value in reversed(list(zip(bounds, values, strict=True))):
        chosen = pl.when(placed <= constant(below)).then(value).otherwise(chosen)
    return pl.when(placed.is_not_null()).then(chosen)


def bands_of_unknown_numbers(of: Columns, bounds: Sequence[str]) -> pl.Expr:
    placed, *values, chosen = of
    for below, value in reversed(list(zip(bounds, values, strict=True))):
        chosen = pl.when(placed < constant(below)).then(value).otherwise(chosen)
    return chosen


def last_band_first(of: Columns, bounds: Sequence[str]) -> pl.Expr:
    placed, *values, chosen = of
    for below, value in zip(bounds, values, strict=True):
        chosen = pl.when(placed < constant(below)).then(value).otherwise(chosen)
    return pl.when(placed.is_not_null()).then(chosen)


ARITHMETIC: Mapping[str, tuple[str, Callable[[Columns], pl.Expr]]] = {
    "float add": ("add", in_floats(pl.Expr.add)),
    "float subtract": ("subtract", in_floats(pl.Expr.sub)),
    "float multiply": ("multiply", in_floats(pl.Expr.mul)),
    "float divide": ("divide", in_floats(pl.Expr.truediv)),
    "floor divide": ("divide", floor_divided),
    "quotients with halves rounded up": ("divide", lambda of: halves_up(pl.Expr.truediv, of[0], without_zero(of[1]))),
    "products with halves rounded up": ("multiply", lambda of: reduce(lambda a, b: halves_up(pl.Expr.mul, a, b), of)),
    "divide without a guard": ("divide", lambda of: round_column(of[0] / of[1])),
    "divide the other way": ("divide", lambda of: DIVIDE(of[::-1])),
    "divide without a bound": ("divide", lambda of: of[0] / without_zero(of[1])),
    "division by zero gives zero": ("divide", lambda of: DIVIDE(of).fill_null(constant("0"))),
    "multiply without a bound": ("multiply", step_by_step(pl.Expr.mul)),
    "add without a bound": ("add", step_by_step(pl.Expr.add)),
    "subtract without a bound": ("subtract", step_by_step(pl.Expr.sub)),
    "subtract from the right": ("subtract", lambda of: reduce(lambda a, b: round_column(b - a), of)),
    "bound only at the end": ("add", lambda of: round_column(reduce(pl.Expr.add, of))),
    "sum that skips nulls": ("add", lambda of: round_column(pl.sum_horizontal(of))),
    "min that skips nulls": ("min", pl.min_horizontal),
    "max that skips nulls": ("max", pl.max_horizontal),
    "min for max": ("max", numbers.least),
}


@pytest.mark.parametrize("mutant", ARITHMETIC)
def test_wrong_arithmetic_is_detected(
    mutant: str, monkeypatch: pytest.MonkeyPatch, is_detected: Callable[[], bool]
) -> None:
    operator, wrong = ARITHMETIC[mutant]
    monkeypatch.setitem(numbers.ARITHMETIC, operator, wrong)
    assert is_detected()


# Comparing


def of_floats(compare: Combine) -> Combine:
    return lambda left, right: compare(left.cast(pl.Float64), right.cast(pl.Float64))


def of_cents(compare: Combine) -> Combine:
    return lambda left, right: compare(left.round(2), right.round(2))


def false_when_unknown(compare: Combine) -> Combine:
    return lambda left, right: compare(left, right).fill_null(value=False)


COMPARISONS: Mapping[str, tuple[str, Combine]] = {
    "more than for at least": ("at_least", pl.Expr.gt),
    "less than for at most": ("at_most", pl.Expr.lt),
    "at least for more than": ("more_than", pl.Expr.ge),
    "at most for less than": ("less_than", pl.Expr.le),
    "equal as floats": ("equals", of_floats(pl.Expr.eq)),
    "at least as floats": ("at_least", of_floats(pl.Expr.ge)),
    "equal to the cent": ("equals", of_cents(pl.Expr.eq)),
    "more than to the cent": ("more_than", of_cents(pl.Expr.gt)),
    "unknown is not at least": ("at_least", false_when_unknown(pl.Expr.ge)),
    "unknown differs": ("differs", pl.Expr.ne_missing),
    "unknown equals unknown": ("equals", pl.Expr.eq_missing),
}


@pytest.mark.parametrize("mutant", COMPARISONS)
def test_wrong_comparison_is_detected(
    mutant: str, monkeypatch: pytest.MonkeyPatch, is_detected: Callable[[], bool]
) -> None:
    operator, wrong = COMPARISONS[mutant]
    monkeypatch.setitem(numbers.COMPARISONS, operator, wrong)
    assert is_detected()


# Logic, and other nodes


def unknown_if_any_is(of: Columns, value: pl.Expr) -> pl.Expr:
    return pl.when(pl.all_horizontal(each.is_not_null() for each in of)).then(value)


LOGIC: Mapping[str, tuple[str, Callable[[Node, list[pl.Expr]], pl.Expr]]] = {
    "all for any": ("any", lambda _, of: pl.all_horizontal(of)),
    "any for all": ("all", lambda _, of: pl.any_horizontal(of)),
    "all that skips nulls": ("all", lambda _, of: pl.all_horizontal(each.fill_null(value=True) for each in of)),
    "any that skips nulls": ("any", lambda _, of: pl.any_horizontal(each.fill_null(value=False) for each in of)),
    "all is unknown although one is false": ("all", lambda _, of: unknown_if_any_is(of, pl.all_horizontal(of))),
    "any is unknown although one is true": ("any", lambda _, of: unknown_if_any_is(of, pl.any_horizontal(of))),
    "all is true if one is unknown": (
        "all",
        lambda _, of: pl.any_horizontal(each.is_null() for each in of) | pl.all_horizontal(of),
    ),
    "not of unknown is true": ("not", lambda _, of: of[0].fill_null(value=False).not_()),
    "between excludes its bounds": ("between", lambda _, of: (of[0] > of[1]) & (of[0] < of[2])),
    "between needs all three values": ("between", lambda _, of: unknown_if_any_is(of, of[0].is_between(of[1], of[2]))),
    "unknown is not one of the texts": ("one_of", lambda node, of: of[0].is_in(node.subject).fill_null(value=False)),
    "texts compared without case": (
        "one_of",
        lambda node, of: of[0].str.to_lowercase().is_in([text.lower() for text in node.subject]),
    ),
    "isTrue of unknown is false": ("is_true", lambda _, of: of[0].fill_null(value=False)),
    "everything is known": ("is_known", lambda _, of: of[0].is_not_null() | True),
    "isKnown of unknown is unknown": ("is_known", lambda _, of: pl.when(of[0].is_not_null()).then(pl.lit(value=True))),
    "bands include their bound": ("tiers", lambda node, of: bands_including_bound(of, node.subject)),
    "bands for an unknown number": ("tiers", lambda node, of: bands_of_unknown_numbers(of, node.subject)),
    "the last band first": ("tiers", lambda node, of: last_band_first(of, node.subject)),
}


@pytest.mark.parametrize("mutant", LOGIC)
def test_wrong_logic_is_detected(mutant: str, monkeypatch: pytest.MonkeyPatch, is_detected: Callable[[], bool]) -> None:
    operator, wrong = LOGIC[mutant]
    monkeypatch.setitem(evaluate._OTHERS, operator, wrong)
    assert is_detected()


# Readings, rules, steps, limits, reasons


def last_step_not_false(of: Plan) -> pl.Expr:
    step = pl.lit(None, pl.UInt32)
    for nth in range(len(of.steps)):
        holds = pl.col(evaluate.step_column(nth)).fill_null(value=True)
        step = pl.when(holds).then(pl.lit(nth, pl.UInt32)).otherwise(step)
    return step


def outcome_of_first_true_step(of: Plan) -> pl.Expr:
    outcome = pl.lit(of.policy.default_outcome, evaluate.OUTCOME)
    for nth, planned in reversed(list(enumerate(of.steps))):
        given = pl.lit(planned.step.outcome, evaluate.OUTCOME)
        outcome = pl.when(pl.col(evaluate.step_column(nth))).then(given).otherwise(outcome)
    return outcome


def rules_ignoring_on_unavailable(of: Plan) -> Iterator[pl.Expr]:
    for nth, step in enumerate(of.steps):
        for place, each in enumerate(step.rules):
            yield pl.col(each.condition).alias(evaluate.rule_column(nth, place))


def unranked_rules(of: Plan, row: Row) -> Sequence[PlannedRule]:
    rules = enumerate(of.steps[row["step"]].rules)
    return [each for place, each in rules if row[evaluate.rule_column(row["step"], place)]]


def round_to_nearest(value: pl.Expr, multiple: str) -> pl.Expr:
    return (value / constant(multiple)).round(0) * constant(multiple)


def round_in_floats(value: pl.Expr, multiple: str) -> pl.Expr:
    times = (value.cast(pl.Float64) / float(multiple)).floor()
    return round_column(times * float(multiple))


def zero_at_the_minimum(value: pl.Expr, limit: Limit) -> pl.Expr:
    rounded = numbers.round_down(value, limit.round_down_to)
    return pl.when(rounded > constant(limit.minimum)).then(rounded).otherwise(constant("0"))


def available_at_its_expiry(stated: readings.Attribute, kind: Any, now: Any) -> Any:
    value = stated.value
    if value is None:
        return None, readings.NOT_SET
    if stated.expires_at is not None and stated.expires_at < now:
        return None, readings.EXPIRED
    if not readings.is_of_kind(value, kind):
        return None, readings.WRONG_KIND
    return readings.as_reading(value)


PARTS: Mapping[str, tuple[object, str, object]] = {
    "undecidable steps skipped": (evaluate, "_outcome", outcome_of_first_true_step),
    "the last step that is not false decides": (evaluate, "_step", last_step_not_false),
    "onUnavailable ignored": (evaluate, "_rules", rules_ignoring_on_unavailable),
    "matched rules not sorted by rank": (answer, "_matched_rules", unranked_rules),
    "rounded to the nearest": (evaluate, "round_down", round_to_nearest),
    "rounded in floats": (evaluate, "round_down", round_in_floats),
    "nothing offered at the minimum": (evaluate, "_round_limit", zero_at_the_minimum),
    "the highest cap": (
        evaluate,
        "_lowest_cap",
        lambda caps: pl.max_horizontal([pl.lit(None, NUMBER), *(pl.col(cap.value) for cap in caps)]),
    ),
    "only the first cap": (
        evaluate,
        "_lowest_cap",
        lambda caps: pl.min_horizontal([pl.lit(None, NUMBER), *(pl.col(cap.value) for cap in caps[:1])]),
    ),
    "negative offers": (evaluate, "_at_least_zero", lambda value: value),
    "unknown limits offered as zero": (
        evaluate,
        "_at_least_zero",
        lambda value: pl.max_horizontal(value, constant("0")),
    ),
    "every unknown cap ignored": (plan.PlannedLimit, "required_nodes", property(lambda planned: (planned.amount,))),
    "no unknown cap ignored": (
        plan.PlannedLimit,
        "required_nodes",
        property(lambda planned: (planned.amount, *(cap.value for cap in planned.caps))),
    ),
    "no bound on numbers that are read": (readings, "round_column", lambda value: value.cast(NUMBER, strict=False)),
    "attribute available at its expiry": (readings, "read_attribute", available_at_its_expiry),
    "values of all bands required": (unsettled, "_relevant_operands", lambda node, _: node.operands),
}


@pytest.mark.parametrize("mutant", PARTS)
def test_wrong_part_is_detected(mutant: str, monkeypatch: pytest.MonkeyPatch, is_detected: Callable[[], bool]) -> None:
    target, name, wrong = PARTS[mutant]
    monkeypatch.setattr(target, name, wrong)
    assert is_detected()


@pytest.mark.slow  # test_engine compares the unchanged engine in every run
def test_unchanged_engine_is_not_detected(is_detected: Callable[[], bool]) -> None:
    assert not is_detected()
