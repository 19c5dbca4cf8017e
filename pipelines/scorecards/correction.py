"""Correct a scorecard's log-odds by a few slopes on what its points leave unexplained.

    log-odds = intercept + slope × log-odds of the scorecard − sum of weight × column

The slope and the intercept of the scorecard are found first (`recalibrate`), and its log-odds are then an offset. In
every column, higher is better, so a weight says how much more (or, below zero, less) the column counts than in the
scorecard. A weight is never below its column's `least`: no reading can come to count the wrong way round.

The scorecard's own columns are all weighted anew, together, and their weights are shrunk towards 0 (ridge regression)
until they have as many effective degrees of freedom as the outcomes allow slopes (`most_slopes`). So many features
change a little, instead of a few that were chosen by chance changing much. Further columns are added one by one, each
time the one that would lower the loss most, and each takes one degree of freedom from the scorecard's own.
Cross-validation chooses how many there are and how strongly they are shrunk.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize
from scipy.special import expit

from pipelines.scorecards.measures import Outcomes, Values, log_losses

DEFAULTS_PER_SLOPE = 10  # usual least number of events per slope of a logistic regression (Peduzzi and others, 1996)
# Standard deviations of weights, in log-odds per standard deviation of a column: from strong to weak shrinking. Our
# judgement, like the next.
SPREADS = (0.1, 0.2, 0.4, 0.8)
REPEATS = 2  # of the cross-validation in `choose_correction`


@dataclass(frozen=True, eq=False)
class Correction:
    """The intercept, the scorecard's slope (0 or more), each column's weight, and the effective number of `slopes`."""

    intercept: float
    slope: float
    weights: Values
    slopes: float = 1.0

    def log_odds(self, scorecard: Values, columns: Values) -> Values:
        log_odds: Values = self.intercept + self.slope * scorecard - columns @ self.weights
        return log_odds


@dataclass(frozen=True, eq=False)
class Cases:
    """Cases as arrays.

    Attributes:
        scorecard: the scorecard's log-odds of each case.
        columns: what may correct them (cases × columns); higher is better.
        own: how many of the columns, the first ones, are the scorecard's own.
        least: each column's least weight, as a share of the scorecard's slope; 0 or less.
        customers: a number for each case; equal for cases of one customer.
    """

    scorecard: Values
    columns: Values
    own: int
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
    """Return corrections by at most `most` slopes besides the scorecard's.

    The first changes the weights of the scorecard's own columns; the others have 1 to `most` further columns, too, each
    at every one of SPREADS. Where no further column would lower the loss, the last correction is repeated.
    """
    null = recalibrate(cases.scorecard, cases.defaulted)
    none = replace(null, weights=np.zeros(cases.columns.shape[1]))
    corrections = [_reweigh(none, most, cases)]
    if cases.own < cases.columns.shape[1]:
        for further in range(1, most + 1):
            begun = _reweigh(none, most - further, cases)
            corrections.extend(_add_columns(begun, spread, cases, further) for spread in SPREADS)
    return corrections


def _reweigh(none: Correction, freedom: int, cases: Cases) -> Correction:
    """Fit the weights of the scorecard's own columns with this many effective degrees of freedom."""
    if not freedom or not cases.own:
        return none
    probabilities = expit(none.log_odds(cases.scorecard, cases.columns))
    own = cases.columns[:, : cases.own]
    centred = (own - own.mean(axis=0)) * np.sqrt(probabilities * (1 - probabilities))[:, None]
    information = np.linalg.svd(centred, compute_uv=False) ** 2

    def excess(log_precision: float) -> float:
        return float((information / (information + np.exp(log_precision))).sum()) - freedom

    weakest, strongest = -2 * np.log(SPREADS[-1]), 2 * np.log(1_000)
    precision = weakest if excess(weakest) <= 0 else float(brentq(excess, weakest, strongest))
    fitted = _fit_weights(none, range(cases.own), float(np.exp(-precision / 2)), cases)
    return replace(fitted, slopes=1 + freedom + excess(precision))


def _add_columns(begun: Correction, spread: float, cases: Cases, most: int) -> Correction:
    """Add up to `most` further columns, each time the one that would lower the loss most."""
    chosen, last = list[int](), begun
    for _ in range(most):
        gains = _gains(last, spread, cases)
        gains[[*range(cases.own), *chosen]] = 0
        if gains.max() <= 0:
            break
        chosen.append(int(gains.argmax()))
        last = replace(_fit_weights(begun, chosen, spread, cases), slopes=begun.slopes + len(chosen))
    return last


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


def _fit_weights(begun: Correction, chosen: Sequence[int], spread: float, cases: Cases) -> Correction:
    """Fit the weights of these columns and the intercept; the weights are shrunk according to `spread`."""
    columns, offset = cases.columns[:, chosen], begun.log_odds(cases.scorecard, cases.columns)
    shrinking = _penalty(spread, cases)

    def loss(at: Values) -> tuple[float, Values]:
        size, residuals = _loss(at[0] + offset - columns @ at[1:], cases.defaulted)
        slopes = np.concatenate([[residuals.sum()], shrinking * at[1:] - residuals @ columns])
        return size + shrinking * float(at[1:] @ at[1:]) / 2, slopes

    bounds = [(None, None), *((least * begun.slope, None) for least in cases.least[chosen])]
    found: Any = minimize(loss, np.zeros(1 + len(chosen)), jac=True, method="L-BFGS-B", bounds=bounds).x
    weights = begun.weights.copy()
    weights[chosen] = found[1:]
    return replace(begun, intercept=begun.intercept + float(found[0]), weights=weights)


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
    """Return the correction by at most `most` slopes that predicts unseen customers best.

    Cross-validation in `count` folds decides.
    """
    corrections = fit_corrections(cases, most)
    if len(corrections) == 1:
        return corrections[0]
    losses = np.zeros((len(corrections), cases.defaulted.size))
    for turn in range(REPEATS):
        for unseen in folds(cases.customers, cases.defaulted, count, seed + turn):
            held_back = cases.select(unseen)
            for number, each in enumerate(fit_corrections(cases.select(~unseen), most)):
                log_odds = each.log_odds(held_back.scorecard, held_back.columns)
                losses[number, unseen] += log_losses(log_odds, held_back.defaulted) / REPEATS
    return corrections[int(losses.mean(axis=1).argmin())]
