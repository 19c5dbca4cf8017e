"""Calibrate the default scorecard to outcomes: intercept and slope of its log-odds, and nothing else.

Ranks stay as they are, so the log loss on unseen customers alone says whether the calibrated probabilities are better
than those of the scorecard as it comes.
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
    found = recalibrate(material.log_odds(), material.defaulted)
    doubling = float(DEFAULT.link.doubling) / found.slope
    even = float(DEFAULT.link.even) + found.intercept * doubling / log(2)
    facts = {
        **measured(material, recalibrated, lambda _: Material.log_odds, "default scorecard as it comes", by_rank=False),
        "reference": reference(material.scored, [feature.metric for feature in DEFAULT.features]),
        "slopes": 1,
        "intercept": round(found.intercept, 6),
        "slope": round(found.slope, 6),
    }
    return Scorecard(name, "1", calibration, DEFAULT.features, Link(exact(even, 4), exact(doubling, 4)), facts)
