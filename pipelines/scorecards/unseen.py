"""Measure what a model predicts for customers that it was not fitted to, by cross-validation."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import expit

from pipelines.scorecards import measures
from pipelines.scorecards.correction import folds, recalibrate
from pipelines.scorecards.judging import compare
from pipelines.scorecards.measures import Outcomes, Values
from pipelines.scorecards.training import Forecast, Model, TrainingCases

# Our judgement.
FOLDS, REPEATS = 5, 5
DEFAULTS_PER_FOLD = 6  # at least; with fewer defaults there are fewer folds
SEED = 20_260_701  # fixed, so that the same cases give the same scorecard


def count_folds(defaulted: Outcomes) -> int:
    """Return the number of folds, at most FOLDS, so that each has enough cases of the rarer outcome."""
    fewest = int(min((defaulted == 1).sum(), (defaulted == 0).sum()))
    return max(2, min(FOLDS, fewest // DEFAULTS_PER_FOLD))


def measure_on_unseen(
    training: TrainingCases, model: Model, other: Model, against: str, *, by_rank: bool = True
) -> dict[str, Any]:
    """Measure what a model predicts for cases that it did not see, and compare it with another one on the same folds.

    Args:
        model, other: the model to measure, and the one to compare it with.
        against: the name of `other`, in words.
        by_rank: whether the model may change ranks, so that the AUC is compared, too.
    """
    count = count_folds(training.defaulted)
    forecasts, others = np.zeros((2, REPEATS, training.defaulted.size))
    for turn in range(REPEATS):
        for unseen in folds(training.customers, training.defaulted, count, SEED + turn):
            seen, held_out = training.select(~unseen), training.select(unseen)
            forecasts[turn, unseen], others[turn, unseen] = model(seen)(held_out), other(seen)(held_out)
    return {
        "cases": int(training.defaulted.size),
        "customers": int(np.unique(training.customers).size),
        "defaults": int(training.defaulted.sum()),
        "crossValidation": f"{count} folds, {REPEATS} times",
        **_measure_quality(training, expit(forecasts)),
        "comparison": {
            "against": against,
            **compare(forecasts, others, training.defaulted, training.customers, SEED, by_rank=by_rank),
        },
    }


def _measure_quality(training: TrainingCases, forecasts: Values) -> dict[str, Any]:
    defaulted, default_risk = training.defaulted, training.log_odds()
    low, high = measures.auc_interval(defaulted, list(forecasts), SEED)
    default_low, default_high = measures.auc_interval(defaulted, [default_risk], SEED)
    return {
        "auc": _mean([measures.auc(defaulted, forecast) for forecast in forecasts]),
        "aucInterval": [_round(low), _round(high)],
        "ks": _mean([measures.ks(defaulted, forecast) for forecast in forecasts]),
        "brier": _mean([measures.brier(defaulted, forecast) for forecast in forecasts]),
        "brierOfBaseRate": _round(float(defaulted.mean() * (1 - defaulted.mean()))),
        "defaultScorecardAuc": _round(measures.auc(defaulted, default_risk)),
        "defaultScorecardAucInterval": [_round(default_low), _round(default_high)],
        "calibrationTable": measures.calibration_table(defaulted, list(forecasts)),
    }


def forecast_recalibrated(seen: TrainingCases) -> Forecast:
    """Return how the default scorecard predicts with its intercept and slope fitted to these cases."""
    link = recalibrate(seen.log_odds(), seen.defaulted)
    return lambda held_out: link.intercept + link.slope * held_out.log_odds()


def _mean(values: Sequence[float]) -> float:
    return _round(sum(values) / len(values))


def _round(value: float) -> float:
    return round(float(value), 4)
