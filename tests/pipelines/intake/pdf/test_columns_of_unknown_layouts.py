"""Headings, columns and dates in the layouts of unknown banks, each of which was once read wrongly."""

from collections.abc import Sequence

import pytest

from pipelines.intake.pdf.extraction import extract
from pipelines.intake.pdf.page.result import Statement, Verdict
from tests.pipelines.intake.pdf.drawing import FOUR, HEADING, Drawing, four_rows, statement


def only(content: bytes) -> Statement:
    (found,) = extract(content).statements
    return found


def rows(found: Statement) -> list[tuple[str, str, str]]:
    return [(str(each.date), str(each.amount), str(each.balance)) for each in found.entries]


def extract_wrapped_dates(date: str, rest: str, *, text: str = "COFFEE") -> Statement:
    """Read four rows with wrapped dates, the first of them as given."""
    drawing = statement().line(*HEADING, step=16)
    drawing.line((45, date), (110, text), (-400, "5.00"), (-550, "95.00"), step=10).line((45, rest), step=14)
    drawing.line((45, "03 Mar 2024"), (110, "SALARY"), (-470, "1,000.00"), (-550, "1,095.00"))
    drawing.line((45, "31 Mar 2024"), (110, "CLOSING BALANCE"), (-550, "1,095.00"))
    return only(drawing.finish())


@pytest.mark.parametrize(
    ("date", "rest"),
    [
        ("02", "MAR"),
        ("02 Mar", "24"),
        ("2024-03-", "02"),
        ("2024-", "03-02"),
        ("02/03/", "2024"),
        ("9:45am", "02-03-24"),
    ],
)
def test_the_two_halves_of_a_wrapped_date_are_joined(date: str, rest: str) -> None:
    assert [str(each.date) for each in extract_wrapped_dates(date, rest).entries] == ["2024-03-02", "2024-03-03"]


def test_a_day_below_a_date_without_a_year_begins_the_next_date() -> None:
    drawing = statement("1 July 2024 - 31 August 2024").line(*HEADING, step=16)
    drawing.line((45, "31 JUL"), (110, "COFFEE"), (-400, "5.00"), (-550, "95.00"))
    drawing.line((45, "01"), (110, "TEA"), (-400, "4.00"), (-550, "91.00"), step=10).line((45, "AUG"), step=14)
    assert [str(each.date) for each in only(drawing.finish()).entries] == ["2024-07-31", "2024-08-01"]


def test_a_row_with_an_unreadable_date_makes_dates_doubtful() -> None:
    drawing = statement().line(*HEADING, step=16)
    drawing.line((45, "01 Mar"), (110, "OPENING BALANCE"), (-550, "100.00"))
    drawing.line((45, "02 Mar"), (110, "COFFEE"), (-400, "5.00"), (-550, "95.00"))
    drawing.line((99, "3~"), (110, "TEA"), (-400, "5.00"), (-550, "90.00"))
    drawing.line((45, "31 Mar"), (110, "CLOSING BALANCE"), (-550, "90.00"))
    found = only(drawing.finish())
    assert len(found.entries) == 2
    assert found.verdict is Verdict.RECONCILED_DATES_DOUBTFUL


def test_a_date_alone_below_a_text_is_part_of_it_under_a_centred_heading() -> None:
    drawing = statement().line((45, "Date"), (200, "Details"), (-400, "Debit"), (-470, "Credit"), (-550, "Balance"))
    drawing.line((45, "01 Mar"), (110, "OPENING BALANCE"), (-550, "100.00"))
    drawing.line((45, "05 Mar"), (110, "COFFEE Value Date:"), (-400, "5.00"), (-550, "95.00"), step=10)
    drawing.line((110, "02/03/2024"), step=14)
    drawing.line((110, "TEA"), (-400, "5.00"), (-550, "90.00"))  # a day's date is printed once
    drawing.line((45, "31 Mar"), (110, "CLOSING BALANCE"), (-550, "90.00"))
    found = only(drawing.finish())
    assert [str(each.date) for each in found.entries] == ["2024-03-05", "2024-03-05"]
    assert found.entries[0].description == "COFFEE Value Date: 02/03/2024"


def test_dates_that_must_be_month_first_are_read_so_and_doubted() -> None:
    drawing = statement("1 July 2024 - 31 August 2024").line(*HEADING, step=16)
    drawing.line((45, "07/01/2024"), (110, "OPENING BALANCE"), (-550, "100.00"))
    drawing.line((45, "07/02/2024"), (110, "COFFEE"), (-400, "5.00"), (-550, "95.00"))
    drawing.line((45, "07/13/2024"), (110, "TEA"), (-400, "5.00"), (-550, "90.00"))
    drawing.line((45, "08/31/2024"), (110, "CLOSING BALANCE"), (-550, "90.00"))
    found = only(drawing.finish())
    assert [str(each.date) for each in found.entries] == ["2024-07-02", "2024-07-13"]
    assert found.verdict is Verdict.RECONCILED_DATES_DOUBTFUL


def test_a_table_without_a_readable_date_is_never_partly_read() -> None:
    drawing = statement().line(*HEADING, step=16)
    for balance in ("95.00", "90.00"):
        drawing.line((45, "so-and-so"), (110, "COFFEE"), (-400, "5.00"), (-550, balance))
    assert all(each.verdict is Verdict.UNRECONCILED for each in extract(drawing.finish()).statements)


HEADINGS: Sequence[tuple[tuple[float, str], ...]] = (
    ((45, "Date"), (110, "Payment type and details"), (-400, "Paid out"), (-470, "Paid in"), (-550, "Balance")),
    ((45, "Date"), (110, "Details"), (-400, "Debits"), (-495, "Credits"), (-550, "Loan Balance")),
    ((45, "Date"), (110, "Details"), (-430, "Withdrawals"), (-468, "Deposits"), (-550, "Balance")),
    ((45, "Date"), (110, "Details"), (-350, "Foreign Spending"), (-400, "Debit"), (-470, "Credit"), (-550, "Balance")),
)


@pytest.mark.parametrize("heading", HEADINGS)
def test_headings_close_to_each_other_are_separated(heading: tuple[tuple[float, str], ...]) -> None:
    found = only(four_rows(statement().line(*heading, step=16)).finish())
    assert rows(found) == FOUR
    assert found.verdict is Verdict.RECONCILED


def test_an_overdrawn_balance_is_in_its_column_although_its_digits_are_left_of_the_others() -> None:
    drawing = statement().line(*HEADING, step=16)
    balances = [60, 20, -20, -60]
    for day, balance in enumerate(balances, start=2):
        shown = f"{abs(balance)}.00" + (" OD" if balance < 0 else "")
        drawing.line((45, f"0{day} Mar"), (110, "SHOP"), (-400, "40.00"), (-550, shown))
    drawing.line((45, "31 Mar"), (110, "CLOSING BALANCE"), (-550, "60.00 OD"))
    found = only(drawing.finish())
    assert [each.balance for each in found.entries] == balances
    assert {each.amount for each in found.entries} == {-40}


def test_the_heading_of_a_table_of_fees_ends_the_rows() -> None:
    drawing = statement().line(*HEADING, step=16)
    drawing.line((45, "02 Mar"), (110, "COFFEE"), (-400, "5.00"), (-550, "95.00"))
    drawing.line((45, "03 Mar"), (110, "SALARY"), (-470, "1,000.00"), (-550, "1,095.00"), step=20)
    drawing.line((45, "Date"), (110, "Fee"), (200, "Number"), (300, "Amount"), (420, "Total"))
    drawing.line((45, "31 Mar"), (110, "Monthly fee"), (200, "1"), (300, "5.00"), (420, "5.00"))
    assert [str(each.amount) for each in only(drawing.finish()).entries] == ["-5.00", "1000.00"]


def test_a_column_of_plus_and_minus_gives_the_sign() -> None:
    drawing = statement().line((45, "Date"), (110, "Details"), (380, "+/-"), (-470, "Amount"), (-550, "Balance"))
    drawing.line((45, "01 Mar"), (110, "OPENING BALANCE"), (-550, "100.00"))
    drawing.line((45, "02 Mar"), (110, "COFFEE"), (385, "-"), (-470, "5.00"), (-550, "95.00"))
    drawing.line((45, "03 Mar"), (110, "SALARY"), (385, "+"), (-470, "7.00"), (-550, "102.00"))
    drawing.line((45, "31 Mar"), (110, "CLOSING BALANCE"), (-550, "102.00"))
    found = only(drawing.finish())
    assert [str(each.amount) for each in found.entries] == ["-5.00", "7.00"]
    assert found.verdict is Verdict.RECONCILED


def test_an_opening_balance_below_the_only_row_means_newest_first() -> None:
    drawing = statement().line(*HEADING, step=16)
    drawing.line((45, "31 Mar"), (110, "CLOSING BALANCE"), (-550, "95.00"))
    drawing.line((45, "02 Mar"), (110, "COFFEE"), (-400, "5.00"), (-550, "95.00"))
    drawing.line((45, "01 Mar"), (110, "OPENING BALANCE"), (-550, "100.00"))
    assert only(drawing.finish()).verdict is Verdict.RECONCILED


def test_the_title_above_the_first_heading_applies_to_its_rows() -> None:
    drawing = Drawing().line((45, "Harbour Lane Credit Card")).line((45, "Statement period 1 Mar 2024 - 31 Mar 2024"))
    drawing.line((45, "Opening balance $100.00")).line((45, "Closing balance $63.00"), step=24)
    for title, text, amount in (("Payments and credits", "PAID", "50.00"), ("Purchases", "SHOP", "13.00")):
        drawing.line((45, title), step=16).line((45, "Date"), (110, "Description"), (-470, "Amount"), step=14)
        drawing.line((45, "02 Mar"), (110, text), (-470, amount), step=24)
    found = only(drawing.finish())
    assert [str(each.amount) for each in found.entries] == ["50.00", "-13.00"]
    assert found.verdict is Verdict.RECONCILED


def with_totals(into: str, out: str) -> Statement:
    drawing = statement().line((45, "Total credits"), (-300, into)).line((45, "Total debits"), (-300, out), step=24)
    return only(four_rows(drawing.line(*HEADING, step=16)).finish())


def test_totals_of_the_summary_are_compared_with_the_rows() -> None:
    assert with_totals("1,000.00", "60.00").verdict is Verdict.RECONCILED
    wrong = with_totals("1,005.00", "65.00")  # a row of 5.00 in and one of 5.00 out are missing
    assert wrong.verdict is Verdict.PARTIAL
    assert [each.code for each in wrong.reasons] == ["TotalsMismatch"]


def test_totals_that_agree_with_inverted_signs_show_a_debt() -> None:
    assert [each.code for each in with_totals("60.00", "1,000.00").reasons] == ["TotalsMismatch"]


def test_totals_of_another_period_are_ignored() -> None:
    assert with_totals("12,345.00", "60.00").verdict is Verdict.RECONCILED
