"""What behaviour alone shows decides nothing: no metric, event, finding, rating, shipped policy or ruleset reads it.

Two businesses have the same rows, but for the numbers in the texts. In one, numbers connect credits with debits, so
that debts are inferred; in the other, they don't. Everything that decides is the same for both.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import count
from uuid import UUID

import polars as pl
import pytest

from pipelines.decisions.decision import compute_metrics
from pipelines.decisions.evaluate import evaluate_plan
from pipelines.decisions.plan import plan_policy
from pipelines.decisions.readings import Attribute, read_leaves
from pipelines.enrichment.facilities import mark_facilities, summarise_facilities
from pipelines.figures.facts import Facts
from pipelines.integrity import findings
from pipelines.metrics.compute import values
from pipelines.monitoring import VersionedRuleset, observe_customers, plan_rulesets
from pipelines.risk_models.events import events
from tests.pipelines.reports.examples import START, Row, add_balances, mark_balances, reports, row, transactions
from tests.pipelines.test_reasons import ASKED, POLICIES, RULESETS, STATED

WEEKS = 40
AS_OF = START + timedelta(days=7 * WEEKS)
NOW = datetime(AS_OF.year, AS_OF.month, AS_OF.day, 3, tzinfo=UTC)
INFERRED, UNRELATED = 0, 1


def guessed_row(day: int, amount: str, number: int, **others: object) -> Row:
    text = f"PAYMENT {20_800_000 + number}"
    return row(day, amount, category_source="fallback", confidence=0.0, description=text, **others)


def business(numbers: Iterator[int] | None) -> list[Row]:
    """Return takings, and two loans of which one bounces, paid out at the end; each row has a number of its own if
    there are `numbers`.
    """
    trade = [row(7 * week, "3000", kind="revenue/card_settlement", description="EFTPOS") for week in range(WEEKS)]
    loans = [
        guessed_row(day, amount, next(numbers) if numbers else loan)
        for loan, (start, size, instalment) in enumerate([(60, "30000", "-800"), (130, "20000", "-500")])
        for day, amount in [(start, size), *((start + 7 * nth, instalment) for nth in range(1, 20))]
    ]
    back = [
        row(60 + 7 * 19 + 1, "800", kind="distress/returned_payment", description="RETURNED", category_source="pattern")
    ]
    return mark_balances(add_balances(sorted([*trade, *loans, *back], key=lambda each: each["date"]), opening="9000"))


@cache
def rows() -> tuple[Row, ...]:
    both = {INFERRED: business(None), UNRELATED: business(count(100))}
    return tuple(
        {**each, "customer_number": number, "since_seq": 1, "transaction_id": (1000 * number + nth).to_bytes(16)}
        for number, of_one in both.items()
        for nth, each in enumerate(of_one)
    )


def both() -> Facts:
    return Facts(mark_facilities(transactions(rows()).collect()), AS_OF)


def assert_same(found: pl.DataFrame) -> None:
    """Compare what was found for the two businesses, row by row."""
    first, second = (
        found.filter(pl.col("customer_number") == number).drop("customer_number").to_dicts()
        for number in (INFERRED, UNRELATED)
    )
    assert first == second


def test_debts_are_inferred_in_one_business_and_not_in_the_other() -> None:
    found = summarise_facilities(mark_facilities(transactions(rows()).collect()), AS_OF)
    assert found["customer_number"].to_list() == [INFERRED, INFERRED]
    assert found["inferred"].all()
    assert found["possibly_stacked_with"].to_list() == [1, 1]
    assert found["stacked_with"].to_list() == [0, 0]
    assert found["missed_payments"].sum() > 0


def test_no_metric_reads_them() -> None:
    assert_same(values(both()).sort("customer_number"))


def test_no_event_caps_a_rating_for_them() -> None:
    assert_same(events(both()).select("customer_number", "code"))


def test_no_finding_is_made_of_them() -> None:
    assert_same(findings(both()).select("customer_number", "finding"))


def test_the_risk_report_is_the_same() -> None:
    data = dict(reports("risk", mark_facilities(transactions(rows()).collect()).to_dicts(), AS_OF))
    assert data[INFERRED] == data[UNRELATED]


@pytest.mark.parametrize("slug", POLICIES)
def test_no_policy_decides_by_them(slug: str) -> None:
    plan, policy = plan_policy(POLICIES[slug]), POLICIES[slug]
    shown = compute_metrics(both(), plan.metrics, range(2))
    held = {number: {name: Attribute(value) for name, value in STATED.items()} for number in range(2)}
    inputs = {each.name: ASKED[each.name] for each in policy.declared_inputs}
    assert_same(evaluate_plan(plan, read_leaves(plan, shown, held, inputs, NOW)))


@pytest.mark.parametrize("slug", RULESETS)
def test_no_ruleset_watches_them(slug: str) -> None:
    plan = plan_rulesets([VersionedRuleset(UUID(int=1), 1, RULESETS[slug], None)])
    outcomes = observe_customers(plan, both(), {INFERRED: {}, UNRELATED: {}}, NOW).outcomes
    assert_same(outcomes.select("customer_number", "rule", "holds").sort("customer_number", "rule"))
