"""Estimate the probability that the model is right.

A score of a linear model is not a probability, and scores for merchants that training never saw are less reliable. So
the probability is fitted on rows held out from training, most of them from merchants that were held out entirely. Its
inputs are the distance between scores, how much of the text was known, and whether a rule says the same (logistic
regression; Platt, 1999, with several inputs).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipelines.enrichment.learned.vectors import Weights

Numbers = NDArray[np.float64]
EVIDENCE = ("lead", "share", "pieces", "words", "phrases", "spoken", "agreed")
HIGHEST = 0.995  # a model is never certain (our judgement)


@dataclass(frozen=True, eq=False)
class Calibration:
    """`sharpness` scales scores for the softmax; `weights` (for EVIDENCE) and `bias` give the probability."""

    sharpness: float
    weights: Numbers
    bias: float

    def confidence(self, evidence: Numbers) -> Numbers:
        chance: Numbers = 1 / (1 + np.exp(-(evidence @ self.weights + self.bias)))
        return np.clip(chance, 0.0, HIGHEST)


@dataclass(frozen=True, eq=False)
class Ranked:
    """The best labels of each row, best first: `labels` (numbers), `scores` and `shares`. Each has
    a row for each row and a column for each of its best labels."""

    labels: NDArray[np.int64]
    scores: Numbers
    shares: Numbers


def rank_labels(scores: Weights, most: int, sharpness: float) -> Ranked:
    """Return the `most` best labels of each row. Labels with equal scores keep their order."""
    most = min(most, scores.shape[1])
    best = np.sort(np.argpartition(-scores, most - 1, axis=1)[:, :most], axis=1)
    order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1, kind="stable")
    labels = np.take_along_axis(best, order, axis=1)
    top = np.take_along_axis(scores, labels, axis=1).astype(np.float64)
    total = np.exp(np.float32(sharpness) * (scores - scores.max(axis=1, keepdims=True))).sum(axis=1, keepdims=True)
    return Ranked(labels, top, np.exp(sharpness * (top - top[:, :1])) / total)


def gather_evidence(found: Ranked, known: Weights, spoken: NDArray[np.bool_], agreed: NDArray[np.bool_]) -> Numbers:
    """Return the inputs of the probability, one column for each of EVIDENCE.

    Args:
        known: the shares of each narrative's pieces, words and phrases that training knew (rows × 3).
        spoken: whether a rule or a list gave the row any category.
        agreed: whether that category is the model's.
    """
    lead = found.scores[:, 0] - found.scores[:, 1]
    share = np.clip(found.shares[:, 0], 1e-4, 1 - 1e-4)
    columns = [lead, np.log(share / (1 - share)), known, spoken, agreed]
    return np.column_stack(columns)  # pyrefly: ignore[bad-return]  # of several types, which numpy widens


def find_sharpness(scores: Weights, truth: NDArray[np.int64]) -> float:
    """Return the sharpness under which the true labels are likeliest. Truth -1: a label that the model doesn't know."""
    rows = np.flatnonzero(truth >= 0)
    candidates: list[float] = list(np.geomspace(0.5, 32, 25))
    return float(max(candidates, key=lambda each: _likelihood(scores[rows], truth[rows], each)))


def _likelihood(scores: Weights, truth: NDArray[np.int64], sharpness: float) -> float:
    scaled = sharpness * (scores - scores.max(axis=1, keepdims=True))
    own = scaled[np.arange(len(truth)), truth]
    return float((own - np.log(np.exp(scaled).sum(axis=1))).sum())
