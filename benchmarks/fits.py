"""Fit scorecards to several small portfolios and score them on fresh businesses: does fitting ever hurt?

For each seed, a scorecard is fitted to CUSTOMERS businesses. Its AUC on businesses of other seeds, which no fit saw, is
compared with the default scorecard's and with that of the true probability. Fits are scored whether or not they were
judged better, so this is the worst that `activate --anyway` can do.
"""

from collections.abc import Sequence
from datetime import date

import numpy as np
import polars as pl
from numpy.typing import NDArray

from benchmarks.accepted import accept_all
from benchmarks.table import Row
from pipelines.enrichment.enrichment import enrich
from pipelines.risk_models import cohorts, fitted
from pipelines.risk_models.cohorts import Cohort
from pipelines.scorecards import measures
from pipelines.scorecards.scorecard import Scorecard
from pipelines.synthetic import Business, portfolio
from pipelines.vocabulary.schemas import TRANSACTIONS

CUSTOMERS, MONTHS, UNTIL = 400, 14, date(2026, 10, 31)
# Twenty fits, scored on thirteen portfolios (about 5,000 fresh businesses), would take five times as long.
SEEDS, FRESH = range(1, 5), range(101, 104)


def measure() -> Sequence[Row]:
    fresh = [_cohort(seed) for seed in FRESH]
    defaulted = np.concatenate([cohort.defaulted for cohort, _ in fresh])
    truth = measures.auc(defaulted, np.concatenate([probability for _, probability in fresh]))
    default = measures.auc(defaulted, np.concatenate([fitted.default_risk(cohort) for cohort, _ in fresh]))
    scorecards = [fitted.fit(_cohort(seed)[0], "synthetic", f"seed {seed}") for seed in SEEDS]
    gains = [measures.auc(defaulted, _risk(each, [cohort for cohort, _ in fresh])) - default for each in scorecards]
    better = sum(each.facts["comparison"]["better"] for each in scorecards)
    return [
        Row("fits of 400, fresh customers, of whom defaulted", f"{len(SEEDS)}, {defaulted.size}, {defaulted.sum()}"),
        Row("fresh: AUC of the default scorecard, of the true probability", f"{default:.4f}, {truth:.4f}"),
        Row(
            "fresh: AUC above chance, the default's as a share of the true probability's",
            f"{(default - 0.5) / (truth - 0.5):.3f}",
            "≥ 0.85",
        ),
        Row("AUC of the worst fit, less the default scorecard's", f"{min(gains):+.4f}", "≥ -0.005"),
        Row(
            "share of the gap to the true probability closed, mean",
            f"{np.mean(gains) / (truth - default):.1%}",
            "≥ 20 %",
        ),
        Row("fits judged better, and their slopes", f"{better}, {[each.facts['slopes'] for each in scorecards]}"),
    ]


def _risk(scorecard: Scorecard, fresh: Sequence[Cohort]) -> NDArray[np.float64]:
    return np.concatenate([fitted.score_cases(cohort, scorecard).cast(pl.Float64).to_numpy() for cohort in fresh])


def _cohort(seed: int) -> tuple[Cohort, NDArray[np.float64]]:
    """Return a portfolio as a cohort, and each business's true probability."""
    businesses = list(portfolio(CUSTOMERS, MONTHS, seed, UNTIL))
    rows = accept_all(businesses).select(pl.exclude("^true_.*$"))
    enriched = enrich(pl.DataFrame(schema=TRANSACTIONS), rows).transactions.collect()
    truth = np.array([business.outcome.probability for business in businesses])
    return cohorts.cohort_from_transactions(enriched, list_outcomes(businesses)), truth


def list_outcomes(businesses: Sequence[Business]) -> pl.DataFrame:
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
