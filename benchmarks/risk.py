"""Measure how well risk predicts defaults on the synthetic portfolio: the default scorecard, a fitted one, and the
ceiling.

The ceiling is the AUC of the probability from which the portfolio draws its outcomes, which no statement shows.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from time import perf_counter
from typing import Any

import numpy as np
import polars as pl

from benchmarks.labelled import accepted
from benchmarks.table import Row, seconds
from pipelines.enrichment.enrichment import enrich
from pipelines.reports.risk.rating import rating
from pipelines.risk_models import cohorts, files, fitted
from pipelines.scorecards import measures
from pipelines.synthetic import Business, portfolio
from pipelines.vocabulary.schemas import TRANSACTIONS

TITLE = "Risk against outcomes"
CUSTOMERS, MONTHS, SEED, UNTIL = 400, 14, 20_261_102, date(2026, 10, 31)
ABOUT = (
    f"{CUSTOMERS} synthetic businesses over {MONTHS} months whose outcomes a causal model draws; AUC with a 95 % "
    "interval by bootstrap, of fitted models in five-fold cross-validation, five times. Without descriptions: a plain "
    "file, nothing but days, amounts and balances."
)


def measure() -> Sequence[Row]:
    businesses = list(portfolio(CUSTOMERS, MONTHS, SEED, UNTIL))
    rows = accepted(businesses).select(pl.exclude("^true_.*$"))
    enriched = enrich(pl.DataFrame(schema=TRANSACTIONS), rows).transactions.collect()
    cases = judged(businesses)
    started = perf_counter()
    cohort = cohorts.cohort_of_transactions(enriched, cases)
    read = perf_counter()
    facts = fitted.fit(cohort, "synthetic", "portfolio").facts
    ended = perf_counter()
    truth = np.array([business.outcome.probability for business in businesses])
    return [
        Row("customers, of whom defaulted", f"{facts['cases']}, {facts['defaults']}"),
        Row("AUC of the true probability", f"{measures.auc(cohort.defaulted, truth):.3f}", "ceiling"),
        Row("AUC of the default scorecard", _auc(facts, "defaultScorecardAuc")),
        Row("AUC of a fitted model", _auc(facts, "auc")),
        Row("the same, KS and Brier score", f"{facts['ks']:.3f}, {facts['brier']:.4f}"),
        Row("Brier score of the base rate", f"{facts['brierOfBaseRate']:.4f}"),
        Row("share that defaulted by default rating", _by_rating(cohort)),
        *_without_descriptions(enriched, cases),
        Row("readings of all customers", seconds(read - started)),
        Row("fit, 25 folds and all", seconds(ended - read)),
    ]


def judged(businesses: Sequence[Business]) -> pl.DataFrame:
    """Return the portfolio's outcomes as cases; the n-th business is customer n."""
    return pl.DataFrame(
        {
            "case": range(1, len(businesses) + 1),
            "customer_number": range(1, len(businesses) + 1),
            "customer": [business.abn for business in businesses],
            "as_of": [UNTIL] * len(businesses),
            "defaulted": [int(business.outcome.defaults) for business in businesses],
        },
        schema_overrides={"defaulted": pl.Int8},
    )


def _without_descriptions(enriched: pl.DataFrame, cases: pl.DataFrame) -> list[Row]:
    rows = enriched.filter(pl.col("superseded_seq").is_null()).select(
        "date",
        "amount",
        "balance",
        customer=pl.col("customer_number").cast(pl.String),
        account="account_number",
        description=pl.lit(""),
    )
    named = cases.select("case", "as_of", "defaulted", customer=pl.col("customer_number").cast(pl.String))
    cohort = cohorts.cohort_of_files(rows, files.Outcomes(named, (), ()))
    facts = fitted.fit(cohort, "synthetic", "portfolio").facts
    return [
        Row("without descriptions: AUC of the default scorecard", _auc(facts, "defaultScorecardAuc")),
        Row("without descriptions: AUC of a fitted model", _auc(facts, "auc")),
    ]


def _auc(facts: Mapping[str, Any], name: str) -> str:
    low, high = facts[f"{name}Interval"]
    return f"{facts[name]:.3f} ({low:.3f} to {high:.3f})"


def _by_rating(cohort: cohorts.Cohort) -> str:
    rated = (
        fitted.default_scores(cohort).group_by(rating=rating(pl.col("value"))).agg(pl.len(), pl.col("defaulted").mean())
    )
    return ", ".join(f"{name}: {share:.1%} of {count}" for name, count, share in rated.sort("rating").iter_rows())
