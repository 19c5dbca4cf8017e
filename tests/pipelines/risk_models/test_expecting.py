"""What is expected of each customer of a file is decided by all of them together."""

from datetime import timedelta
from decimal import Decimal

import pytest

from pipelines.figures.facts import Facts
from pipelines.risk_models.expecting import decide_expected_evidence
from pipelines.scorecards.expected import Expected
from tests.pipelines.reports.examples import START, Row, row, transactions


@pytest.mark.parametrize(("categorised", "are_expected"), [(80, True), (75, True), (70, False), (0, False)])
def test_words_are_expected_only_if_most_rows_are_categorised(categorised: int, *, are_expected: bool) -> None:
    kinds = ["cost_of_sales/suppliers"] * categorised + ["unknown/unknown_debit"] * (100 - categorised)
    rows = [row(2 * day, "-10", kind=kind) for day, kind in enumerate(kinds)]
    expected = decide_expected_evidence(Facts(transactions(rows).collect(), START + timedelta(days=200)))
    assert (expected.words, expected.accounts, expected.months) == (are_expected, are_expected, True)


def _expected(rows: list[Row]) -> Expected:
    return decide_expected_evidence(Facts(transactions(rows).collect(), START + timedelta(days=200)))


def test_added_rows_do_not_make_words_unexpected() -> None:
    usual = [row(2 * day, "-10", kind="cost_of_sales/suppliers") for day in range(100)]
    lines = [row(2 * day, "0.00") for day in range(100)]
    for added in (lines, [row(20, "90000", kind="unknown/unknown_credit")]):
        assert _expected([*usual, *added]).words, added[0]
    assert not _expected([*usual, *(row(2 * day, "-10") for day in range(100))]).words


def test_balances_of_good_days_alone_are_still_expected_on_all() -> None:
    days = range(0, 200, 2)
    for stated, are_expected in ((set(days), True), ({2, 40}, True), ({198}, False), (set(), False)):
        rows = [row(day, "-10", balance=Decimal(100) if day in stated else None) for day in days]
        assert _expected(rows).balances == are_expected, sorted(stated)
