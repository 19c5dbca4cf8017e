"""The default scorecard and a fitted one rank the businesses of the synthetic portfolio that default."""

from datetime import date

import numpy as np
import polars as pl
import pytest

from benchmarks import evidence
from benchmarks.accepted import accept_all
from benchmarks.fits import UNTIL, list_outcomes
from pipelines.enrichment.enrichment import enrich
from pipelines.risk_models import cohorts, fitted
from pipelines.scorecards import measures
from pipelines.synthetic import portfolio
from pipelines.vocabulary.schemas import TRANSACTIONS
from tests.pipelines.reports.examples import row, transactions


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_default_and_fitted_scorecards_rank_defaults() -> None:
    businesses = list(portfolio(300, 13, 5, UNTIL))
    rows = accept_all(businesses).select(pl.exclude("^true_.*$"))
    enriched = enrich(pl.DataFrame(schema=TRANSACTIONS), rows).transactions.collect()
    cohort = cohorts.cohort_from_transactions(enriched, list_outcomes(businesses))
    best = measures.auc(cohort.defaulted, np.array([each.outcome.probability for each in businesses]))
    facts = fitted.fit(cohort, "synthetic", "portfolio").facts
    assert facts["defaultScorecardAuc"] > 0.62
    assert facts["auc"] > 0.6
    assert facts["auc"] < best + 0.08
    assert facts["brier"] < facts["brierOfBaseRate"] * 1.02
    current = enriched.filter(pl.col("superseded_seq").is_null())
    whole = evidence.score(current, UNTIL)
    for name, less in (
        ("words", evidence.blank_words(current, pl.lit(value=True))),
        ("balances", evidence.without_balances(current)),
    ):
        assert (evidence.score(less, UNTIL)["points"] <= whole["points"]).all(), name


def test_a_case_has_stored_transactions_up_to_its_day() -> None:
    rows = transactions([row(day, "10", customer_number=7, balance="10") for day in range(200)]).collect()
    first: date = rows["date"][0]
    days = [first.replace(month=month) for month in (3, 6)]
    cases = pl.DataFrame(
        {"case": [1, 2, 3], "customer": list("aab"), "customer_number": [7, 7, None], "as_of": [*days, days[0]]}
    ).with_columns(defaulted=pl.Series([0, 1, 0], dtype=pl.Int8))
    cohort = cohorts.cohort_from_transactions(rows, cases)
    assert cohort.without_transactions == 1
    assert cohort.cases["case"].to_list() == [1, 2]
    seen = [(day - first).days // 30 + 1 for day in days]
    assert cohort.default_readings["months_of_history"].to_list() == seen
