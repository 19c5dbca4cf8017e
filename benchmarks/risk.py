"""Measure how well risk predicts defaults on the synthetic portfolio: the default scorecard, a fitted one, and the
ceiling.

The ceiling is the AUC of the probability from which the portfolio draws its outcomes, which no statement shows.
"""

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np
import polars as pl

from benchmarks import evidence, fits
from benchmarks.accepted import accept_all
from benchmarks.fits import CUSTOMERS, MONTHS, UNTIL, list_outcomes
from benchmarks.table import Row, seconds
from pipelines.enrichment.enrichment import enrich
from pipelines.reports.risk.rating import rating
from pipelines.risk_models import cohorts, files, fitted
from pipelines.scorecards import measures
from pipelines.scorecards.comparison import describe_comparison
from pipelines.synthetic import portfolio
from pipelines.vocabulary.schemas import TRANSACTIONS

TITLE = "Risk against outcomes"
SEED = 20_261_102
# What the same command gave before coverage, ceilings and the metrics of time at low balances were added.
WAS = {"AUC": "was 0.733", "mean": "was 0.047, 0.096", "without descriptions": "was 0.693"}
ABOUT = (
    f"{CUSTOMERS} synthetic businesses over {MONTHS} months whose outcomes a causal model draws. AUCs have a 95 % "
    "bootstrap interval; those of fitted models come from cross-validation in up to five folds, repeated five times. "
    "Without descriptions: a plain file with only days, amounts and balances."
)


def measure() -> Sequence[Row]:
    businesses = list(portfolio(CUSTOMERS, MONTHS, SEED, UNTIL))
    rows = accept_all(businesses).select(pl.exclude("^true_.*$"))
    enriched = enrich(pl.DataFrame(schema=TRANSACTIONS), rows).transactions.collect()
    cases = list_outcomes(businesses)
    started = perf_counter()
    cohort = cohorts.cohort_from_transactions(enriched, cases)
    read = perf_counter()
    facts = fitted.fit(cohort, "synthetic", "portfolio").facts
    ended = perf_counter()
    truth = np.array([business.outcome.probability for business in businesses])
    current = enriched.filter(pl.col("superseded_seq").is_null())
    ceiling = measures.auc(cohort.defaulted, truth)
    scores = fitted.default_scores(cohort)
    return [
        Row("customers, of whom defaulted", f"{facts['cases']}, {facts['defaults']}"),
        Row("AUC of the true probability", f"{ceiling:.3f}", "ceiling"),
        Row("AUC of the default scorecard", _auc(facts, "defaultScorecardAuc"), WAS["AUC"]),
        Row("the same above chance, as a share of the true probability's", _describe_reach(facts, ceiling), "≥ 0.85"),
        Row("mean value, mean true probability", f"{scores['value'].mean():.4f}, {truth.mean():.4f}", WAS["mean"]),
        Row("AUC of a fitted model", _auc(facts, "auc")),
        Row("the same", describe_comparison(facts["comparison"])),
        Row("the same, KS and Brier score", f"{facts['ks']:.3f}, {facts['brier']:.4f}"),
        Row("Brier score of the base rate", f"{facts['brierOfBaseRate']:.4f}"),
        Row("share that defaulted by default rating", _default_rates_by_rating(cohort)),
        *_measure_with_words("without descriptions", current, cases, ceiling, pl.lit("")),
        *_measure_with_words("invented words", current, cases, ceiling, _invent_words()),
        *evidence.measure(current, rows, UNTIL, SEED),
        Row("readings of all customers", seconds(read - started)),
        Row("fit, cross-validation and all", seconds(ended - read)),
        *fits.measure(),
    ]


def _measure_with_words(
    name: str, current: pl.DataFrame, cases: pl.DataFrame, ceiling: float, words: pl.Expr
) -> list[Row]:
    """Measure on a plain file with other words; what to expect is decided from the file."""
    rows = current.select(
        "date",
        "amount",
        "balance",
        customer=pl.col("customer_number").cast(pl.String),
        account="account_number",
        description=words,
    )
    named = cases.select("case", "as_of", "defaulted", customer=pl.col("customer_number").cast(pl.String))
    cohort = cohorts.cohort_from_files(rows, files.Outcomes(named, (), ()))
    facts = fitted.fit(cohort, "synthetic", "portfolio").facts
    return [
        Row(f"{name}: expected evidence", ", ".join(cohort.expected.names)),
        Row(f"{name}: AUC of the default scorecard", _auc(facts, "defaultScorecardAuc"), WAS.get(name, "")),
        Row(
            f"{name}: the same above chance, as a share of the true probability's",
            _describe_reach(facts, ceiling),
            "≥ 0.85",
        ),
        Row(f"{name}: share that defaulted by default rating", _default_rates_by_rating(cohort)),
        Row(f"{name}: AUC of a fitted model", _auc(facts, "auc")),
    ]


def _invent_words() -> pl.Expr:
    """Return descriptions in which each word is replaced by a meaningless one, always the same for the same word."""
    words = pl.col("description").str.to_lowercase().str.extract_all(r"[a-z]+")
    letters = "abcdefghijklmnopqrstuvwxyz"
    return words.list.eval(pl.element().str.replace_many(list(letters), list("xqzvjwkyfphgbtmdlsnrucoaie"))).list.join(
        " "
    )


def _describe_reach(facts: Mapping[str, Any], ceiling: float) -> str:
    return f"{(facts['defaultScorecardAuc'] - 0.5) / (ceiling - 0.5):.3f}"


def _auc(facts: Mapping[str, Any], name: str) -> str:
    low, high = facts[f"{name}Interval"]
    return f"{facts[name]:.3f} ({low:.3f} to {high:.3f})"


def _default_rates_by_rating(cohort: cohorts.Cohort) -> str:
    rated = (
        fitted.default_scores(cohort).group_by(rating=rating(pl.col("value"))).agg(pl.len(), pl.col("defaulted").mean())
    )
    return ", ".join(f"{name}: {share:.1%} of {count}" for name, count, share in rated.sort("rating").iter_rows())
