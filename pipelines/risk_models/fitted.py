"""Fit a scorecard to a cohort, and score the same cases with the scorecard that comes with Tidemark."""

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipelines.metrics import Metrics
from pipelines.risk_models.cohorts import DEFAULT_METRICS, Cohort, load_metrics_and_flows
from pipelines.scorecards import calibrating, fitting
from pipelines.scorecards.default import DEFAULT
from pipelines.scorecards.scorecard import COVERAGE, COVERAGE_OF, READING, Calibration, Scorecard
from pipelines.scorecards.training import Prior, TrainingCases

_BETTER = {"higher_is_better": True, "lower_is_better": False, "neutral": None}


def default_scores(cohort: Cohort) -> pl.DataFrame:
    """Return `case, customer, as_of, defaulted`, and `points` and `value` by the scorecard that comes with Tidemark."""
    scored = DEFAULT.score(cohort.default_readings).select("points", "value")
    return pl.concat([cohort.cases.select("case", "customer", "as_of", "defaulted"), scored], how="horizontal")


def default_risk(cohort: Cohort) -> NDArray[np.float64]:
    """Return each case's risk by the scorecard that comes with Tidemark; higher is riskier."""
    return -default_scores(cohort)["points"].cast(pl.Float64).to_numpy()


def fit(cohort: Cohort, calibration: Calibration, name: str) -> Scorecard:
    """Correct the scorecard that comes with Tidemark by a cohort's outcomes.

    Raises:
        Unprocessable: nothing can be learned from its cases.
    """
    return fitting.fit(_training_cases(cohort), calibration, name)


def calibrate(cohort: Cohort, calibration: Calibration, name: str) -> Scorecard:
    """Calibrate the scorecard that comes with Tidemark to a cohort's outcomes.

    Raises:
        Unprocessable: nothing can be learned from its cases.
    """
    return calibrating.calibrate(_training_cases(cohort), calibration, name)


def score_cases(cohort: Cohort, scorecard: Scorecard) -> pl.Series:
    """Return each case's value by a scorecard that was fitted to a cohort with the same readings."""
    further = cohort.further.select(
        *(pl.col(name).cast(READING) for name in cohort.further_names),
        *(_coverage(name, cohort.further.columns) for name in cohort.further_names),
    )
    return scorecard.score(pl.concat([cohort.default_readings, further], how="horizontal"))["value"]


def _coverage(name: str, columns: Sequence[str]) -> pl.Expr:
    coverage = COVERAGE_OF + name
    return (pl.col(coverage) if coverage in columns else pl.lit(1)).cast(COVERAGE).alias(coverage)


def _training_cases(cohort: Cohort) -> TrainingCases:
    metrics = load_metrics_and_flows()
    return TrainingCases(
        scored=DEFAULT.score(cohort.default_readings),
        further=cohort.further,
        priors={name: _prior(name, metrics) for name in (*DEFAULT_METRICS, *cohort.further_names)},
        defaulted=cohort.defaulted,
        customers=cohort.cases["customer"].rank("dense").to_numpy().astype(np.int64),
    )


def _prior(feature: str, metrics: Metrics) -> Prior:
    if feature not in metrics:
        return Prior(feature, "Given with the outcomes.")
    metric = metrics[feature]
    step = Decimal(1) if metric.unit in ("count", "months") else Decimal("0.0001")
    return Prior(metric.name, metric.meaning, _BETTER[metric.direction], step)
