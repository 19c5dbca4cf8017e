"""Accounts of the customer that texts mention but no submission supplied are listed with their totals."""

from datetime import date
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.enrichment.transfers.own_accounts import MENTIONED, list_mentioned_accounts
from tests.pipelines.enrichment.examples import held_rows

OWN: dict[str, Any] = {"category": "own_transfer", "account_number": "062001111", "is_transfer": False}


def list_mentioned(*rows: dict[str, Any]) -> list[dict[str, Any]]:
    return list_mentioned_accounts(held_rows(*rows)).to_dicts()


def test_account_not_supplied_is_listed_with_its_totals() -> None:
    away = {**OWN, "other_account": "5678", "clean_description": "SAVER", "amount": Decimal("-50.10")}
    back = {
        **OWN,
        "other_account": "7705678",
        "clean_description": "SAVER",
        "amount": Decimal(20),
        "date": date(2026, 4, 1),
    }
    again = {**away, "clean_description": "RAINY DAY", "date": date(2026, 2, 1)}
    assert list_mentioned(away, back, again) == [
        {
            "customer_number": 1,
            "masked_number": "xx5678",
            "name": "SAVER",
            "bank": None,
            "direction": "both",
            "count": 3,
            "total_in": Decimal("20.00"),
            "total_out": Decimal("100.20"),
            "first_date": date(2026, 2, 1),
            "last_date": date(2026, 4, 1),
        }
    ]


def test_a_printed_bsb_is_evidence_of_the_bank() -> None:
    row = {**OWN, "other_account": "2190", "description": "ANZ M-BANKING FUNDS TFER 123456 TO 182512 442887190"}
    assert [each["bank"] for each in list_mentioned(row)] == ["Macquarie Bank"]
    unknown = {**row, "description": "TRANSFER TO 999-999 442882190"}
    assert [each["bank"] for each in list_mentioned(unknown)] == [None]
    assert [each["bank"] for each in list_mentioned(row, unknown, unknown)] == ["Macquarie Bank"], (
        "the one that is known"
    )


def test_a_supplied_account_is_not_missing() -> None:
    supplied = {"account_id": b"b" * 16, "account_number": "0012 5678", "amount": Decimal(1)}
    assert list_mentioned({**OWN, "other_account": "5678"}, supplied) == []
    assert len(list_mentioned({**OWN, "other_account": "5679"}, supplied)) == 1


def test_another_customers_account_is_not_this_ones() -> None:
    other = {"customer_number": 2, "account_id": b"b" * 16, "account_number": "00125678", "amount": Decimal(1)}
    assert len(list_mentioned({**OWN, "other_account": "5678"}, other)) == 1


def test_paired_or_retracted_rows_are_no_evidence() -> None:
    assert list_mentioned({**OWN, "other_account": "5678", "is_transfer": True}) == []
    assert list_mentioned({**OWN, "other_account": "5678", "superseded_seq": 9}) == []


def test_digits_without_a_named_counterparty_are_enough() -> None:
    unnamed = {"category": "unknown_debit", "other_account": "5678"}
    assert [each["masked_number"] for each in list_mentioned(unnamed)] == ["xx5678"]
    assert list_mentioned({**unnamed, "counterparty_name": "John Smith"}) == []
    assert list_mentioned({"category": "unknown_debit"}) == []


def test_name_identifies_the_account_without_digits() -> None:
    saver, offset = ({**OWN, "clean_description": name} for name in ("TO SAVER", "OFFSET"))
    found = list_mentioned(saver, offset, saver)
    assert [(each["masked_number"], each["name"], each["count"], each["direction"]) for each in found] == [
        (None, "OFFSET", 1, "out"),
        (None, "TO SAVER", 2, "out"),
    ]


def test_no_mentions_give_an_empty_table() -> None:
    assert list_mentioned_accounts(held_rows({"category": "rent"})).schema == MENTIONED


lines = st.tuples(
    st.sampled_from([None, "5678", "995678", "1111", "12", "x9"]),
    st.sampled_from(["own_transfer", "rent"]),
    st.integers(-3, 3),
    st.sampled_from([None, "Telstra"]),
)


@given(st.lists(lines, max_size=8))
def test_every_mention_is_counted_once_and_no_dollar_is_lost(
    some: list[tuple[str | None, str, int, str | None]],
) -> None:
    rows: list[dict[str, Any]] = [
        {**OWN, "other_account": digits, "category": category, "amount": Decimal(amount), "counterparty_name": name}
        for digits, category, amount, name in some
    ]
    counted = [each for each, line in zip(rows, some, strict=True) if is_mention(*line)]
    found = list_mentioned_accounts(held_rows({"account_number": "062001111"}, *rows))
    assert found["count"].sum() == len(counted)
    net = found.select(pl.col("total_in").sum() - pl.col("total_out").sum()).item()
    assert net == sum(each["amount"] for each in counted)


def is_mention(digits: str | None, category: str, amount: int, name: str | None) -> bool:  # noqa: ARG001 - a line's fields
    """Apply the rule in plain Python, for a customer whose only account ends with 1111."""
    clean = digits if digits is not None and digits.isdigit() and len(digits) >= 3 else None
    return (category == "own_transfer" or (clean is not None and name is None)) and clean != "1111"


def test_the_table_is_sorted_by_customer_and_number() -> None:
    rows = [{**OWN, "customer_number": n, "other_account": str(digits)} for n in (2, 1) for digits in (777, 333)]
    found = list_mentioned_accounts(held_rows(*rows))
    assert found.select("customer_number", "masked_number").rows() == [
        (1, "xx333"),
        (1, "xx777"),
        (2, "xx333"),
        (2, "xx777"),
    ]


def test_repayment_of_a_card_not_supplied_names_the_card() -> None:
    paid = {"category": "card_repayment", "account_number": "062001111", "amount": Decimal(-90)}
    rows = ({**paid, "description": "Internet Transfer to Card 7691"}, {**paid, "description": "TFR BUSIN MCARD 7691"})
    assert [(each["masked_number"], each["count"]) for each in list_mentioned(*rows)] == [("xx7691", 2)]
    supplied = {"account_id": b"c" * 16, "account_number": "4000xxxx7691", "category": "interest_charged"}
    assert list_mentioned(*rows, supplied) == []


@pytest.mark.parametrize(
    "text",
    [
        "INTERNET TRANSFER DEBIT TO VISA 8670 REFERENCE NO 76796904",
        "Payment to Mastercard 4564xxxxxxxx8670 - Receipt 104432",
        "TFR TO BUSINESS CARD ACCOUNT ENDING 8670 REF:88112",
    ],
)
def test_digits_of_a_reference_are_not_a_cards(text: str) -> None:
    paid = {"category": "card_repayment", "account_number": "062001111", "amount": Decimal(-90), "description": text}
    assert [each["masked_number"] for each in list_mentioned(paid)] == ["xx8670"]
    supplied = {"account_id": b"c" * 16, "account_number": "484200948670", "category": "interest_charged"}
    assert list_mentioned(paid, supplied) == []


def test_reference_alone_is_not_a_cards_number() -> None:
    paid = {"category": "card_repayment", "description": "TRANSFER TO VISA REF 76796904"}
    assert [each["masked_number"] for each in list_mentioned(paid)] == [None]


@pytest.mark.parametrize("text", ["Transfer to account · 3950", "WITHDRAWAL ONLINE 7893334 TFR WESTPAC BUS 3950"])
def test_four_digits_at_the_end_of_an_own_transfer_are_an_account(text: str) -> None:
    sent = {**OWN, "description": text}
    assert [each["masked_number"] for each in list_mentioned(sent)] == ["xx3950"]
    assert list_mentioned(sent, {"account_id": b"b" * 16, "account_number": "373950"}) == []


@pytest.mark.parametrize("text", ["Transfer to savings Mar 2025", "TRANSFER 3950", "TFR 12 TO SAVER 39501"])
def test_year_or_receipt_is_not_an_account(text: str) -> None:
    found = list_mentioned({**OWN, "description": text, "clean_description": "SAVER"})
    assert [each["masked_number"] for each in found] == [None]


def test_transfer_with_only_rail_words_names_no_account() -> None:
    sent = {**OWN, "description": "E-BANKING TRANSFER 1856252981", "clean_description": "E-BANKING TRANSFER"}
    assert list_mentioned(sent) == []
    assert len(list_mentioned({**sent, "clean_description": "LINKED ACC TRNS"})) == 1, (
        "to an account linked to this one"
    )
    assert len(list_mentioned({**sent, "category_source": "correction"})) == 1, "the client said whose money it is"


def test_name_used_for_a_supplied_account_is_not_a_missing_account() -> None:
    lone, found = {**OWN, "clean_description": "SAVER"}, {**OWN, "clean_description": "SAVER", "is_transfer": True}
    assert list_mentioned(lone, found) == []
    assert [each["count"] for each in list_mentioned(lone, lone, found)] == [2]
    elsewhere = {**found, "account_id": b"b" * 16}
    assert len(list_mentioned(lone, elsewhere)) == 1, "another account calls another one so"
    assert len(list_mentioned({**lone, "other_account": "5678"}, found)) == 1, "a number stands for itself"


def test_guess_or_other_name_is_no_evidence_of_an_account() -> None:
    guess = {**OWN, "clean_description": "CHURCH STREET", "category_source": "learned", "confidence": 0.43}
    assert list_mentioned(guess) == []
    assert len(list_mentioned({**guess, "confidence": 0.93})) == 1
    assert [each["masked_number"] for each in list_mentioned({**guess, "other_account": "5678"})] == ["xx5678"]
    collected = {**OWN, "counterparty_name": "Ezidebit", "counterparty_kind": "processor"}
    assert list_mentioned(collected) == []
    assert len(list_mentioned({**collected, "counterparty_kind": "own"})) == 1
    assert len(list_mentioned({**collected, "category_source": "client_rule"})) == 1


def test_transfer_to_an_unknown_number_names_it_but_a_payment_to_a_known_counterparty_does_not() -> None:
    sent = {"category": "unknown_debit", "other_account": "9367", "counterparty_name": "Ib", "channel": "transfer"}
    assert [each["masked_number"] for each in list_mentioned(sent)] == ["xx9367"]
    assert list_mentioned({**sent, "counterparty_kind": "business"}) == []
    assert list_mentioned({**sent, "channel": "npp"}) == []
