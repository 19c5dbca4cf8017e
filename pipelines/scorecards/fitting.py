"""Fit a scorecard to outcomes: the one that comes with Tidemark, corrected by at most as many slopes as outcomes bear.

The default scorecard's points, before any ceiling, are the offset (`correction`), so with weak evidence the fit is the
default scorecard with a recalibrated link. A slope either changes the weight of one of its features, or lets the ranks
of a reading earn points, in up to BANDS bands of about equally many cases: ranks see differences where the default
scorecard's limits don't. What is unknown earns nothing there either, so leaving data out never helps, and a fitted
scorecard is as monotone as the default one.

What is known of a feature's direction is a constraint: no weight of the default scorecard falls below 0, and a further
reading that contradicts its direction is left out. Where nothing is known, the cases that are fitted to decide.

Screening, bands, penalty and slopes are repeated in every fold, so that they are judged on customers that they did not
see. All cases of a customer are in one fold. `comparison` in the facts says whether the fit is better than the
recalibrated default scorecard of the same folds (`judging`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from importlib.metadata import version
from itertools import groupby
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import expit

from pipelines.scorecards import measures
from pipelines.scorecards.correction import Cases, Correction, choose, folds, most_slopes, recalibrate
from pipelines.scorecards.default import DEFAULT
from pipelines.scorecards.drift import reference
from pipelines.scorecards.judging import compare
from pipelines.scorecards.measures import Outcomes, Values
from pipelines.scorecards.scorecard import COVERAGE_OF, POINTS_OF, Band, Calibration, Feature, Link, Scorecard
from pipelines.vocabulary.errors import Unprocessable

# Our judgement, except where a line says otherwise.
BANDS = 10
LEAST_DEFAULTS = 20
LEAST_SHARE = 0.02  # of the cases; a reading that fewer have is too rare to generalise from
FOLDS, REPEATS = 5, 5
DEFAULTS_PER_FOLD = 6  # at least; with fewer defaults there are fewer folds
SEED = 20_260_701
DIGITS = 4  # decimals of readings, and so of the bands' limits
_HALVING = float(np.log(2) / float(DEFAULT.link.doubling))  # log-odds of a point of the default scorecard
_HUNDRED = 100  # points of a fitted scorecard in all
_WHOLE = 10_000  # of `Feature.worth_of` in a point


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
class Material:
    """Cases to fit to, in one order.

    `scored`: by the default scorecard (`Scorecard.scored`). `further`: floats of other readings, null where missing,
    with their coverage in COVERAGE_OF + name (none: covered in full). `priors`: of all these readings.
    """

    scored: pl.DataFrame
    further: pl.DataFrame
    priors: Mapping[str, Prior]
    defaulted: Outcomes
    customers: NDArray[np.int64]

    def log_odds(self) -> Values:
        """Return each case's log-odds by the default scorecard, before any ceiling."""
        points: Values = self.scored["points"].cast(pl.Float64).to_numpy()
        return _HALVING * (float(DEFAULT.link.even) - points)

    def readings(self, name: str) -> Values:
        """Return a reading of each case; nan where missing."""
        return _floats(self._frame(name)[name])

    def coverage(self, name: str) -> Values | float:
        """Return each case's coverage of a reading; 0 where it is not expected."""
        frame, coverage = self._frame(name), COVERAGE_OF + name
        return np.nan_to_num(_floats(frame[coverage])) if coverage in frame.columns else 1.0

    def expects(self, name: str) -> bool:
        """Return whether a reading's evidence is expected of the cases."""
        frame, coverage = self._frame(name), COVERAGE_OF + name
        return coverage not in frame.columns or frame[coverage].null_count() < frame.height

    def _frame(self, name: str) -> pl.DataFrame:
        return self.further if name in self.further.columns else self.scored

    def of(self, which: NDArray[np.bool_]) -> "Material":
        return replace(
            self,
            scored=self.scored.filter(which),
            further=self.further.filter(which) if self.further.width else self.further,
            defaulted=self.defaulted[which],
            customers=self.customers[which],
        )

    @property
    def points_scale(self) -> float:
        """Return the factor by which the default scorecard scales its points if not all of its evidence is expected."""
        expected = float(self.scored["expected"].max() or 0)  # pyrefly: ignore[bad-argument-type]
        return float(DEFAULT.most) / expected if expected else 0.0


Forecast = Callable[[Material], Values]  # the log-odds of cases
Model = Callable[[Material], Forecast]  # learned from the cases that it sees


@dataclass(frozen=True, eq=False)
class _Weight:
    """A column of a default feature's points: its weight is added to what the points already count."""

    feature: Feature
    scale: float
    points_scale: float
    unit: ClassVar[str] = "point"

    @property
    def name(self) -> str:
        return self.feature.metric

    @property
    def least(self) -> float:
        """Return the weight that takes all of the default scorecard's away."""
        return -_HALVING * self.points_scale / self.scale

    def values(self, material: Material) -> Values:
        points = material.scored[POINTS_OF + self.feature.metric].fill_null(0).cast(pl.Float64).to_numpy()
        return points * self.scale


@dataclass(frozen=True, eq=False)
class _Ranked:
    """A column of a reading's ranks: its worth, 0 to 1, at `knots`, in steps or in straight lines between them."""

    name: str
    more_is_better: bool
    knots: Values
    worths: Values
    stepped: bool
    scale: float = 1.0
    least: float = 0.0
    unit: ClassVar[str] = "rank"

    def values(self, material: Material) -> Values:
        readings = material.readings(self.name)
        known = np.nan_to_num(readings)
        place = np.searchsorted(self.knots, known, side="right") - 1
        worth = self.worths[place.clip(min=0)] if self.stepped else np.interp(known, self.knots, self.worths)
        earned: Values = np.where(np.isnan(readings), 0, worth) * material.coverage(self.name) * self.scale
        return earned


_Column = _Weight | _Ranked


@dataclass(frozen=True, eq=False)
class _Fit:
    columns: Sequence[_Column]
    correction: Correction

    def log_odds(self, material: Material) -> Values:
        return self.correction.log_odds(material.log_odds(), _values(self.columns, material))

    def used(self) -> Iterator[tuple[_Column, float]]:
        """Yield the columns whose weight is not 0, and the weight of their unscaled values."""
        for column, weight in zip(self.columns, self.correction.weights, strict=True):
            if weight:
                yield column, float(weight) * column.scale


def fit(material: Material, calibration: Calibration, name: str) -> Scorecard:
    """Correct the default scorecard by what the outcomes say; the same cases give the same scorecard.

    Raises:
        Unprocessable: nothing can be learned from these cases, with the reason.
    """
    refuse_unlearnable(material)
    weights = most_slopes(material.defaulted) - 1  # one slope is the scorecard's; folds get as many, to be judged alike
    fitted = _fit(material, weights)
    facts = {
        **measured(material, lambda seen: _fit(seen, weights).log_odds, recalibrated, "recalibrated default scorecard"),
        "slopes": fitted.correction.slopes,
        "coefficients": _coefficients(fitted),
        "reference": reference(material.scored, [feature.metric for feature in DEFAULT.features]),
        "versions": {package: version(package) for package in ("scipy", "numpy", "polars")},
    }
    return _scorecard(fitted, material, calibration, name, facts)


def refuse_unlearnable(material: Material) -> None:
    """Refuse outcomes of one kind, too few of one, or ones that the default scorecard's points contradict.

    Raises:
        Unprocessable: with the reason.
    """
    defaulted, points = material.defaulted, material.log_odds()
    bad, good = int((defaulted == 1).sum()), int((defaulted == 0).sum())
    if not bad or not good:
        raise _refused(f"all {bad + good} cases {'defaulted' if bad else 'were repaid'}; both kinds are needed")
    if min(bad, good) < LEAST_DEFAULTS:
        few = f"{bad} of {bad + good} cases defaulted" if bad < good else f"only {good} of {bad + good} did not default"
        raise _refused(f"{few}; at least {LEAST_DEFAULTS} of each kind are needed")
    if np.ptp(points) == 0:
        raise _refused("the default scorecard gives all cases the same points")
    if recalibrate(points, defaulted).slope == 0:
        raise _refused("the default scorecard's points contradict the outcomes: are 0 and 1 exchanged?")


def _fit(material: Material, weights: int) -> _Fit:
    columns = list(_columns(material))
    correction = choose(_cases(columns, material), weights, _folds(material.defaulted), SEED)
    return _Fit(columns, correction)


def _cases(columns: Sequence[_Column], material: Material) -> Cases:
    return Cases(
        scorecard=material.log_odds(),
        columns=_values(columns, material),
        least=np.array([column.least for column in columns]),
        defaulted=material.defaulted,
        customers=material.customers,
    )


def _values(columns: Sequence[_Column], material: Material) -> Values:
    if not columns:
        return np.zeros((material.defaulted.size, 0))
    return np.column_stack([column.values(material) for column in columns])


def _columns(material: Material) -> Iterator[_Column]:
    """Yield the columns that differ between these cases, with a standard deviation of 1."""
    for column in (*_weights(material), *_ranks(material)):
        spread = float(column.values(material).std())
        if spread > 0:
            yield replace(column, scale=1 / spread)


def _weights(material: Material) -> Iterator[_Weight]:
    for feature in DEFAULT.features:
        yield _Weight(feature, 1.0, material.points_scale)


def _ranks(material: Material) -> Iterator[_Ranked]:
    """Yield a column for each reading that enough cases have, if it differs between them."""
    for name, prior in material.priors.items():
        readings = material.readings(name)
        known = np.sort(readings[~np.isnan(readings)])
        if known.size >= max(2, LEAST_SHARE * readings.size) and known[0] < known[-1]:
            ranked = _ranked(name, known, stepped=prior.step == 1)
            yield ranked if _is_better(ranked, prior, material) else _reversed(ranked)


def _ranked(name: str, known: Values, *, stepped: bool) -> _Ranked:
    """Return bands with about equally many cases; a band is worth the share of the known cases below its limit."""
    quantiles = np.quantile(known, np.arange(1, BANDS) / BANDS, method="higher")
    knots = np.unique([known[0], *quantiles, *([] if stepped else known[-1:])])
    below = np.searchsorted(known, knots, side="left") / known.size
    return _Ranked(name, True, knots, below / below[-1] if below[-1] else below, stepped)


def _reversed(ranked: _Ranked) -> _Ranked:
    return replace(ranked, more_is_better=False, worths=1 - ranked.worths)


def _is_better(ranked: _Ranked, prior: Prior, material: Material) -> bool:
    """Return whether more is better: as known, or else as the known readings of these cases say."""
    if prior.more_is_better is not None:
        return prior.more_is_better
    known, bad = ~np.isnan(material.readings(ranked.name)), material.defaulted == 1
    worths = ranked.values(material)
    return bool((known & bad).any() and worths[known & bad].mean() < worths[known].mean())


def _floats(column: pl.Series) -> Values:
    return column.cast(pl.Float64).fill_null(float("nan")).to_numpy().round(DIGITS)


def _folds(defaulted: Outcomes) -> int:
    fewest = int(min((defaulted == 1).sum(), (defaulted == 0).sum()))
    return max(2, min(FOLDS, fewest // DEFAULTS_PER_FOLD))


# Quality on unseen customers


def measured(material: Material, model: Model, other: Model, against: str, *, by_rank: bool = True) -> dict[str, Any]:
    """Measure what a model predicts for cases that it did not see, and compare it with another one on the same folds.

    Args:
        model, other: from the cases that they see, how they predict others.
        against: what `other` is, in words.
        by_rank: the model may change ranks, so they are compared, too.
    """
    count = _folds(material.defaulted)
    forecasts, others = np.zeros((2, REPEATS, material.defaulted.size))
    for turn in range(REPEATS):
        for unseen in folds(material.customers, material.defaulted, count, SEED + turn):
            seen, left = material.of(~unseen), material.of(unseen)
            forecasts[turn, unseen], others[turn, unseen] = model(seen)(left), other(seen)(left)
    return {
        "cases": int(material.defaulted.size),
        "customers": int(np.unique(material.customers).size),
        "defaults": int(material.defaulted.sum()),
        "crossValidation": f"{count} folds, {REPEATS} times",
        **_measures(material, expit(forecasts)),
        "comparison": {
            "against": against,
            **compare(forecasts, others, material.defaulted, material.customers, SEED, by_rank=by_rank),
        },
    }


def _measures(material: Material, forecasts: Values) -> dict[str, Any]:
    defaulted, default_risk = material.defaulted, material.log_odds()
    low, high = measures.auc_interval(defaulted, list(forecasts), SEED)
    default_low, default_high = measures.auc_interval(defaulted, [default_risk], SEED)
    return {
        "auc": _mean([measures.auc(defaulted, forecast) for forecast in forecasts]),
        "aucInterval": [_rounded(low), _rounded(high)],
        "ks": _mean([measures.ks(defaulted, forecast) for forecast in forecasts]),
        "brier": _mean([measures.brier(defaulted, forecast) for forecast in forecasts]),
        "brierOfBaseRate": _rounded(float(defaulted.mean() * (1 - defaulted.mean()))),
        "defaultScorecardAuc": _rounded(measures.auc(defaulted, default_risk)),
        "defaultScorecardAucInterval": [_rounded(default_low), _rounded(default_high)],
        "calibrationTable": measures.calibration_table(np.tile(defaulted, REPEATS), forecasts.ravel()),
    }


def recalibrated(seen: Material) -> Forecast:
    """Return how the default scorecard predicts with its intercept and slope fitted to these cases."""
    found = recalibrate(seen.log_odds(), seen.defaulted)
    return lambda left: found.intercept + found.slope * left.log_odds()


def _coefficients(fitted: _Fit) -> list[dict[str, Any]]:
    """Return what is added to the log-odds: per point of the default scorecard, and per band of a further reading."""
    found = fitted.correction
    return [
        {"column": "intercept", "coefficient": _rounded(found.intercept, 6)},
        {"column": "log-odds of the default scorecard", "coefficient": _rounded(found.slope, 6)},
        *(
            {"column": column.name, "of": column.unit, "coefficient": _rounded(-weight, 6)}
            for column, weight in fitted.used()
        ),
    ]


# From the correction to points


def _scorecard(
    fitted: _Fit, material: Material, calibration: Calibration, name: str, facts: Mapping[str, Any]
) -> Scorecard:
    """Convert the correction to a scorecard of a hundred points.

    The log-odds fall by a feature's points times a weight, so the points are scaled by the weights and the link is the
    line that leads back.
    """
    a_point = _HALVING * material.points_scale * fitted.correction.slope
    weighted = [(feature, a_point) for feature in DEFAULT.features]
    for column, weight in fitted.used():
        weighted.append((_feature(column, material.priors), weight))
    reach = sum(weight * float(feature.most) for feature, weight in weighted)
    by_metric: dict[str, list[tuple[Feature, float]]] = {}
    for feature, weight in weighted:
        by_metric.setdefault(feature.metric, []).append((feature, weight * _HUNDRED / reach))
    features = [feature for feature in map(_sum, by_metric.values()) if feature.most]
    possible = sum(feature.most for feature in features if material.expects(feature.metric))
    scale = _HUNDRED / reach * float(sum(feature.most for feature in features) / possible)
    middle = fitted.correction.intercept + fitted.correction.slope * _HALVING * float(DEFAULT.link.even)
    link = Link(even=exact(middle * scale, 4), doubling=exact(np.log(2) * scale, 4))
    return Scorecard(name, "1", calibration, tuple(features), link, facts)


def _feature(column: _Column, priors: Mapping[str, Prior]) -> Feature:
    """Return the feature whose points are the column's values."""
    if isinstance(column, _Weight):
        return column.feature
    limits = [exact(knot, DIGITS) for knot in column.knots]
    prior, way = priors[column.name], -1 if column.more_is_better else 1
    if column.stepped and not column.more_is_better:  # a band ends one `step` before the next
        limits = [limit - prior.step for limit in limits[1:]]
    bands = [Band(limit, exact(worth, 6)) for limit, worth in zip(limits, column.worths, strict=False)][::way]
    last = Band(None, Decimal(0))
    return Feature(
        column.name, column.more_is_better, (*bands, last), prior.reason, step=prior.step, stepped=column.stepped
    )


def _sum(weighted: Sequence[tuple[Feature, float]]) -> Feature:
    """Return the feature that earns the weighted sum of what these features of one metric earn.

    Its limits are those of all of them; neighbouring bands whose points become equal are merged.
    """
    feature = weighted[0][0]
    limits = {band.limit for each, _ in weighted for band in each.bands if band.limit is not None}
    bands = [
        Band(limit, exact(sum(each.worth_of(limit) * weight for each, weight in weighted) / _WHOLE, 2))
        for limit in sorted(limits, reverse=feature.more_is_better)
    ]
    merged = [list(same)[-1] for _, same in groupby(bands, key=lambda band: band.points)]
    if feature.stepped and not merged[-1].points:
        merged.pop()
    return replace(feature, bands=(*merged, Band(None, Decimal(0) if feature.stepped else merged[-1].points)))


def exact(value: float, places: int) -> Decimal:
    """Return the number with this many decimals."""
    return Decimal(repr(round(float(value), places))).quantize(Decimal(1).scaleb(-places))


def _mean(values: Sequence[float]) -> float:
    return _rounded(sum(values) / len(values))


def _rounded(value: float, places: int = 4) -> float:
    return round(float(value), places)


def _refused(reason: str) -> Unprocessable:
    return Unprocessable("Risk.NothingToLearn", f"No risk model can be fitted: {reason}.")
