"""Every line of an export is a row, a heading, or an exception that is counted and named."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.intake.exports import Contents, parse_layout, read
from pipelines.vocabulary.errors import InvalidRequest

HEADINGS = [
    ["Date", "Details", "Amount", "Balance"],
    ["Date", "Details", "Debit", "Credit", "Balance"],
    ["Date", "Details", "Outgoings", "Deposits", "Balance"],
    ["Posted", "What", "Debit", "Incomings"],
    None,
]
CELLS = st.sampled_from(
    [
        *("01/13/2026", "13/01/2026", "2026-02-03", "31/02/2026", "5 Mar 26", ""),
        *("12.50", "-7.00", "1,234.50 CR", "(5.00)", "1.000,00", "one", "$5", "GBP 5.00"),
        *("COFFEE", "Opening balance", "Card 4111", "Debit", "pending", " "),
    ]
)
VALID = st.tuples(
    st.sampled_from(["02/01/2026", "03/01/2026", "01/13/2026"]),
    st.sampled_from(["RENT", "SHOP"]),
    st.sampled_from(["5.00", "-5.00", ""]),
    st.sampled_from(["7.00", ""]),
)


@st.composite
def files(draw: st.DrawFn) -> str:
    """Draw lines of any kind around some valid ones, with or without a heading that may be repeated."""
    heading = draw(st.sampled_from(HEADINGS))
    any_line = st.one_of(st.just([]), st.lists(CELLS, max_size=7), VALID.map(list), st.just(heading or ["Report"]))
    table = [
        *draw(st.lists(st.lists(CELLS, max_size=3), max_size=3)),
        *([heading] if heading else []),
        *draw(st.lists(any_line, min_size=1, max_size=14)),
    ]
    target = io.StringIO(newline="")
    csv.writer(target, lineterminator="\n").writerows(table)
    return target.getvalue()


def lines_of(contents: Contents) -> list[int]:
    rows = [line for statement in contents.statements for line in statement.lines]
    return [*rows, *contents.refused["line"], *contents.no_rows["line"]]


@given(files(), st.sampled_from([None, "date=1,amount=3,description=2", "date=1,debit=3,credit=4"]))
def test_every_line_is_a_row_a_heading_or_an_exception(text: str, columns: str | None) -> None:
    try:
        contents = read("x.csv", text.encode(), None if columns is None else parse_layout(columns))
    except InvalidRequest:
        return
    described = lines_of(contents)
    assert contents.lines == len(text.splitlines())
    assert len(described) == len(set(described))
    assert len(described) + contents.headings == contents.lines


@pytest.mark.parametrize("newest_first", [False, True])
def test_without_a_heading_no_row_with_a_month_first_date_is_lost(newest_first: bool) -> None:
    lines = [f"{month:02}/{day:02}/2026,-{day}.00,SHOP {day}\n" for month, day in [(1, 13), (1, 31), (2, 2), (3, 4)]]
    contents = read("x.csv", "".join(lines[::-1] if newest_first else lines).encode())
    (statement,) = contents.statements
    assert statement.rows["date"].to_list() == ["2026-01-13", "2026-01-31", "2026-02-02", "2026-03-04"]
    assert contents.no_rows.is_empty()


def test_an_invalid_first_row_without_a_heading_is_still_a_row() -> None:
    (statement,) = read("x.csv", b"31/02/2026,-1.00,A\n01/02/2026,-1.00,B\n").statements
    assert statement.rows["date"].to_list() == ["31/02/2026", "2026-02-01"]


@pytest.mark.parametrize("heading", ["Withdrawal Amt.", "Amount (Dr)", "Debits (INR)", "Outgoings", "Charged to you"])
def test_debits_are_read_under_any_heading(heading: str) -> None:
    for balances in (("900.00", "950.00", "940.00"), ("", "", "")):
        text = (
            f"Date,Details,{heading},Deposits,Balance\n2026-01-13,SHOP,100.00,,{balances[0]}\n"
            f"2026-01-14,PAY,,50.00,{balances[1]}\n2026-01-15,SHOP,10.00,,{balances[2]}\n"
        )
        (statement,) = read("x.csv", text.encode()).statements
        assert statement.rows["amount"].to_list() == ["-100.00", "50.00", "-10.00"]


def test_a_row_without_an_amount_is_a_row_unless_its_words_state_a_balance() -> None:
    text = (
        "Date,Details,Amount,Balance\n2026-01-13,Opening balance,,100.00\n2026-01-13,SHOP,-10.00,90.00\n"
        "2026-01-14,ATM,,70.00\n2026-01-15,Balance c/fwd,,70.00\n"
    )
    contents = read("x.csv", text.encode())
    (statement,) = contents.statements
    assert statement.lines.to_list() == [3, 4]
    assert contents.no_rows.rows() == [(2, "with only a balance"), (5, "with only a balance")]


def test_rows_before_the_heading_are_refused() -> None:
    contents = read("x.csv", b"01/02/2026,RENT,-1.00\nDate,Details,Amount\n02/02/2026,SHOP,-2.00\n")
    assert contents.refused.select("line", "code").rows() == [(1, "Export.BeforeHeading")]
    assert contents.headings == 1


def test_rows_that_moved_no_money_are_refused() -> None:
    text = "Date,Details,Amount,State\n2026-01-13,A,-1.00,COMPLETED\n2026-01-14,B,-9.00,DECLINED\n"
    contents = read("x.csv", text.encode())
    assert contents.refused.select("line", "code").rows() == [(3, "Export.NoMoneyMoved")]


def _rows_and_lines(row: str) -> tuple[list[tuple[str, str, str]], list[tuple[int, str]]]:
    contents = read("export.csv", f"Date,Details,Amount,Balance\n2026-03-02,RENT,-10.00,\n{row}\n".encode())
    assert contents.refused.is_empty()
    rows = [row for each in contents.statements for row in each.rows.select("description", "amount", "balance").rows()]
    return [row for row in rows if row[0] != "RENT"], contents.no_rows.rows()


def test_amounts_of_balances_and_totals_are_no_payments() -> None:
    for row in (
        *("2026-03-01,OPENING BALANCE,5000.00,5000.00", "2026-03-31,Closing balance,-700.00,-700.00"),
        *("2026-03-01,B/FWD,5000.00,", "2026-03-01,Balance brought forward,5000.00,"),
        *("2026-03-01,Opening balance as at 01/03/2026,5000.00,", "2026-03-01,Opening balance,0.00,700.00"),
        *("2026-03-31,Available balance,700.00,700.00", "2026-03-31,FINAL BALANCE,500.00,500.00"),
    ):
        assert _rows_and_lines(row) == ([], [(3, "with only a balance")]), row
    for row in ("2026-03-31,Total debits,-300.00,", ",Total credits,700.00,", "2026-03-31,TOTALS OF DEPOSITS,700.00,"):
        assert _rows_and_lines(row) == ([], [(3, "with a total")]), row


def test_totals_are_recognised_by_their_sum_whatever_they_are_called() -> None:
    """Otherwise each would count all payments before it a second time."""
    first, second = "2026-03-01,RENT,-10.00\n2026-03-02,SHOP,-20.00\n", "2026-04-01,SALE,50.00\n2026-04-02,SHOP,-5.00\n"
    for text, all_rows, own_rows in (("Period total", "15.00", "45.00"), ("Total April", "15.00", "45.00")):
        for amount in (all_rows, own_rows):
            rows = f"{first}2026-03-31,Total March,-30.00\n{second}2026-04-30,{text},{amount}\n"
            contents = read("export.csv", f"Date,Details,Amount\n{rows}".encode())
            assert [each.rows["amount"].to_list() for each in contents.statements] == [
                ["-10.00", "-20.00", "50.00", "-5.00"]
            ], (text, amount)
            assert contents.no_rows.rows() == [(4, "with a total"), (7, "with a total")]
    contents = read("export.csv", f"Date,Details,Amount\n{first}2026-03-31,TOTAL TOOLS,-31.00\n".encode())
    assert [each.rows.height for each in contents.statements] == [3]


def test_payments_that_are_worded_like_balances_or_totals_are_rows() -> None:
    for row in (
        *("2026-03-31,CLOSING BALANCE,-500.00,0.00", "2026-03-31,FINAL BALANCE,500.00,", "2026-03-31,Balance,70.00,"),
        *("2026-03-31,BALANCE OF INVOICE 12,70.00,70.00", "2026-03-31,TOTAL TOOLS,-70.00,", "2026-03-31,Total,-70.00,"),
    ):
        date, *cells = row.split(",")
        assert _rows_and_lines(row) == ([tuple(cell or None for cell in cells)], []), date


def test_opening_balances_in_a_column_of_credits_are_no_payments() -> None:
    text = (
        "Date,Details,Debit,Credit,Balance\n2026-03-01,BALANCE B/F,,5000.00,5000.00\n2026-03-02,RENT,10.00,,4990.00\n"
    )
    contents = read("export.csv", text.encode())
    assert [each.rows["amount"].to_list() for each in contents.statements] == [["-10.00"]]
    assert contents.no_rows.rows() == [(2, "with only a balance")]


def test_statuses_are_read_whatever_they_are_called() -> None:
    statuses = {
        None: ("Posted", "COMPLETED", "Approved", "Authorised and settled", "Payment sent"),
        "pending": (
            "PENDING",
            "Pending - authorised",
            "Processing",
            "in_progress",
            "Scheduled",
            "Not yet posted",
            "HOLD",
        ),
        "Export.NoMoneyMoved": ("Denied", "Payment failed", "DECLINED_BY_BANK", "unsuccessful", "Cancelled by user"),
    }
    for becomes, texts in statuses.items():
        for text in texts:
            csv_text = f"Date,Details,Amount,Status\n2026-03-01,RENT,-10.00,Posted\n2026-03-02,SHOP,-5.00,{text}\n"
            contents = read("export.csv", csv_text.encode())
            read_as = [row for each in contents.statements for row in each.rows["status"].to_list()[1:]]
            assert [*read_as, *contents.refused["code"]] == [becomes], text
            assert not any("unknown status" in note for note in contents.notes), text


def test_rows_below_a_title_for_pending_ones_are_pending() -> None:
    """Otherwise a payment that was listed both pending and posted would count twice."""
    heading, row, other = "Date,Details,Amount\n", "2026-03-01,RENT,-10.00\n", "2026-03-02,SALE,5.00\n"
    for text in (
        f"Pending transactions\n{heading}{row}\nPosted transactions\n{heading}{row}{other}",
        f"{heading}Pending\n{row}Posted\n{row}{other}",
    ):
        contents = read("export.csv", text.encode())
        assert [each.rows["status"].to_list() for each in contents.statements] == [["pending", None, None]], text


def test_unknown_statuses_are_named_but_not_the_states_of_shops() -> None:
    row = "Date,Details,Amount,{}\n2026-03-01,RENT,-10.00,{}\n2026-03-02,SHOP,-5.00,{}\n"
    known, shops = (
        read("export.csv", row.format(*cells).encode())
        for cells in (("Status", "Posted", "Reversed"), ("State", "NSW", "VIC"))
    )
    assert "Rows with an unknown status count as posted: 'Reversed'." in known.notes
    assert not any("status" in note for note in shops.notes)


def _refusal_of(text: str) -> str:
    with pytest.raises(InvalidRequest) as refused:
        read("export.csv", text.encode())
    return refused.value.code


def test_a_file_of_several_tables_with_different_columns_is_refused() -> None:
    first = "Date,Details,Debit,Credit\n2026-03-01,RENT,10.00,\n2026-03-02,SALE,,20.00\n"
    for second in (
        "DATE,DETAILS,CREDIT,DEBIT\n2026-03-03,SALE,20.00,\n",
        "Date,Details,Amount,Balance\n2026-03-03,SALE,2,3\n",
    ):
        assert _refusal_of(first + second) == "Export.SecondHeading", second
    repeated = read("export.csv", (first + first.replace("Date,Details", "DATE,Details")).encode())
    assert (repeated.headings, [each.rows.height for each in repeated.statements]) == (2, [4])


def test_a_file_whose_lines_name_several_accounts_is_refused() -> None:
    table = "Date,Details,Amount,Balance\n2026-03-01,RENT,-10.00,90.00\n2026-03-02,SALE,20.00,110.00\n"
    for above, between in (
        *(("Account,11111111\n", "Account,22222222\n"), ("Account Number: 1111 1111\n", "\nAccount No. 2222 2222\n")),
        *(("", "A/C 11111111\n" + table + "A/C 22222222\n"), ("Account: Everyday\n", "Account: Business Saver\n")),
        *(("Account Name,Acme\n", "Account Name,Acme 2\n"), ("Everyday\n", "\nOnline Saver\n")),
        ("BSB: 062-000,Account: 11111111\n", "BSB: 062-000,Account: 22222222\n"),
        ("Business Transaction Account 1111 1111\n", "Online Saver 2222 2222\n"),
    ):
        assert _refusal_of(above + table + between + table) == "Export.SeveralAccounts", (above, between)
    for above, between in (
        *(("Account,11111111\n", "Account 1111-1111\n"), ("Account,11111111\nIBAN AU11111111\n", "Account,11111111\n")),
        ("Account,11111111\n", "Call 22222222 about your account\n"),
        *(("Account: Everyday\n", "Page 2\nAccount: Everyday\n"), ("Credit transactions\n", "Debit transactions\n")),
    ):
        contents = read("export.csv", (above + table + between + table).encode())
        assert [each.rows.height for each in contents.statements] == [4], (above, between)


def test_amounts_in_cents_or_thousands_are_refused() -> None:
    rows = "2026-03-01,RENT,-10\n2026-03-02,SALE,20\n"
    for heading in (
        *("Date,Details,Amount (cents)\n", "Date,Details,Amount (AUD '000)\n", "Date,Details,Amount in thousands\n"),
        *("All amounts in $'000\nDate,Details,Amount\n", "Date,Details,Amount ($k)\n", "Date,Details,Amount (c)\n"),
        *("date,details,amount_cents\n", "date,details,amountCents\n", "date,details,amount_minor\n"),
    ):
        assert _refusal_of(heading + rows) == "Export.OtherUnit", heading


def test_years_of_two_digits_may_come_first() -> None:
    rows = "Date,Details,Amount\n{},RENT,-10.00\n{},SHOP,-5.00\n{},SALE,20.00\n"
    for printed in (("26/03/01", "26/03/02", "26/03/13"), ("25-12-30", "25-12-31", "26-01-02")):
        contents = read("export.csv", rows.format(*printed).encode())
        iso = ["20" + text.replace("/", "-") for text in printed]
        assert [each.rows["date"].to_list() for each in contents.statements] == [iso], printed
        assert any("year first" in note for note in contents.notes), printed
    for printed in (("01/03/26", "02/03/26", "13/03/26"), ("26/03/25", "27/03/25", "25/03/26"), ("26/03/25",) * 3):
        contents = read("export.csv", rows.format(*printed).encode())
        iso = [f"20{text[6:]}-{text[3:5]}-{text[:2]}" for text in printed]
        assert [each.rows["date"].to_list() for each in contents.statements] == [iso], printed
