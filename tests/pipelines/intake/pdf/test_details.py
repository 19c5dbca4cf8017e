"""The account of a statement, its period, and what it states."""

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from pipelines.intake.pdf.document.documents import documents_of
from pipelines.intake.pdf.document.sections import split
from pipelines.intake.pdf.layout.layouts import Layout, layouts
from pipelines.intake.pdf.page.result import Kind
from pipelines.intake.pdf.statement.details import Details, details_of
from tests.pipelines.intake.pdf.pages import page

ROW = "02 Jan 2025 Shop | | 1.00 | 9.00"


def read_details(*texts: str, layout: Layout | None = None) -> Details:
    pages = [page(1, *texts, "", "", ROW)]
    return details_of(split(pages, layout)[0], documents_of(pages)[0], layout)


def layout_of(slug: str, document: str) -> Layout:
    return next(layout for layout in layouts() if (layout.slug, layout.document) == (slug, document))


@pytest.mark.parametrize(
    ("printed", "bsb", "number"),
    [
        (["BSB 062-000 Account number 1234 5678"], "062000", "12345678"),
        (["BSB: 062000", "Account No: 12-345-6789"], "062000", "123456789"),
        (["Account Number 06 2000 12345678"], "062000", "12345678"),
        (["BSB | Account Number", "033-106 | 344 566"], "033106", "344566"),
        (["BSB Account Number", "033-106 344 566"], "033106", "344566"),
        (["Branch number (BSB) 013-304", "Account number 4691-20106"], "013304", "469120106"),
        (["BSB/Acct ID No. 112-879 123456789"], "112879", "123456789"),
        (["Account: Business Everyday 084-416 761667395"], "084416", "761667395"),
        (["484-799 123456789 | Page 1"], "484799", "123456789"),
        (["Account number | 761667395", "BSB number | 633 000"], "633000", "761667395"),
        (["Card number xxxx xxxx xxxx 1234"], None, "1234"),
        (["Account number 5353 1100 2200 3300"], None, "5353110022003300"),
        (["BSB number: 923 100", "Savings Maximiser number: 12345678"], "923100", "12345678"),
        (["BSB 633 000", "Account 700000000"], "633000", "700000000"),
        (["Customer reference 12345678", "Customer number: 12345678"], None, None),
    ],
)
def test_bsb_and_account_number_are_read_beside_or_below_their_labels(
    printed: list[str], bsb: str | None, number: str | None
) -> None:
    details = read_details(*printed)
    assert (details.bsb, details.account_number) == (bsb, number)


@pytest.mark.parametrize(
    ("printed", "name"),
    [
        (["Account name Redgum Renovations Pty Ltd | Opening balance $10.00"], "Redgum Renovations Pty Ltd"),
        (["Account name(s)", "REDGUM RENOVATIONS"], "REDGUM RENOVATIONS"),
        (["Name: Redgum Renovations"], "Redgum Renovations"),
        (["Redgum Renovations | Statement 3", "1 High Street", "GOSFORD NSW 2250"], "Redgum Renovations"),
        (["Some Bank Limited", "GPO Box 1", "SYDNEY NSW 2001"], None),
        (["Account name", "BSB 062-000"], None),
        (["HARBOUR SAVER STATEMENT", "Redgum Renovations", "1 High Street", "GOSFORD NSW 2250"], "Redgum Renovations"),
        (["1 MAY 2025 TO 31 MAY 2025", "A Citizen", "1 High Street", "GOSFORD NSW 2250"], "A Citizen"),
        (["Account Details", "MS ALEX CITIZEN", "BSB 062-000"], "MS ALEX CITIZEN"),
        (["Account Details", "Fees and rates"], None),
        (["Home Loan Experts", "1 High Street", "GOSFORD NSW 2250"], "Home Loan Experts"),
        (["Home Loan Experts Pty Ltd", "Level 2", "1 High Street", "GOSFORD NSW 2250"], "Home Loan Experts Pty Ltd"),
    ],
)
def test_the_holder_is_named_by_label_or_in_the_address(printed: list[str], name: str | None) -> None:
    assert read_details(*printed).account_name == name


@pytest.mark.parametrize(
    ("printed", "start", "end"),
    [
        (["Statement Period 1 Jan 2025 - 31 Mar 2025"], date(2025, 1, 1), date(2025, 3, 31)),
        (["Statement Period", "30 June 2025 - 31 July 2025"], date(2025, 6, 30), date(2025, 7, 31)),
        (["02 APRIL 2024 TO 02 OCTOBER 2024"], date(2024, 4, 2), date(2024, 10, 2)),
        (["Statement starts 1 April 2025", "Statement ends 30 June 2025"], date(2025, 4, 1), date(2025, 6, 30)),
        (["from 15 Nov 23 to 29 Dec 23"], date(2023, 11, 15), date(2023, 12, 29)),
        (["from | 15 Nov 23", "to | 29 Dec 23"], date(2023, 11, 15), date(2023, 12, 29)),
        (["Statement from: 01/07/2024 to 31/12/2024"], date(2024, 7, 1), date(2024, 12, 31)),
        (["Period 16 Dec - 15 Jan 2025"], date(2024, 12, 16), date(2025, 1, 15)),
        (["Statementperiod 1Oct2025-31Oct2025"], date(2025, 10, 1), date(2025, 10, 31)),
        (
            ["Interest earned 1 Jul 2023 to 30 Jun 2024", "Statement period 1 Jul 2024 to 31 Jul 2024"],
            date(2024, 7, 1),
            date(2024, 7, 31),
        ),
        (["Statement date 31 March 2025"], None, date(2025, 3, 31)),
        (["Statement From | 1-Jul-2025", "Statement To | 30-Sep-2025"], date(2025, 7, 1), date(2025, 9, 30)),
        (["Period from 1 Jul 2025", "Period to 30 Sep 2025"], date(2025, 7, 1), date(2025, 9, 30)),
        (["Statement from: 01/07/2025 to: | Fees", "30/09/2025 | None"], date(2025, 7, 1), date(2025, 9, 30)),
        (["Statement from: 01/07/2025 to:", "Fees | 30/09/2025"], date(2025, 7, 1), None),
        (["31 Mar 2025 to 1 Jan 2025"], None, None),
    ],
)
def test_the_period_is_two_dates_joined_or_labelled(printed: list[str], start: date | None, end: date | None) -> None:
    details = read_details(*printed)
    assert (details.period_start, details.period_end) == (start, end)


@pytest.mark.parametrize(
    ("printed", "opening", "closing"),
    [
        (["Opening balance $100.00", "Closing balance $90.50"], "100.00", "90.50"),
        (["Opening balance $100.00 CR", "Closing balance $90.50 DR"], "100.00", "-90.50"),
        (["Opening balance -$100.00 | Closing balance +$90.50"], "-100.00", "90.50"),
        (["Closing balance as at 31 Mar 2025: | 1,090.50"], None, "1090.50"),
        (
            ["Opening balance | Total debits | Total credits | Closing balance", "$1.00 | $2.00 | $3.00 | $2.00"],
            "1",
            "2",
        ),
        (["Opening balance - Total debits + Total credits = Closing balance"], None, None),
        (["Balance brought forward | | 75.00"], "75.00", None),
        (["Closing balance | 10.00 | 20.00 | 35.00"], None, "35.00"),
        (["Closing balance is what you have on the last day"], None, None),
        (["Opening | Total | Closing", "balance | in | balance", "Name", "$1.00 | $2.00 | $3.00"], "1.00", "3.00"),
        (["Opening balance 1.00", "SUB TOTAL CARRIED FORWARD TO | 5.00", "NEXT PAGE"], "1.00", None),
        (["Sub total brought forward | 1.00 | 5.00", "Closing balance 2.00"], None, "2.00"),
        (["Balance carried forward | 5.00"], None, "5.00"),
    ],
)
def test_balances_are_read_beside_or_below_their_labels_from_the_holders_view(
    printed: list[str], opening: str | None, closing: str | None
) -> None:
    details = read_details(*printed)
    stated = (details.opening_balance, details.closing_balance)
    assert stated == tuple(None if each is None else Decimal(each) for each in (opening, closing))


CARD = ["Credit Card", "Credit limit $5,000.00 | Available credit $3,800.00"]


@pytest.mark.parametrize(
    ("printed", "closing", "is_owing"),
    [
        ([*CARD, "Closing balance $1,200.00"], "-1200.00", True),
        ([*CARD, "Closing balance $1,200.00 CR"], "1200.00", True),
        ([*CARD, "Closing balance $1,200.00 DR"], "-1200.00", False),
        ([*CARD, "Opening balance $10.00", "Closing balance -$20.00"], "20.00", True),
        ([*CARD, "Opening balance -$10.00", "Closing balance -$20.00"], "-20.00", False),
        ([*CARD, "Minimum payment $25.00", "Opening balance $10.00", "Closing balance -$20.00"], "-20.00", False),
        ([*CARD, "Minimum payment $0.00", "Opening balance -$10.00", "Closing balance $20.00"], "20.00", False),
        (["Coles Rewards Mastercard", "Closing balance $45.00"], "-45.00", True),
        (["Everyday Rewards", "Closing balance $45.00", "Minimum amount due | $40.00"], "-45.00", True),
        (["Qantas Platinum", "Pay by 29 Aug 2025. Min. payment $40. Closing balance $45.00"], "-45.00", True),
        (["Home Loan account", "Loan balance", "Closing balance 350,000.00"], "-350000.00", True),
        (["Account statement", "Total amount owing $45.00"], "-45.00", True),
        (["Everyday account", "Closing balance $1,200.00"], "1200.00", False),
    ],
)
def test_a_balance_of_a_debt_is_negative_whichever_way_it_is_printed(
    printed: list[str], closing: str, is_owing: bool
) -> None:
    details = read_details(*printed)
    assert (details.closing_balance, details.balance_is_owing) == (Decimal(closing), is_owing)


def test_a_limit_may_be_in_whole_dollars_and_a_balance_may_not() -> None:
    details = read_details("Credit limit | $12,500", "Closing balance | $200")
    assert (details.credit_limit, details.closing_balance) == (Decimal(12500), None)


def test_a_logo_above_the_address_is_not_the_holder() -> None:
    address = ("ING", "Redgum Renovations", "1 High Street", "GOSFORD NSW 2250")
    assert read_details(*address, layout=layout_of("ing", "statement")).account_name == "Redgum Renovations"


def test_a_credit_limit_is_read_and_is_not_a_balance() -> None:
    details = read_details(*CARD, "Closing balance $1,200.00")
    assert (details.credit_limit, details.account_type) == (Decimal("5000.00"), "credit_card")


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Business Online Saver", "savings"),
        ("Account type: Term Deposit", "term_deposit"),
        ("Variable Rate Home Loan", "loan"),
        ("Everyday Account", "transaction"),
        ("Platinum Visa Card", "credit_card"),
        ("Gem Visa", "credit_card"),
        ("Coles Rewards Mastercard statement", "credit_card"),
        ("Everyday account with Debit Mastercard", "transaction"),
        ("Minimum payment of cards explained", None),
        ("Ask us about a home loan when you next visit one of our many branches in your state", None),
        ("Apply for a credit card", None),
        ("Home Loan Offset Account", "transaction"),
        ("Account statement", None),
    ],
)
def test_the_account_type_is_read_from_titles_and_not_from_adverts(title: str, expected: str | None) -> None:
    assert read_details("Some Bank", title).account_type == expected


def test_a_layout_gives_the_types_of_product_names() -> None:
    assert read_details("Savings Maximiser", layout=layout_of("ing", "statement")).account_type == "savings"
    assert read_details("Access Advantage", layout=layout_of("anz", "statement")).account_type == "transaction"


@pytest.mark.parametrize(
    ("title", "kind"),
    [
        (["Account statement", "Statement number 4"], Kind.STATEMENT),
        (["Transaction listing", "Printed on 3 March 2025"], Kind.LISTING),
        (["Interim statement"], Kind.INTERIM),
        (["Transactions since your last statement"], Kind.INTERIM),
        (["Some Bank"], Kind.LISTING),
        (["1 Jan 2025 - 31 Jan 2025", "Opening balance 1.00", "Closing balance 9.00"], Kind.STATEMENT),
        (["Transaction history", "This is not a statement", "Statement period"], Kind.LISTING),
    ],
)
def test_a_document_is_what_it_calls_itself_or_else_a_listing(title: list[str], kind: Kind) -> None:
    assert read_details(*title).kind is kind


def test_the_bank_is_named_by_its_layout_or_else_by_its_pages() -> None:
    known: Any = read_details("Statement", layout=layout_of("nab", "statement"))
    assert (known.bank, known.bank_name) == ("nab", "NAB")
    legal = "Great Southern Bank, a business name of Credit Union Australia Ltd ABN 44 087 650 959"
    assert (read_details(legal).bank, read_details(legal).bank_name) == (None, "Great Southern Bank")
    assert read_details("Riverina Mutual", "Statement").bank_name == "Riverina Mutual"


def test_details_that_are_not_printed_are_none() -> None:
    details = read_details("Hello")
    unknown = (details.bank, details.bank_name, details.account_name, details.bsb, details.account_number)
    stated = (details.account_type, details.period_start, details.opening_balance, details.credit_limit)
    assert {*unknown, *stated} == {None}


def test_each_account_of_a_file_has_its_own_details_and_the_period_of_the_cover() -> None:
    table = ("", "Date | Details | Amount | Balance")
    pages = [
        page(
            1, "Statement period 1 Jan 2025 to 31 Jan 2025", "Page 1 of 2", "",
            "Everyday account", "BSB 814-879", "Account number 11112222", *table, "Opening balance | | | 10.00", ROW,
            "",
            "Online Saver", "BSB 814-879", "Account number 33334444", *table, "Opening balance | | | 20.00", ROW,
        )
    ]  # fmt: skip
    both = [details_of(section, documents_of(pages)[0], None) for section in split(pages, None)]
    assert [details.account_number for details in both] == ["11112222", "33334444"]
    assert [details.account_type for details in both] == ["transaction", "savings"]
    assert [details.opening_balance for details in both] == [Decimal("10.00"), Decimal("20.00")]
    assert {details.period_start for details in both} == {date(2025, 1, 1)}


def rows(*texts: str) -> list[str]:
    return [f"0{day} Jan 2025 {text}" for day, text in enumerate(texts, start=1)]


@pytest.mark.parametrize(
    ("printed", "minus", "is_debt"),
    [
        (rows("Uber | | 5.00", "Payment - thank you | | -9.00"), 1, True),
        (rows("Uber | | 5.00", "Refund Amazon | | 9.00-"), 1, True),
        (rows("Uber | | (5.00)", "Eftpos purchase | | (9.00)", "Salary | | 20.00"), -1, False),
        (rows("Uber | | -5.00", "Salary | | 20.00"), -1, False),
        (rows("Deposit reversal | | -5.00", "Rent | | 20.00"), None, False),
        (rows("Annual fee reversed | | -5.00", "Purchase | | 20.00"), 1, True),
        (rows("Uber | | -5.00", "Lyft | | 20.00"), None, False),
        (rows("Eftpos purchase | | 5.00", "Salary | | 20.00"), None, False),
        (rows("Opening balance | | -5.00", "Purchase | | 20.00 | -25.00"), None, False),
        (["Low Rate Visa", *rows("Uber | | 5.00", "Payment | | -9.00")], 1, True),
        (["BSB 123-456", *rows("Uber | | 5.00", "Refund | | -9.00")], 1, False),
    ],
)
def test_words_of_rows_show_what_a_minus_means_and_whether_it_is_a_debt(
    printed: list[str], minus: int | None, is_debt: bool
) -> None:
    pages = [page(1, "Somebody", *printed)]
    details = details_of(split(pages, None)[0], documents_of(pages)[0], None)
    assert (details.minus, details.is_debt) == (minus, is_debt)


def test_a_minimum_payment_of_zero_shows_that_the_balance_is_in_credit() -> None:
    printed = (
        *CARD,
        "Minimum payment $0.00",
        "Closing balance $20.00",
        *rows("Uber | 5.00 | -105.00", "Lyft | 5.00 | 20.00"),
    )
    pages = [page(1, *printed)]
    assert details_of(split(pages, None)[0], documents_of(pages)[0], None).closing_balance == Decimal("20.00")


def test_a_second_document_in_a_file_has_its_own_cover() -> None:
    table = ("Date | Details | Amount | Balance", "Opening balance | | | 10.00", ROW)
    pages = [
        page(1, "Riverina Mutual", "Statement period 1 Jan 2025 to 31 Jan 2025", "Account number 11112222",
             "Page 1 of 1", *table),
        page(2, "Harbour Bank", "Account number 33334444", "Page 1 of 1", *table),
    ]  # fmt: skip
    documents = documents_of(pages)
    both = [details_of(split(each.pages, None)[0], each, None) for each in documents]
    assert [details.bank_name for details in both] == ["Riverina Mutual", "Harbour Bank"]
    assert [details.period_start for details in both] == [date(2025, 1, 1), None]


def test_an_account_with_an_overdraft_limit_is_not_a_card() -> None:
    details = read_details(
        "BSB 123-456", "Credit limit $5,000.00 | Available credit $3,800.00", "Closing balance $10.00"
    )
    assert (details.account_type, details.is_debt, details.closing_balance) == (None, False, Decimal("10.00"))


def test_a_debt_is_one_even_if_its_balances_have_a_mark() -> None:
    details = read_details(*CARD, "Closing balance $1,200.00 DR")
    assert (details.is_debt, details.balance_is_owing) == (True, False)


def test_rows_distinguish_credit_from_debt_if_all_balances_have_a_minus() -> None:
    pages = [page(1, *CARD, "Closing balance -$9.00", *rows("Uber | | 5.00", "Payment, thank you | | -14.00"))]
    details = details_of(split(pages, None)[0], documents_of(pages)[0], None)
    assert (details.closing_balance, details.balance_is_owing) == (Decimal("9.00"), True)


def test_balances_of_rows_show_how_a_debt_is_printed_if_no_balance_is_stated() -> None:
    pages = [page(1, "Variable Rate Home Loan", *rows("Interest | 5.00 | -105.00", "Interest | 5.00 | -110.00"))]
    assert not details_of(split(pages, None)[0], documents_of(pages)[0], None).balance_is_owing


@pytest.mark.parametrize(
    ("printed", "described"),
    [("Everyday Account", True), ("BSB 123-456", True), ("Low Rate Visa", True), ("Hello", False)],
)
def test_signs_are_open_if_nothing_names_the_type_of_account(printed: str, described: bool) -> None:
    assert read_details(printed).signs_stated is described


def test_a_document_that_ends_with_a_closing_balance_is_not_a_listing() -> None:
    pages = [page(1, "Date | Details | Amount", ROW, "30 Sep 2025 CLOSING BALANCE | | | 9.00")]
    assert details_of(split(pages, None)[0], documents_of(pages)[0], None).kind is Kind.STATEMENT
