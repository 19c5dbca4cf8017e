"""Which of several printed balances is the statement's: the pair that the rows make, and no guess where none does."""

from decimal import Decimal

import pytest

from pipelines.intake.pdf.extraction import extract
from pipelines.intake.pdf.page.result import Extraction, Verdict
from tests.pipelines.intake.pdf.drawing import Drawing

Lines = tuple[tuple[tuple[float, str], ...], ...]
PAYMENT = "500.00"


def card(*panels: tuple[tuple[float, str], ...], payment: str = PAYMENT) -> Extraction:
    """A card that is paid `payment` and charged 65.00: an honest one goes from 500.00 owed to 65.00 owed."""
    drawing = Drawing().lines(
        ((45, "Credit card statement"),),
        ((45, "Card number 4557 0123 4567 8901"),),
        ((45, "Statement period 1 Mar 2024 - 31 Mar 2024"),),
        ((45, "Minimum payment"), (-300, "$25.00")),
        *panels,
        ((45, "Date"), (110, "Details"), (-550, "Amount $")),
        ((45, "Payments and refunds"),),
        ((45, "05 Mar"), (110, "PAYMENT THANK YOU"), (-550, payment)),
        ((45, "Purchases"),),
        ((45, "06 Mar"), (110, "WOOLWORTHS"), (-550, "65.00")),
    )
    return extract(drawing.done())


OPENING, CLOSING = ((45.0, "Opening balance"), (-300.0, "$500.00")), ((45.0, "Closing balance"), (-300.0, "$65.00"))
OF_NEXT_PANEL: dict[str, Lines] = {
    "beside the label": (((45, "Opening balance"), (-300, "$9,999.00")), ((45, "$500.00"),), CLOSING),
    "in a panel before": (((45, "Opening balance"), (-300, "$9,999.00")), OPENING, CLOSING),
    "closing in a panel behind": (OPENING, CLOSING, ((45, "Closing balance"), (-300, "$9,999.00"))),
}


def codes(found: Extraction) -> tuple[set[str], set[str]]:
    """Of reasons, and of signals that a file may be forged."""
    return {each.code for each in found.statements[0].reasons}, {each.code for each in found.signals}


def test_a_balance_of_the_next_panel_makes_no_honest_statement_unreconciled(subtests: pytest.Subtests) -> None:
    for place, panels in OF_NEXT_PANEL.items():
        with subtests.test(place):
            found = card(*panels)
            (statement,) = found.statements
            stated = statement.opening_balance, statement.closing_balance
            assert (stated, statement.verdict) == ((Decimal(-500), Decimal(-65)), Verdict.RECONCILED)
            reasons, signals = codes(found)
            assert "BalancesChosen" in reasons
            assert "BalanceContradicted" not in signals


def test_where_no_pair_agrees_it_is_not_known_which_is_meant_and_no_sign_of_forgery(subtests: pytest.Subtests) -> None:
    for place, panels in OF_NEXT_PANEL.items():
        with subtests.test(place):
            found = card(*panels, payment="5,000.00")
            reasons, signals = codes(found)
            assert found.statements[0].verdict is Verdict.UNRECONCILED
            assert ("BalancesAmbiguous" in reasons, "BalanceMismatch" in reasons) == (True, False)
            assert "BalanceContradicted" not in signals


def test_where_several_pairs_agree_none_is_taken() -> None:
    others: Lines = (((45, "Opening balance"), (-300, "$600.00")), ((45, "Closing balance"), (-300, "$165.00")))
    found = card(OPENING, CLOSING, *others)
    (statement,) = found.statements
    assert (statement.opening_balance, statement.closing_balance, statement.verdict) == (None, None, Verdict.PARTIAL)
    assert "BalancesAmbiguous" in codes(found)[0]
    assert not any(entry.proved for entry in statement.entries)


def test_the_only_balances_that_contradict_the_rows_still_do() -> None:
    found = card(OPENING, CLOSING, payment="5,000.00")
    assert found.statements[0].verdict is Verdict.UNRECONCILED
    assert ("BalanceMismatch" in codes(found)[0], "BalanceContradicted" in codes(found)[1]) == (True, True)
