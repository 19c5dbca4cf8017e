"""The choice among several printed balances: the only pair that agrees with the rows, or none."""

from decimal import Decimal

import pytest

from pipelines.intake.pdf.extraction import extract
from pipelines.intake.pdf.page.result import Extraction, Verdict
from tests.pipelines.intake.pdf.drawing import Drawing

Lines = tuple[tuple[tuple[float, str], ...], ...]
PAYMENT = "500.00"


def card(*panels: tuple[tuple[float, str], ...], payment: str = PAYMENT) -> Extraction:
    """Extract a card's statement with a `payment` and a charge of 65.00; a genuine one goes from 500.00
    to 65.00 owed.
    """
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
    return extract(drawing.finish())


OPENING, CLOSING = ((45.0, "Opening balance"), (-300.0, "$500.00")), ((45.0, "Closing balance"), (-300.0, "$65.00"))
OF_NEXT_PANEL: dict[str, Lines] = {
    "beside the label": (((45, "Opening balance"), (-300, "$9,999.00")), ((45, "$500.00"),), CLOSING),
    "in a panel before": (((45, "Opening balance"), (-300, "$9,999.00")), OPENING, CLOSING),
    "closing in a panel behind": (OPENING, CLOSING, ((45, "Closing balance"), (-300, "$9,999.00"))),
}


def codes(found: Extraction) -> tuple[set[str], set[str]]:
    """Return the codes of reasons, and of signals of manipulation."""
    return {each.code for each in found.statements[0].reasons}, {each.code for each in found.signals}


def test_a_balance_in_the_next_panel_does_not_make_a_genuine_statement_unreconciled(subtests: pytest.Subtests) -> None:
    for place, panels in OF_NEXT_PANEL.items():
        with subtests.test(place):
            found = card(*panels)
            (statement,) = found.statements
            stated = statement.opening_balance, statement.closing_balance
            assert (stated, statement.verdict) == ((Decimal(-500), Decimal(-65)), Verdict.RECONCILED)
            reasons, signals = codes(found)
            assert "BalancesChosen" in reasons
            assert "BalanceContradicted" not in signals


def test_if_no_pair_agrees_the_balances_are_unknown_and_not_a_sign_of_manipulation(subtests: pytest.Subtests) -> None:
    for place, panels in OF_NEXT_PANEL.items():
        with subtests.test(place):
            found = card(*panels, payment="5,000.00")
            reasons, signals = codes(found)
            assert found.statements[0].verdict is Verdict.UNRECONCILED
            assert ("BalancesAmbiguous" in reasons, "BalanceMismatch" in reasons) == (True, False)
            assert "BalanceContradicted" not in signals


def test_if_several_pairs_agree_none_is_chosen() -> None:
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
