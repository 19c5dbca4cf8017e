"""The table of facilities agrees with an oracle of plain loops."""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.enrichment.facilities import mark_facilities
from pipelines.enrichment.facilities.products import PRODUCTS
from pipelines.figures.facts import Facts
from pipelines.figures.lineage import Sum
from pipelines.reports.aggregate.commitments import FACILITIES_TABLE
from pipelines.vocabulary.taxonomy import TAXONOMY
from tests.conftest import examples
from tests.pipelines.enrichment.examples import held_rows
from tests.pipelines.reports import facilities_oracle as oracle
from tests.pipelines.reports.examples import Row
from tests.pipelines.reports.test_aggregate import with_dates

START, AS_OF = date(2025, 1, 6), date(2026, 9, 30)
DAY = timedelta(days=1)
STEPS = (1, 7, 7, 14, 15, 28, 30, 30, 91, 0)  # days from one repayment to the next; 0: at random
LENDERS = ("Lumi", "Moula", None)


def row(day: date, amount: Decimal, category: str, lender: str | None, account: int, **others: object) -> Row:
    return {
        "date": day,
        "amount": amount,
        "category": category,
        "category_group": TAXONOMY.categories[category].group,
        "is_transfer": False,
        "counterparty_name": lender,
        "counterparty_lender_id": lender and lender.lower(),
        "account_id": bytes([account]) * 16,
        **others,
    }


def whole(random: Random, least: int, most: int) -> Decimal:
    return Decimal(random.randint(least, most))


def a_loan(random: Random) -> Iterator[Row]:
    """Yield rows of a loan: drawn or not, repaid in some rhythm with everything that can go wrong, perhaps redrawn."""
    product = PRODUCTS[random.choice(list(PRODUCTS))]
    lender, account, lent = random.choice(LENDERS), random.choice((1, 2)), whole(random, 1_000, 50_000)
    usual, step = (lent / random.randint(3, 60)).quantize(Decimal("0.01")), random.choice(STEPS)
    day, smooth = START + DAY * random.randint(0, 200), random.random()
    payment, redraws = product.repayments[0], random.choice((0, 0.02, 0.2))
    for count in range(random.choice((0, 1, 3, 8, 30, 60))):
        if count == 0 or random.random() < redraws:
            yield from draw_funding(random, product.fundings, day, lent, lender, account)
        day = next_day(random, day, step)
        if random.random() > 0.8 + 0.2 * smooth:
            continue  # missed
        size = usual if random.random() < 0.5 + smooth else usual + whole(random, 0, 300)
        yield row(day, -size, payment, lender, account)
        if random.random() > 0.85 + 0.15 * smooth:
            yield row(
                day + DAY * random.randint(0, 9),
                size,
                "returned_payment",
                random.choice((lender, None)),
                account,
                counterparty_lender_id=None,
            )
            if random.random() < 0.5:
                yield row(day + DAY * random.randint(2, 6), -size, payment, lender, account)


def draw_funding(
    random: Random, categories: Sequence[str], day: date, lent: Decimal, lender: str | None, account: int
) -> Iterator[Row]:
    if categories and random.random() < 0.8:
        yield row(day, lent, categories[0], lender, account)
        if random.random() < 0.1:
            yield row(day + DAY * random.randint(0, 4), -lent, "dishonoured_receipt", lender, account)


def next_day(random: Random, day: date, step: int) -> date:
    day += DAY * (step or random.randint(1, 120))
    while day.weekday() > 4:
        day += DAY
    return day + DAY * (random.random() < 0.05)


def takings(random: Random) -> Iterator[Row]:
    """Yield half a year of card payouts and other takings; from some day on, part of the cards' may be kept back."""
    retained, since = random.choice((0, 0.1, 0.2, 0.5)), START + DAY * random.randint(40, 140)
    yield row(since, whole(random, 5_000, 20_000), "cash_advance_funding", "Tyro Advance", 1)
    brand = random.choice((None, "Tyro"))
    for day in (START + DAY * n for n in range(0, 180, 2)):
        card = Decimal(random.randint(900, 1100) * (1 - retained if day >= since else 1)).quantize(Decimal("0.01"))
        yield row(day, card, "card_settlement", brand, 1, counterparty_lender_id=None)
        yield row(day, whole(random, 400, 600), "customer_transfer", None, 1)


def customer(random: Random) -> list[Row]:
    rows = [each for _ in range(random.choice((1, 2, 4))) for each in a_loan(random)]
    if random.random() < 0.15:
        rows += takings(random)
    rows += [
        row(START + DAY * random.randint(0, 600), Decimal(-4), "meals", None, random.choice((1, 2)))
        for _ in range(random.choice((0, 1, 3)))
    ]
    return [{**each, "position": n} for n, each in enumerate(rows)]


def join_customers(customers: Sequence[Sequence[Row]]) -> pl.DataFrame:
    """Return the rows of numbered customers, each with its facility."""
    sent = ({**r, "customer_number": number} for number, rows in enumerate(customers) for r in rows)
    ids = ({**r, "transaction_id": n.to_bytes(16, "big")} for n, r in enumerate(sent))
    return mark_facilities(held_rows(*ids))


def read_table(rows: pl.DataFrame, as_of: date) -> dict[int, list[Row]]:
    """Return the table's rows by customer."""
    by_customer = defaultdict(list)
    for number, line in FACILITIES_TABLE.lines(Facts(rows, as_of)).collect().iter_rows():
        by_customer[number].append(with_dates(json.loads(line, parse_float=Decimal)))
    return by_customer


def describe_facilities(rows: Sequence[Row], as_of: date) -> list[Row]:
    return read_table(join_customers([rows]), as_of)[0]


def assert_agrees_with_oracle(customers: Sequence[Sequence[Row]], as_of: date) -> None:
    """Compare the table of all customers at once with the oracle for each."""
    rows = join_customers(customers)
    by_customer = read_table(rows, as_of)
    for number in range(len(customers)):
        expected = oracle.facilities(rows.filter(pl.col("customer_number") == number).to_dicts(), as_of)
        estimates = [each.pop("estimatedRemaining") for each in expected]
        found = [_pop_estimate(each) for each in by_customer[number]]
        assert by_customer[number] == expected
        for estimate, by_hand in zip(found, estimates, strict=True):
            assert (estimate is None) == (by_hand is None)
            assert estimate == by_hand or float(estimate) == pytest.approx(float(by_hand), rel=1e-5, abs=0.5)


def _pop_estimate(shown_row: Row) -> Any:
    """Remove what the oracle doesn't compute, and return the estimate, which is within its range."""
    estimate = shown_row.pop("estimatedRemaining")
    low, high = (shown_row.pop(name) for name in ("remainingLow", "remainingHigh"))
    assert (low is None) == (estimate is None) == (high is None)
    assert estimate is None or low <= estimate <= high
    for name in ("inferred", "nextExpectedDate", "possiblyStackedWith"):
        shown_row.pop(name)
    return estimate


@examples(1)
@given(st.randoms(use_true_random=True), st.integers(0, 600))
def test_every_figure_of_facilities_agrees_with_the_oracle(random: Random, days: int) -> None:
    assert_agrees_with_oracle([customer(random) for _ in range(12)], START + DAY * days)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_thousands_of_customers_agree_with_the_oracle() -> None:
    random = Random(9)
    for as_of in (AS_OF, *(START + DAY * random.randint(0, 500) for _ in range(19))):
        assert_agrees_with_oracle([customer(random) for _ in range(100)], as_of)


@examples(1)
@given(st.randoms(use_true_random=True), st.integers(0, 600))
def test_every_figure_of_facilities_leads_back_to_their_rows(random: Random, days: int) -> None:
    facts = Facts(join_customers([customer(random)]), START + DAY * days)
    for value in read_table(facts.transactions, facts.as_of)[0]:
        for column in FACILITIES_TABLE.columns:
            if column.is_number and value[column.name] is not None:
                assert (column.name, FACILITIES_TABLE.explain(facts, value, [column.name]).value) == (
                    column.name,
                    value[column.name],
                )


def test_a_missed_payment_leads_to_the_bounced_or_previous_payment() -> None:
    paid = [row(START + DAY * 7 * week, Decimal(-100), "term_loan_repayment", "Lumi", 1) for week in (0, 1, 2, 5, 6)]
    back = row(START + DAY * 43, Decimal(100), "returned_payment", "Lumi", 1)
    facts = Facts(join_customers([[*paid, back, row(START + DAY * 60, Decimal(-4), "meals", None, 1)]]), AS_OF)
    [loan] = read_table(facts.transactions, AS_OF)[0]
    missed = FACILITIES_TABLE.explain(facts, loan, ["missedPayments"])
    assert isinstance(missed, Sum)
    led_to = [int.from_bytes(each) for each in missed.contributions["transaction_id"]]
    assert sorted(led_to) == [2, 2, 4, 4]  # two weeks passed over; returned, and none a week later


def test_the_remaining_loan_is_explained_by_rows_with_interest() -> None:
    rows = [
        row(START, Decimal(10_000), "mortgage_funding", "Lumi", 1),
        row(START + DAY * 365, Decimal(-650), "mortgage_repayment", "Lumi", 1),
        row(START + DAY * 730, Decimal(-4), "meals", None, 1),
    ]
    facts = Facts(join_customers([rows]), START + DAY * 730)
    [loan] = read_table(facts.transactions, facts.as_of)[0]
    remaining = FACILITIES_TABLE.explain(facts, loan, ["estimatedRemaining"])
    grown = FACILITIES_TABLE.explain(facts, loan, ["estimatedRemaining", "balanceWithInterest"])
    assert isinstance(grown, Sum)
    assert grown.contributions["contribution"].to_list() == [Decimal("11342.25"), Decimal("-692.25")]  # at 6.5 % a year
    assert remaining.value == grown.value == loan["estimatedRemaining"]


def test_a_bounced_draw_does_not_count_as_lent() -> None:
    """Nor does the row that takes it back count as a repayment."""
    rows = [
        row(START, Decimal(9000), "term_loan_funding", "Lumi", 1),
        row(START + DAY, Decimal(-9000), "dishonoured_receipt", "Lumi", 1),
        row(START + 3 * DAY, Decimal(8000), "term_loan_funding", "Lumi", 1),
        row(START + 9 * DAY, Decimal(-300), "term_loan_repayment", "Lumi", 1),
    ]
    [loan] = describe_facilities(rows, AS_OF)
    assert (loan["fundingDate"], loan["fundingAmount"]) == (START + 3 * DAY, 8000)
    assert (loan["repaymentCount"], loan["repaidTotal"]) == (1, 300)
    assert describe_facilities(rows[:2], AS_OF) == []


def test_statements_of_an_account_that_only_a_bounced_draw_names_show_nothing() -> None:
    """No repayment is overdue because another account, which the loan never reached, has later rows."""
    repaid = [row(START + 30 * DAY * n, Decimal(-100), "term_loan_repayment", "Lumi", 1) for n in (1, 2, 3)]
    bounced = [
        row(START, Decimal(9000), "term_loan_funding", "Lumi", 2),
        row(START + DAY, Decimal(-9000), "dishonoured_receipt", "Lumi", 2),
    ]
    later = row(START + 200 * DAY, Decimal(-4), "meals", None, 2)
    [loan] = describe_facilities([*repaid, *bounced, later], AS_OF)
    assert (loan["status"], loan["missedPayments"]) == ("active", 0)


@pytest.mark.parametrize(("after", "status"), [(45, "renewed"), (46, "active")])
def test_a_draw_soon_after_the_last_repayment_renews_a_loan(after: int, status: str) -> None:
    first, repaid = START, START + 2 * DAY
    rows = [
        row(first, Decimal(9000), "term_loan_funding", "Lumi", 1),
        row(repaid, Decimal(-300), "term_loan_repayment", "Lumi", 1),
        row(repaid + after * DAY, Decimal(8000), "term_loan_funding", "Lumi", 1),
    ]
    [old] = [loan for loan in describe_facilities(rows, AS_OF) if loan["fundingDate"] == first]
    assert old["status"] == status
