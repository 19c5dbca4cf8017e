"""Every number of the aggregate tables leads back to transactions that add up to it, or follows from such numbers."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from random import Random
from typing import Any

import polars as pl
import pytest

from benchmarks.accepted import accept_all
from pipelines.enrichment.enrichment import enrich
from pipelines.enrichment.facilities import summarise_facilities
from pipelines.figures.facts import Facts
from pipelines.figures.lineage import Formula, Sum
from pipelines.reports import REPORTS
from pipelines.reports.aggregate import TABLES, aggregate_report, compute_table, explain_aggregate
from pipelines.synthetic import portfolio
from pipelines.vocabulary.errors import NotFound
from pipelines.vocabulary.schemas import ACCEPTED, TRANSACTIONS
from tests.pipelines.reports.examples import LOAN, MAIN, SAVINGS, add_balances, facts, row
from tests.pipelines.reports.test_aggregate import generate_rows

UNTIL = date(2026, 10, 31)
Figure = tuple[tuple[str, ...], Any]


@pytest.fixture(scope="session")
def businesses() -> Facts:
    """Return three businesses of the synthetic portfolio over fourteen months, enriched."""
    sent = accept_all(portfolio(customers=3, months=14, seed=11, until=UNTIL)).select(ACCEPTED.names())
    enriched = enrich(pl.DataFrame(schema=TRANSACTIONS), sent).transactions.collect()
    return Facts(enriched, UNTIL)


def data_of(customer: Facts) -> dict[str, Any]:
    [text] = aggregate_report(customer)["data"]
    data: dict[str, Any] = json.loads(text, parse_float=Decimal)
    return data


def numbers(data: dict[str, Any]) -> Iterator[Figure]:
    """Yield every number in the tables' values, and its path."""
    for table in data["tables"]:
        for nth, value in enumerate(table["values"]):
            for name, figure in value.items():
                if isinstance(figure, int | Decimal) and not isinstance(figure, bool):
                    yield ("tables", table["id"], "values", str(nth), name), figure


def assert_explained(customer: Facts, data: dict[str, Any], figure: Figure) -> None:
    path, printed = figure
    traced = explain_aggregate(customer, data, path)
    assert (path, traced.value) == (path, printed)
    if isinstance(traced, Sum):
        ids = traced.contributions["transaction_id"]
        assert set(ids) <= set(customer.rows["transaction_id"])
    else:
        assert traced.words


def some(figures: list[Figure], of_each: int) -> list[Figure]:
    """Choose some figures of each column of each table at random."""
    random, by_column = Random(1), dict[tuple[str, str], list[Figure]]()
    for figure in figures:
        by_column.setdefault((figure[0][1], figure[0][4]), []).append(figure)
    return [figure for each in by_column.values() for figure in random.sample(each, min(of_each, len(each)))]


@pytest.mark.service  # every figure of a large report; odd customers stay in `make test`
def test_figures_of_a_realistic_report_are_explained(businesses: Facts) -> None:
    customer = businesses.of_customer(2)
    data = data_of(customer)
    chosen = some(list(numbers(data)), of_each=2)
    assert {path[1] for path, _ in chosen} >= {"monthly_cash_flow", "top_counterparties", "facilities", "daily_balance"}
    for figure in chosen:
        assert_explained(customer, data, figure)


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.timeout(600)
def test_every_figure_of_realistic_reports_is_explained(businesses: Facts, number: int) -> None:
    customer = businesses.of_customer(number)
    data = data_of(customer)
    for figure in numbers(data):
        assert_explained(customer, data, figure)


@pytest.mark.parametrize("seed", range(4))
def test_the_figures_of_odd_customers_are_explained(seed: int) -> None:
    random = Random(seed)
    customer = facts(generate_rows(random, random.choice((1, 12, 60))), date(2027, 1, 1))
    data = data_of(customer)
    for figure in some(list(numbers(data)), of_each=1):
        assert_explained(customer, data, figure)


def test_facilities_agree_with_enrichment(businesses: Facts) -> None:
    known = {
        each["facility_id"].hex(): (
            each["funding_amount"],
            each["repayment_count"],
            each["repaid_total"],
            each["status"],
        )
        for each in summarise_facilities(businesses.rows, UNTIL).to_dicts()
    }
    shown = {
        value["facilityId"].replace("-", ""): (
            value["fundingAmount"],
            value["repaymentCount"],
            value["repaidTotal"],
            value["status"],
        )
        for number in (1, 2, 3)
        for value in next(t for t in data_of(businesses.of_customer(number))["tables"] if t["id"] == "facilities")[
            "values"
        ]
    }
    assert shown == known
    assert shown


def test_a_closing_balance_rests_on_the_row_that_states_it_in_each_account() -> None:
    main = add_balances([row(0, "5", transaction_id=b"a" * 16), row(1, "5", transaction_id=b"b" * 16)])
    saved = row(0, "1", account_id=SAVINGS, balance=Decimal(7), transaction_id=b"c" * 16)
    owed = row(0, "1", account_id=LOAN, account_type="loan", balance=Decimal(-9), transaction_id=b"d" * 16)
    customer = facts([*main, saved, owed], date(2026, 1, 1))
    closing = explain_aggregate(customer, data_of(customer), ("tables", "0", "values", "0", "closingBalance"))
    assert isinstance(closing, Sum)
    assert {tuple(each) for each in closing.contributions.iter_rows()} == {(b"b" * 16, 1010), (b"c" * 16, 7)}


def test_a_mean_balance_follows_from_balances_times_days() -> None:
    customer = facts(
        add_balances([row(0, "5", transaction_id=b"a" * 16), row(9, "5", transaction_id=b"b" * 16)]), date(2026, 1, 1)
    )
    data, path = data_of(customer), ("tables", "monthly_cash_flow", "values", "0", "meanBalance")
    mean = explain_aggregate(customer, data, path)
    assert isinstance(mean, Formula)
    assert {name: value.value for name, value in mean.inputs.items() if isinstance(value, Sum)} == {
        "balanceDays": 9 * 1005 + 1010,
        "knownDays": 10,
    }
    days = explain_aggregate(customer, data, (*path, "knownDays"))
    assert isinstance(days, Sum)
    assert [tuple(each) for each in days.contributions.sort("transaction_id").iter_rows()] == [
        (b"a" * 16, 9),
        (b"b" * 16, 1),
    ]


def test_an_unknown_figure_is_not_found(subtests: pytest.Subtests) -> None:
    customer = facts([row(0, "5", account_id=MAIN, transaction_id=b"a" * 16)], date(2026, 1, 1))
    data = data_of(customer)
    unknown: Sequence[tuple[str, ...]] = (
        (),
        ("tables",),
        ("tables", "nothing", "values", "0", "net"),
        ("tables", "monthly_cash_flow", "values", "99", "net"),
        ("tables", "monthly_cash_flow", "values", "-1", "net"),
        ("tables", "monthly_cash_flow", "values", "0", "nothing"),
        ("tables", "monthly_cash_flow", "values", "0", "month"),
        ("tables", "monthly_cash_flow", "values", "0", "net", "nothing"),
    )
    for path in unknown:
        with subtests.test(path="/".join(path)), pytest.raises(NotFound):
            explain_aggregate(customer, data, path)


def test_table_ids_are_unique() -> None:
    assert len({each.id for each in TABLES}) == len(TABLES)


def test_a_table_computed_alone_is_that_of_the_report(businesses: Facts) -> None:
    customer = businesses.of_customer(businesses.customers["customer_number"][0])
    whole = data_of(customer)["tables"]
    for index, table in enumerate(TABLES):
        for named in (table.id, str(index)):
            alone = compute_table(customer, ("tables", named, "values", "0", "net"))
            assert alone is not None
            assert [each["values"] for each in alone["tables"]] == [
                whole[place]["values"] if place == index else [] for place in range(len(TABLES))
            ]
    assert compute_table(customer, ("unreconciled", "rows")) is None


def test_a_figure_is_traced_without_computing_the_report(businesses: Facts) -> None:
    customer = businesses.of_customer(businesses.customers["customer_number"][0])

    def refuse(_: Facts) -> pl.DataFrame:
        raise AssertionError("the whole report is computed")

    report = replace(REPORTS["aggregate"], compute=refuse)
    for path, value in {path[1]: (path, value) for path, value in numbers(data_of(customer))}.values():
        assert report.trace(customer, path).value == value
