"""Cards of unknown issuers and statements with pages missing, from bytes to verdict.

With every sign inverted, the opening balance and the rows still add up to the closing balance. So only what is printed
can show that an account is a debt.
"""

import pytest

from pipelines.intake.pdf.extraction import extract
from pipelines.intake.pdf.page.result import Extraction, Statement, Verdict
from tests.pipelines.intake.pdf.drawing import HEADING, Drawing, statement

OWED = ["-94.13", "-20.00", "50.00"]
BARE = ("94.13", "20.00", "-50.00")


def card(head: list[str], printed: tuple[str, str, str] = BARE, payment: str = "PAYMENT - THANK YOU") -> Statement:
    drawing = Drawing()
    for text in (*head, "Statement period 5 Jul 2025 - 4 Aug 2025", ""):
        label, _, amount = text.partition(" | ")
        drawing.line((45, label), *([(-300, amount)] if amount else []))
    drawing.line((45, "Date"), (110, "Details"), (-550, "Amount"))
    for day, text, amount in zip((5, 6, 7), ("JB HI FI CHATSWOOD", "UBER EATS", payment), printed, strict=True):
        drawing.line((45, f"0{day} Jul"), (110, text), (-550, amount))
    (found,) = extract(drawing.finish()).statements
    return found


BALANCES = ["Opening balance | 100.00", "Closing balance | 164.13"]


@pytest.mark.parametrize(
    "head",
    [
        ["Harbour Rewards Mastercard", *BALANCES],
        ["Harbour Everyday Rewards", *BALANCES, "Minimum payment due | $40.00"],
        ["Harbour Rewards", *BALANCES, "Credit limit | $6,000.00", "Available credit | $4,500.00"],
        ["Harbour Rewards", *BALANCES, "Pay by 29 Aug 2025. Minimum amount due $40.00. Credit limit $6,000"],
        ["Harbour Rewards", *BALANCES],
    ],
)
def test_a_card_is_recognised_by_its_name_its_minimum_payment_or_its_minus_signs(head: list[str]) -> None:
    found = card(head)
    assert (found.verdict, [str(entry.amount) for entry in found.entries]) == (Verdict.RECONCILED, OWED)
    assert (str(found.opening_balance), str(found.closing_balance)) == ("-100.00", "-164.13")


@pytest.mark.parametrize(
    ("balances", "printed"),
    [
        (["Opening balance | 100.00 DR", "Closing balance | 164.13 DR"], BARE),
        (["Opening balance | 100.00 DR", "Closing balance | 164.13 DR"], ("94.13", "20.00", "50.00 CR")),
        (["Opening balance | -100.00", "Closing balance | -164.13"], ("-94.13", "-20.00", "50.00")),
    ],
)
def test_a_card_is_a_debt_whichever_mark_its_balances_have(balances: list[str], printed: tuple[str, str, str]) -> None:
    found = card(["Harbour Low Rate Visa", *balances], printed)
    assert (found.verdict, [str(entry.amount) for entry in found.entries]) == (Verdict.RECONCILED, OWED)


def test_signs_are_unproved_if_it_may_be_an_account_or_a_debt() -> None:
    found = card(["Harbour Rewards", *BALANCES], payment="HARBOUR LANE")
    assert (found.verdict, "SignsUnproved") == (Verdict.PARTIAL, found.reasons[-1].code)


@pytest.mark.parametrize("title", ["Harbour Lane Bank", "Harbour Lane Business Account"])
@pytest.mark.parametrize(
    "taking", ["EFTPOS SETTLEMENT", "WORLDLINE EFTPOS", "CASH ADVANCE PROSPA", "PURCHASE ORDER 12", "SCHOOL FEES"]
)
def test_takings_of_a_business_do_not_make_its_account_a_debt(title: str, taking: str) -> None:
    """All signs and balances would be inverted, and the balances would still agree."""
    drawing = Drawing().lines(
        ((45, title),),
        ((45, "Statement period 5 Jul 2025 - 4 Aug 2025"),),
        ((45, "Account number 12345678"),),
        ((45, ""),),
        ((45, "Date"), (110, "Details"), (-470, "Amount"), (-550, "Balance")),
        ((45, "05 Jul"), (110, "OPENING BALANCE"), (-550, "100.00")),
        ((45, "06 Jul"), (110, taking), (-470, "50.00"), (-550, "150.00")),
        ((45, "07 Jul"), (110, "RENT"), (-470, "-20.00"), (-550, "130.00")),
        ((45, "08 Jul"), (110, taking), (-470, "50.00"), (-550, "180.00")),
        ((45, "04 Aug"), (110, "CLOSING BALANCE"), (-550, "180.00")),
    )
    (found,) = extract(drawing.finish()).statements
    assert [str(entry.amount) for entry in found.entries] == ["50.00", "-20.00", "50.00"]
    assert str(found.closing_balance) == "180.00"


@pytest.mark.parametrize(
    "holder", ["SYDNEY MORTGAGE BROKERS PTY LTD", "Personal Loan Solutions", "Acme Mortgage Pty Ltd"]
)
def test_the_name_of_a_business_that_deals_with_loans_is_no_type(holder: str) -> None:
    drawing = Drawing().line((45, holder))
    for text in (
        "Business Account",
        "Statement period 1 Mar 2024 - 31 Mar 2024",
        "BSB 123-456 Account number 12345678",
    ):
        drawing.line((45, text))
    drawing.line((45, "Date"), (110, "Details"), (-470, "Amount"), (-550, "Balance"))
    drawing.line((45, "01 Mar"), (110, "OPENING BALANCE"), (-550, "500.00"))
    drawing.line((45, "02 Mar"), (110, "RENT"), (-470, "-5.00"), (-550, "495.00"))
    drawing.line((45, "31 Mar"), (110, "CLOSING BALANCE"), (-550, "495.00"))
    (found,) = extract(drawing.finish()).statements
    assert (found.account_type, str(found.closing_balance)) == ("transaction", "495.00")
    assert [str(entry.amount) for entry in found.entries] == ["-5.00"]


def extract_two_pages(*, first: bool, last: bool) -> Extraction:
    """Extract four rows on two pages, either of which may be missing."""
    drawing = statement() if first else Drawing()
    if first:
        drawing.line(*HEADING).line((45, "01 Mar 2024"), (110, "OPENING BALANCE"), (-550, "100.00"))
        for day in (2, 3):
            drawing.line((45, f"0{day} Mar 2024"), (110, "COFFEE"), (-400, "5.00"), (-550, f"{105 - 5 * day}.00"))
        drawing.line((110, "SUB TOTAL CARRIED FORWARD TO NEXT PAGE"), (-550, "90.00"))
    if first and last:
        drawing.next_page()
    if last:
        drawing.line(*HEADING).line((110, "SUB TOTAL BROUGHT FORWARD FROM PREVIOUS PAGE"), (-550, "90.00"))
        for day in (4, 5):
            drawing.line((45, f"0{day} Mar 2024"), (110, "COFFEE"), (-400, "5.00"), (-550, f"{105 - 5 * day}.00"))
        drawing.line((45, "31 Mar 2024"), (110, "CLOSING BALANCE"), (-550, "80.00"))
    return extract(drawing.finish())


def test_pages_that_follow_each_other_are_proved() -> None:
    assert extract_two_pages(first=True, last=True).statements[0].verdict is Verdict.RECONCILED


@pytest.mark.parametrize(("first", "last"), [(True, False), (False, True)])
def test_a_missing_page_is_reported_and_proves_nothing(first: bool, last: bool) -> None:
    found = extract_two_pages(first=first, last=last)
    assert found.statements[0].verdict is Verdict.PARTIAL
    assert "PageMissing" in [reason.code for reason in found.statements[0].reasons]
    assert "PageMissing" in [signal.code for signal in found.signals]
