"""Rows written in any layout are read back unchanged, and any file is read or refused."""

import csv
import io
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import accumulate
from typing import TypeAlias

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.intake.exports import Statement, as_submission, name_accounts, read, statement_number
from pipelines.intake.rows import validate
from pipelines.vocabulary.errors import InvalidRequest
from pipelines.vocabulary.schemas import LANDED, SUBMISSION

NOW = datetime(2026, 11, 20, 3, 0, tzinfo=UTC)
DATES = ("%d/%m/%Y", "%Y-%m-%d", "%d %b %Y", "%d-%b-%y", "%d/%m/%y", "%Y%m%d", "%d %B %Y", "%a %d %b %Y", "%d.%m.%Y")
WORDS = st.sampled_from(["COFFEE", "RENT, UNIT 4", 'THE "GOOD" ONE', "Transfer; own", "Café\nSydney", "A|B", "O'NEIL"])


@dataclass(frozen=True)
class Row:
    day: date
    description: str
    amount: Decimal
    balance: Decimal


@st.composite
def histories(draw: st.DrawFn) -> list[Row]:
    """Draw rows, oldest first, with money in and out and balances that follow from it."""
    cents = st.integers(-500_000, 500_000).filter(bool)
    amounts = [Decimal(amount).scaleb(-2) for amount in draw(st.lists(cents, min_size=3, max_size=12))]
    amounts[:2] = [abs(amounts[0]), -abs(amounts[1])]
    days = sorted(draw(st.integers(0, 400)) for _ in amounts)
    opening = Decimal(draw(st.integers(-100_000, 900_000))).scaleb(-2)
    balances = list(accumulate(amounts, initial=opening))[1:]
    return [
        Row(date(2025, 1, 1) + timedelta(days=days), draw(WORDS), amount, balance)
        for days, amount, balance in zip(days, amounts, balances, strict=True)
    ]


def plain_money(amount: Decimal) -> str:
    return str(amount)


def dollars(amount: Decimal) -> str:
    return f"{'-' if amount < 0 else ''}${abs(amount):,}"


def in_brackets(amount: Decimal) -> str:
    return f"({abs(amount):,})" if amount < 0 else f"{amount:,}"


def with_suffix(amount: Decimal) -> str:
    return f"{abs(amount):,} {'DR' if amount < 0 else 'CR'}"


MONEY = (plain_money, dollars, in_brackets, with_suffix)


@st.composite
def exports(draw: st.DrawFn, rows: Sequence[Row]) -> bytes:
    """Write the rows in a layout that a bank might use."""
    printed_date, money = draw(st.sampled_from(DATES)), draw(st.sampled_from(MONEY))
    split, with_heading, newest_first = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    columns = {
        "Date": [row.day.strftime(printed_date) for row in rows],
        "Narrative": [row.description for row in rows],
        **(
            {
                "Debit": [str(-row.amount) if row.amount < 0 else "" for row in rows],
                "Credit": [str(row.amount) if row.amount > 0 else "" for row in rows],
            }
            if split
            else {"Amount": [money(row.amount) for row in rows]}
        ),
        "Balance": [money(row.balance) for row in rows],
    }
    order = draw(st.permutations(list(columns))) if with_heading else list(columns)
    table = [list(cells) for cells in zip(*(columns[name] for name in order), strict=True)]
    if newest_first:
        table.reverse()
    target = io.StringIO(newline="")
    ends = draw(st.sampled_from(["\n", "\r\n"]))
    writer = csv.writer(target, delimiter=draw(st.sampled_from(",;\t|")), lineterminator=ends)
    writer.writerows([["Statement of", "Harbour Coffee"]] * draw(st.integers(0, 2)))
    writer.writerows(([order] if with_heading else []) + table)
    return target.getvalue().encode(draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252"])))


@given(st.data())
def test_rows_are_read_back_unchanged(data: st.DataObject) -> None:
    rows = data.draw(histories())
    contents = read("export.csv", data.draw(exports(rows)))
    assert contents.refused.is_empty()
    (statement,) = contents.statements
    found = [
        (date.fromisoformat(day), description, Decimal(amount), Decimal(balance))
        for day, description, amount, balance in statement.rows.select(
            "date", "description", "amount", "balance"
        ).iter_rows()
    ]
    assert found == [(row.day, " ".join(row.description.split()), row.amount, row.balance) for row in rows]


CELLS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        ["1.00", "-5", "2026-01-02", "31/12/2025", "Date", "Amount", "Balance", "Debit", '"', "(", "$", "DR"]
    ),
)


@given(st.lists(st.lists(CELLS, max_size=6), max_size=8), st.sampled_from(",;\t|"))
def test_any_cells_are_read_or_refused_in_one_line(table: list[list[str]], delimiter: str) -> None:
    text = "\n".join(delimiter.join(cells) for cells in table)
    _check_read_or_refused(text.encode("utf-8", errors="replace"))


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused_in_one_line(content: bytes) -> None:
    _check_read_or_refused(content)


def _check_read_or_refused(content: bytes) -> None:
    with suppress(Refused):
        for statement in _read_statements(content):
            assert statement.rows.select(LANDED.names()).schema == LANDED
            assert statement.rows.height == len(statement.lines) > 0


class Refused(Exception):
    """A file was refused with one line that begins with its name."""


def _read_statements(content: bytes) -> Sequence[Statement]:
    try:
        return read("x.csv", content).statements
    except InvalidRequest as error:
        raise (Refused if re.fullmatch("x.csv .+", error.detail) else AssertionError)(error.detail) from error


def test_an_unreadable_row_is_refused_with_its_line_and_the_others_are_accepted() -> None:
    text = (
        "Date,Description,Amount,Balance\n2026-01-01,A,-1.00,9.00\n31/02/2026,B,-1.00,8.00\n2026-01-03,C,one,7.00\n"
        "2026-01-04,D,,\n2026-01-05,E,-1.00,5.00\n"
    )
    statements = read("x.csv", text.encode()).statements
    validated = validate(as_submission(statements, NOW).rows, "Australia/Sydney")
    faults = [
        (statements[statement_number(job)].lines[position], code.removeprefix("Transaction."))
        for job, position, code in validated.rejected.collect().select("job_id", "position", "code").iter_rows()
    ]
    assert faults == [(3, "InvalidDate"), (4, "InvalidNumber"), (5, "Missing")]
    assert validated.accepted.collect()["description"].to_list() == ["A", "E"]


def test_json_of_a_submission_is_read_as_the_api_would() -> None:
    body = {
        "bsb": "062-000",
        "accountNumber": "12345678",
        "creditLimit": "5000.00",
        "transactions": [{"date": "2026-01-01", "description": "A", "amount": -1.10, "status": "pending"}, {"date": 5}],
    }
    for document in (body, [body]):
        (statement,) = read("x.json", json.dumps(document).encode()).statements
        assert (statement.bsb, statement.account_number, statement.credit_limit) == (
            "062-000",
            "12345678",
            Decimal(5000),
        )
        assert statement.rows.select("date", "amount", "status").row(0) == ("2026-01-01", "-1.1", "pending")
        assert statement.rows["malformed"].to_list() == [[], ["date"]]
        assert statement.lines.to_list() == [1, 2]


def test_json_of_a_response_is_grouped_by_customer_and_account() -> None:
    def item(account: str, amount: str) -> dict[str, object]:
        described = {"accountId": account, "accountNumberMasked": "xxxx5678", "accountType": "savings", "bsb": None}
        item = {"customerId": "c1", "account": described, "date": "2026-01-01", "description": "A", "amount": amount}
        return {**item, "balance": None, "category": "x", "transactionId": "t", "clientTransactionId": None}

    answer = {"data": {"transactions": [item("a", "1.00"), item("b", "2.00"), item("a", "3.00")], "totalCount": 3}}
    contents = read("x.json", json.dumps(answer).encode())
    assert [statement.rows["amount"].to_list() for statement in contents.statements] == [["1.00", "3.00"], ["2.00"]]
    first = contents.statements[0]
    assert (first.customer, first.account_number, first.account_type) == ("c1", "xxxx5678", "savings")
    assert first.rows.select("transactionId", "extra").row(0) == (None, None)
    assert first.lines.to_list() == [1, 3]


Line: TypeAlias = tuple[str, str, str, str | None]  # day, description, amount, balance


def export(*rows: Line) -> Statement:
    heading = "Date,Description,Amount,Balance\n"
    text = heading + "".join(f"{day},{what},{amount},{balance or ''}\n" for day, what, amount, balance in rows)
    return read("x.csv", text.encode()).statements[0]


JANUARY = (("2026-01-05", "A", "-10.00", "90.00"), ("2026-01-20", "B", "30.00", "120.00"))
OVERLAPPING = (("2026-01-20", "B", "30.00", "120.00"), ("2026-02-02", "C", "-20.00", "100.00"))
CONTINUING = (("2026-02-02", "C", "-20.00", "100.00"), ("2026-02-03", "D", "5.00", "105.00"))
ANOTHER = (("2026-01-06", "A", "-10.00", "490.00"), ("2026-01-21", "B", "30.00", "520.00"))


@pytest.mark.parametrize(
    ("statements", "names"),
    [
        ((JANUARY, OVERLAPPING), ["one", "one"]),
        ((JANUARY, CONTINUING), ["one", "one"]),
        ((CONTINUING, JANUARY), ["one", "one"]),
        ((JANUARY, ANOTHER), ["one", "two"]),
        ((JANUARY, ANOTHER, CONTINUING), ["one", "two", "one"]),
        ((CONTINUING, ANOTHER, JANUARY), ["one", "two", "one"]),
    ],
)
def test_exports_of_one_account_are_recognised_by_their_balances(
    statements: tuple[Sequence[Line], ...], names: list[str]
) -> None:
    exports = (export(*rows) for rows in statements)
    named = name_accounts(list(zip(("one", "two", "three"), exports, strict=False)))
    assert [statement.bank_name for statement in named] == names


def test_without_balances_exports_must_agree_on_the_days_that_both_cover() -> None:
    days = [(f"2026-01-{day:02}", f"SHOP {day}", f"-{day}.00", None) for day in range(1, 21)]
    first, second = export(*days[:12]), export(*days[5:])
    other = export(
        *[(day, f"{what} X" if what.endswith("1") else what, amount, None) for day, what, amount, _ in days[5:]]
    )
    assert _names([("one", first), ("two", second)]) == ["one", "one"]
    assert _names([("one", first), ("two", other)]) == ["one", "two"]
    apart = export(*days[14:])
    assert _names([("one", first), ("two", apart)]) == ["one", "two"]


def _names(statements: Sequence[tuple[str, Statement]]) -> list[str | None]:
    return [statement.bank_name for statement in name_accounts(statements)]


def test_a_named_account_is_not_named_by_its_file() -> None:
    text = b"Date,Description,Amount,Account Number\n2026-01-01,A,-1.00,12345678\n2026-01-02,B,-1.00,12345678\n"
    (named,) = name_accounts([("x", read("x.csv", text).statements[0])])
    assert (named.bank_name, named.account_number) == (None, "12345678")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *((name, None) for name in ("Visa Debit Account", "Home Loan Offset", "Sydney Mortgage Brokers Pty Ltd")),
        *((name, None) for name in ("Visa Migration Lawyers", "Quick Loan Solutions", "Acme Mortgage Pty Ltd")),
        *(("Acme Pty Ltd Credit Card", "credit_card"), ("Home Loan", "loan"), ("Business Visa", "credit_card")),
    ],
)
def test_the_name_of_a_business_or_of_an_account_with_money_is_no_card_or_loan(name: str, expected: str | None) -> None:
    """Of a card or a loan, positive amounts may be read as charges: all signs would be inverted."""
    rows = ((13, "SALE", 310, 1310), (14, "RENT", -50, 1260), (15, "SALE", 40, 1300))
    lines = [f"{day}/01/2026,{text},{amount},{balance},{name}" for day, text, amount, balance in rows]
    (found,) = read("x.csv", "\n".join(["Date,Description,Amount,Balance,Account Name", *lines]).encode()).statements
    assert found.account_type == expected
    assert expected or found.rows["amount"].to_list() == ["310", "-50", "40"]


@pytest.mark.parametrize("name", ["loan application statements", "visa debit", "Transactions for loan"])
def test_the_name_of_a_file_for_a_loan_is_no_type(name: str) -> None:
    (named,) = name_accounts([(name, export(*JANUARY))])
    assert named.account_type is None


def test_the_name_of_a_file_may_give_the_type() -> None:
    named = name_accounts([("business_visa", export(*JANUARY)), ("online-saver", export(*ANOTHER))])
    assert [statement.account_type for statement in named] == ["credit_card", "savings"]


def test_statements_are_submitted_in_the_order_of_their_first_dates() -> None:
    sent = as_submission([export(*CONTINUING), export(*JANUARY)], NOW)
    rows = sent.rows.collect()
    assert rows.schema == pl.Schema({**SUBMISSION, **LANDED})
    assert sent.customers == {1: None}
    by_statement = {
        statement_number(job): (seq, count)
        for job, seq, count in rows.group_by("job_id").agg(pl.col("received_seq").first(), pl.len()).iter_rows()
    }
    assert by_statement == {0: (1, 2), 1: (0, 2)}
