"""Money that moves within a declared group is found on both sides, and only if no other pair is possible."""

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
from tests.pipelines.enrichment.examples import accepted_rows, held_rows

MONDAY = date(2026, 3, 2)
THERE = b"t" * 16
Row = dict[str, Any]


def payment(amount: str = "-5000", day: date = MONDAY, **fields: Any) -> Row:
    usual = {"channel": "npp", "category": "unknown_debit", "category_group": "unknown", "category_source": "fallback"}
    return {"amount": Decimal(amount), "date": day, "is_transfer": False, **usual, **fields}


def other_row(amount: str = "5000", day: date = MONDAY, **fields: Any) -> Row:
    held = {"customer_number": 1, "party": "Bayside Holdings Pty Ltd", "transaction_id": THERE}
    return {**held, "amount": Decimal(amount), "date": day, **fields}


def pair_rows(rows: list[Row], others: list[Row]) -> pl.DataFrame:
    return mark_group_transfers(held_rows(*rows), pl.DataFrame(others, schema=GROUP_ROWS))


def paired_positions(rows: list[Row], others: list[Row]) -> list[int]:
    """Return the positions of rows whose other side was found."""
    return pair_rows(rows, others).filter("is_transfer")["position"].to_list()


def test_both_sides_become_related_entity_and_are_never_revenue() -> None:
    [row] = pair_rows([payment()], [other_row()]).to_dicts()
    assert (row["category"], row["category_group"], row["category_source"]) == (
        "related_entity",
        "transfer",
        "counterparty",
    )
    assert (row["related_party"], row["is_transfer"]) == ("Bayside Holdings Pty Ltd", True)


def test_customers_who_declare_the_same_company_don_t_affect_each_other() -> None:
    other_customer = {**payment(), "customer_number": 2, "transaction_id": b"2" * 16}
    both = pair_rows([payment(), other_customer], [other_row(), other_row(customer_number=2)])
    assert both["is_transfer"].to_list() == [True, True]


def test_both_sides_get_the_same_pair_id() -> None:
    here = pair_rows([payment()], [other_row()])["transfer_pair_id"].item()
    mirrored = held_rows({**payment("5000"), "transaction_id": THERE})
    of_mine = pl.DataFrame([other_row("-5000", transaction_id=(0).to_bytes(16))], schema=GROUP_ROWS)
    assert mark_group_transfers(mirrored, of_mine)["transfer_pair_id"].item() == here


@pytest.mark.parametrize(
    ("rows", "others"),
    [
        ([payment()], [other_row("4999.99")]),
        ([payment()], [other_row("-5000")]),
        ([payment()], [other_row(day=MONDAY + timedelta(days=7))]),
        ([payment()], [other_row(day=MONDAY + timedelta(days=4))]),  # four business days
        ([payment("-99.99")], [other_row("99.99")]),
        ([payment(), payment()], [other_row()]),
        ([payment()], [other_row(), other_row(transaction_id=b"u" * 16)]),
        ([payment(channel="card")], [other_row()]),
        ([payment(counterparty_kind="government")], [other_row()]),
        ([payment(category="wages", category_group="payroll")], [other_row()]),
        ([payment(category_source="correction")], [other_row()]),
        ([payment(is_transfer=True, category="own_transfer")], []),
        ([payment(status="pending")], [other_row()]),
        ([payment(superseded_seq=3)], [other_row()]),
    ],
)
def test_ambiguous_rows_are_not_paired(rows: list[Row], others: list[Row]) -> None:
    assert pair_rows(rows, others)["related_party"].null_count() == len(rows)


def test_sides_are_paired_over_a_weekend() -> None:
    friday = date(2026, 3, 6)
    assert paired_positions([payment(day=friday)], [other_row(day=friday + timedelta(days=5))]) == [0]


def test_only_the_customer_with_the_declaration_is_paired() -> None:
    assert paired_positions([payment(), {**payment(), "customer_number": 2}], [other_row()]) == [0]


def test_rows_paired_within_the_group_are_candidates_again() -> None:
    again = {**payment(), "is_transfer": True, "category": "related_entity", "category_group": "transfer"}
    own = {**payment(), "is_transfer": True, "category": "own_transfer", "category_group": "transfer"}
    assert held_rows(again, own).lazy().select(COLUMNS).pipe(select_group_candidates).collect().height == 1


def test_enrichment_pairs_what_the_other_customer_holds() -> None:
    rows = accepted_rows({"description": "TFR 123", "amount": Decimal("5000.00"), "account_number": "11112222"})
    alone = enrich(pl.DataFrame(schema=TRANSACTIONS), rows).transactions.collect()
    held = pl.DataFrame([other_row("-5000")], schema=GROUP_ROWS)
    together = enrich(pl.DataFrame(schema=TRANSACTIONS), rows, knowledge=Knowledge(group_rows=held))
    [row] = together.transactions.collect().to_dicts()
    assert alone["category"].item() != "related_entity"
    assert (row["category"], "related_party" in row["flags"], "revenue" in row["flags"]) == (
        "related_entity",
        True,
        False,
    )
