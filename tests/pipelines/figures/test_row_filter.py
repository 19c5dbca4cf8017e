"""A filter chooses what plain Python chooses, and its totals are exact."""

from collections.abc import Callable, Mapping
from datetime import date, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from pipelines.figures.row_filter import RowFilter, Totals, total
from pipelines.vocabulary.schemas import TRANSACTIONS

TEXTS = ("EFTPOS Coffee 50%", "eftpos COFFEE_50", "Ölkännchen", "ÖLKÄNNCHEN (2)", "rent", ".*")
DAYS = st.integers(0, 9).map(lambda days: date(2026, 6, 1) + timedelta(days))
SIZES = st.sampled_from([Decimal("0.00"), Decimal("0.01"), Decimal("99.99"), Decimal("100.00"), Decimal(10) ** 12])
ACCOUNTS = [UUID(int=number) for number in (1, 2)]
ROWS = st.fixed_dictionaries(
    {
        "date": DAYS,
        "description": st.sampled_from(TEXTS),
        "amount": st.tuples(SIZES, st.sampled_from([1, -1])).map(lambda each: each[0] * each[1]),
        "category": st.sampled_from(["rent", "meals"]),
        "account_id": st.sampled_from([each.bytes for each in ACCOUNTS]),
        "direction": st.sampled_from(["credit", "debit"]),
        "status": st.sampled_from(["posted", "pending"]),
        "flags": st.lists(st.sampled_from(["cash", "tax"]), unique=True),
        "transaction_id": st.sampled_from([each.bytes for each in ACCOUNTS]),
    }
)
COLUMNS = ("date", "description", "amount", "category", "account_id", "direction", "status", "flags", "transaction_id")
FILTERS = st.builds(
    RowFilter,
    first_day=st.none() | DAYS,
    last_day=st.none() | DAYS,
    text=st.none() | st.sampled_from(["coffee", "%", "_", "ölk", "(", ".*"]),
    category=st.none() | st.sampled_from(["rent", "meals"]),
    account_id=st.none() | st.sampled_from(ACCOUNTS),
    direction=st.none() | st.sampled_from(["credit", "debit"]),
    status=st.none() | st.sampled_from(["posted", "pending"]),
    least=st.none() | SIZES,
    most=st.none() | SIZES,
    flag=st.none() | st.sampled_from(["cash", "tax"]),
    transaction_id=st.none() | st.sampled_from(ACCOUNTS),
    transaction_ids=st.none() | st.lists(st.sampled_from([*ACCOUNTS, UUID(int=3)]), min_size=1, unique=True).map(tuple),
)


def is_chosen(row: Mapping[str, Any], wanted: RowFilter) -> bool:
    conditions: list[tuple[object, Callable[[Any], bool]]] = [
        (wanted.first_day, lambda day: row["date"] >= day),
        (wanted.last_day, lambda day: row["date"] <= day),
        (wanted.text, lambda part: part.lower() in row["description"].lower()),
        (wanted.category, lambda category: row["category"] == category),
        (wanted.account_id, lambda account_id: row["account_id"] == account_id.bytes),
        (wanted.direction, lambda direction: row["direction"] == direction),
        (wanted.status, lambda status: row["status"] == status),
        (wanted.least, lambda amount: abs(row["amount"]) >= amount),
        (wanted.most, lambda amount: abs(row["amount"]) <= amount),
        (wanted.flag, lambda flag: flag in row["flags"]),
        (wanted.transaction_id, lambda transaction_id: row["transaction_id"] == transaction_id.bytes),
        (wanted.transaction_ids, lambda ids: row["transaction_id"] in [each.bytes for each in ids]),
    ]
    return all(holds(value) for value, holds in conditions if value is not None)


@given(st.lists(ROWS, max_size=12), FILTERS)
def test_filter_chooses_what_plain_python_chooses(rows: list[dict[str, Any]], wanted: RowFilter) -> None:
    frame = pl.DataFrame([dict.fromkeys(TRANSACTIONS) | row for row in rows], schema=TRANSACTIONS)
    chosen = frame.lazy().filter(pl.lit(value=True), *wanted.conditions)
    right = [row for row in rows if is_chosen(row, wanted)]
    assert chosen.select(*COLUMNS).collect().to_dicts() == right
    amounts = [row["amount"] for row in right]
    money_in = sum((each for each in amounts if each > 0), Decimal(0))
    money_out = -sum((each for each in amounts if each < 0), Decimal(0))
    assert total(chosen) == Totals(len(right), money_in, money_out)
    assert total(chosen).net == sum(amounts)
