"""Calibrate the default scorecard to outcomes: intercept and slope of its log-odds, and nothing else.

Ranks do not change, so only the log loss on unseen customers shows whether the calibrated probabilities are better than
the uncalibrated ones.
"""

from math import log

from pipelines.scorecards.correction import recalibrate
from pipelines.scorecards.default import DEFAULT
from pipelines.scorecards.drift import reference
from pipelines.scorecards.fitting import Material, exact, measured, recalibrated, refuse_unlearnable
from pipelines.scorecards.scorecard import Calibration, Link, Scorecard


def calibrate(material: Material, calibration: Calibration, name: str) -> Scorecard:
    """Return the default scorecard with the link that makes these outcomes most likely.

    Raises:
        Unprocessable: nothing can be learned from these cases, with the reason.
    """
    refuse_unlearnable(material)
    correction = recalibrate(material.log_odds(), material.defaulted)
    doubling = float(DEFAULT.link.doubling) / correction.slope
    even = float(DEFAULT.link.even) + correction.intercept * doubling / log(2)
    facts = {
        **measured(
            material, recalibrated, lambda _: Material.log_odds, "uncalibrated default scorecard", by_rank=False
        ),
        "reference": reference(material.scored, [feature.metric for feature in DEFAULT.features]),
        "slopes": 1,
        "intercept": round(correction.intercept, 6),
        "slope": round(correction.slope, 6),
    }
    return Scorecard(name, "1", calibration, DEFAULT.features, Link(exact(even, 4), exact(doubling, 4)), facts)
