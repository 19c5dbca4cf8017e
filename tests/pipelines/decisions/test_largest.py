"""The largest accepted documents don't exhaust a process, whichever operators they have."""

from collections.abc import Mapping
from decimal import Decimal
from itertools import pairwise
from typing import Any

import polars as pl
import pytest

from pipelines.decisions import check, readings, sensitivity
from pipelines.decisions.check.bounds import MAX_NODES, find_broken_bound
from pipelines.decisions.evaluate import evaluate_plan
from pipelines.decisions.numbers import ARITHMETIC, in_bands
from pipelines.decisions.plan import plan_policy
from pipelines.decisions.policy import Policy
from pipelines.metrics.arithmetic import calculate
from pipelines.metrics.outcome import VALUE
from pipelines.monitoring.checking import check_document
from tests.pipelines.decisions.comparing import metrics_of
from tests.pipelines.decisions.drawn import NOW
from tests.pipelines.decisions.interpreter import Customer
from tests.pipelines.decisions.largest import CONDITIONS, LEAF, fill_policy, policy_of

FACTORS = [f"1.{nth:04}" for nth in range(1, 20)]


def operands(count: int) -> list[pl.Expr]:
    return [pl.col(f"n{nth}") for nth in range(count)]


EXPRESSIONS: Mapping[str, Any] = {
    **{name: lambda count, of=of: of(operands(count)) for name, of in ARITHMETIC.items() if name != "divide"},
    "tiers": lambda count: in_bands(operands(count), [str(nth) for nth in range(count - 2)]),
}


def test_expression_grows_linearly_with_its_operands(subtests: pytest.Subtests) -> None:
    for name, of in EXPRESSIONS.items():
        with subtests.test(name):
            sizes = [len(of(count).meta.root_names()) for count in (4, 6, 8, 10)]
            grown = [later - earlier for earlier, later in pairwise(sizes)]
            assert len(set(grown)) == 1, sizes


def largest_evaluated(name: str) -> None:
    """Check and evaluate a document, and search for its sensitivities, as for any other policy."""
    document = fill_policy(CONDITIONS[name])
    codes = {fault.code for fault in check.check_document(document).faults}
    assert not codes & {"DecisionPolicy.TooLarge", "DecisionPolicy.TooCostly"}
    plan = plan_policy(Policy.model_validate(document))
    read = readings.read_leaves(plan, metrics_of([Customer({"revenue_90d": Decimal(1000)}, {})]), {0: {}}, {}, NOW)
    assert evaluate_plan(plan, read).height == 1
    assert len(sensitivity.find_sensitivities(plan, read)) == 1


def test_document_that_exhausted_a_process_is_evaluated() -> None:
    condition = CONDITIONS["sums of products"](f"1.{nth:04}" for nth in range(1, 1_000))
    plan = plan_policy(Policy.model_validate(policy_of([condition])))
    read = readings.read_leaves(plan, metrics_of([Customer({"revenue_90d": Decimal(1000)}, {})]), {0: {}}, {}, NOW)
    assert evaluate_plan(plan, read).height == 1


@pytest.mark.slow
def test_largest_document_of_every_operator_is_evaluated(subtests: pytest.Subtests) -> None:
    for name in CONDITIONS:
        with subtests.test(name):
            largest_evaluated(name)


def many(constants: int) -> list[dict[str, Any]]:
    """Return conditions of three nodes each: an operator, a reading and a constant."""
    return [{"moreThan": [LEAF, f"{nth}"]} for nth in range(constants)]


def test_too_costly_policy_is_refused_on_saving() -> None:
    fitting, beyond = policy_of(many(MAX_NODES // 3)), policy_of(many(MAX_NODES // 3 + 1))
    assert find_broken_bound(fitting, check.CALCULATING) is None
    [fault] = check.check_document(beyond).faults
    assert (fault.code, fault.pointer) == ("DecisionPolicy.TooCostly", "")


def test_too_costly_ruleset_is_refused_on_saving() -> None:
    rules = [{"code": "R", "message": "R holds.", "condition": {"any": many(MAX_NODES // 3 + 1)}}]
    [fault] = check_document({"slug": "r", "name": "R", "rules": rules}).faults
    assert (fault.code, fault.pointer) == ("Ruleset.TooCostly", "")


def test_metric_of_twenty_operands_is_computed_step_by_step() -> None:
    values = [pl.Series([Decimal(each)], dtype=VALUE) for each in ("1000", *FACTORS)]
    none = pl.Series([None], dtype=pl.String)
    expected = Decimal(1000)
    for factor in FACTORS:
        expected = (expected * Decimal(factor)).quantize(Decimal("0.0001"))
    found = calculate("multiply", values, [none] * len(values))
    assert found.rows() == [(expected, None)]
