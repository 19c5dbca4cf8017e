"""Measures of how well a figure separated customers who defaulted from those who didn't."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Outcomes = NDArray[np.int8]  # 1: defaulted
RESAMPLES = 1_000  # of a bootstrap; our judgement: enough for an interval of two decimals
TENTHS = 10


def auc(defaulted: Outcomes, risk: Values) -> float:
    """Return the probability that a case that defaulted has a higher risk than one that didn't.

    0.5 means that the risk doesn't distinguish them.
    """
    bad, good = risk[defaulted == 1], np.sort(risk[defaulted == 0])
    wins = np.searchsorted(good, bad, "left") + np.searchsorted(good, bad, "right")  # two for each, one for a tie
    return float(wins.sum() / (2 * bad.size * good.size))


def auc_interval(defaulted: Outcomes, risks: Sequence[Values], seed: int) -> tuple[float, float]:
    """Return the 95 % interval of the AUC by bootstrap.

    Cases are drawn with replacement, as many defaults and as many others as there are. If there are several risks for
    each case (repeats of a cross-validation), the resamples use them in turn.
    """
    draws = np.random.default_rng(seed)
    bad, good = np.flatnonzero(defaulted == 1), np.flatnonzero(defaulted == 0)
    aucs = []
    for turn in range(RESAMPLES):
        drawn = np.concatenate([draws.choice(bad, bad.size), draws.choice(good, good.size)])
        aucs.append(auc(defaulted[drawn], risks[turn % len(risks)][drawn]))
    low, high = np.quantile(aucs, [0.025, 0.975])
    return float(low), float(high)


def ks(defaulted: Outcomes, risk: Values) -> float:
    """Return the Kolmogorov–Smirnov distance between the risks of cases that defaulted and of those that didn't."""
    bad, good = (np.sort(risk[defaulted == outcome]) for outcome in (1, 0))
    shares = (np.searchsorted(each, risk, "right") / each.size for each in (bad, good))
    return float(np.abs(np.subtract(*shares)).max())


def brier(defaulted: Outcomes, probability: Values) -> float:
    """Return the Brier score: the mean squared difference between probability and outcome."""
    return float(((probability - defaulted) ** 2).mean())


def log_losses(log_odds: Values, defaulted: Outcomes) -> Values:
    """Return each case's log loss."""
    losses: Values = np.logaddexp(0, log_odds) - defaulted * log_odds
    return losses


def bootstrap_share_lower(differences: Values, customers: NDArray[np.int64], seed: int) -> float:
    """Return the share of paired bootstraps in which the mean of the cases' differences is below 0.

    Customers are drawn with replacement, each with all of its cases.
    """
    _, numbers = np.unique(customers, return_inverse=True)
    sums = np.bincount(numbers, differences)
    drawn = np.random.default_rng(seed).integers(sums.size, size=(RESAMPLES, sums.size))
    return float((sums[drawn].sum(axis=1) < 0).mean())


def calibration_table(defaulted: Outcomes, forecasts: Sequence[Values]) -> list[dict[str, Any]]:
    """Return the number of cases, the predicted and the actual share of defaults for each tenth of the cases.

    The tenths are ordered by probability, the lowest first.

    Args:
        forecasts: one or several probabilities of every case. All count, but a case is counted once.
    """
    probability, outcomes = np.concatenate(forecasts), np.tile(defaulted, len(forecasts))
    sizes = np.array([tenth.size for tenth in np.array_split(defaulted, TENTHS) if tenth.size])
    ends = np.cumsum(sizes)[:-1] * len(forecasts)
    tenths = np.split(np.argsort(probability, kind="stable"), ends)
    return [
        {
            "tenth": number,
            "cases": int(size),
            "predicted": round(float(probability[tenth].mean()), 4),
            "defaulted": round(float(outcomes[tenth].mean()), 4),
        }
        for number, (size, tenth) in enumerate(zip(sizes, tenths, strict=True), start=1)
    ]
