"""Values against an oracle in plain Python, for every metric of the registry and of the language beyond it."""

import random
from datetime import date, timedelta
from decimal import Decimal

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from pipelines.enrichment.income import PROBABILITIES
from pipelines.figures.income import add_income
from pipelines.integrity import finding_rows
from pipelines.metrics import METRICS, cause_of, readings, select_with_inputs, values
from pipelines.metrics.registry import parse_registry
from tests.conftest import examples
from tests.pipelines.metrics.customers import ACCOUNTS, START, Row, customer, customers, facts
from tests.pipelines.metrics.oracle import Customer, Outcome

WIDER = """
- slug: card_or_npp
  definition:
    source: transactions
    where: {channels: [card, npp], atLeast: "10", atMost: "4000.50"}
    window: {months: 3, offset: 1}
    aggregate: count
- slug: of_kinds
  definition:
    source: transactions
    where: {counterpartyKinds: [person, lender], accountTypes: [savings, transaction]}
    window: {days: 60, offset: 30}
    measure: size
    aggregate: sum
- slug: with_parties
  definition:
    source: transactions
    where: {counterparties: [Acme, Cove], flags: [cash, round_amount], direction: either}
    window: {days: 300}
    aggregate: count
- slug: not_recurring
  definition: {source: transactions, where: {recurring: false, facility: false}, measure: money_out, aggregate: min}
- slug: smallest
  definition: {source: transactions, window: {months: 6}, aggregate: min}
- slug: middle
  definition: {source: transactions, window: {months: 6, offset: 2}, aggregate: median}
- slug: months_used
  definition: {source: transactions, window: {days: 400}, by: month, aggregate: distinct}
- slug: categories_used
  definition: {source: transactions, where: {external: true}, by: category, measure: money_out, aggregate: distinct}
- slug: largest_net_payer
  definition:
    source: transactions
    where: {categories: [bas], groups: [revenue]}
    by: counterparty
    aggregate: largest_share
- slug: days_since_card
  definition: {source: transactions, where: {channels: [card]}, window: {days: 200, offset: 20}, aggregate: days_since}
- slug: volatile
  definition: {source: transactions, window: {months: 24, offset: 1}, aggregate: monthly_volatility}
- slug: lowest_size
  definition: {source: transactions, window: {months: 5, offset: 1}, measure: size, aggregate: monthly_min}
- slug: weak_months
  definition:
    source: transactions
    window: {months: 9}
    measure: money_out
    aggregate: monthly_share_below
    below: "1.25"
- slug: series_at_once
  definition: {source: series, where: {direction: credit}, aggregate: most_at_once}
- slug: squared
  definition: {source: metrics, operation: multiply, operands: [of_kinds, of_kinds]}
- slug: cubed
  definition: {source: metrics, operation: multiply, operands: [squared, of_kinds, "-0.5"]}
- slug: summed
  definition: {source: metrics, operation: add, operands: [of_kinds, smallest, "12.3456", squared]}
- slug: highest
  definition: {source: metrics, operation: max, operands: [middle, smallest, "0"]}
- slug: divided
  definition: {source: metrics, operation: divide, operands: [summed, middle]}
- slug: fresh
  freshDays: 3
  historyMonths: 2
  definition: {source: history, figure: days}
"""
COMMON = "  name: Name\n  meaning: Meaning\n  unit: count\n  format: decimal\n  direction: neutral\n  definition"
ALL = {**METRICS, **parse_registry(WIDER.replace("  definition", COMMON), "wider")}


def outcomes(rows: list[Row], as_of: date) -> dict[str, Outcome]:
    """Return the outcomes of the only customer among the rows."""
    [figures] = values(facts(rows, as_of), ALL).to_dicts()
    return {slug: (figures[slug], figures[cause_of(slug)]) for slug in ALL}


def excluded_ids(rows: list[Row], as_of: date) -> frozenset[bytes]:
    return frozenset(finding_rows(facts(rows, as_of)).filter(pl.col("left_out") != 0)["transaction_id"])


def incomes(rows: list[Row], as_of: date) -> dict[bytes, dict[str, float]]:
    """Return the probability of each kind of income, by the id of a row of a regular payer."""
    seen = facts(rows, as_of)
    marked = add_income(seen, seen.rows).drop_nulls(list(PROBABILITIES.values()))
    by_id = marked.select("transaction_id", **PROBABILITIES).to_dicts()
    return {row.pop("transaction_id"): row for row in by_id}


def assert_same(found: dict[str, Outcome], expected: dict[str, Outcome]) -> None:
    """Compare outcomes. A volatility is a square root: its last decimal may differ by one."""
    for slug, (value, cause) in expected.items():
        assert found[slug][1] == cause, slug
        if value is not None and getattr(ALL[slug].definition, "aggregate", "") == "monthly_volatility":
            assert abs(_known_value(found[slug]) - value) <= max(Decimal("0.0001"), abs(value) * Decimal("1e-12")), slug
        else:
            assert found[slug][0] == value, slug


def _known_value(outcome: Outcome) -> Decimal:
    assert outcome[0] is not None
    return outcome[0]


@examples(6)
@given(customers(), st.integers(0, 900))
def test_every_metric_agrees_with_plain_python(rows: list[Row], days: int) -> None:
    as_of = START + timedelta(days=days)
    if rows:
        expected = Customer(rows, as_of, ALL, excluded_ids(rows, as_of), incomes(rows, as_of))
        assert_same(outcomes(rows, as_of), expected.outcomes())
    else:
        assert values(facts(rows, as_of), ALL).is_empty()


@pytest.mark.slow
def test_thousands_of_customers_at_once_agree_with_plain_python() -> None:
    chance, as_of = random.Random(5), START + timedelta(days=730)
    people = [
        customer(chance, number, rows=chance.randint(1, 80), days=chance.randint(0, 800)) for number in range(2_000)
    ]
    all_rows = [row for rows in people for row in rows]
    left_out, of_income = excluded_ids(all_rows, as_of), incomes(all_rows, as_of)
    for rows, found in zip(people, values(facts(all_rows, as_of), ALL).to_dicts(), strict=True):
        expected = Customer(rows, as_of, ALL, left_out, of_income).outcomes()
        assert_same({slug: (found[slug], found[cause_of(slug)]) for slug in ALL}, expected)


@pytest.fixture(scope="module")
def some() -> list[Row]:
    chance = random.Random(3)
    return [row for number in range(12) for row in customer(chance, number, rows=chance.randint(1, 90))]


LATER = START + timedelta(days=520)


def test_the_order_of_rows_does_not_matter(some: list[Row]) -> None:
    shuffled = random.Random(1).sample(some, len(some))
    assert_frame_equal(values(facts(shuffled, LATER), ALL), values(facts(some, LATER), ALL))


def test_customers_together_have_the_same_values_as_alone(some: list[Row]) -> None:
    together = facts(some, LATER)
    alone = [values(together.of_customer(number), ALL) for number in together.customers["customer_number"]]
    assert_frame_equal(pl.concat(alone), values(together, ALL))


def test_another_customer_changes_nothing(some: list[Row]) -> None:
    huge = customer(random.Random(8), number=99, most=10**15 - 1)
    with_another = values(facts([*some, *huge], LATER), ALL)
    assert_frame_equal(with_another.filter(pl.col("customer_number") < 99), values(facts(some, LATER), ALL))


@pytest.mark.parametrize(
    "slug", ["history_days", "revenue_90d", "stacking_180d", "closing_balance", "squared", "volatile"]
)
def test_a_metric_alone_has_the_same_value_as_among_all(slug: str, some: list[Row]) -> None:
    alone, among = values(facts(some, LATER), select_with_inputs([slug], ALL)), values(facts(some, LATER), ALL)
    assert_frame_equal(alone, among.select(alone.columns))


def test_without_posted_rows_every_metric_is_unavailable() -> None:
    pending = [{**row, "status": "pending"} for row in customer(random.Random(1))]
    assert set(outcomes(pending, LATER).values()) == {(None, "no_transactions")}


def test_sums_beyond_64_bits_are_exact() -> None:
    row = {**customer(random.Random(1), rows=1)[0], "status": "posted", "superseded_seq": None, "flags": []}
    least = Decimal("9999999999999.99")
    rows = [
        {**row, "transaction_id": bytes([nth % 256, nth // 256]), "position": nth, "amount": least, "balance": None}
        for nth in range(2_000)
    ]
    taken = [
        {**each, "category": "card_settlement", "category_group": "revenue", "is_transfer": False} for each in rows
    ]
    assert outcomes(taken, LATER)["seen_revenue_180d"] == (2_000 * least, None)


def test_totals_beyond_64_bits_agree_with_plain_python() -> None:
    usual = customer(random.Random(1), rows=60, most=10**15 - 1)
    rows = [{**row, "amount": row["amount"] * 1000, "balance": None} for row in usual]
    assert_same(outcomes(rows, LATER), Customer(rows, LATER, ALL).outcomes())


def test_balances_of_an_account_without_any_do_not_hide_the_others() -> None:
    figures = {"status": "posted", "superseded_seq": None, "amount": Decimal(1)}
    rows = [{**row, **figures} for row in customer(random.Random(2), rows=2, days=0)]
    rows[0] |= {"account_id": ACCOUNTS[0], "account_type": "transaction", "balance": Decimal(250)}
    rows[1] |= {"account_id": ACCOUNTS[1], "account_type": "savings", "balance": None}
    as_of = rows[0]["date"]
    assert isinstance(as_of, date)
    assert outcomes(rows, as_of)["closing_balance"] == (Decimal(250), None)


def test_takings_without_a_payer_do_not_raise_concentration() -> None:
    first, last = customer(random.Random(2), rows=2)
    rows = [{**first, "date": START}, {**last, "date": START + timedelta(days=40)}]
    figures = {"status": "posted", "superseded_seq": None, "amount": Decimal(100), "is_transfer": False}
    of = [("card_settlement", "Square"), ("customer_transfer", "Acme"), ("customer_transfer", None)]
    found = []
    for category, payer in of:
        taken = {**figures, "category": category, "category_group": "revenue", "counterparty_group": payer}
        found.append(outcomes([{**row, **taken} for row in rows], LATER)["income_concentration_180d"])
    assert found == [(Decimal(0), None), (Decimal(1), None), (None, "not_applicable")]


def test_readings_are_the_values_in_long_form(some: list[Row]) -> None:
    wide, long = values(facts(some, LATER)), readings(facts(some, LATER))
    assert long.columns == ["customer_number", "metric", "value", "cause"]
    assert long.height == wide.height * len(METRICS)
    for slug in METRICS:
        of_metric = long.filter(pl.col("metric") == slug)
        assert of_metric["value"].to_list() == wide[slug].to_list()
        assert of_metric["cause"].to_list() == wide[cause_of(slug)].to_list()


def test_figures_of_a_small_business_agree_with_counting_by_hand() -> None:
    usual = {**customer(random.Random(4), rows=1)[0], "status": "posted", "superseded_seq": None, "is_transfer": False}
    usual |= {"account_id": ACCOUNTS[0], "account_type": "transaction", "credit_limit": None, "flags": []}
    kinds = {1: ("revenue", "customer_transfer"), -1: ("debt_service", "term_loan_repayment")}
    flows = [(0, 1000, 1500), (50, -300, 1200), (100, 2000, 3200), (179, -600, 2600)]
    rows: list[Row] = [
        {**usual, "transaction_id": bytes([nth]), "position": nth, "date": START + timedelta(days=day)}
        | {"amount": Decimal(amount), "balance": Decimal(balance), "counterparty_group": f"{amount > 0}"}
        | dict(zip(("category_group", "category"), kinds[1 if amount > 0 else -1], strict=True))
        for nth, (day, amount, balance) in enumerate(flows)
    ]
    figures = outcomes(rows, START + timedelta(days=200))
    expected = {
        "revenue_180d": "3000",
        "revenue_trend_90d": "2",
        "debt_service_to_revenue_180d": "0.3",
        "income_concentration_180d": "1",
        "lowest_balance_180d": "1200",
        "mean_balance_180d": str(round(Decimal(50 * 1500 + 50 * 1200 + 79 * 3200 + 2600) / 180, 4)),
        "days_since_revenue": "79",
        "days_behind": "21",
    }
    assert {slug: figures[slug] for slug in expected} == {
        slug: (Decimal(text), None) for slug, text in expected.items()
    }


def test_another_definition_under_the_same_slug_gives_its_own_value(some: list[Row]) -> None:
    """What was prepared for one policy's metric isn't used for another's of the same slug."""
    for wanted in ("history_days", "months_of_history", "history_days"):
        under_one_slug = METRICS[wanted].model_copy(update={"slug": "same"})
        found = values(facts(some, LATER), {"same": under_one_slug})["same"]
        assert found.equals(values(facts(some, LATER), {wanted: METRICS[wanted]})[wanted])
