"""Rows and accounts that look the same once masked are distinguished by the texts as sent."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stdnum import luhn

from pipelines.enrichment.matching.duplicates import KNOWN, identify
from pipelines.intake import accounts
from pipelines.intake.as_sent import temporary_digest
from pipelines.intake.digest import digest
from pipelines.intake.exports import as_submission, read
from pipelines.intake.lines import as_lines
from pipelines.intake.rows import land_lines, masked_warnings, validate
from pipelines.vocabulary.schemas import SUBMISSION
from tests.conftest import examples

NOW = datetime(2026, 11, 20, tzinfo=UTC)
ITEM = {"date": "2026-03-02", "description": "COFFEE", "amount": "-4.50"}
ONE, OTHER, SHOWN = "4539120000041234", "4539120000121234", "453912xxxxxx1234"


def of_job(seq: int, rows: pl.DataFrame) -> pl.LazyFrame:
    context = {
        **dict.fromkeys(SUBMISSION.names()),
        "customer_number": 1,
        "job_id": seq.to_bytes(16),
        "received_seq": seq,
        "received_at": NOW,
        "appended": False,
        "account_id": b"a" * 16,
    }
    return rows.join(pl.DataFrame([context], schema=SUBMISSION), how="cross").lazy()


def transactions_after(*submissions: Sequence[dict[str, Any]]) -> pl.DataFrame:
    held = pl.DataFrame(schema=KNOWN)
    for seq, items in enumerate(submissions, start=1):
        validated = validate(of_job(seq, land_lines(as_lines(items), temporary_digest)), "UTC")
        assert validated.rejected.collect().is_empty()
        held = identify(held, validated.accepted.collect()).rows
    return held


def add_check_digit(payload: str) -> str:
    return payload + luhn.calc_check_digit(payload)


NUMBERS = st.integers(0, 9).flatmap(
    lambda last: st.lists(
        st.integers(0, 99_999).map(lambda middle: add_check_digit(f"453912{middle:05d}0{last}12")),
        min_size=1,
        max_size=5,
    )
)


@examples(4)
@given(NUMBERS, NUMBERS)
def test_each_distinct_id_as_sent_is_one_transaction(first: list[str], second: list[str]) -> None:
    held = transactions_after(
        *([{**ITEM, "transactionId": number} for number in numbers] for numbers in (first, second))
    )
    assert held["transaction_id"].n_unique() == held.height == len({*first, *second})
    assert held["client_transaction_id"].str.contains("xxxxxx").all()


def test_only_masked_texts_have_digests_and_digests_depend_on_the_key() -> None:
    rows = land_lines(as_lines([{**ITEM, "transactionId": ONE}, {**ITEM, "transactionId": "A-1"}]), temporary_digest)
    assert rows["transactionIdDigest"].to_list() == [temporary_digest(ONE), None]
    assert rows["descriptionDigest"].to_list() == [None, None]
    assert rows["masked"].to_list() == [True, False]
    assert digest(b"1", ONE) != digest(b"2", ONE) != digest(b"2", OTHER)


def test_spacing_and_case_of_a_masked_description_do_not_make_another_transaction() -> None:
    lower, upper = ({**ITEM, "description": text.format(ONE)} for text in ("paid  to {}", " PAID TO {}"))
    assert transactions_after([lower], [upper]).height == 1


@pytest.mark.parametrize("amount", ["4000000000006", "-4000000000006.50", "4.4000000000000002", "4000000000006e-2"])
def test_an_amount_with_the_digits_of_a_card_is_not_masked(amount: str) -> None:
    [row] = land_lines(as_lines([{**ITEM, "amount": amount, "balance": amount}]), temporary_digest).to_dicts()
    assert (row["amount"], row["balance"], row["masked"]) == (amount, amount, False)


def test_a_card_in_the_wrong_field_is_masked() -> None:
    [row] = land_lines(
        as_lines([{**ITEM, "amount": ONE, "balance": f"{ONE[:4]} {ONE[4:]}", "note": {"n": [ONE]}}]), temporary_digest
    ).to_dicts()
    assert (row["amount"], row["balance"]) == (SHOWN, SHOWN)
    assert json.loads(row["extra"]) == {"note": {"n": [SHOWN]}}


def test_masked_rows_are_reported_to_the_client() -> None:
    assert list(masked_warnings(land_lines(as_lines([ITEM]), temporary_digest))) == []
    [warning] = masked_warnings(land_lines(as_lines([ITEM, {**ITEM, "note": ONE}]), temporary_digest))
    assert warning["code"] == "Transaction.MaskedNumber"
    assert "shown: 1." in warning["message"]


def account(**fields: Any) -> accounts.Account:
    names = ("account_name", "bsb", "account_number", "bank_name", "account_type", "credit_limit")
    return accounts.identify(UUID(int=1), digest=temporary_digest, **{**dict.fromkeys(names), **fields})[0]


@pytest.mark.parametrize("field", ["account_number", "bank_name", "account_name"])
def test_accounts_with_the_same_masked_number_are_distinguished(field: str) -> None:
    one, other = account(**{field: ONE}), account(**{field: OTHER})
    assert getattr(one, field) == getattr(other, field) == SHOWN
    assert one.account_id != other.account_id
    assert one.account_id == account(**{field: f" {ONE} "}).account_id


@pytest.mark.parametrize(
    "grouped", ["4539 1200 0004 1234", "4539-1200-0004-1234", "45391200-00041234", "4539  12000004 1234"]
)
def test_grouping_of_a_card_number_does_not_change_the_account(grouped: str) -> None:
    found = account(account_number=grouped)
    assert (found.account_id, found.account_number) == (account(account_number=ONE).account_id, SHOWN)


def accept_export(name: str, content: str) -> pl.DataFrame:
    rows = as_submission(read(name, content.encode()).statements, NOW).rows
    validated = validate(rows, "UTC")
    assert validated.rejected.collect().is_empty()
    return validated.accepted.collect()


def test_masked_ids_and_cards_of_a_file_remain_distinct() -> None:
    lines = [
        f"{card},2026-03-02,COFFEE {nth},-4.50,{number}"
        for nth, (card, number) in enumerate([(ONE, ONE), (ONE, OTHER), (OTHER, ONE)])
    ]
    rows = accept_export("x.csv", "\n".join(["Account Number,Date,Description,Amount,Transaction ID", *lines]))
    assert rows["account_id"].n_unique() == 2
    assert identify(pl.DataFrame(schema=KNOWN), rows).rows["transaction_id"].n_unique() == 3


def test_rows_and_accounts_of_a_response_with_the_same_masked_values_remain_distinct() -> None:
    items = [
        {
            "transactionId": f"{account}-{nth}",
            "clientTransactionId": SHOWN,
            "customerId": "c",
            "date": "2026-03-02",
            "description": f"COFFEE {nth}",
            "amount": -4.5,
            "status": "posted",
            "account": {"accountId": account, "accountNumberMasked": "xxxxxxxxxxxx1234"},
        }
        for account in ("a", "b")
        for nth in range(2)
    ]
    rows = accept_export("x.json", json.dumps({"data": {"transactions": items}}))
    assert rows["account_id"].n_unique() == 2
    assert rows["client_transaction_id"].n_unique() == 4
