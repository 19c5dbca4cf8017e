"""Fit a scorecard to outcomes: correct the one that comes with Tidemark by as many slopes as the outcomes allow.

The default scorecard's points, before any ceiling, are the offset (`correction`). All of its features are weighted
anew, shrunk towards the weights that they have, so with weak evidence the fit is near the default scorecard with a
recalibrated link. Readings that the default scorecard doesn't have can earn points in two ways:

- by the ranks of one reading, in up to BANDS bands with about equally many cases;
- by the mean rank of all readings with a known direction. With few outcomes, equal weights predict nearly as well as
  fitted ones (Dawes, 1979), and they cost a single slope.

What is unknown earns nothing, so leaving data out never helps. A fitted scorecard is as monotone as the default one.

What is known of a feature's direction is a constraint: no weight of the default scorecard falls below 0, and a further
reading whose outcomes contradict its known direction gets no weight. Where no direction is known, the cases decide it.

Columns, bands, penalty and slopes are chosen anew in every fold, so that the result is tested on customers that it was
not fitted to. All cases of a customer are in one fold. `comparison` in the facts says whether the fit is better than
the recalibrated default scorecard of the same folds (`judging`).
"""

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

from pipelines.scorecards.columns import Column, FeaturePoints, Fit, column_values, list_columns
from pipelines.scorecards.converting import to_scorecard
from pipelines.scorecards.correction import Cases, choose_correction, most_slopes
from pipelines.scorecards.default import DEFAULT
from pipelines.scorecards.drift import make_reference
from pipelines.scorecards.scorecard import Calibration, Scorecard
from pipelines.scorecards.training import TrainingCases, refuse_unlearnable
from pipelines.scorecards.unseen import SEED, count_folds, forecast_recalibrated, measure_on_unseen
from pipelines.vocabulary.taxonomy import VERSION as TAXONOMY_VERSION


def fit(training: TrainingCases, calibration: Calibration, name: str) -> Scorecard:
    """Correct the default scorecard by what the outcomes show. The same cases give the same scorecard.

    Raises:
        Unprocessable: nothing can be learned from these cases, with the reason.
    """
    refuse_unlearnable(training)
    weights = most_slopes(training.defaulted) - 1  # one slope is the default scorecard's; every fold has as many
    fitted = _fit(training, weights)
    facts = {
        **measure_on_unseen(
            training, lambda seen: _fit(seen, weights).log_odds, forecast_recalibrated, "recalibrated default scorecard"
        ),
        "slopes": round(float(fitted.correction.slopes), 1),
        "coefficients": _coefficients(fitted),
        "reference": make_reference(training.scored, [feature.metric for feature in DEFAULT.features]),
        "taxonomy": TAXONOMY_VERSION,
        "versions": {package: version(package) for package in ("scipy", "numpy", "polars")},
    }
    return to_scorecard(fitted, training, calibration, name, facts)


def _fit(training: TrainingCases, weights: int) -> Fit:
    columns = list(list_columns(training))
    correction = choose_correction(_cases(columns, training), weights, count_folds(training.defaulted), SEED)
    return Fit(columns, correction)


def _cases(columns: Sequence[Column], training: TrainingCases) -> Cases:
    return Cases(
        scorecard=training.log_odds(),
        columns=column_values(columns, training),
        own=sum(isinstance(column, FeaturePoints) for column in columns),
        least=np.array([column.least for column in columns]),
        defaulted=training.defaulted,
        customers=training.customers,
    )


def _coefficients(fitted: Fit) -> list[dict[str, Any]]:
    """Return what is added to the log-odds: per point of a default feature, and per rank of further readings."""
    correction = fitted.correction
    return [
        {"column": "intercept", "coefficient": round(float(correction.intercept), 6)},
        {"column": "log-odds of the default scorecard", "coefficient": round(float(correction.slope), 6)},
        *(
            {"column": column.name, "of": column.unit, "coefficient": round(-weight, 6)}
            for column, weight in fitted.used_columns()
        ),
    ]
