"""What is expected of each customer of a file is decided by all of them together."""

from datetime import timedelta

import pytest

from pipelines.figures.facts import Facts
from pipelines.risk_models.expecting import decide_expected_evidence
from tests.pipelines.reports.examples import START, row, transactions


@pytest.mark.parametrize(("categorised", "are_expected"), [(80, True), (75, True), (70, False), (0, False)])
def test_words_are_expected_only_if_most_rows_are_categorised(categorised: int, *, are_expected: bool) -> None:
    kinds = ["cost_of_sales/suppliers"] * categorised + ["unknown/unknown_debit"] * (100 - categorised)
    rows = [row(2 * day, "-10", kind=kind) for day, kind in enumerate(kinds)]
    expected = decide_expected_evidence(Facts(transactions(rows).collect(), START + timedelta(days=200)))
    assert (expected.words, expected.accounts, expected.months) == (are_expected, are_expected, True)
