"""Fit a scorecard to outcomes: a regularised logistic regression on banded readings.

Each reading is put into one of up to BANDS bands with about equally many cases, and its band's rank replaces it. So
outliers have no weight, the currency doesn't matter, and the fit can be written as bands with points, which reports can
show, explain and vary. A missing reading gets the median's rank and a separate indicator (`mark`). The regression is
scikit-learn's, with an L2 penalty whose strength is chosen by cross-validation.

A coefficient that contradicts what is known (more dishonours, less risk) is chance or the effect of another feature:
that feature is removed and the rest is fitted again. The same is done if missing data would lower the risk. So a fitted
scorecard is as monotone as the default one.

Its quality is measured on cases that the fit did not see; each fold repeats all of the above.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from importlib.metadata import version
from itertools import groupby
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from pipelines.scorecards import measures
from pipelines.scorecards.scorecard import Band, Calibration, Feature, Link, Scorecard
from pipelines.vocabulary.errors import Unprocessable

Values = NDArray[np.float64]
# Our judgement, except where a line says otherwise.
BANDS = 10
LEAST_DEFAULTS = 20
LEAST_SHARE = 0.02  # of the cases; what fewer of them have, or lack, is too rare to generalise
FOLDS, REPEATS = 5, 5
DEFAULTS_A_FOLD = 6  # at least; with fewer defaults there are fewer folds
STRENGTHS = tuple(10 ** (exponent / 2) for exponent in range(-7, 1))  # inverse strengths of the penalty
SEED = 20_260_701
SOLVER = "newton-cholesky"  # exact to the last digits, so that the same cases give the same file
DIGITS = 4  # decimals of readings, and so of the bands' limits


@dataclass(frozen=True)
class Prior:
    """What is known of a feature in advance: its name, a reason in words, whether more is better (None: unknown), and
    the `step` between two readings.
    """

    name: str
    reason: str
    more_is_better: bool | None = None
    step: Decimal = Decimal("0.0001")


@dataclass(frozen=True, eq=False)
class _Banding:
    """A feature's bands: `edges`, the readings at which the second and later bands begin, and their ranks (0–1)."""

    edges: Values
    ranks: Values
    missing: float  # rank of the median
    is_marked: bool  # enough cases lack the reading, and enough have it

    def ranked(self, readings: Values) -> Values:
        known = self.ranks[np.searchsorted(self.edges, readings, side="right")]
        ranked: Values = np.where(np.isnan(readings), self.missing, known)
        return ranked


@dataclass(frozen=True, eq=False)
class _Fit:
    """`columns`: numbers of the features whose rank is used; -number - 1 for features whose missing mark is used."""

    bandings: Sequence[_Banding]
    columns: tuple[int, ...]
    regression: Pipeline

    def probability(self, readings: Values) -> Values:
        if not self.columns:
            raise AssertionError("a fit has at least one feature")
        probability: Values = self.regression.predict_proba(_design(self.bandings, self.columns, readings))[:, 1]
        return probability


def fit(
    readings: pl.DataFrame,
    defaulted: NDArray[np.int8],
    priors: Mapping[str, Prior],
    default_risk: Values,
    calibration: Calibration,
    name: str,
) -> Scorecard:
    """Fit a scorecard to the outcomes; the same cases give the same scorecard.

    Args:
        readings: a column of floats for each feature; null where missing.
        priors: by the feature's column.
        default_risk: each case's risk by the scorecard that comes with Tidemark, to compare the fit with.

    Raises:
        Unprocessable: nothing can be learned from these cases, with the reason.
    """
    _refuse_unlearnable(defaulted)
    names = _informative(readings)
    matrix = readings.select(names).fill_nan(None).to_numpy().astype(np.float64).round(DIGITS)
    signs = tuple(_sign(priors[name].more_is_better) for name in names)
    fitted = _fit_features(matrix, defaulted, signs)
    facts = {
        **_measure(matrix, defaulted, signs, default_risk),
        "features": len({_feature_number(column) for column in fitted.columns}),
        "penalty": {"kind": "l2", "inverseStrength": _rounded(fitted.regression[-1].C)},
        "coefficients": _coefficients(fitted, names),
        "versions": {package: version(package) for package in ("scikit-learn", "scipy", "numpy", "polars")},
    }
    return _scorecard(fitted, [priors[name] for name in names], names, calibration, name, facts)


def _refuse_unlearnable(defaulted: NDArray[np.int8]) -> None:
    bad, good = int((defaulted == 1).sum()), int((defaulted == 0).sum())
    if not bad or not good:
        raise _refused(f"all {bad + good} cases {'defaulted' if bad else 'were repaid'}; both kinds are needed")
    if min(bad, good) < LEAST_DEFAULTS:
        few = f"{bad} of {bad + good} cases defaulted" if bad < good else f"only {good} of {bad + good} did not default"
        raise _refused(f"{few}; at least {LEAST_DEFAULTS} of each kind are needed")


def _informative(readings: pl.DataFrame) -> list[str]:
    """Return the features that differ between cases and are known for enough of them."""
    least = max(2, LEAST_SHARE * readings.height)
    names = [
        column.name
        for column in readings
        if column.drop_nulls().len() >= least and column.drop_nulls().round(DIGITS).n_unique() > 1
    ]
    if not names:
        raise _refused("no reading differs between the cases")
    return names


def _sign(more_is_better: bool | None) -> int:
    """Return the sign that the coefficient must have: 1 where more is riskier, 0 where nothing is known."""
    return 0 if more_is_better is None else -1 if more_is_better else 1


def _fit_features(matrix: Values, defaulted: NDArray[np.int8], signs: Sequence[int]) -> _Fit:
    """Fit, removing columns whose coefficient contradicts `signs`, until none does."""
    bandings = [_banding(column) for column in matrix.T]
    columns = [
        *(number for number, banding in enumerate(bandings) if banding.edges.size),
        *(-number - 1 for number, banding in enumerate(bandings) if banding.is_marked),
    ]
    strength = _strength(_design(bandings, columns, matrix), defaulted)
    while True:
        regression = make_pipeline(StandardScaler(), LogisticRegression(C=strength, solver=SOLVER))
        regression.fit(_design(bandings, columns, matrix), defaulted)
        wanted = [signs[column] if column >= 0 else 1 for column in columns]
        coefficients = regression[-1].coef_[0]
        signed = zip(columns, wanted, coefficients, strict=True)
        retained = [column for column, sign, coefficient in signed if sign * coefficient >= 0]
        if len(retained) == len(columns):
            return _Fit(bandings, tuple(columns), regression)
        if not any(column >= 0 for column in retained):
            raise _refused("the readings contradict what is known of them: are 0 and 1 exchanged?")
        columns = retained


def _banding(readings: Values) -> _Banding:
    known = np.sort(readings[~np.isnan(readings)])
    missing = 1 - known.size / readings.size
    quantiles = np.quantile(known, np.arange(1, BANDS) / BANDS, method="higher") if known.size else known
    edges = np.unique(quantiles[quantiles > known[0]]) if known.size else known
    below = np.searchsorted(known, edges, side="left")
    starts, ends = np.concatenate([[0], below]), np.concatenate([below, [known.size]])
    ranks = (starts + ends) / (2 * max(1, known.size))
    median = known[(known.size - 1) // 2] if known.size else 0.0
    return _Banding(
        edges,
        ranks,
        float(ranks[np.searchsorted(edges, median, side="right")]),
        is_marked=LEAST_SHARE <= missing <= 1 - LEAST_SHARE,
    )


def _design(bandings: Sequence[_Banding], columns: Sequence[int], readings: Values) -> Values:
    ranks_and_marks = [
        bandings[column].ranked(readings[:, column])
        if column >= 0
        else np.isnan(readings[:, -column - 1]).astype(float)
        for column in columns
    ]
    return np.column_stack(ranks_and_marks)


def _strength(design: Values, defaulted: NDArray[np.int8]) -> float:
    folds = StratifiedKFold(_folds(defaulted), shuffle=True, random_state=SEED)
    search = LogisticRegressionCV(
        Cs=list(STRENGTHS),
        cv=folds,
        scoring="neg_log_loss",
        solver=SOLVER,
        l1_ratios=(0,),
        use_legacy_attributes=False,
    )
    search.fit(StandardScaler().fit_transform(design), defaulted)
    return float(search.C_)


def _folds(defaulted: NDArray[np.int8]) -> int:
    fewest = int(min((defaulted == 1).sum(), (defaulted == 0).sum()))
    return max(2, min(FOLDS, fewest // DEFAULTS_A_FOLD))


def _measure(matrix: Values, defaulted: NDArray[np.int8], signs: Sequence[int], default_risk: Values) -> dict[str, Any]:
    """Measure the quality of the fit on cases that it did not see."""
    folds = _folds(defaulted)
    splits = RepeatedStratifiedKFold(n_splits=folds, n_repeats=REPEATS, random_state=SEED)
    forecasts = np.zeros((REPEATS, defaulted.size))
    for turn, (seen, unseen) in enumerate(splits.split(matrix, defaulted)):
        fitted = _fit_features(matrix[seen], defaulted[seen], signs)
        forecasts[turn // folds, unseen] = fitted.probability(matrix[unseen])
    low, high = measures.auc_interval(defaulted, list(forecasts), SEED)
    default_low, default_high = measures.auc_interval(defaulted, [default_risk], SEED)
    every = np.tile(defaulted, REPEATS)
    return {
        "cases": int(defaulted.size),
        "defaults": int(defaulted.sum()),
        "crossValidation": f"{folds} folds, {REPEATS} times",
        "auc": _mean([measures.auc(defaulted, forecast) for forecast in forecasts]),
        "aucInterval": [_rounded(low), _rounded(high)],
        "ks": _mean([measures.ks(defaulted, forecast) for forecast in forecasts]),
        "brier": _mean([measures.brier(defaulted, forecast) for forecast in forecasts]),
        "brierOfBaseRate": _rounded(float(defaulted.mean() * (1 - defaulted.mean()))),
        "defaultScorecardAuc": _rounded(measures.auc(defaulted, default_risk)),
        "defaultScorecardAucInterval": [_rounded(default_low), _rounded(default_high)],
        "calibrationTable": measures.calibration_table(every, forecasts.ravel()),
    }


def _coefficients(fitted: _Fit, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return everything the regression needs: mean and scale of each column (a rank or a mark), and its weight."""
    scaler, regression = fitted.regression[0], fitted.regression[-1]
    columns = zip(fitted.columns, scaler.mean_, scaler.scale_, regression.coef_[0], strict=True)
    return [
        {"column": "intercept", "coefficient": _rounded(regression.intercept_[0], 6)},
        *(
            {
                "column": names[_feature_number(column)],
                "of": "rank" if column >= 0 else "missing",
                "mean": _rounded(mean, 6),
                "scale": _rounded(scale, 6),
                "coefficient": _rounded(coefficient, 6),
                "imputedRank": _rounded(fitted.bandings[_feature_number(column)].missing, 6),
            }
            for column, mean, scale, coefficient in columns
        ),
    ]


def _feature_number(column: int) -> int:
    return column if column >= 0 else -column - 1


# From the regression to points


def _scorecard(
    fitted: _Fit,
    priors: Sequence[Prior],
    names: Sequence[str],
    calibration: Calibration,
    name: str,
    facts: Mapping[str, Any],
) -> Scorecard:
    """Convert the regression to a scorecard.

    The log-odds are a sum of what each feature adds. A feature's points are the difference to the most that it could
    add, on a scale where all features together give at most 100 points.
    """
    added = _added(fitted)
    reach = sum(max(terms) - min(terms) for terms in added.values())
    if reach == 0:
        raise _refused("the readings say nothing about the outcomes")
    scale = 100 / reach
    features = [
        _feature(names[number], priors[number], fitted.bandings[number], added[number], scale) for number in added
    ]
    worst = fitted.regression[-1].intercept_[0] + sum(max(terms) for terms in added.values())
    link = Link(even=_exact(worst * scale, 4), doubling=_exact(np.log(2) * scale, 4))
    informative = tuple(
        feature for feature in features if len(feature.bands) > 1 or feature.missing != feature.bands[0].points
    )
    return Scorecard(name, "1", calibration, informative, link, facts)


def _added(fitted: _Fit) -> dict[int, list[float]]:
    """Return the log-odds that each feature in use adds: for its bands, then for a missing reading."""
    scaler, regression = fitted.regression[0], fitted.regression[-1]
    columns = zip(fitted.columns, scaler.mean_, scaler.scale_, regression.coef_[0], strict=True)
    by_column = {column: (mean, coefficient / scale) for column, mean, scale, coefficient in columns}
    added = {}
    for number in sorted({_feature_number(column) for column in fitted.columns}):
        banding = fitted.bandings[number]
        mean, slope = by_column.get(number, (0.0, 0.0))
        mark_mean, mark = by_column.get(-number - 1, (0.0, 0.0))
        of_bands = [slope * (rank - mean) - mark * mark_mean for rank in banding.ranks]
        added[number] = [*of_bands, slope * (banding.missing - mean) + mark * (1 - mark_mean)]
    return added


def _feature(metric: str, prior: Prior, banding: _Banding, added: Sequence[float], scale: float) -> Feature:
    *of_bands, missing = (_exact((max(added) - term) * scale, 2) for term in added)
    more_is_better = of_bands[-1] >= of_bands[0]
    limits = [_exact(edge, DIGITS) for edge in banding.edges]
    if more_is_better:  # band n begins at its limit and goes up
        bands = list(zip([None, *limits], of_bands, strict=True))[::-1]
    else:  # band n ends one step before the limit of the next
        bands = list(zip([*(limit - prior.step for limit in limits), None], of_bands, strict=True))
    merged = [_merge(list(same)) for _, same in groupby(bands, key=lambda band: band[1])]
    return Feature(metric, more_is_better, tuple(merged), prior.reason, missing, prior.step)


def _merge(bands: Sequence[tuple[Decimal | None, Decimal]]) -> Band:
    """Merge neighbouring bands with equal points into one with the last limit."""
    return Band(*bands[-1])


def _exact(value: float, places: int) -> Decimal:
    return Decimal(repr(round(float(value), places))).quantize(Decimal(1).scaleb(-places))


def _mean(values: Sequence[float]) -> float:
    return _rounded(sum(values) / len(values))


def _rounded(value: float, places: int = 4) -> float:
    return round(float(value), places)


def _refused(reason: str) -> Unprocessable:
    return Unprocessable("Risk.NothingToLearn", f"No risk model can be fitted: {reason}.")
