"""Statements in the forms that banks are known to print, drawn by hand, so that not only the generator's are read.

A line is its cells; `<` stands left of a text that ends at its column's right edge.
"""

import io
from decimal import Decimal

from reportlab.pdfgen.canvas import Canvas

from pipelines.intake.pdf.extraction import extract
from pipelines.intake.pdf.page.result import Statement, Verdict

COLUMNS = {"a": 40, "b": 110, "c": 300, "d": 420}
EDGES = {"d": 380, "c": 460, "b": 550}  # debit, credit, balance


def read_lines(*lines: str) -> Statement:
    content = io.BytesIO()
    canvas = Canvas(content, pagesize=(595, 842))
    canvas.setFont("Helvetica", 9)
    for number, line in enumerate(lines):
        for cell in filter(None, (cell.strip() for cell in line.split("|"))):
            place, text = cell.split(":", 1)
            height = 800 - 13 * number
            if place.startswith("<"):
                canvas.drawRightString(EDGES[place[1:]], height, text)
            else:
                canvas.drawString(COLUMNS[place], height, text)
    canvas.save()
    (statement,) = extract(content.getvalue()).statements
    return statement


def amounts(statement: Statement) -> list[str]:
    return [str(entry.amount) for entry in statement.entries]


def test_an_empty_credit_may_be_a_dollar_sign_and_the_year_may_be_in_the_text() -> None:
    statement = read_lines(
        "a:Your Statement",
        "c:Statement 15|<b:(Page 1 of 1)",
        "c:Account Number|<b:06 2000 12345678",
        "c:Statement Period|<b:1 Jul 2024 - 31 Dec 2024",
        "c:Closing Balance|<b:$90.00 CR",
        "a:Smart Access",
        "a:Name:|b:JOHN CITIZEN",
        "a:NetBank",
        "",
        "a:Date|b:Transaction|<d:Debit|<c:Credit|<b:Balance",
        "a:01 Jul|b:2024 OPENING BALANCE|<b:$100.00 CR",
        "a:02 Jul|b:WOOLWORTHS 1234 SYDNEY",
        "b:Card xx1234",
        "b:Value Date: 30/06/2024|<d:60.00|<c:$|<b:$40.00 CR",
        "a:05 Jul|b:Salary ACME PTY LTD|<c:$50.00|<b:$90.00 CR",
        "a:31 Dec|b:2024 CLOSING BALANCE|<b:$90.00 CR",
        "",
        "a:Opening balance|b:- Total debits|c:+ Total credits|d:= Closing balance",
        "a:$100.00 CR|b:$60.00|c:$50.00|d:$90.00 CR",
    )
    assert (statement.bank, statement.bsb, statement.account_number) == ("cba", "062000", "12345678")
    assert (statement.verdict, amounts(statement)) == (Verdict.RECONCILED, ["-60.00", "50.00"])


def test_a_year_may_be_above_its_days_and_empty_cells_may_say_blank() -> None:
    statement = read_lines(
        "a:ACCESS ADVANTAGE STATEMENT",
        "a:STATEMENT NUMBER 12",
        "a:02 DECEMBER 2023 TO 02 JANUARY 2024",
        "c:Branch number (BSB)|d:013-304",
        "c:Account number|d:4691-20106",
        "a:Opening balance|c:+$130.83",
        "a:Closing balance|c:+$100.00",
        "a:Australia and New Zealand Banking Group Limited (ANZ) ABN 11 005 357 522",
        "",
        "a:Date|b:Transaction Details|<d:Withdrawals ($)|<c:Deposits ($)|<b:Balance ($)",
        "a:2023|<d:blank|<c:blank",
        "a:02 DEC|b:OPENING BALANCE|<d:blank|<c:blank|<b:130.83",
        "a:20 DEC|b:VISA DEBIT|<d:50.83|<c:blank|<b:80.00",
        "b:EFFECTIVE DATE 18 DEC 2023",
        "a:2024|<d:blank|<c:blank",
        "a:02 JAN|b:TRANSFER FROM SAVINGS|<d:blank|<c:20.00|<b:100.00",
        "b:TOTALS AT END OF PAGE|<d:$50.83|<c:$20.00",
    )
    assert (statement.bank, statement.account_type) == ("anz", "transaction")
    assert [entry.date.isoformat() for entry in statement.entries] == ["2023-12-20", "2024-01-02"]
    assert (statement.verdict, amounts(statement)) == (Verdict.RECONCILED, ["-50.83", "20.00"])


def test_two_cards_of_one_account_are_one_statement_of_a_debt() -> None:
    statement = read_lines(
        "a:CommBank",
        "a:Low Rate Mastercard|c:Account number|<b:5353 16XX XXXX 1234",
        "c:Statement period|<b:14 Mar 2025 - 13 Apr 2025",
        "c:Opening balance|<b:$1,000.00",
        "c:Closing balance|<b:$630.00",
        "c:Credit limit|<b:$5,000",
        "c:Minimum payment due|<b:$25.00",
        "",
        "a:Transactions for card number ending in 1234",
        "a:Date|b:Transaction Details|<b:Amount (A$)",
        "a:15 Mar|b:WOOLWORTHS SYDNEY|<b:60.00",
        "a:20 Mar|b:Payment Received, Thank You|<b:500.00-",
        "",
        "a:Transactions for card number ending in 9876",
        "a:Date|b:Transaction Details|<b:Amount (A$)",
        "a:22 Mar|b:SHELL COLES EXPRESS|<b:70.00",
        "",
        "a:Commonwealth Bank of Australia ABN 48 123 123 124 AFSL and Australian credit licence 234945",
    )
    assert (statement.bank, statement.account_type, statement.account_number) == ("cba", "credit_card", "1234")
    assert (statement.opening_balance, statement.closing_balance) == (Decimal("-1000.00"), Decimal("-630.00"))
    assert statement.credit_limit == Decimal("5000.00")
    assert (statement.verdict, amounts(statement)) == (Verdict.RECONCILED, ["-60.00", "500.00", "-70.00"])


def test_a_savings_account_with_its_own_label_and_a_summary_in_a_row_is_read() -> None:
    statement = read_lines(
        "a:ING",
        "a:Mr John Citizen|c:BSB number:|d:923 100",
        "a:1 Smith Street|c:Savings Maximiser number:|d:12345678",
        "a:PARRAMATTA NSW 2150|c:Statement from:|d:01/07/2024 to 31/12/2024",
        "",
        "a:Opening balance|b:Total money in|c:Total money out|d:Closing balance",
        "a:$100.00|b:$50.00|c:-$60.00|d:$90.00",
        "",
        "a:Date|b:Details|<d:Money out $|<c:Money in $|<b:Balance $",
        "a:02/07/2024|b:Transfer to JOHN|<d:-60.00|<b:40.00",
        "a:31/07/2024|b:Interest Credit|<c:50.00|<b:90.00",
        "a:01/08/2024|b:Rate Changed to 5.50%",
        "a:Total interest|<c:50.00",
        "a:ING, a business name of ING Bank (Australia) Limited ABN 24 000 893 292 AFSL 229823",
    )
    assert (statement.bank, statement.bsb, statement.account_number) == ("ing", "923100", "12345678")
    assert (statement.account_name, statement.account_type) == ("Mr John Citizen", "savings")
    assert (statement.verdict, amounts(statement)) == (Verdict.RECONCILED, ["-60.00", "50.00"])


def test_interest_increases_the_debt_of_a_home_loan() -> None:
    statement = read_lines(
        "a:Bank of Melbourne",
        "a:HOME LOAN STATEMENT",
        "c:BSB/Acct ID No.|<b:193-879 123456789",
        "c:Statement Start Date|<b:01/01/2025",
        "c:Statement End Date|<b:31/01/2025",
        "",
        "a:Date|b:Transaction Description|<d:Debit|<c:Credit|<b:Loan Balance",
        "a:01 Jan|b:2025 Opening Balance|<b:350,000.00",
        "a:15 Jan|b:INTERNET PMT|<c:2,000.00|<b:348,000.00",
        "a:31 Jan|b:INTEREST|<d:1,500.00|<b:349,500.00",
        "a:31 Jan|b:2025 Closing Balance|<b:349,500.00",
        "a:Bank of Melbourne - A Division of Westpac Banking Corporation ABN 33 007 457 141 AFSL 233714",
    )
    assert (statement.bank, statement.account_type, statement.bsb) == ("bank_of_melbourne", "loan", "193879")
    assert (statement.opening_balance, statement.closing_balance) == (Decimal("-350000.00"), Decimal("-349500.00"))
    assert (statement.verdict, amounts(statement)) == (Verdict.RECONCILED, ["2000.00", "-1500.00"])
