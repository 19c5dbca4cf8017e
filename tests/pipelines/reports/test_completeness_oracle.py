"""Missing accounts, tax and data quality agree with an oracle of plain loops."""

from decimal import Decimal
from itertools import zip_longest
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import examples
from tests.pipelines.reports import completeness_oracle as oracle
from tests.pipelines.reports.completeness_examples import add_ids, completeness, context_of_customer, day_of
from tests.pipelines.reports.examples import LOAN, MAIN, SAVINGS, Row, row

SIZES = (1, 2, 8, 40, 90)
KINDS = (
    *("transfer/own_transfer", "transfer/own_transfer", "debt_service/card_repayment"),
    *("debt_service/term_loan_repayment", "revenue/card_settlement", "revenue/refund_paid"),
    *("cost_of_sales/suppliers", "unknown/unknown_debit", "unknown/unknown_credit"),
)
NOTHING: Row = {}
BANKS = ("Prospa", "PROSPA", "Bank B", None)


def customer(random: Random, rows: int) -> list[Row]:
    """Return rows of three accounts with transfers in all wordings, some paired, sent in parts. Some accounts
    and some submissions are alike."""
    most_days = random.choice((0, 20, 120, 460))
    details = [account(random, *each) for each in ((MAIN, "transaction"), (SAVINGS, "savings"), (LOAN, "loan"))]
    result = [a_row(random, most_days, random.choice(details)) for _ in range(rows)]
    if random.random() < 0.5:
        copied = [each for each in result if each["account_id"] == MAIN and random.random() < 0.8]
        result += [{**each, **details[1]} for each in copied]
    if random.random() < 0.5:
        result += [{**each, "received_seq": each["received_seq"] + 3} for each in result if random.random() < 0.8]
    return add_ids([{**each, "position": place} for place, each in enumerate(result)])


def account(random: Random, account_id: bytes, account_type: str) -> Row:
    return {
        "account_id": account_id,
        "account_type": account_type,
        "account_number": random.choice(
            (None, "1122 4821", "99-002233", "011224821", "06200011224821", "xxxx9242", "77")
        ),
        "bsb": random.choice((None, "062-000", "112339")),
        "bank_name": random.choice(BANKS),
    }


def a_row(random: Random, most_days: int, details: Row) -> Row:
    name = random.choice((None, None, None, "Prospa", "Bank B", "SAVER"))
    cents = random.choice((random.randint(-50_000, 50_000), random.randint(-18, 18) * 5_000))
    return row(
        random.randint(0, most_days),
        Decimal(cents).scaleb(-2),
        kind=random.choice(KINDS),
        **details,
        status=random.choice(("posted", "posted", "posted", "pending")),
        superseded_seq=random.choice((None, None, None, 2)),
        received_seq=random.choice((1, 1, 2, 3)),
        revision=random.choice((None, 1, 1, 2)),
        is_transfer=random.choice((False, False, False, True)),
        category_source=random.choice((None, "pattern", "learned", "correction", "client_rule")),
        confidence=random.choice((None, 0.0, 0.5, 0.79, 0.8, 1.0)),
        balance=random.choice((None, Decimal(random.randint(-90, 90)))),
        counterparty_name=name,
        counterparty_kind=random.choice((None, "business", "processor", "bank", "person")) if name else None,
        channel=random.choice((None, "transfer", "card")),
        other_account=random.choice((None, None, None, "4821", "194821", "12", "233")),
        clean_description=random.choice((None, "SAVER", "INTERNET TRANSFER")),
        description=random.choice(list(oracle.MENTIONS)),
    )


def draw_attributes(random: Random) -> dict[str, Any]:
    quarters = ("2023Q4", "2024Q4", "2025Q1", "2025Q2", "2026Q1", "2026Q4")
    declared = {f"basG1-{each}": str(random.randint(-900, 90_000) / 4) for each in random.sample(quarters, 3)}
    return {
        "attributes": {**declared, "basG1-2025Q3": "0"},
        "duplicates": random.choice((None, 0, 3)),
        "rejected": random.choice((None, 0, 2)),
    }


def like(described: Any, expected: Any) -> Any:
    """Return the described values without those that the oracle doesn't know."""
    if isinstance(described, list):
        return [like(value, of) for value, of in zip_longest(described, expected, fillvalue=NOTHING)]
    return {name: described[name] for name in expected}


def assert_agrees_with_oracle(random: Random, rows: int, as_of: int) -> None:
    its, beside = customer(random, rows), draw_attributes(random)
    data = completeness(its, as_of, context_of_customer(**beside))
    for name, expected in oracle.members(its, day_of(as_of), beside).items():
        assert (name, like(data[name], expected)) == (name, expected)


@examples(2)
@given(st.randoms(use_true_random=True), st.sampled_from(SIZES), st.sampled_from((0, 60, 500)))
def test_accounts_tax_and_quality_agree_with_the_oracle(random: Random, rows: int, as_of: int) -> None:
    assert_agrees_with_oracle(random, rows, as_of)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_thousands_of_customers_agree_with_the_oracle() -> None:
    random = Random(7)
    for _ in range(2_000):
        assert_agrees_with_oracle(random, random.choice(SIZES), random.choice((0, 60, 500)))
