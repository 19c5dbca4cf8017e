"""Tiny customers for the tests of reports: rows with the columns that matter, and defaults for all others."""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import polars as pl
from hypothesis import strategies as st

from pipelines.enrichment.balances import verify_balances
from pipelines.figures.facts import Facts
from pipelines.reports import REPORTS
from pipelines.vocabulary.schemas import TRANSACTIONS

Row = dict[str, Any]
START = date(2025, 1, 1)
MAIN, SAVINGS, LOAN = (number.to_bytes(16, "big") for number in (1, 2, 3))
USUAL: Row = {
    "customer_number": 1,
    "account_id": MAIN,
    "account_identified": True,
    "account_name": "Harbour Coffee",
    "account_number": "00112233",
    "bank_name": "Bank",
    "account_type": "transaction",
    "received_seq": 1,
    "status": "posted",
    "category": "unknown_debit",
    "category_group": "unknown",
    "is_transfer": False,
    "flags": [],
}


def row(day: date | int, amount: str | Decimal, **others: object) -> Row:
    """Return a row on a day (a date, or days after START) with an amount; `kind="group/slug"` sets the category."""
    group, _, slug = str(others.pop("kind", "unknown/unknown_debit")).partition("/")
    posted = day if isinstance(day, date) else START + timedelta(days=day)
    category = {"category_group": group, "category": slug}
    return {**USUAL, **category, "date": posted, "amount": Decimal(amount), **others}


def transactions(rows: Iterable[Mapping[str, object]]) -> pl.LazyFrame:
    """Return rows as a frame in schema TRANSACTIONS; their index is their position unless they state one."""
    placed = [{"position": position, **each} for position, each in enumerate(rows)]
    return pl.LazyFrame(placed, schema=TRANSACTIONS)


def add_balances(rows: Iterable[Row], opening: str | int | Decimal = 1000) -> list[Row]:
    """Add the balance after each row to the rows of one account, in their order."""
    balance, result = Decimal(opening), list[Row]()
    for each in rows:
        balance += each["amount"]
        result.append({**each, "balance": balance})
    return result


def mark_balances(rows: Iterable[Row]) -> list[Row]:
    """Mark every balance as enrichment does."""
    rows = list(rows)
    marks = verify_balances(transactions(rows).collect())["balance_verified"]
    return [{**each, "balance_verified": mark} for each, mark in zip(rows, marks, strict=True)]


def facts(rows: Iterable[Mapping[str, object]], as_of: date) -> Facts:
    return Facts(transactions(rows).collect(), as_of)


def report(kind: str, rows: Iterable[Mapping[str, object]], as_of: date) -> dict[str, Any]:
    """Return the report's data of the only customer among the rows."""
    [(_, data)] = reports(kind, rows, as_of)
    return data


def reports(kind: str, rows: Iterable[Mapping[str, object]], as_of: date) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield each customer's data, parsed with numbers as decimals."""
    for number, text in REPORTS[kind].compute(facts(rows, as_of)).iter_rows():
        yield number, json.loads(text, parse_float=Decimal)


KINDS = (
    "revenue/card_settlement",
    "revenue/refund_paid",
    "cost_of_sales/suppliers",
    "distress/dishonour_fee",
    "other_income/returned_payment",
    "debt_service/term_loan_repayment",
    "high_risk/gambling",
    "transfer/own_transfer",
    "unknown/unknown_debit",
)


def cents(least: int = -50_000, most: int = 50_000) -> st.SearchStrategy[Decimal]:
    return st.integers(least, most).map(lambda value: Decimal(value).scaleb(-2))


@st.composite
def any_row(draw: st.DrawFn, most_days: int = 400) -> Row:
    """Draw a row of any kind: some pending, some superseded, some with a balance of its own."""
    account = draw(st.sampled_from((MAIN, SAVINGS, LOAN)))
    kinds = {MAIN: "transaction", SAVINGS: "savings", LOAN: "loan"}
    return row(
        draw(st.integers(0, most_days)),
        draw(cents()),
        kind=draw(st.sampled_from(KINDS)),
        account_id=account,
        account_type=kinds[account],
        status=draw(st.sampled_from(("posted", "posted", "posted", "pending"))),
        superseded_seq=draw(st.sampled_from((None, None, None, 2))),
        is_transfer=draw(st.sampled_from((False, False, True))),
        balance=draw(st.none() | cents()),
        balance_verified=draw(st.sampled_from((None, True, False))),
    )


def posted_rows(rows: Iterable[Row]) -> list[Row]:
    """Return the rows that reports may count, according to the contract."""
    return [each for each in rows if each["status"] == "posted" and each.get("superseded_seq") is None]
