"""The engine equals the interpreter, for one customer and for many, and no customer's data break it."""

import hashlib
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from decimal import Decimal

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from pipelines import metrics
from pipelines.decisions import evaluate, readings
from pipelines.decisions.evaluate import evaluate_plan
from pipelines.decisions.numbers import ARITHMETIC, COMPARISONS
from pipelines.decisions.plan import plan_policy
from pipelines.decisions.policy import Policy
from pipelines.decisions.readings import Attribute, Value
from pipelines.figures.facts import Facts
from pipelines.metrics import cause_of
from pipelines.metrics.outcome import CAUSES
from pipelines.vocabulary.schemas import TRANSACTIONS
from tests.pipelines.decisions.comparing import (
    Case,
    Compared,
    Interpreted,
    cases,
    compare_all,
    differing,
    interpret,
    metrics_of,
    rows,
)
from tests.pipelines.decisions.drawn import NOW
from tests.pipelines.decisions.interpreter import Seen
from tests.pipelines.decisions.small import declare, evaluation, policy, rule, step, value_of
from tests.pipelines.metrics.customers import customer as transactions_of
from tests.pipelines.metrics.customers import facts
from tests.root import ROOT

LARGEST = "999999999999999.99999999"
HASH_ANSWERS = """
import hashlib, sys
import msgspec
import polars as pl
from pipelines.decisions.answer import build_answer, build_trace
from pipelines.decisions.plan import plan_policy
from pipelines.decisions.policy import Policy
from tests.pipelines.decisions.comparing import cases, rows

digest = hashlib.sha256()
for case in cases(seed=3, policies=12, customers=25):
    plan = plan_policy(Policy.model_validate(case.document))
    for customer, row in zip(case.customers, rows(plan, case).to_dicts()):
        digest.update(msgspec.json.encode([build_answer(plan, row, customer.attributes, {}), build_trace(plan, row)]))
print(pl.thread_pool_size(), digest.hexdigest())
"""


@pytest.fixture(scope="module")
def compared(interpreted_cases: Sequence[Interpreted]) -> Sequence[Compared]:
    return list(compare_all(interpreted_cases))


def test_engine_equals_the_interpreter(compared: Sequence[Compared]) -> None:
    assert len(compared) == 1_500
    assert [each for each in compared if each.engine != each.interpreter] == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 15))
def test_engine_equals_the_interpreter_for_many_policies(seed: int) -> None:
    assert next(differing(interpret(cases(seed, policies=100, customers=100))), None) is None


def test_drawn_cases_have_every_operator_outcome_and_cause(compared: Sequence[Compared]) -> None:
    seen = [each for one in compared for each in _all_seen(one)]
    operators = {*ARITHMETIC, *COMPARISONS, *evaluate._OTHERS}
    assert {each.what[0] for each in seen} == {to_camel(operator) for operator in operators}
    assert {each.cause for each in seen} == {None, *CAUSES, *readings.CAUSES}
    assert {one.interpreter.outcome for one in compared} == {"proceed", "conditional", "blocked", "indeterminate"}
    limits = [limit for one in compared for limit in one.interpreter.limits]
    assert min(sum(limit.capped for limit in limits), sum(limit.amount is None for limit in limits)) > 150
    assert sum(len(one.interpreter.matched) > 1 for one in compared) > 50


def _all_seen(one: Compared) -> Iterator[Seen]:
    conditions = [rule.condition for step in one.interpreter.steps for rule in step.rules]
    for each in (*conditions, *(seen for limit in one.interpreter.limits for seen in limit.seen)):
        yield from _below(each)


def _below(seen: Seen) -> Iterator[Seen]:
    yield seen
    for each in seen.of:
        yield from _below(each)


# One customer and many


def test_customers_evaluated_one_by_one_have_the_same_results() -> None:
    for case in cases(seed=5, policies=6, customers=12):
        plan = plan_policy(Policy.model_validate(case.document))
        alone = [rows(plan, Case(case.document, [customer], case.inputs)) for customer in case.customers]
        assert_frame_equal(pl.concat(alone).drop("customer_number"), rows(plan, case).drop("customer_number"))


def test_the_order_of_customers_changes_nothing() -> None:
    for case in cases(seed=6, policies=6, customers=30):
        plan = plan_policy(Policy.model_validate(case.document))
        held = {number: customer.attributes for number, customer in enumerate(case.customers)}
        shuffled = metrics_of(case.customers).sample(fraction=1, shuffle=True, seed=1)
        again = evaluate_plan(plan, readings.read_leaves(plan, shuffled, held, case.inputs, NOW))
        assert again["customer_number"].to_list() != list(range(30))
        assert_frame_equal(again.sort("customer_number"), rows(plan, case))


@pytest.mark.service  # starts other processes
def test_answer_and_trace_are_the_same_bytes_in_every_process() -> None:
    runs = [_hash_answers(threads, seed) for threads, seed in ((1, 0), (5, 2))]
    assert [threads for threads, _ in runs] == [1, 5]
    assert len({digest for _, digest in runs}) == 1
    assert runs[0][1] != hashlib.sha256(b"").hexdigest()


def _hash_answers(threads: int, hash_seed: int) -> tuple[int, str]:
    """Return the number of Polars' threads, and the hash of all answers and traces."""
    environment = {**os.environ, "POLARS_MAX_THREADS": str(threads), "PYTHONHASHSEED": str(hash_seed)}
    command = [sys.executable, "-c", HASH_ANSWERS]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)
    thread_count, digest = done.stdout.split()
    return int(thread_count), digest


# Numbers without a value, and values of the wrong kind


X, Y = {"attribute": "x"}, {"attribute": "y"}


@pytest.mark.parametrize(
    ("number", "x", "y", "expected"),
    [
        ({"add": [X, Y]}, LARGEST, "0", LARGEST),
        ({"add": [X, Y]}, LARGEST, "0.00000001", "overflow"),
        ({"add": [X, Y, "-1"]}, LARGEST, "0.00000001", "overflow"),  # too large after the first step
        ({"subtract": [X, Y]}, f"-{LARGEST}", "0.00000001", "overflow"),
        ({"multiply": [X, Y]}, LARGEST, "1.00000001", "overflow"),
        ({"multiply": [X, Y]}, LARGEST, f"-{LARGEST}", "overflow"),
        ({"multiply": [X, Y]}, "31622776.60168379", "31622776.60168379", "999999999999999.79002546"),
        ({"multiply": [X, Y]}, "0.00000005", "0.1", "0"),  # half to even
        ({"multiply": [X, Y]}, "-0.00000015", "0.1", "-0.00000002"),
        ({"multiply": [X, Y, "1000"]}, "0.00000005", "0.1", "0"),  # rounded at each step
        ({"divide": [X, Y]}, "1", "3", "0.33333333"),
        ({"divide": [X, Y]}, "-2", "3", "-0.66666667"),
        ({"divide": [X, Y]}, "0.00000003", "2", "0.00000002"),
        ({"divide": [X, Y]}, "1", "0", "division_by_zero"),
        ({"divide": [X, Y]}, "0", "0", "division_by_zero"),
        ({"divide": [X, Y]}, LARGEST, "0.00000001", "overflow"),
        ({"divide": [X, Y]}, "10000000", "-0.00000001", "overflow"),
        ({"tiers": {"of": X, "bands": [{"below": "1", "value": "5"}], "otherwise": Y}}, "0.99999999", "7", "5"),
        ({"tiers": {"of": X, "bands": [{"below": "1", "value": "5"}], "otherwise": Y}}, "1", "7", "7"),
        ({"min": [X, Y]}, "1e15", "1", None),
        (X, "1e15", "0", "overflow"),
        (X, "-1E+999999", "0", "overflow"),
        (X, "1E+1000000", "0", "overflow"),
        (X, "Infinity", "0", "overflow"),
        (X, "1e-400", "0", "0"),
        (X, "NaN", "0", "wrong_kind"),
        (X, "sNaN", "0", "wrong_kind"),
        (X, "999999999999999.999999994999", "0", LARGEST),
        (X, "999999999999999.999999995", "0", "overflow"),
        (X, "0.000000005", "0", "0"),
    ],
)
def test_number_is_exact_or_has_a_cause(number: object, x: str, y: str, expected: str | None) -> None:
    value, cause = value_of(number, x=Decimal(x), y=Decimal(y))
    if expected in {"overflow", "division_by_zero", "wrong_kind", None}:
        assert (value, cause) == (None, expected)
    else:
        assert (value, cause) == (Decimal(str(expected)), None)


def test_division_by_zero_affects_only_its_customer() -> None:
    chance = random.Random(1)
    ratio = {"atLeast": [{"divide": ["1", {"attribute": "x"}]}, "0.1"]}
    plan = plan_policy(policy(attributes=declare(x="decimal"), steps=[step(rule(ratio))]))
    numbers = [Decimal(chance.choice((0, 5, 20))) for _ in range(200)]
    held = {number: {"x": Attribute(value)} for number, value in enumerate(numbers)}
    customers = pl.DataFrame({"customer_number": range(200)}, schema={"customer_number": pl.UInt32})
    outcomes = evaluate_plan(plan, readings.read_leaves(plan, customers, held, {}, NOW))["outcome"].to_list()
    assert outcomes == [{0: "indeterminate", 5: "blocked", 20: "proceed"}[int(value)] for value in numbers]


@pytest.mark.parametrize(
    ("kind", "held", "expected"),
    [
        ("decimal", Attribute(None), "not_set"),
        ("decimal", Attribute(True), "wrong_kind"),
        ("decimal", Attribute("12"), "wrong_kind"),
        ("boolean", Attribute(Decimal(1)), "wrong_kind"),
        ("boolean", Attribute("true"), "wrong_kind"),
        ("string", Attribute(Decimal(1)), "wrong_kind"),
        ("string", Attribute(False), "wrong_kind"),
        ("string", Attribute("", NOW), "expired"),
        ("decimal", Attribute("12", NOW - timedelta(days=1)), "expired"),
        ("string", Attribute("", NOW + timedelta(microseconds=1)), None),
        ("decimal", Attribute(Decimal(0)), None),
        ("boolean", Attribute(False), None),
    ],
)
def test_attribute_of_another_kind_or_expired_is_unavailable(kind: str, held: Attribute, expected: str | None) -> None:
    small = policy(attributes=declare(x=kind), steps=[step(rule({"isKnown": {"attribute": "x"}}))])
    found = evaluation(small, attributes={"x": held})
    assert found.row[cause_of("attribute x")] == expected
    assert found.verdict["outcome"] == ("blocked" if expected is None else "proceed")


def test_names_may_equal_the_engines_own_columns() -> None:
    names = ("x", "x__cause", "n0", "outcome", "step_0", "rule_0_0", "customer_number")
    held = {name: Attribute(Decimal(nth)) for nth, name in enumerate(names)}
    rules = [rule({"equals": [{"attribute": name}, str(nth)]}) for nth, name in enumerate(names)]
    small = policy(attributes=declare(**dict.fromkeys(names, "decimal")), steps=[step(*rules, match="all")])
    assert evaluation(small, attributes=held).verdict["outcome"] == "blocked"
    assert evaluation(small, attributes=held | {"x": Attribute(Decimal(7))}).verdict["outcome"] == "proceed"


@pytest.mark.parametrize("value", [Decimal("1e15"), Decimal("-1e400")])
def test_input_that_is_too_large_is_unavailable(value: Value) -> None:
    small = policy(declaredInputs=declare(x="decimal"), steps=[step(rule({"atLeast": [{"input": "x"}, "0"]}))])
    found = evaluation(small, inputs={"x": value})
    assert found.verdict["outcome"] == "indeterminate"
    assert [each["code"] for each in found.verdict["reasons"]] == ["DecisionPolicy.InputUnavailable"]


def test_metric_that_is_too_large_is_unavailable() -> None:
    small = policy(steps=[step(rule({"atLeast": [{"metric": "revenue_90d"}, "0"]}))])
    found = evaluation(small, {"revenue_90d": Decimal("1e29")})
    assert [each["cause"] for each in found.verdict["reasons"]] == ["overflow"]


# Limits


def evaluate_limit(amount: str, *caps: str, **given: object) -> tuple[Decimal | None, Decimal | None, bool]:
    """Return the amount, the uncapped amount and whether it is capped."""
    ceilings = [{"code": f"C{nth}", "message": "Cap", "value": value} for nth, value in enumerate(caps)]
    limit = {"product": "loan", "amount": amount, "caps": ceilings, **given}
    found = evaluation(policy(products=[{"slug": "loan", "name": "Loan"}], limits=[limit])).row
    return found["amount_0"], found["uncapped_0"], found["capped_0"]


def amounts_of_limit(amount: str, uncapped: str | None = None) -> tuple[Decimal, Decimal | None, bool]:
    return Decimal(amount), None if uncapped is None else Decimal(uncapped), uncapped is not None


def test_a_limit_is_rounded_down_after_its_caps() -> None:
    assert evaluate_limit("1234.56789") == amounts_of_limit("1234.56")
    assert evaluate_limit("1234.56", roundDownTo="100") == amounts_of_limit("1200")
    assert evaluate_limit("1234.56", "1150", "1190", roundDownTo="100") == amounts_of_limit("1100", "1234.56")
    assert evaluate_limit("1234.56", "1234.56") == amounts_of_limit("1234.56")
    assert evaluate_limit("1234.56999", "1234.56998") == amounts_of_limit("1234.56", "1234.56")


def test_limit_below_its_minimum_is_zero() -> None:
    assert evaluate_limit("5099.99", minimum="5000", roundDownTo="1000") == amounts_of_limit("5000")
    assert evaluate_limit("5099.99", "4999.99", minimum="5000") == amounts_of_limit("0", "5099.99")


def test_limit_is_never_negative() -> None:
    assert evaluate_limit("-100") == amounts_of_limit("0")
    assert evaluate_limit("100", "-5") == amounts_of_limit("0", "100")
    assert evaluate_limit("-100", "-500") == amounts_of_limit("0")  # there was nothing to cap


@pytest.mark.parametrize("multiple", ["0", "0.00", "0.001", "0.005", "-1", "1e2", "12.345", "00.10"])
def test_a_limit_is_rounded_to_whole_cents_or_the_policy_is_refused(multiple: str) -> None:
    with pytest.raises(ValidationError, match="roundDownTo"):
        evaluate_limit("100", roundDownTo=multiple)


# Customers without rows, and portfolios without customers


def test_customers_without_posted_rows_are_decided() -> None:
    chance = random.Random(1)
    posted = transactions_of(chance, 1)
    pending = [row | {"status": "pending"} for row in transactions_of(chance, 2)]
    known = {"isKnown": {"metric": "revenue_90d"}}
    small = policy(defaultOutcome="conditional", steps=[step(rule(known), outcome="proceed")])
    plan = plan_policy(small)
    computed = metrics.values(facts([*posted, *pending], date(2025, 6, 1)), plan.metrics)
    decided = evaluate_plan(plan, readings.read_leaves(plan, computed, {}, {}, NOW))
    assert decided["customer_number"].to_list() == [1, 2]
    assert decided[cause_of("metric revenue_90d")].to_list() == [None, "no_transactions"]
    assert decided["outcome"].to_list() == ["proceed", "conditional"]


def test_empty_portfolio_has_no_decisions() -> None:
    for case in cases(seed=8, policies=10, customers=1):
        plan = plan_policy(Policy.model_validate(case.document))
        nobody = metrics_of(case.customers).clear()
        decided = evaluate_plan(plan, readings.read_leaves(plan, nobody, {}, case.inputs, NOW))
        assert decided.is_empty()
        assert decided.schema == rows(plan, case).schema


def test_metrics_without_any_transactions_can_be_read() -> None:
    plan = plan_policy(policy(steps=[step(rule({"isKnown": {"metric": "revenue_90d"}}))]))
    none = metrics.values(Facts(pl.DataFrame(schema=TRANSACTIONS), date(2025, 6, 1)), plan.metrics)
    assert evaluate_plan(plan, readings.read_leaves(plan, none, {}, {}, NOW)).is_empty()


def test_a_policy_without_steps_decides_by_its_default() -> None:
    found = evaluation(policy(defaultOutcome="conditional"))
    assert (found.verdict["outcome"], found.row["step"]) == ("conditional", None)


def test_policy_reads_the_share_of_unreconciled_statements() -> None:
    doubted = {"statement_verdict": "unreconciled", "statement_proved": False}
    plain = {"statement_verdict": None, "statement_proved": None}
    share = {"moreThan": [{"metric": "unreconciled_share_180d"}, "0.2"]}
    small = policy(steps=[step(rule(share, code="UNPROVED"))])
    rows = [{**each, "category": "wages", "category_group": "payroll", "status": "posted", "superseded_seq": None}
            for each in transactions_of(random.Random(4), days=60)]  # fmt: skip
    for marks, outcome in (([doubted], "blocked"), ([plain], "proceed"), ([doubted, *[plain] * 39], "proceed")):
        marked = [{**each, **marks[nth % len(marks)]} for nth, each in enumerate(rows)]
        [described] = metrics.values(facts(marked, NOW.date()), plan_policy(small).metrics).to_dicts()
        assert (
            evaluation(small, {"unreconciled_share_180d": described["unreconciled_share_180d"]}).verdict["outcome"]
            == outcome
        )
