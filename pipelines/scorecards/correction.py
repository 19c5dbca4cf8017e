"""Correct a scorecard's log-odds by a few slopes on what its points leave unexplained.

    log-odds = intercept + slope × log-odds of the scorecard − sum of weight × column

The slope and the intercept of the scorecard are found first (`recalibrate`), and its log-odds are then an offset. In
every column, higher is better, so a weight says how much more (or, below zero, less) the column counts than in the
scorecard. A weight is never below its column's `least`: no reading can come to count the wrong way round.

Columns are added one by one, each time the one that would lower the loss most. Weights are shrunk towards 0 as if they
came from a normal distribution (ridge regression). Cross-validation chooses the width of this distribution and the
number of columns, up to the number that the outcomes allow (`most_slopes`). Without columns, the result is the
recalibrated scorecard.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from pipelines.scorecards.measures import Outcomes, Values, log_losses

DEFAULTS_PER_SLOPE = 10  # usual least number of events per slope of a logistic regression (Peduzzi and others, 1996)
# Standard deviations of weights, in log-odds per standard deviation of a column: from strong to weak shrinking. Our
# judgement, like the next.
SPREADS = (0.1, 0.2, 0.4, 0.8)
REPEATS = 2  # of the cross-validation in `choose_correction`


@dataclass(frozen=True, eq=False)
class Correction:
    """The intercept, the scorecard's slope (0 or more), and each column's weight."""

    intercept: float
    slope: float
    weights: Values

    @property
    def slopes(self) -> int:
        return 1 + int(np.count_nonzero(self.weights))

    def log_odds(self, scorecard: Values, columns: Values) -> Values:
        log_odds: Values = self.intercept + self.slope * scorecard - columns @ self.weights
        return log_odds


@dataclass(frozen=True, eq=False)
class Cases:
    """Cases as arrays.

    Attributes:
        scorecard: the scorecard's log-odds of each case.
        columns: what may correct them (cases × columns); higher is better.
        least: each column's least weight, as a share of the scorecard's slope; 0 or less.
        customers: a number for each case; equal for cases of one customer.
    """

    scorecard: Values
    columns: Values
    least: Values
    defaulted: Outcomes
    customers: NDArray[np.int64]

    def select(self, which: NDArray[np.bool_]) -> "Cases":
        return replace(
            self,
            scorecard=self.scorecard[which],
            columns=self.columns[which],
            defaulted=self.defaulted[which],
            customers=self.customers[which],
        )


def most_slopes(defaulted: Outcomes) -> int:
    """Return how many slopes these outcomes allow: one for every DEFAULTS_PER_SLOPE of the rarer outcome."""
    bad = int(defaulted.sum())
    return min(bad, defaulted.size - bad) // DEFAULTS_PER_SLOPE


def recalibrate(scorecard: Values, defaulted: Outcomes) -> Correction:
    """Return the intercept and slope of the scorecard's log-odds that make the outcomes most likely; no weights."""

    def loss(at: Values) -> tuple[float, Values]:
        size, residuals = _loss(at[0] + at[1] * scorecard, defaulted)
        return size, np.array([residuals.sum(), residuals @ scorecard])

    base = float(np.log(defaulted.mean() / (1 - defaulted.mean())))
    found: Any = minimize(loss, [base, 0.0], jac=True, method="L-BFGS-B", bounds=[(None, None), (0, None)]).x
    return Correction(float(found[0]), float(found[1]), np.zeros(0))


def fit_corrections(cases: Cases, most: int) -> list[Correction]:
    """Return the recalibrated scorecard, then corrections by 1 to `most` weights, each at every one of SPREADS.

    Where no further weight would lower the loss, the last correction is repeated.
    """
    null = recalibrate(cases.scorecard, cases.defaulted)
    none = replace(null, weights=np.zeros(cases.columns.shape[1]))
    paths = [list(_add_columns(none, spread, cases, most)) for spread in SPREADS]
    return [none, *(path[place] for place in range(most) for path in paths)]


def _add_columns(none: Correction, spread: float, cases: Cases, most: int) -> Iterator[Correction]:
    """Yield corrections with 1 to `most` columns, each with the further column that would lower the loss most."""
    chosen, last = list[int](), none
    for _ in range(most):
        gains = _gains(last, spread, cases)
        gains[chosen] = 0
        if gains.size and gains.max() > 0:
            chosen.append(int(gains.argmax()))
            last = _fit_weights(none, chosen, spread, cases)
        yield last


def _gains(at: Correction, spread: float, cases: Cases) -> Values:
    """Return how much each column's weight alone would lower the loss: estimated by one Newton step in its bounds."""
    log_odds = at.log_odds(cases.scorecard, cases.columns)
    _, residuals = _loss(log_odds, cases.defaulted)
    probabilities = expit(log_odds)
    descents = residuals @ cases.columns
    centred = cases.columns - cases.columns.mean(axis=0)
    curvatures = (probabilities * (1 - probabilities)) @ centred**2 / probabilities.size + _penalty(spread, cases)
    steps = np.maximum(descents / curvatures, cases.least * at.slope)
    gains: Values = descents * steps - curvatures * steps**2 / 2
    return gains


def _penalty(spread: float, cases: Cases) -> float:
    return 1 / (cases.defaulted.size * spread**2)


def _fit_weights(none: Correction, chosen: Sequence[int], spread: float, cases: Cases) -> Correction:
    """Fit the weights of these columns and the intercept; the weights are shrunk according to `spread`."""
    columns, offset = cases.columns[:, chosen], none.slope * cases.scorecard
    shrinking = _penalty(spread, cases)

    def loss(at: Values) -> tuple[float, Values]:
        size, residuals = _loss(at[0] + offset - columns @ at[1:], cases.defaulted)
        slopes = np.concatenate([[residuals.sum()], shrinking * at[1:] - residuals @ columns])
        return size + shrinking * float(at[1:] @ at[1:]) / 2, slopes

    bounds = [(None, None), *((least * none.slope, None) for least in cases.least[chosen])]
    start = np.concatenate([[none.intercept], np.zeros(len(chosen))])
    found: Any = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    weights = np.zeros(cases.columns.shape[1])
    weights[chosen] = found[1:]
    return Correction(float(found[0]), none.slope, weights)


def _loss(log_odds: Values, defaulted: Outcomes) -> tuple[float, Values]:
    """Return the mean log loss, and its derivative by each case's log-odds."""
    residuals: Values = (expit(log_odds) - defaulted) / defaulted.size
    return float(log_losses(log_odds, defaulted).mean()), residuals


def folds(customers: NDArray[np.int64], defaulted: Outcomes, count: int, seed: int) -> Iterator[NDArray[np.bool_]]:
    """Yield `count` parts of the cases. A customer's cases are in one part; defaulted customers are spread evenly."""
    distinct, numbers = np.unique(customers, return_inverse=True)
    bad = np.bincount(numbers, defaulted) > 0
    place, draws = np.empty(distinct.size, np.int64), np.random.default_rng(seed)
    for kind in (bad, ~bad):
        place[draws.permutation(np.flatnonzero(kind))] = np.arange(kind.sum()) % count
    for number in range(count):
        yield place[numbers] == number


def choose_correction(cases: Cases, most: int, count: int, seed: int) -> Correction:
    """Return the correction by at most `most` weights that predicts unseen customers best.

    Cross-validation in `count` folds decides.
    """
    losses = np.zeros((1 + most * len(SPREADS), cases.defaulted.size))
    for turn in range(REPEATS):
        for unseen in folds(cases.customers, cases.defaulted, count, seed + turn):
            held_back = cases.select(unseen)
            for number, each in enumerate(fit_corrections(cases.select(~unseen), most)):
                log_odds = each.log_odds(held_back.scorecard, held_back.columns)
                losses[number, unseen] += log_losses(log_odds, held_back.defaulted) / REPEATS
    return fit_corrections(cases, most)[int(losses.mean(axis=1).argmin())]
