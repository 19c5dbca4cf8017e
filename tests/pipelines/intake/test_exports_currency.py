"""The currency that an export states, row by row, and columns that a user specifies by hand."""

import json

import pytest

from pipelines.intake.exports import Layout, in_one_currency, parse_layout, read
from pipelines.vocabulary.errors import InvalidRequest


def currencies(text: str, layout: str | None = None) -> list[str | None]:
    contents = read("x.csv", text.encode(), None if layout is None else parse_layout(layout))
    return [code for statement in contents.statements for code in statement.rows["currency"]]


@pytest.mark.parametrize(
    ("heading", "currency"),
    [
        *((f"Amount {unit}", "GBP") for unit in ("(GBP)", "[gbp]", "GBP", "(£)", "£", "in GBP", "- GBP")),
        *(("GBP Amount", "GBP"), ("Amount (€)", "EUR"), ("Transaction Amount (US$)", "USD"), ("AMOUNT INR", "INR")),
        *(("Amount", None), ("Amount ($)", None), ("Total", None), ("Amount (Rs)", "XXX"), ("Amount (kr)", "XXX")),
    ],
)
def test_a_heading_states_the_currency(heading: str, currency: str | None) -> None:
    text = f"Date,Description,{heading}\n2026-01-13,A,-1.00\n2026-01-14,B,2.00\n"
    assert currencies(text) == [currency] * 2


def test_headings_of_debit_and_credit_state_the_currency() -> None:
    text = "Date,Details,Paid out (£),Paid in (£),Balance (£)\n2026-01-13,A,1.00,,9.00\n2026-01-14,B,,2.00,11.00\n"
    assert currencies(text) == ["GBP", "GBP"]


@pytest.mark.parametrize(
    ("printed", "amount", "currency"),
    [
        *(("£1,234.50", "1234.50", "GBP"), ("-£5.00", "-5.00", "GBP"), ("€1'234.50", "1234.50", "EUR")),
        *(("1 234,50 €", "1 234,50 €", "EUR"), ("USD 12.00", "12.00", "USD"), ("12.00 usd", "12.00", "USD")),
        *(("US$5.00", "5.00", "USD"), ("A$5.00", "5.00", "AUD"), ("$5.00", "5.00", None)),
        *(("₹1,23,456.00", "123456.00", "INR"),),
        *(("Rs. 500.00", "500.00", "XXX"), ("500.00 kr", "500.00", "XXX"), ("¥500.00", "500.00", "XXX")),
        *( ("CHF 1’234.50", "1234.50", "CHF"), ("5.00 IDR", "5.00", "IDR")),
        *(("5.00 DR", "-5.00", None), ("£5.00 CR", "5.00", "GBP")),
    ],
)  # fmt: skip
def test_a_mark_beside_the_amount_states_the_currency(printed: str, amount: str, currency: str | None) -> None:
    text = f'Date,Description,Amount\n2026-01-12,A,-1.00\n2026-01-13,B,"{printed}"\n'
    (statement,) = read("x.csv", text.encode()).statements
    assert statement.rows.select("amount", "currency").row(1) == (amount, currency)


def test_a_mark_that_several_currencies_share_is_left_to_the_user() -> None:
    text = b"Date,Description,Amount\n2026-01-13,A,-Rs 5.00\n2026-01-14,B,Rs 9.00\n2026-01-15,C,-1.00\n"
    statements = read("x.csv", text).statements
    assumed = in_one_currency(statements, None)
    assert (assumed.currency, assumed.statements[0].lines.to_list()) == ("AUD", [4])
    assert assumed.refused[0].select("line", "code").rows() == [
        (2, "Transaction.UnsupportedCurrency"),
        (3, "Transaction.UnsupportedCurrency"),
    ]
    assert assumed.refused[0]["message"][0].endswith("choose one with --currency.")
    declared = in_one_currency(statements, "PKR")
    assert (declared.statements[0].lines.to_list(), declared.refused[0].height) == ([2, 3, 4], 0)
    assert in_one_currency(statements, "AUD").refused[0].height == 2
    layout = read("x.csv", b"Date,Description,Amount (Rs)\n2026-01-13,A,5.00\n").layout
    assert parse_layout(str(layout)) == layout


def test_a_column_a_line_before_the_heading_or_the_user_states_it() -> None:
    rows = "Date,Description,Amount,Ccy\n2026-01-13,A,-1.00,gbp\n2026-01-14,B,-1.00,\n"
    assert currencies(rows) == ["GBP", None]
    assert currencies(rows.replace("Ccy", "Waehrung").replace("-1.00,\n", "-1.00,EUR\n")) == ["GBP", "EUR"]
    assert currencies("Currency:,INR\n" + rows.replace(",Ccy", ",X")) == ["INR", "INR"]
    for line, currency in {
        "Currency: Rupees": "XXX",
        "Currency: Australian dollar": None,
        "Currency of fees": None,
    }.items():
        assert currencies(f"{line}\n" + rows.replace(",Ccy", ",X")) == [currency] * 2
    assert currencies(rows, "date=1,description=2,amount=3,currency=4") == ["GBP", None]
    assert currencies(rows, "date=1,description=2,amount=3,currency=NZD") == ["NZD", "NZD"]


def test_a_submission_states_the_currency_of_the_rows_that_state_none() -> None:
    rows = [{"amount": 1}, {"amount": 2, "currency": "AUD"}, {"amount": 3, "currency": ""}]
    assert currencies(json.dumps({"currency": "USD", "transactions": rows})) == ["USD", "AUD", "USD"]
    assert currencies(json.dumps({"transactions": rows})) == [None, "AUD", None]


def test_only_the_columns_that_the_user_specifies_are_read() -> None:
    text = "When;Who;How much;What\n13/01/2026;ACME;84.50;COFFEE\n14/01/2026;ACME;1.00;TEA\n"
    contents = read("x.csv", text.encode(), parse_layout("date=1, amount=-3\ndescription=4 # words"))
    (statement,) = contents.statements
    found = statement.rows.select("date", "description", "amount").rows()
    assert found == [("2026-01-13", "COFFEE", "-84.50"), ("2026-01-14", "TEA", "-1.00")]
    assert (contents.headings, contents.no_rows.height, contents.lines) == (0, 1, 3)


def test_the_reported_layout_of_a_file_gives_the_same_rows_when_specified() -> None:
    text = "Date,Details,Debit,Credit,Balance\n2026-01-13,A,1.00,,9.00\n2026-01-14,B,,2.00,11.00\n"
    found = read("x.csv", text.encode())
    assert str(found.layout) == "date=1,description=2,debit=3,credit=4,balance=5"
    again = read("x.csv", text.encode(), parse_layout(str(found.layout)))
    assert again.statements[0].rows.equals(found.statements[0].rows)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("date=1", "must name the columns date and amount"),
        ("date=1,amount=x", "not ROLE=NUMBER"),
        ("date=1,amount=2,when=3", "unknown role when"),
        ("date=1,date=2,amount=3", "date twice"),
        ("date=-1,amount=3", "sign before date"),
        ("date=0,amount=3", "from 1 to 100"),
        ("date=1,amount=GBP", "amount as a column's number"),
        ("date=1,amount=2,currency=XXQ", "currency as a column's number or an ISO 4217 code"),
    ],
)
def test_an_invalid_layout_is_refused(text: str, reason: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_layout(text)
    assert reason in caught.value.detail


def test_a_column_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InvalidRequest, match=r".*") as caught:
        read("x.csv", b"13/01/2026,A,1.00\n", parse_layout("date=1,amount=7"))
    assert caught.value.detail == "x.csv has 3 columns: no column 7 for amount"


def test_a_layout_as_text_parses_to_the_same_layout() -> None:
    layout = Layout({"date": 1, "amount": 3}, "-", "GBP")
    assert parse_layout(str(layout)) == layout


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.csv", "Date,Details,Amount,Balance (USD)\n2026-03-01,RENT,-10.00,90.00\n2026-03-02,SALE,5.00,95.00\n"),
        ("x.csv", "Account: 1111 1111 USD\nDate,Details,Amount\n2026-03-01,RENT,-10.00\n2026-03-02,SALE,5.00\n"),
        ("x.csv", "Account,Date,Details,Amount\nUSD Saver,2026-03-01,RENT,-10.00\nUSD Saver,2026-03-02,SALE,5.00\n"),
        ("export_USD_2026.csv", "Date,Details,Amount\n2026-03-01,RENT,-10.00\n2026-03-02,SALE,5.00\n"),
    ],
    ids=["heading of balances", "line about the account", "account's name", "file's name"],
)
def test_a_currency_in_the_name_of_an_account_or_file_is_not_taken_for_aud(name: str, text: str) -> None:
    assert [each.rows["currency"].to_list() for each in read(name, text.encode()).statements] == [["USD", "USD"]]


def test_a_column_of_currencies_decides_before_names() -> None:
    text = "Date,Details,Amount,Currency\n2026-03-01,RENT,-10.00,AUD\n2026-03-02,SALE,5.00,AUD\n"
    assert [each.rows["currency"].to_list() for each in read("USD.csv", text.encode()).statements] == [["AUD", "AUD"]]
