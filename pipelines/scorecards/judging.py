"""Decide whether a model is better than another one, on cases that neither had seen.

Better means a lower log loss in at least MIN_LOWER of paired bootstraps, without losing more than MAX_AUC_LOST of
AUC. A model that only recalibrates leaves the ranks as they are, so for it the log loss decides.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.scorecards import measures
from pipelines.scorecards.comparison import MAX_AUC_LOST, MIN_LOWER
from pipelines.scorecards.measures import Outcomes, Values


def compare(
    forecasts: Values,
    others: Values,
    defaulted: Outcomes,
    customers: NDArray[np.int64],
    seed: int,
    *,
    by_rank: bool = True,
) -> dict[str, Any]:
    """Compare the log-odds that two models predict (repeats × cases), and say whether the first is `better`.

    Repeats of a cross-validation are averaged case by case before cases are drawn.
    """
    losses, of_others = (measures.log_losses(each, defaulted).mean(axis=0) for each in (forecasts, others))
    lower = measures.bootstrap_share_lower(losses - of_others, customers, seed)
    auc, of_other = (np.mean([measures.auc(defaulted, one) for one in each]) for each in (forecasts, others))
    change = float(auc - of_other)
    return {
        "logLoss": round(float(losses.mean()), 4),
        "logLossOfOther": round(float(of_others.mean()), 4),
        "lowerIn": round(lower, 3),
        "aucChange": round(change, 4) if by_rank else None,
        "better": lower >= MIN_LOWER and (change >= -MAX_AUC_LOST or not by_rank),
    }
