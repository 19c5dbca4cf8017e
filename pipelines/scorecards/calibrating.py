"""Calibrate the default scorecard to outcomes: only the intercept and the slope of its log-odds change.

Customers keep their order, so only the log loss on unseen customers shows whether the calibrated probabilities are
better than the uncalibrated ones.
"""

from math import log

from pipelines.scorecards.converting import to_decimal
from pipelines.scorecards.correction import recalibrate
from pipelines.scorecards.default import DEFAULT
from pipelines.scorecards.drift import make_reference
from pipelines.scorecards.scorecard import Calibration, Link, Scorecard
from pipelines.scorecards.training import TrainingCases, refuse_unlearnable
from pipelines.scorecards.unseen import forecast_recalibrated, measure_on_unseen
from pipelines.vocabulary.taxonomy import VERSION as TAXONOMY_VERSION


def calibrate(training: TrainingCases, calibration: Calibration, name: str) -> Scorecard:
    """Return the default scorecard with the link that makes these outcomes most likely.

    Raises:
        Unprocessable: nothing can be learned from these cases, with the reason.
    """
    refuse_unlearnable(training)
    correction = recalibrate(training.log_odds(), training.defaulted)
    doubling = float(DEFAULT.link.doubling) / correction.slope
    even = float(DEFAULT.link.even) + correction.intercept * doubling / log(2)
    facts = {
        **measure_on_unseen(
            training,
            forecast_recalibrated,
            lambda _: TrainingCases.log_odds,
            "uncalibrated default scorecard",
            by_rank=False,
        ),
        "reference": make_reference(training.scored, [feature.metric for feature in DEFAULT.features]),
        "taxonomy": TAXONOMY_VERSION,
        "slopes": 1,
        "intercept": round(correction.intercept, 6),
        "slope": round(correction.slope, 6),
    }
    return Scorecard(
        name, "1", calibration, DEFAULT.features, Link(to_decimal(even, 4), to_decimal(doubling, 4)), facts
    )
