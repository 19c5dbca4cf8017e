"""Money that moves within a declared group is found on both sides, and only where nothing else is possible."""

from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import polars as pl
import pytest

from pipelines.enrichment.enrichment import enrich
from pipelines.enrichment.knowledge import Knowledge
from pipelines.enrichment.transfers.group_pairs import (
    COLUMNS,
    GROUP_ROWS,
    mark_group_transfers,
    select_group_candidates,
)
from pipelines.vocabulary.schemas import TRANSACTIONS
from tests.pipelines.enrichment.examples import accepted, known

MONDAY = date(2026, 3, 2)
THERE = b"t" * 16
Row = dict[str, Any]


def paid(amount: str = "-5000", day: date = MONDAY, **fields: Any) -> Row:
    usual = {"channel": "npp", "category": "unknown_debit", "category_group": "unknown", "category_source": "fallback"}
    return {"amount": Decimal(amount), "date": day, "is_transfer": False, **usual, **fields}


def there(amount: str = "5000", day: date = MONDAY, **fields: Any) -> Row:
    held = {"customer_number": 1, "party": "Bayside Holdings Pty Ltd", "transaction_id": THERE}
    return {**held, "amount": Decimal(amount), "date": day, **fields}


def paired(rows: list[Row], others: list[Row]) -> pl.DataFrame:
    return mark_group_transfers(known(*rows), pl.DataFrame(others, schema=GROUP_ROWS)).collect()


def found(rows: list[Row], others: list[Row]) -> list[int]:
    """Positions of the rows whose other side was found."""
    return paired(rows, others).filter("is_transfer")["position"].to_list()


def test_both_sides_are_a_related_entitys_and_never_revenue() -> None:
    [row] = paired([paid()], [there()]).to_dicts()
    assert (row["category"], row["category_group"], row["category_source"]) == (
        "related_entity",
        "transfer",
        "counterparty",
    )
    assert (row["related_party"], row["is_transfer"]) == ("Bayside Holdings Pty Ltd", True)


def test_both_sides_get_the_same_pair_id() -> None:
    here = paired([paid()], [there()])["transfer_pair_id"].item()
    mirrored = known({**paid("5000"), "transaction_id": THERE})
    of_mine = pl.DataFrame([there("-5000", transaction_id=(0).to_bytes(16))], schema=GROUP_ROWS)
    assert mark_group_transfers(mirrored, of_mine).collect()["transfer_pair_id"].item() == here


@pytest.mark.parametrize(
    ("rows", "others"),
    [
        ([paid()], [there("4999.99")]),
        ([paid()], [there("-5000")]),
        ([paid()], [there(day=MONDAY + timedelta(days=7))]),
        ([paid()], [there(day=MONDAY + timedelta(days=4))]),  # four business days
        ([paid("-99.99")], [there("99.99")]),
        ([paid(), paid()], [there()]),
        ([paid()], [there(), there(transaction_id=b"u" * 16)]),
        ([paid(channel="card")], [there()]),
        ([paid(counterparty_kind="government")], [there()]),
        ([paid(category="wages", category_group="payroll")], [there()]),
        ([paid(category_source="correction")], [there()]),
        ([paid(is_transfer=True, category="own_transfer")], []),
        ([paid(status="pending")], [there()]),
        ([paid(superseded_seq=3)], [there()]),
    ],
)
def test_what_may_be_something_else_is_left_alone(rows: list[Row], others: list[Row]) -> None:
    assert paired(rows, others)["related_party"].null_count() == len(rows)


def test_a_weekend_between_the_two_sides_is_no_distance() -> None:
    friday = date(2026, 3, 6)
    assert found([paid(day=friday)], [there(day=friday + timedelta(days=5))]) == [0]


def test_only_the_customer_beside_whom_the_other_stands_is_looked_at() -> None:
    assert found([paid(), {**paid(), "customer_number": 2}], [there()]) == [0]


def test_what_was_paired_within_the_group_is_offered_again() -> None:
    again = {**paid(), "is_transfer": True, "category": "related_entity", "category_group": "transfer"}
    own = {**paid(), "is_transfer": True, "category": "own_transfer", "category_group": "transfer"}
    assert known(again, own).select(COLUMNS).pipe(select_group_candidates).collect().height == 1


def test_enrichment_pairs_what_the_other_customer_holds() -> None:
    rows = accepted({"description": "TFR 123", "amount": Decimal("5000.00"), "account_number": "11112222"})
    alone = enrich(pl.DataFrame(schema=TRANSACTIONS), rows).transactions.collect()
    held = pl.DataFrame([there("-5000")], schema=GROUP_ROWS)
    together = enrich(pl.DataFrame(schema=TRANSACTIONS), rows, knowledge=Knowledge(group_rows=held))
    [row] = together.transactions.collect().to_dicts()
    assert alone["category"].item() != "related_entity"
    assert (row["category"], "related_party" in row["flags"], "revenue" in row["flags"]) == (
        "related_entity",
        True,
        False,
    )
