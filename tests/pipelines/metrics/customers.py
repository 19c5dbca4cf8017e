"""Customers for the tests of metrics: rows of every kind that metrics distinguish."""

import random
from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import polars as pl
from hypothesis import strategies as st

from pipelines.figures.facts import Facts
from pipelines.vocabulary.schemas import TRANSACTIONS
from pipelines.vocabulary.taxonomy import GROUPS

Row = dict[str, Any]
START = date(2024, 1, 1)  # a leap year
ACCOUNTS = tuple(number.to_bytes(16, "big") for number in range(1, 6))
TYPES = ("transaction", "savings", "credit_card", None, "term_deposit")
LIMITS = (Decimal(5000), None, Decimal(2000), None, None)
CATEGORIES = tuple(GROUPS)
OFTEN = (
    "customer_transfer",
    "card_settlement",
    "refund_paid",
    "wages",
    "suppliers",
    "term_loan_repayment",
    "own_transfer",
)
FLAGS = ("cash", "dishonoured", "round_amount", "related_party")
CHANNELS = ("card", "npp", "atm", None)
KINDS = ("business", "person", "lender", None)
STATEMENTS: tuple[Row, ...] = (
    *[{"statement_verdict": None, "statement_proved": None}] * 4,  # sent as JSON
    *({"statement_verdict": "partial", "statement_proved": proved} for proved in (True, False)),
    *({"statement_verdict": verdict, "statement_proved": None} for verdict in ("reconciled", "partial")),
    {"statement_verdict": "unreconciled", "statement_proved": False},
)
PAYERS = ("Acme", "Bayside", "Cove", None)


def customer(
    chance: random.Random, number: int = 1, rows: int = 40, days: int = 500, most: int = 9_000_00
) -> list[Row]:
    """Return random rows over some days, of up to `most` cents. Some customers only pay, some state no balances."""
    signs = chance.choice([(1, -1), (1, -1), (-1,)])
    accounts = chance.choice((1, 1, 2, 5))
    states = chance.choice(("chained", "chained", "some", "none"))
    balances = dict.fromkeys(ACCOUNTS, Decimal(chance.randint(-1000, 5000)))
    figures = []
    for nth, day in enumerate(sorted(chance.randint(0, days) for _ in range(rows))):
        place = chance.randrange(accounts)
        amount = Decimal(chance.choice(signs) * chance.randint(0, most)).scaleb(-2)
        balances[ACCOUNTS[place]] += amount
        stated = states == "chained" or (states == "some" and chance.random() < 0.6)
        figures.append(
            _row(chance, number, nth, place, day, amount) | {"balance": balances[ACCOUNTS[place]] if stated else None}
        )
    return figures


def _row(chance: random.Random, number: int, nth: int, place: int, day: int, amount: Decimal) -> Row:
    category = chance.choice(CATEGORIES if chance.random() < 0.6 else OFTEN)
    return {
        "customer_number": number,
        "transaction_id": (number * 100_000 + nth).to_bytes(16, "big"),
        "account_id": ACCOUNTS[place],
        "account_type": TYPES[place] if nth % 3 == 0 else None,  # as a feed that leaves it out
        "credit_limit": LIMITS[place] if nth % 2 == place % 2 else None,  # one of two submissions states it
        "received_seq": 1 + nth % 2,
        "position": nth,
        "status": chance.choice(("posted",) * 12 + ("pending",)),
        "superseded_seq": chance.choice((None,) * 12 + (9,)),
        "since_seq": 1,
        "date": START + timedelta(days=day),
        "amount": amount,
        "category": category,
        "category_group": GROUPS[category],
        "category_source": chance.choice(("pattern", "correction", None)),
        "is_transfer": chance.choice((False, False, False, True, None)),
        "channel": chance.choice(CHANNELS),
        "counterparty_kind": chance.choice(KINDS),
        "counterparty_group": chance.choice(PAYERS),
        "counterparty_lender_id": chance.choice((None, None, "lender-a", "lender-b")),
        "series_id": chance.choice((None, b"s1", b"s2", b"s3")),
        "facility_id": chance.choice((None, None, b"f1", b"f2", b"f3")),
        "flags": sorted(chance.sample(FLAGS, chance.choice((0, 0, 1, 2)))),
        **chance.choice(STATEMENTS),
    }


@st.composite
def customers(draw: st.DrawFn) -> list[Row]:
    """Draw customers with no row, one row, a few on one day, or many; of cents and of the largest amounts there are."""
    return customer(
        random.Random(draw(st.integers(0, 2**32))),
        rows=draw(st.sampled_from((0, 1, 2, 5, 30, 60))),
        days=draw(st.sampled_from((0, 1, 59, 60, 200, 400, 800))),
        most=draw(st.sampled_from((1, 300, 9_000_00, 9_000_00, 10**15 - 1))),
    )


def facts(rows: Iterable[Mapping[str, object]], as_of: date) -> Facts:
    return Facts(pl.DataFrame(list(rows), schema=TRANSACTIONS), as_of)
