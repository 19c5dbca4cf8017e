"""Every metric of realistic customers is explained by transactions that add up to its value."""

import random
from datetime import date
from decimal import Decimal

import polars as pl
import pytest

from benchmarks.accepted import accept_all
from pipelines.enrichment.enrichment import enrich
from pipelines.figures.facts import Facts
from pipelines.figures.lineage import CONTRIBUTIONS, Constant, Formula, Sum, Trace, value_of
from pipelines.metrics import METRICS, cause_of, explain, values
from pipelines.synthetic import portfolio
from pipelines.vocabulary.errors import NotFound
from pipelines.vocabulary.schemas import ACCEPTED, TRANSACTIONS
from tests.pipelines.metrics.customers import customer, facts
from tests.pipelines.metrics.test_compute import ALL, LATER
from tests.pipelines.reports.completeness_examples import add_ids, facts_of
from tests.pipelines.reports.examples import add_balances, row

UNTIL = date(2026, 10, 31)
CLOSE = Decimal("0.0001")  # of the square root of a volatility


@pytest.fixture(scope="session")
def businesses() -> Facts:
    rows = accept_all(portfolio(2, 14, 5, until=UNTIL)).select(ACCEPTED.names())
    return Facts(enrich(pl.DataFrame(schema=TRANSACTIONS), rows).transactions.collect(), UNTIL)


def sums(traced: Trace | Constant) -> list[Sum]:
    if isinstance(traced, Formula):
        return [each for of in traced.inputs.values() for each in sums(of)]
    return [traced] if isinstance(traced, Sum) else []


def assert_explained(one: Facts, metrics: dict[str, object]) -> None:
    [figures] = values(one, ALL).to_dicts()
    ids = one.rows.select("transaction_id", day="date")
    for slug in metrics:
        traced = explain(one, slug, ALL)
        found = value_of(traced)
        if figures[slug] is not None and ALL[slug].unit == "ratio" and "volatility" in slug:
            assert isinstance(found, Decimal)
            assert abs(found - figures[slug]) <= CLOSE, slug
        else:
            assert found == figures[slug], slug
        for each in sums(traced):
            assert each.contributions.schema == CONTRIBUTIONS
            assert each.contributions.join(ids, on="transaction_id", how="anti").is_empty(), slug


FIRST_AND_SECOND = [0, pytest.param(1, marks=pytest.mark.slow)]


@pytest.mark.service  # explains every metric; kinds of metrics stay in `make test`
@pytest.mark.parametrize("nth", FIRST_AND_SECOND)
def test_every_metric_of_real_businesses_is_explained(businesses: Facts, nth: int) -> None:
    assert_explained(businesses.of_customer(businesses.customers["customer_number"][nth]), {**METRICS})


@pytest.mark.parametrize("seed", FIRST_AND_SECOND)
def test_every_kind_of_metric_of_the_language_is_explained(seed: int) -> None:
    rows = customer(random.Random(seed), rows=30, days=400)
    assert_explained(facts(rows, LATER), {**ALL})


def test_an_unavailable_metric_says_why_and_has_no_inputs() -> None:
    one = facts(customer(random.Random(1), rows=3, days=10), LATER)
    traced = explain(one, "revenue_365d")
    assert isinstance(traced, Formula)
    assert (traced.words, traced.inputs, traced.value) == ("unavailable: the history is too short", {}, None)


def test_of_equally_long_spells_the_latest_is_explained() -> None:
    amounts = {0: 9000, 10: -8950, 12: 8950, 20: -8950, 22: 8950, 30: -8950, 32: 8950}
    rows = add_ids(add_balances([row(day, str(amount)) for day, amount in amounts.items()], 0))
    last_short = rows[-2]["transaction_id"]
    for _ in range(10):  # the order of groups differs from run to run
        traced = explain(facts_of(rows, 40), "longest_below_7d_outflow_180d")
        [spell] = sums(traced)
        assert spell.contributions.rows() == [(last_short, 2)]


def test_a_formula_of_formulas_leads_to_rows(businesses: Facts) -> None:
    one = businesses.of_customer(businesses.customers["customer_number"][0])
    traced = explain(one, "debt_service_to_revenue_180d")
    assert isinstance(traced, Formula)
    assert list(traced.inputs) == ["seen_debt_service_180d", "seen_revenue_180d"]
    revenue = traced.inputs["seen_revenue_180d"]
    assert isinstance(revenue, Sum)
    [figures] = values(one).to_dicts()
    assert revenue.value == figures["seen_revenue_180d"]
    assert figures[cause_of("seen_revenue_180d")] is None


def test_unknown_metric_and_unknown_customer_are_not_found(businesses: Facts) -> None:
    with pytest.raises(NotFound):
        explain(businesses.of_customer(1), "no_such_metric")
    with pytest.raises(NotFound):
        explain(businesses.of_customer(-1), "revenue_90d")
