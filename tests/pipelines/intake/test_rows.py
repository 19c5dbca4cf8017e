"""Rows of a submission are read exactly or refused with a code, each independently of the others."""

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import ROUND_DOWN, Decimal, localcontext
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.intake.as_sent import temporary_digest
from pipelines.intake.lines import as_lines
from pipelines.intake.rows import FAULTS, land_lines, validate
from pipelines.vocabulary.schemas import ACCEPTED, REJECTED, SUBMISSION
from pipelines.vocabulary.strict_json import parse

RECEIVED = datetime(2026, 11, 20, 12, 30, tzinfo=UTC)  # 23:30 in Sydney
RENT: Mapping[str, Any] = {"date": "2026-03-02", "description": "RENT", "amount": "-100.00"}


def submission_rows(*items: Mapping[str, Any] | str) -> pl.LazyFrame:
    """Return items (JSON texts, or mappings to write as JSON) as the rows of one submission."""
    texts = [item if isinstance(item, str) else json.dumps(item) for item in items]
    parsed: Any = parse(f"[{','.join(texts)}]".encode())
    context = {**dict.fromkeys(SUBMISSION.names()), "job_id": b"j", "received_at": RECEIVED}
    return (
        land_lines(as_lines(parsed), temporary_digest)
        .join(pl.DataFrame([context], schema=SUBMISSION), how="cross")
        .lazy()
    )


def accept(*items: Mapping[str, Any] | str) -> list[dict[str, Any]]:
    return validate(submission_rows(*items), "Australia/Sydney").accepted.collect().to_dicts()


def fault(*items: Mapping[str, Any] | str) -> tuple[str, str] | None:
    """Return field and code of the last item's refusal."""
    rejected = validate(submission_rows(*items), "Australia/Sydney").rejected.collect().to_dicts()
    mine = [row for row in rejected if row["position"] == len(items) - 1]
    return (mine[0]["field"], mine[0]["code"].removeprefix("Transaction.")) if mine else None


def test_frames_have_the_declared_schemas() -> None:
    validated = validate(submission_rows(RENT, {}), "Australia/Sydney")
    assert validated.accepted.collect_schema() == ACCEPTED
    assert validated.rejected.collect_schema() == REJECTED


def test_a_bad_row_does_not_affect_good_ones() -> None:
    validated = validate(submission_rows(RENT, {**RENT, "date": "2026-02-30"}, RENT), "Australia/Sydney")
    assert validated.accepted.collect()["position"].to_list() == [0, 2]
    assert validated.rejected.collect()["position"].to_list() == [1]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"date": None}, ("date", "Missing")),
        ({"date": ""}, ("date", "Missing")),
        ({"date": 20260302}, ("date", "WrongType")),
        ({"date": "2026-02-30"}, ("date", "InvalidDate")),
        ({"date": "86400"}, ("date", "InvalidDate")),
        ({"date": "10000-01-01"}, ("date", "InvalidDate")),
        ({"date": "2026-03-02T25:00:00"}, ("date", "InvalidDate")),
        ({"date": "1969-12-31"}, ("date", "DateTooEarly")),
        ({"date": "0000-01-01"}, ("date", "DateTooEarly")),
        ({"date": "2026-11-21"}, None),
        ({"date": "2026-11-22"}, ("date", "DateInFuture")),
        ({"description": None}, ("description", "Missing")),
        ({"description": "x" * 1_000}, None),
        ({"description": "x" * 1_001}, ("description", "TextTooLong")),
        ({"description": "a\tb"}, ("description", "ControlCharacter")),
        ({"description": 7}, ("description", "WrongType")),
        ({"amount": None}, ("amount", "Missing")),
        ({"amount": True}, ("amount", "WrongType")),
        ({"amount": [1]}, ("amount", "WrongType")),
        ({"amount": "1,000"}, ("amount", "InvalidNumber")),
        ({"amount": "inf"}, ("amount", "InvalidNumber")),
        ({"amount": " 1"}, ("amount", "InvalidNumber")),
        ({"amount": "１２.３４"}, ("amount", "InvalidNumber")),
        ({"amount": "12.３４"}, ("amount", "InvalidNumber")),
        ({"amount": "1e" + 5_000 * "0" + "9"}, None),
        ({"amount": "1e" + 5_000 * "9"}, ("amount", "NumberTooLarge")),
        ({"amount": "9999999999999.99"}, None),
        ({"amount": "10000000000000"}, ("amount", "NumberTooLarge")),
        ({"amount": "10e15"}, ("amount", "NumberTooLarge")),  # its cents fill an Int64, but no Decimal(20, 2)
        ({"amount": "1e400"}, ("amount", "NumberTooLarge")),
        ({"amount": "9" * 400}, ("amount", "NumberTooLarge")),
        ({"amount": "5" + "0" * 38 + "e-41"}, ("amount", "TooManyDecimals")),  # half a cent
        ({"amount": "-5" + "0" * 38 + "e-41"}, ("amount", "TooManyDecimals")),
        ({"amount": "1" + "0" * 5_000 + "e-4999"}, None),
        ({"amount": "0." + "0" * 5_000 + "1e5003"}, None),
        ({"amount": "1.005"}, ("amount", "TooManyDecimals")),
        ({"type": "withdrawal"}, ("type", "InvalidType")),
        ({"type": "credit"}, ("type", "ContradictorySign")),
        *(
            ({name: "Credit"}, (name, "ContradictorySign"))
            for name in ("direction", "baseType", "creditDebitIndicator")
        ),
        ({"amount": "4.50", "direction": "debit"}, ("direction", "ContradictorySign")),
        *(
            ({"amount": "4.50", name: word}, (field, "ContradictorySign"))
            for field, name, word in (
                *(("creditDebitIndicator", "CreditDebitIndicator", "Debit"), ("direction", "direction", "OUT")),
                *(
                    ("creditDebitIndicator", "credit_debit_indicator", "DBIT"),
                    ("transactionType", "transaction_type", "DEBIT"),
                ),
                *(("type", "Type", "debit"), ("drCr", "dr_cr", "D")),
            )
        ),
        ({"transactionType": "Credit card payment", "type": "debit"}, None),
        ({"transactionType": "C"}, None),
        *(
            ({name: word}, (field, "InvalidStatus"))
            for field, name, word in (
                *(("pending", "pending", True), ("isPending", "is_pending", "true"), ("status", "Status", "Pending")),
                *(("postingStatus", "posting_status", "PENDING"), ("transactionStatus", "transactionStatus", "failed")),
            )
        ),
        *(({name: word}, None) for name, word in (("pending", False), ("pending", None), ("postingStatus", "POSTED"))),
        ({"pending": True, "status": "pending"}, None),
        ({"Currency": "NZD"}, ("currency", "UnsupportedCurrency")),
        ({"unofficial_currency_code": "USD"}, ("unofficialCurrencyCode", "UnsupportedCurrency")),
        ({"amount": "4.50", "type": "debit", "direction": "debit"}, None),
        ({"direction": "debit"}, None),
        ({"direction": "north", "note": '{"direction": "credit"}'}, None),
        ({"currencyCode": "USD"}, ("currencyCode", "UnsupportedCurrency")),
        ({"iso_currency_code": "AUD", "currencyCode": None}, None),
        ({"balance": "x"}, ("balance", "InvalidNumber")),
        ({"balance": "１２"}, ("balance", "InvalidNumber")),
        ({"date": "２０２６-03-02"}, ("date", "InvalidDate")),
        ({"transactionId": "x" * 129}, ("transactionId", "TextTooLong")),
        ({"currency": "USD"}, ("currency", "UnsupportedCurrency")),
        ({"currency": "AUD"}, None),
        ({"valueDate": "tomorrow"}, ("valueDate", "InvalidDate")),
        ({"status": "booked"}, ("status", "InvalidStatus")),
        ({"context_team": "x" * 1_900}, None),
        ({"context_team": "x" * 1_900, "context_site": "x" * 100}, ("context_", "TextTooLong")),
        ({"context_team": "a\tb"}, None),
    ],
)
def test_each_fault_is_refused_with_its_code(change: dict[str, Any], expected: tuple[str, str] | None) -> None:
    assert fault({**RENT, **change}) == expected


def test_own_columns_are_retained_with_the_row() -> None:
    [row] = accept({**RENT, "context_team": "Roads", "context_customer": "c-1", "colour": "red"})
    assert row["own_columns"] == '{"context_team": "Roads"}'


def test_every_code_is_reachable_by_the_tests_above() -> None:
    assert {fault.code.removeprefix("Transaction.") for fault in FAULTS} == {
        *("Missing", "WrongType", "InvalidDate", "DateTooEarly", "DateInFuture", "TextTooLong", "ControlCharacter"),
        *("InvalidNumber", "NumberTooLarge", "TooManyDecimals", "InvalidType", "ContradictorySign"),
        *("UnsupportedCurrency", "InvalidStatus", "IdConflict"),
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-03-02", date(2026, 3, 2)),
        ("2026-03-02T23:30:00+11:00", date(2026, 3, 2)),  # its own date counts
        ("2026-03-02T23:30:00", date(2026, 3, 2)),
        ("2026-03-02T12:59:59Z", date(2026, 3, 2)),
        ("2026-03-02T13:00:00Z", date(2026, 3, 3)),  # midnight in Sydney, UTC+11
        ("2026-03-02T13:00Z", date(2026, 3, 3)),
        ("2026-03-02T13:00:00.123456Z", date(2026, 3, 3)),
        ("2026-07-02T13:30:00z", date(2026, 7, 2)),  # UTC+10 in winter
    ],
)
def test_a_date_time_is_read_as_a_date_in_the_right_zone(text: str, expected: date) -> None:
    assert accept({**RENT, "date": text})[0]["date"] == expected


@pytest.mark.parametrize(
    ("amount", "expected"),
    [
        ("0.1", "0.10"),
        ("-0.0", "0.00"),
        ("0.30000000000000004", "0.30"),
        ("0.29999999999999998", "0.30"),
        ("-19.989999999999998", "-19.99"),
        ("1e3", "1000.00"),
        ("1.5E-1", "0.15"),
        ("1e-400", "0.00"),
        ("-" + "9" * 39 + "e-41", "-0.01"),
        ("9" * 45 + "e-60", "0.00"),
        ("1" + "0" * 50 + "e-48", "100.00"),
        ("9007199254740.99", "9007199254740.99"),
    ],
)
def test_amounts_are_exact_to_the_cent(amount: str, expected: str) -> None:
    assert str(accept(f'{{"date": "2026-03-02", "description": "x", "amount": {amount}}}')[0]["amount"]) == expected


def test_a_positive_amount_takes_its_sign_from_the_type() -> None:
    typed = [{**RENT, "amount": "5.00", "type": kind} for kind in ("debit", "credit")]
    assert [str(row["amount"]) for row in accept(*typed)] == ["-5.00", "5.00"]


def test_rows_with_the_same_id_and_different_content_are_refused() -> None:
    first = {**RENT, "transactionId": "T1"}
    for second in ({**first, "amount": "-1"}, {**first, "status": "pending"}):
        assert fault(second, first) == fault(first, second) == ("transactionId", "IdConflict")
    assert fault(first, first) is None


def test_card_numbers_are_masked_in_every_field_and_unknown_fields_are_retained() -> None:
    frame = land_lines(
        as_lines([{**RENT, "description": "4111111111111111", "note": "4111 1111 1111 1111"}]), temporary_digest
    )
    assert frame["description"].item() == "411111xxxxxx1111"
    assert json.loads(frame["extra"].item()) == {"note": "411111xxxxxx1111"}


numbers = st.from_regex(r"\A-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?\Z")


@given(st.lists(numbers, min_size=1, max_size=20))
def test_amounts_equal_those_of_an_oracle(texts: list[str]) -> None:
    items = [f'{{"date": "2026-03-02", "description": "x", "amount": {text}}}' for text in texts]
    found = {row["position"]: row["amount"] for row in accept(*items)}
    expected = {position: oracle(text) for position, text in enumerate(texts)}
    assert found == {position: amount for position, amount in expected.items() if amount is not None}


def oracle(text: str) -> Decimal | None:
    """Return an amount in plain Decimal: to eight decimals, within 10⁻⁶ of whole cents, and below 10^13; else None."""
    with localcontext(prec=200):
        number = Decimal(text).quantize(Decimal("1e-8"), ROUND_DOWN)
        cents = number.quantize(Decimal("0.01"))
        return cents if abs(number - cents) < Decimal("1e-6") and abs(cents) < 10**13 else None
