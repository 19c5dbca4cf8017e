"""Decide whether a model is better than another one, on cases that neither had seen.

Better means a lower log loss in at least LEAST_LOWER of paired bootstraps, without losing more than MOST_AUC_LOST of
rank. A model that only recalibrates leaves the ranks as they are, so for it the log loss decides.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.scorecards import measures
from pipelines.scorecards.measures import Outcomes, Values

LEAST_LOWER, MOST_AUC_LOST = 0.80, 0.005  # our judgement


def compare(
    forecasts: Values, others: Values, defaulted: Outcomes, customers: NDArray[np.int64], seed: int
) -> dict[str, Any]:
    """Compare the log-odds that two models foretell (repeats × cases), and say whether the first is `better`.

    Repeats of a cross-validation are averaged case by case before cases are drawn.
    """
    losses, of_others = (measures.log_losses(each, defaulted).mean(axis=0) for each in (forecasts, others))
    lower = measures.lower_in(losses - of_others, customers, seed)
    auc, of_other = (np.mean([measures.auc(defaulted, one) for one in each]) for each in (forecasts, others))
    change = float(auc - of_other)
    return {
        "logLoss": round(float(losses.mean()), 4),
        "logLossOfOther": round(float(of_others.mean()), 4),
        "lowerIn": round(lower, 3),
        "aucChange": round(change, 4),
        "better": lower >= LEAST_LOWER and change >= -MOST_AUC_LOST,
    }


def in_words(comparison: Mapping[str, Any]) -> str:
    """Return one sentence on the comparison, for people and for the audit trail."""
    return (
        f"{'better' if comparison['better'] else 'not better'} than the {comparison['against']}: log loss on unseen "
        f"customers {comparison['logLoss']:.4f}, not {comparison['logLossOfOther']:.4f}, lower in "
        f"{comparison['lowerIn']:.0%} of paired bootstraps ({LEAST_LOWER:.0%} needed); AUC "
        f"{comparison['aucChange']:+.4f} (at least {-MOST_AUC_LOST})"
    )
