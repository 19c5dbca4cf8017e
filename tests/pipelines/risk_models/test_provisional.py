"""Provisional revenue: credits whose size recurs, where words are not expected."""

from datetime import timedelta
from typing import Any

from pipelines.figures.facts import Facts
from pipelines.risk_models.provisional import with_provisional_revenue
from tests.pipelines.reports.examples import START, Row, row, transactions


def revenue(rows: list[Row]) -> list[Any]:
    """Return the amounts that count as revenue."""
    numbered = [{**each, "transaction_id": place.to_bytes(16, "big")} for place, each in enumerate(rows)]
    facts = with_provisional_revenue(Facts(transactions(numbered).collect(), START + timedelta(days=400)))
    return sorted(facts.rows.filter(facts.rows["is_revenue"])["amount"].to_list())


TAKINGS = [row(30 * month + 3, str(700 + 10 * month)) for month in range(8)]


def test_credits_of_a_size_that_recurs_are_revenue() -> None:
    assert revenue([*TAKINGS, row(5, "-800"), row(100, "50000")]) == sorted(each["amount"] for each in TAKINGS)


def test_a_size_that_comes_in_few_months_is_not() -> None:
    assert revenue([*TAKINGS, row(20, "3000"), row(50, "3100"), row(80, "3200")]) == revenue(TAKINGS)


def test_words_that_were_not_expected_count_for_nobody_but_what_the_client_stated_stays() -> None:
    loan = {"kind": "debt_funding/term_loan_funding"}
    named = [{**each, **row(0, "1", **loan), "date": each["date"], "amount": each["amount"]} for each in TAKINGS]
    assert revenue(named) == revenue(TAKINGS)
    assert revenue([{**each, "category_source": "correction"} for each in named]) == []


def test_own_transfers_are_none() -> None:
    assert revenue([{**each, "is_transfer": True} for each in TAKINGS]) == []
