"""Conditions reported as impossible never hold, for any relevant value; and for conditions on one value, all impossible
ones are reported.
"""

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from itertools import product
from typing import Any

import polars as pl
import pytest

from pipelines.decisions import readings
from pipelines.decisions.check import ranges
from pipelines.decisions.evaluate import evaluate_plan
from pipelines.decisions.plan import Plan, plan_policy
from pipelines.decisions.policy import Policy
from pipelines.decisions.readings import Attribute
from tests.conftest import times

Json = Any

NOW = datetime(2026, 11, 20, tzinfo=UTC)
COMPARISONS = ("atLeast", "atMost", "moreThan", "lessThan", "equals", "differs")
BOUNDS = ("0", "1", "1.5", "2")
VALUES = (None, *map(Decimal, ("-1", "0", "0.5", "1", "1.00000001", "1.5", "1.7", "2", "3")))
DECLARED = [{"name": name, "kind": "decimal"} for name in ("x", "y")]


def condition(chance: random.Random, names: str, depth: int, *, with_known: bool = False) -> Json:
    leaf = {"attribute": chance.choice(names)}
    match chance.choice(("compared", "between", "known") if depth == 0 else ("all", "any", "not", "compared")):
        case "known" if with_known:
            return {"isKnown": leaf}
        case "between":
            return {"between": [leaf, chance.choice(BOUNDS), chance.choice(BOUNDS)]}
        case "not":
            return {"not": condition(chance, names, depth - 1, with_known=with_known)}
        case "all" | "any" as operator:
            inner = range(chance.randint(2, 3))
            return {operator: [condition(chance, names, depth - 1, with_known=with_known) for _ in inner]}
        case _:
            other = {"attribute": chance.choice(names)} if len(names) > 1 else chance.choice(BOUNDS)
            return {chance.choice(COMPARISONS): [leaf, chance.choice((other, *BOUNDS))]}


def rule(condition: Json, code: str, **more: Json) -> Json:
    return {"code": code, "message": code, "customerMessage": code, "condition": condition, **more}


def policy(*steps: Json) -> Json:
    return {"slug": "p", "name": "P", "defaultOutcome": "proceed", "attributes": DECLARED, "steps": list(steps)}


def step(nth: int, *rules: Json, match: str = "any") -> Json:
    return {"name": f"S{nth}", "outcome": "blocked", "match": match, "rules": list(rules)}


def all_customers(plan: Plan) -> pl.DataFrame:
    """Return the evaluation of a customer for each pair of values."""
    pairs = list(product(VALUES, VALUES))
    held = {number: {"x": Attribute(x), "y": Attribute(y)} for number, (x, y) in enumerate(pairs)}
    numbers = pl.DataFrame({"customer_number": pl.Series(range(len(pairs)), dtype=pl.UInt32)})
    return evaluate_plan(plan, readings.read_leaves(plan, numbers, held, {}, NOW))


def find_places_and_codes(document: Json) -> set[tuple[str, str]]:
    return {(each.pointer, each.code.removeprefix("DecisionPolicy.")) for each in ranges.find_faults(document)}


def conditions(seed: int, count: int, names: str, *, with_known: bool) -> Iterator[tuple[set[bool | None], set[str]]]:
    """Yield for each condition its truths among all customers, and the codes of its findings."""
    chance = random.Random(seed)
    drawn = [condition(chance, names, chance.randint(0, 3), with_known=with_known) for _ in range(count)]
    for start in range(0, count, 100):
        rules = [rule(each, f"R{nth}") for nth, each in enumerate(drawn[start : start + 100])]
        plan = plan_policy(Policy.model_validate(policy(step(0, *rules))))
        rows = all_customers(plan)
        for each, its in zip(rules, plan.steps[0].rules, strict=True):
            findings = find_places_and_codes(policy(step(0, each)))
            own = {code for pointer, code in findings if pointer == "/steps/0/rules/0/condition"}
            yield set(rows[its.condition].to_list()), own & {"NeverTrue", "AlwaysTrue", "EmptyRange"}


@pytest.mark.drawn
def test_condition_reported_as_constant_is_constant() -> None:
    reported = 0
    for truths, codes in conditions(1, times(400), "xy", with_known=True):
        reported += bool(codes)
        assert not (codes & {"NeverTrue", "EmptyRange"} and True in truths)
        assert not ("AlwaysTrue" in codes and False in truths)
    assert reported > 5


@pytest.mark.drawn
def test_every_constant_condition_on_one_value_is_found() -> None:
    """A condition with a constant part is left out: only that part is reported."""
    chance, missed, constant = random.Random(2), 0, 0
    for nth in range(times(150)):
        document = policy(step(0, rule(condition(chance, "x", chance.randint(0, 3)), f"R{nth}")))
        plan = plan_policy(Policy.model_validate(document))
        truths = set(all_customers(plan)[plan.steps[0].rules[0].condition].to_list())
        is_constant = not truths >= {True, False}
        constant += is_constant
        missed += is_constant and not find_places_and_codes(document)
    assert (missed, constant > 10) == (0, True)


@pytest.mark.drawn
def test_step_or_rule_reported_as_unreachable_is_never_reached() -> None:
    chance, reported = random.Random(3), 0
    for _ in range(times(80)):
        document = policy(*(_drawn_step(chance, nth) for nth in range(3)))
        rows = all_customers(plan_policy(Policy.model_validate(document)))
        decided = rows.filter(pl.col("outcome") == "blocked")
        for pointer, code in find_places_and_codes(document):
            _, _, nth, *place = pointer.split("/")
            if code == "StepUnreachable":
                reported += 1
                assert int(nth) not in decided["step"].to_list()
            if code == "RuleUnreachable":
                reported += 1
                here = rows.filter(pl.col("step") == int(nth))
                assert True not in here[f"rule_{nth}_{place[1]}"].to_list()
    assert reported > 15


def _drawn_step(chance: random.Random, nth: int) -> Json:
    rules = [
        rule(
            condition(chance, "xy", chance.randint(0, 1), with_known=True),
            f"R{nth}.{place}",
            onUnavailable=chance.choice(("indeterminate", "indeterminate", "matched", "notMatched")),
        )
        for place in range(chance.randint(1, 2))
    ]
    return step(nth, *rules, match=chance.choice(("any", "all")))


def test_rule_reported_as_idle_never_decides() -> None:
    """Without an idle rule the step matches the same customers, if all values are known."""
    chance, reported = random.Random(4), 0
    for _ in range(300):
        one, other = (rule(condition(chance, "x", chance.randint(0, 1)), code) for code in "AB")
        match = chance.choice(("any", "all"))
        document = policy(step(0, one, other, match=match))
        idle = [each.pointer for each in ranges.find_warnings(document)]
        if len(idle) == 1:
            reported += 1
            retained = other if idle == ["/steps/0/rules/0/condition"] else one
            with_it, without = (
                all_customers(plan_policy(Policy.model_validate(each)))["step_0"].to_list()
                for each in (document, policy(step(0, retained, match=match)))
            )
            assert with_it == without
    assert reported > 20
