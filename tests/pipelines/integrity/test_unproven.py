"""Accounts whose balances prove nothing after a silence, until a person resolves it."""

from datetime import timedelta

from pipelines.figures.facts import Facts
from pipelines.integrity import findings, unproven_since
from tests.pipelines.integrity.test_findings import TODAY, resolved
from tests.pipelines.reports.completeness_examples import identified
from tests.pipelines.reports.examples import START, row, transactions


def test_balances_are_unproven_from_a_silence_on_until_a_person_resolves_it() -> None:
    days = [*range(100), *range(130, 230)]
    rows = [row(day, "-1", kind="cost_of_sales/suppliers") for day in days]
    silent = transactions(identified(rows)).collect()
    assert unproven_since(Facts(silent, TODAY))["unproven_since"].to_list() == [START + timedelta(days=130)]
    [found] = findings(Facts(silent, TODAY)).to_dicts()
    assert found["finding"] == "month_withheld"
    assert unproven_since(Facts(silent, TODAY, resolved(found["key"]))).is_empty()
