"""How often the model is right when it says so.

A score of a linear model is no probability, and scores on merchants that training never saw are further off than on
those that it knew. So the chance of being right is fitted on rows that were held back, half of them of merchants held
back whole, to the distance between scores, how much of the text was known, and whether a rule said the same (logistic
regression; Platt, 1999, with more than one fact).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipelines.enrichment.learned.vectors import Weights

Numbers = NDArray[np.float64]
EVIDENCE = ("lead", "share", "pieces", "words", "phrases", "spoken", "agreed")
HIGHEST = 0.995


@dataclass(frozen=True, eq=False)
class Calibration:
    """`sharpness` makes shares of scores (softmax); `weights` (for EVIDENCE) and `bias` the chance of being right."""

    sharpness: float
    weights: Numbers
    bias: float

    def confidence(self, evidence: Numbers) -> Numbers:
        chance: Numbers = 1 / (1 + np.exp(-(evidence @ self.weights + self.bias)))
        return np.clip(chance, 0.0, HIGHEST)


@dataclass(frozen=True, eq=False)
class Ranked:
    """The labels of each row by score, the best first: `labels` (numbers) and their `shares`, rows × a few."""

    labels: NDArray[np.int64]
    scores: Numbers
    shares: Numbers


def ranked(scores: Weights, most: int, sharpness: float) -> Ranked:
    """The `most` best labels of each row. Labels of equal score keep their order."""
    most = min(most, scores.shape[1])
    best = np.sort(np.argpartition(-scores, most - 1, axis=1)[:, :most], axis=1)
    order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1, kind="stable")
    labels = np.take_along_axis(best, order, axis=1)
    top = np.take_along_axis(scores, labels, axis=1).astype(np.float64)
    total = np.exp(np.float32(sharpness) * (scores - scores.max(axis=1, keepdims=True))).sum(axis=1, keepdims=True)
    return Ranked(labels, top, np.exp(sharpness * (top - top[:, :1])) / total)


def evidence(found: Ranked, known: Weights, spoken: NDArray[np.bool_], agreed: NDArray[np.bool_]) -> Numbers:
    """What the chance of being right follows from, a column for each of EVIDENCE.

    Args:
        known: the shares of each narrative that training knew: of its pieces, words and phrases (rows × 3).
        spoken: a rule or a list said something of the row.
        agreed: … and it said what the model says.
    """
    lead = found.scores[:, 0] - found.scores[:, 1]
    share = np.clip(found.shares[:, 0], 1e-4, 1 - 1e-4)
    columns = [lead, np.log(share / (1 - share)), known, spoken, agreed]
    return np.column_stack(columns)  # pyrefly: ignore[bad-return]  # of several types, which numpy widens


def sharpest(scores: Weights, truth: NDArray[np.int64]) -> float:
    """The sharpness under which the true labels' shares are likeliest. Truth -1: a label the model doesn't know."""
    rows = np.flatnonzero(truth >= 0)
    candidates: list[float] = list(np.geomspace(0.5, 32, 25))
    return float(max(candidates, key=lambda each: _likelihood(scores[rows], truth[rows], each)))


def _likelihood(scores: Weights, truth: NDArray[np.int64], sharpness: float) -> float:
    scaled = sharpness * (scores - scores.max(axis=1, keepdims=True))
    own = scaled[np.arange(len(truth)), truth]
    return float((own - np.log(np.exp(scaled).sum(axis=1))).sum())
