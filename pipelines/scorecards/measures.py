"""How well a figure told those who defaulted from those who didn't."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import ks_2samp, rankdata

Values = NDArray[np.float64]
RESAMPLES = 1_000
TENTHS = 10


def auc(defaulted: NDArray[np.int8], risk: Values) -> float:
    """The chance that one who defaulted was given more risk than one who didn't; a half is a coin."""
    bad = defaulted == 1
    wins = rankdata(risk)[bad].sum() - bad.sum() * (bad.sum() + 1) / 2  # Mann and Whitney's count
    return float(wins / (bad.sum() * (~bad).sum()))


def auc_interval(defaulted: NDArray[np.int8], risks: Sequence[Values], seed: int) -> tuple[float, float]:
    """95 % by bootstrap: customers drawn again with replacement, defaults and others each as many as there are. With
    several figures for each customer (repeats of a cross-validation) they take turns.
    """
    draws = np.random.default_rng(seed)
    bad, good = np.flatnonzero(defaulted == 1), np.flatnonzero(defaulted == 0)
    seen = []
    for turn in range(RESAMPLES):
        drawn = np.concatenate([draws.choice(bad, bad.size), draws.choice(good, good.size)])
        seen.append(auc(defaulted[drawn], risks[turn % len(risks)][drawn]))
    low, high = np.quantile(seen, [0.025, 0.975])
    return float(low), float(high)


def ks(defaulted: NDArray[np.int8], risk: Values) -> float:
    """Kolmogorov and Smirnov's distance: the most by which the two shares below a line differ, for the best line."""
    return float(ks_2samp(risk[defaulted == 1], risk[defaulted == 0], method="asymp").statistic)


def brier(defaulted: NDArray[np.int8], probability: Values) -> float:
    """Mean squared distance of the probability from what happened."""
    return float(((probability - defaulted) ** 2).mean())


def calibration_table(defaulted: NDArray[np.int8], probability: Values) -> list[dict[str, Any]]:
    """By tenths of the cases, from the lowest probability: how many, what was foretold, what happened."""
    order = np.argsort(probability, kind="stable")
    tenths = [each for each in np.array_split(order, TENTHS) if each.size]
    return [
        {
            "tenth": number,
            "cases": int(each.size),
            "foretold": round(float(probability[each].mean()), 4),
            "defaulted": round(float(defaulted[each].mean()), 4),
        }
        for number, each in enumerate(tenths, start=1)
    ]
