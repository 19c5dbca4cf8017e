"""From outcomes to a scorecard: a logistic regression, regularised, on banded readings.

Each reading is put into one of up to BANDS bands with about equally many cases each, and its rank stands for it: so
outliers weigh nothing, money of any currency is alike, and what is fitted can be told as bands with points, which is
what reports show, explain and vary. A missing reading has the rank of the median and a mark of its own. The regression
is scikit-learn's, with an L2 penalty whose strength is chosen by cross-validation.

A coefficient that contradicts what is known (more dishonours, less risk) is chance or the shadow of another feature:
that feature is left out and the rest fitted again. Likewise a mark by which missing data would help. So a fitted
scorecard is monotone as the default one is.

How good it is, is measured on cases that the fit did not see, everything above being done again in each fold.
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
BANDS = 10
LEAST_DEFAULTS = 20
LEAST_SHARE = 0.02  # of the cases: what fewer of them have, or lack, tells nothing that would hold
FOLDS, REPEATS = 5, 5
DEFAULTS_A_FOLD = 6  # at least, if need be by fewer folds
STRENGTHS = tuple(10 ** (exponent / 2) for exponent in range(-7, 1))  # inverse, of the penalty
SEED = 20_260_701
SOLVER = "newton-cholesky"  # exact to the last digits, so that the same cases give the same file
DIGITS = 4  # of readings, and so of bands' limits


@dataclass(frozen=True)
class Learned:
    """What is known of a feature beforehand: in words, whether more of it is better (null: not known), its `step`."""

    name: str
    reason: str
    more_is_better: bool | None = None
    step: Decimal = Decimal("0.0001")


@dataclass(frozen=True, eq=False)
class _Banding:
    """A feature's bands: the readings that they begin at from the second on, and their ranks (0–1)."""

    edges: Values
    ranks: Values
    missing: float  # rank of the median
    is_marked: bool  # enough cases lack the reading, and enough have it

    def ranked(self, readings: Values) -> Values:
        found = self.ranks[np.searchsorted(self.edges, readings, side="right")]
        ranked: Values = np.where(np.isnan(readings), self.missing, found)
        return ranked


@dataclass(frozen=True, eq=False)
class _Fit:
    """`columns`: numbers of the features whose rank is used, and of those (negative, minus one) whose mark is."""

    bandings: Sequence[_Banding]
    columns: tuple[int, ...]
    regression: Pipeline

    def probability(self, readings: Values) -> Values:
        if not self.columns:
            raise AssertionError("a fit has a feature")
        found: Values = self.regression.predict_proba(_design(self.bandings, self.columns, readings))[:, 1]
        return found


def fit(
    readings: pl.DataFrame,
    defaulted: NDArray[np.int8],
    learned: Mapping[str, Learned],
    default_risk: Values,
    calibration: Calibration,
    name: str,
) -> Scorecard:
    """A scorecard of the outcomes; the same cases give the same scorecard.

    Args:
        readings: a column of floats for each feature; null where missing.
        learned: what is known of each feature, by its column.
        default_risk: of each case, by the scorecard that comes with Tidemark: what the fit is compared with.

    Raises:
        Unprocessable: there is nothing to be learned from these cases, with the reason.
    """
    _refuse_unlearnable(defaulted)
    names = _informative(readings)
    matrix = readings.select(names).fill_nan(None).to_numpy().astype(np.float64).round(DIGITS)
    signs = tuple(_sign(learned[each].more_is_better) for each in names)
    fitted = _fitted(matrix, defaulted, signs)
    facts = {
        **_measured(matrix, defaulted, signs, default_risk),
        "features": len({_feature_of(column) for column in fitted.columns}),
        "penalty": {"kind": "l2", "inverseStrength": _rounded(fitted.regression[-1].C)},
        "coefficients": _coefficients(fitted, names),
        "versions": {each: version(each) for each in ("scikit-learn", "scipy", "numpy", "polars")},
    }
    return _scorecard(fitted, [learned[each] for each in names], names, calibration, name, facts)


def _refuse_unlearnable(defaulted: NDArray[np.int8]) -> None:
    bad, good = int((defaulted == 1).sum()), int((defaulted == 0).sum())
    if not bad or not good:
        raise _refused(f"all {bad + good} cases {'defaulted' if bad else 'were repaid'}; both kinds are needed")
    if min(bad, good) < LEAST_DEFAULTS:
        few = f"{bad} of {bad + good} cases defaulted" if bad < good else f"only {good} of {bad + good} did not default"
        raise _refused(f"{few}; at least {LEAST_DEFAULTS} of each kind are needed")


def _informative(readings: pl.DataFrame) -> list[str]:
    """The features that differ between cases, and are known of enough of them."""
    least = max(2, LEAST_SHARE * readings.height)
    names = [
        each.name
        for each in readings
        if each.drop_nulls().len() >= least and each.drop_nulls().round(DIGITS).n_unique() > 1
    ]
    if not names:
        raise _refused("no reading differs between the cases")
    return names


def _sign(more_is_better: bool | None) -> int:
    """Of the coefficient, as far as it is known: 1 where more is riskier."""
    return 0 if more_is_better is None else -1 if more_is_better else 1


def _fitted(matrix: Values, defaulted: NDArray[np.int8], signs: Sequence[int]) -> _Fit:
    bandings = [_banding(column) for column in matrix.T]
    columns = [
        *(number for number, each in enumerate(bandings) if each.edges.size),
        *(-number - 1 for number, each in enumerate(bandings) if each.is_marked),
    ]
    strength = _strength(_design(bandings, columns, matrix), defaulted)
    while True:
        regression = make_pipeline(StandardScaler(), LogisticRegression(C=strength, solver=SOLVER))
        regression.fit(_design(bandings, columns, matrix), defaulted)
        wanted = [signs[column] if column >= 0 else 1 for column in columns]
        coefficients = regression[-1].coef_[0]
        retained = [each for each, sign, found in zip(columns, wanted, coefficients, strict=True) if sign * found >= 0]
        if len(retained) == len(columns):
            return _Fit(bandings, tuple(columns), regression)
        if not any(column >= 0 for column in retained):
            raise _refused("what the readings say contradicts what is known of them: are 0 and 1 exchanged?")
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
    each = [
        bandings[column].ranked(readings[:, column])
        if column >= 0
        else np.isnan(readings[:, -column - 1]).astype(float)
        for column in columns
    ]
    return np.column_stack(each)


def _strength(design: Values, defaulted: NDArray[np.int8]) -> float:
    folds = StratifiedKFold(_folds(defaulted), shuffle=True, random_state=SEED)
    chosen = LogisticRegressionCV(
        Cs=list(STRENGTHS),
        cv=folds,
        scoring="neg_log_loss",
        solver=SOLVER,
        l1_ratios=(0,),
        use_legacy_attributes=False,
    )
    chosen.fit(StandardScaler().fit_transform(design), defaulted)
    return float(chosen.C_)


def _folds(defaulted: NDArray[np.int8]) -> int:
    fewest = int(min((defaulted == 1).sum(), (defaulted == 0).sum()))
    return max(2, min(FOLDS, fewest // DEFAULTS_A_FOLD))


def _measured(
    matrix: Values, defaulted: NDArray[np.int8], signs: Sequence[int], default_risk: Values
) -> dict[str, Any]:
    """On cases that the fit did not see."""
    folds = _folds(defaulted)
    splits = RepeatedStratifiedKFold(n_splits=folds, n_repeats=REPEATS, random_state=SEED)
    foretold = np.zeros((REPEATS, defaulted.size))
    for turn, (seen, unseen) in enumerate(splits.split(matrix, defaulted)):
        foretold[turn // folds, unseen] = _fitted(matrix[seen], defaulted[seen], signs).probability(matrix[unseen])
    low, high = measures.auc_interval(defaulted, list(foretold), SEED)
    default_low, default_high = measures.auc_interval(defaulted, [default_risk], SEED)
    every = np.tile(defaulted, REPEATS)
    return {
        "cases": int(defaulted.size),
        "defaults": int(defaulted.sum()),
        "crossValidation": f"{folds} folds, {REPEATS} times",
        "auc": _mean([measures.auc(defaulted, each) for each in foretold]),
        "aucInterval": [_rounded(low), _rounded(high)],
        "ks": _mean([measures.ks(defaulted, each) for each in foretold]),
        "brier": _mean([measures.brier(defaulted, each) for each in foretold]),
        "brierOfBaseRate": _rounded(float(defaulted.mean() * (1 - defaulted.mean()))),
        "defaultScorecardAuc": _rounded(measures.auc(defaulted, default_risk)),
        "defaultScorecardAucInterval": [_rounded(default_low), _rounded(default_high)],
        "calibrationTable": measures.calibration_table(every, foretold.ravel()),
    }


def _coefficients(fitted: _Fit, names: Sequence[str]) -> list[dict[str, Any]]:
    """Everything the regression needs: of each column its mean and scale (of the rank, or of the mark), and weight."""
    scaler, regression = fitted.regression[0], fitted.regression[-1]
    columns = zip(fitted.columns, scaler.mean_, scaler.scale_, regression.coef_[0], strict=True)
    return [
        {"column": "intercept", "coefficient": _rounded(regression.intercept_[0], 6)},
        *(
            {
                "column": names[_feature_of(column)],
                "of": "rank" if column >= 0 else "missing",
                "mean": _rounded(mean, 6),
                "scale": _rounded(scale, 6),
                "coefficient": _rounded(coefficient, 6),
                "imputedRank": _rounded(fitted.bandings[_feature_of(column)].missing, 6),
            }
            for column, mean, scale, coefficient in columns
        ),
    ]


def _feature_of(column: int) -> int:
    return column if column >= 0 else -column - 1


# From the regression to points


def _scorecard(
    fitted: _Fit,
    learned: Sequence[Learned],
    names: Sequence[str],
    calibration: Calibration,
    name: str,
    facts: Mapping[str, Any],
) -> Scorecard:
    """The log-odds are a sum of what each feature adds, so points are what is spared of the most that it could add, on
    a scale where all features together can spare 100.
    """
    added = _added(fitted)
    reach = sum(max(each) - min(each) for each in added.values())
    if reach == 0:
        raise _refused("the readings tell nothing about the outcomes")
    scale = 100 / reach
    features = [
        _feature(names[number], learned[number], fitted.bandings[number], added[number], scale) for number in added
    ]
    worst = fitted.regression[-1].intercept_[0] + sum(max(each) for each in added.values())
    link = Link(even=_exact(worst * scale, 4), doubling=_exact(np.log(2) * scale, 4))
    described = tuple(
        feature for feature in features if len(feature.bands) > 1 or feature.missing != feature.bands[0].points
    )
    return Scorecard(name, "1", calibration, described, link, facts)


def _added(fitted: _Fit) -> dict[int, list[float]]:
    """Of each feature that is used, what its bands (worst reading to best or back) and lastly a missing reading add."""
    scaler, regression = fitted.regression[0], fitted.regression[-1]
    columns = zip(fitted.columns, scaler.mean_, scaler.scale_, regression.coef_[0], strict=True)
    by_column = {column: (mean, coefficient / scale) for column, mean, scale, coefficient in columns}
    added = {}
    for number in sorted({_feature_of(column) for column in fitted.columns}):
        banding = fitted.bandings[number]
        mean, slope = by_column.get(number, (0.0, 0.0))
        mark_mean, mark = by_column.get(-number - 1, (0.0, 0.0))
        of_bands = [slope * (rank - mean) - mark * mark_mean for rank in banding.ranks]
        added[number] = [*of_bands, slope * (banding.missing - mean) + mark * (1 - mark_mean)]
    return added


def _feature(metric: str, learned: Learned, banding: _Banding, added: Sequence[float], scale: float) -> Feature:
    *of_bands, missing = (_exact((max(added) - each) * scale, 2) for each in added)
    more_is_better = of_bands[-1] >= of_bands[0]
    limits = [_exact(edge, DIGITS) for edge in banding.edges]
    if more_is_better:  # band n begins at its limit and goes up
        bands = list(zip([None, *limits], of_bands, strict=True))[::-1]
    else:  # band n ends one step before the limit of the next
        bands = list(zip([*(limit - learned.step for limit in limits), None], of_bands, strict=True))
    merged = [_merged(list(same)) for _, same in groupby(bands, key=lambda band: band[1])]
    return Feature(metric, more_is_better, tuple(merged), learned.reason, missing, learned.step)


def _merged(bands: Sequence[tuple[Decimal | None, Decimal]]) -> Band:
    """Neighbours that earn the same: whoever reaches the last limit of them has it."""
    return Band(*bands[-1])


def _exact(value: float, places: int) -> Decimal:
    return Decimal(repr(round(float(value), places))).quantize(Decimal(1).scaleb(-places))


def _mean(values: Sequence[float]) -> float:
    return _rounded(sum(values) / len(values))


def _rounded(value: float, places: int = 4) -> float:
    return round(float(value), places)


def _refused(reason: str) -> Unprocessable:
    return Unprocessable("Risk.NothingToLearn", f"No risk model can be fitted: {reason}.")
