"""Fit a scorecard to outcomes: correct the one that comes with Tidemark by as many slopes as the outcomes allow.

The default scorecard's points, before any ceiling, are the offset (`correction`). All of its features are weighted
anew, shrunk towards the weights that they have, so with weak evidence the fit is near the default scorecard with a
recalibrated link. Readings that the default scorecard doesn't have can earn points in two ways:

- by the ranks of one reading, in up to BANDS bands with about equally many cases;
- by the mean rank of all readings with a known direction. With few outcomes, equal weights predict nearly as well as
  fitted ones (Dawes, 1979), and they cost a single slope.

What is unknown earns nothing, so leaving data out never helps. A fitted scorecard is as monotone as the default one.

What is known of a feature's direction is a constraint: no weight of the default scorecard falls below 0, and a further
reading whose outcomes contradict its known direction gets no weight. Where no direction is known, the cases decide it.

Columns, bands, penalty and slopes are chosen anew in every fold, so that the result is tested on customers that it was
not fitted to. All cases of a customer are in one fold. `comparison` in the facts says whether the fit is better than
the recalibrated default scorecard of the same folds (`judging`).
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
from pipelines.scorecards.correction import Cases, Correction, choose_correction, folds, most_slopes, recalibrate
from pipelines.scorecards.default import DEFAULT
from pipelines.scorecards.drift import make_reference
from pipelines.scorecards.judging import compare
from pipelines.scorecards.measures import Outcomes, Values
from pipelines.scorecards.scorecard import COVERAGE_OF, POINTS_OF, Band, Calibration, Feature, Link, Scorecard
from pipelines.vocabulary.errors import Unprocessable
from pipelines.vocabulary.taxonomy import VERSION as TAXONOMY_VERSION

# Our judgement, except where a line says otherwise.
BANDS = 10
MIN_DEFAULTS = 20
MIN_SHARE = 0.02  # of the cases; a reading that fewer have is too rare to generalise from
FOLDS, REPEATS = 5, 5  # of the cross-validation that measures the fit
DEFAULTS_PER_FOLD = 6  # at least; with fewer defaults there are fewer folds
SEED = 20_260_701  # fixed, so that the same cases give the same scorecard
DIGITS = 4  # decimals of readings, and so of the bands' limits
_LOG_ODDS_PER_POINT = float(np.log(2) / float(DEFAULT.link.doubling))  # of the default scorecard
_MAX_POINTS = 100  # of a fitted scorecard
_WORTH_PER_POINT = 10_000  # the unit of `Feature.worth_of`


@dataclass(frozen=True)
class Prior:
    """What is known of a feature before fitting.

    `reason`: why it may matter, in words. `more_is_better`: None if unknown. `step`: the smallest difference between
    two readings; 1 for counts, which earn points in steps.
    """

    name: str
    reason: str
    more_is_better: bool | None = None
    step: Decimal = Decimal("0.0001")


@dataclass(frozen=True, eq=False)
class TrainingCases:
    """Cases with outcomes, to which a scorecard is fitted. All attributes but `priors` have the same order.

    `scored`: the cases as scored by the default scorecard (`Scorecard.score`). `further`: other readings as floats,
    null where missing, with their coverage in COVERAGE_OF + name; without that column they are covered in full.
    `priors`: what is known of all these readings.
    """

    scored: pl.DataFrame
    further: pl.DataFrame
    priors: Mapping[str, Prior]
    defaulted: Outcomes
    customers: NDArray[np.int64]

    def log_odds(self) -> Values:
        """Return each case's log-odds by the default scorecard, before any ceiling."""
        points: Values = self.scored["points"].cast(pl.Float64).to_numpy()
        return _LOG_ODDS_PER_POINT * (float(DEFAULT.link.even) - points)

    def readings(self, name: str) -> Values:
        """Return a reading of each case; nan where missing."""
        return _floats(self._frame(name)[name])

    def further_names(self) -> list[str]:
        """Return the names of the readings that the default scorecard doesn't have."""
        return [name for name in self.priors if name in self.further.columns]

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

    def select(self, which: NDArray[np.bool_]) -> "TrainingCases":
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
        return float(DEFAULT.max_points) / expected if expected else 0.0


Forecast = Callable[[TrainingCases], Values]  # predicts the log-odds of cases
Model = Callable[[TrainingCases], Forecast]  # learns from cases how to predict others


@dataclass(frozen=True, eq=False)
class _Weight:
    """A column of a default feature's points. Its weight is added to the one that the default scorecard gives them."""

    feature: Feature
    scale: float
    points_scale: float
    unit: ClassVar[str] = "point"

    @property
    def name(self) -> str:
        return self.feature.metric

    @property
    def least(self) -> float:
        """Return the weight that cancels the feature's weight in the default scorecard."""
        return -_LOG_ODDS_PER_POINT * self.points_scale / self.scale

    def values(self, training: TrainingCases) -> Values:
        points = training.scored[POINTS_OF + self.feature.metric].fill_null(0).cast(pl.Float64).to_numpy()
        return points * self.scale


@dataclass(frozen=True, eq=False)
class _Ranked:
    """A column of a reading's ranks: `worths`, from 0 to 1, at `knots`, in steps or on straight lines between them."""

    name: str
    more_is_better: bool
    knots: Values
    worths: Values
    stepped: bool
    scale: float = 1.0
    least: float = 0.0
    unit: ClassVar[str] = "rank"

    def values(self, training: TrainingCases) -> Values:
        readings = training.readings(self.name)
        known = np.nan_to_num(readings)
        place = np.searchsorted(self.knots, known, side="right") - 1
        worth = self.worths[place.clip(min=0)] if self.stepped else np.interp(known, self.knots, self.worths)
        earned: Values = np.where(np.isnan(readings), 0, worth) * training.coverage(self.name) * self.scale
        return earned


@dataclass(frozen=True, eq=False)
class _MeanRank:
    """A column of the mean of several readings' ranks, all with a known direction."""

    parts: Sequence[_Ranked]
    scale: float = 1.0
    least: float = 0.0
    unit: ClassVar[str] = "rank"
    name: ClassVar[str] = "mean rank of all readings with a known direction"

    def values(self, training: TrainingCases) -> Values:
        total: Values = np.sum([part.values(training) for part in self.parts], axis=0)
        return total / len(self.parts) * self.scale


_Column = _Weight | _Ranked | _MeanRank


@dataclass(frozen=True, eq=False)
class _Fit:
    columns: Sequence[_Column]
    correction: Correction

    def log_odds(self, training: TrainingCases) -> Values:
        return self.correction.log_odds(training.log_odds(), _values(self.columns, training))

    def used_columns(self) -> Iterator[tuple[_Column, float]]:
        """Yield the columns whose weight is not 0, and the weight of their unscaled values."""
        for column, weight in zip(self.columns, self.correction.weights, strict=True):
            if weight:
                yield column, float(weight) * column.scale


def fit(training: TrainingCases, calibration: Calibration, name: str) -> Scorecard:
    """Correct the default scorecard by what the outcomes show. The same cases give the same scorecard.

    Raises:
        Unprocessable: nothing can be learned from these cases, with the reason.
    """
    refuse_unlearnable(training)
    weights = most_slopes(training.defaulted) - 1  # one slope is the default scorecard's; every fold has as many
    fitted = _fit(training, weights)
    facts = {
        **measure_on_unseen(
            training, lambda seen: _fit(seen, weights).log_odds, forecast_recalibrated, "recalibrated default scorecard"
        ),
        "slopes": _round(fitted.correction.slopes, 1),
        "coefficients": _coefficients(fitted),
        "reference": make_reference(training.scored, [feature.metric for feature in DEFAULT.features]),
        "taxonomy": TAXONOMY_VERSION,
        "versions": {package: version(package) for package in ("scipy", "numpy", "polars")},
    }
    return _scorecard(fitted, training, calibration, name, facts)


def refuse_unlearnable(training: TrainingCases) -> None:
    """Refuse cases that all have the same outcome, too few of one outcome, or outcomes that contradict the points.

    Raises:
        Unprocessable: with the reason.
    """
    defaulted, points = training.defaulted, training.log_odds()
    bad, good = int((defaulted == 1).sum()), int((defaulted == 0).sum())
    if not bad or not good:
        raise _refusal(f"all {bad + good} cases {'defaulted' if bad else 'were repaid'}; both kinds are needed")
    if min(bad, good) < MIN_DEFAULTS:
        few = f"{bad} of {bad + good} cases defaulted" if bad < good else f"only {good} of {bad + good} did not default"
        raise _refusal(f"{few}; at least {MIN_DEFAULTS} of each kind are needed")
    if np.ptp(points) == 0:
        raise _refusal("the default scorecard gives all cases the same points")
    if recalibrate(points, defaulted).slope == 0:
        raise _refusal("the default scorecard's points contradict the outcomes: are 0 and 1 exchanged?")


def _fit(training: TrainingCases, weights: int) -> _Fit:
    columns = list(_columns(training))
    correction = choose_correction(_cases(columns, training), weights, _folds(training.defaulted), SEED)
    return _Fit(columns, correction)


def _cases(columns: Sequence[_Column], training: TrainingCases) -> Cases:
    return Cases(
        scorecard=training.log_odds(),
        columns=_values(columns, training),
        own=sum(isinstance(column, _Weight) for column in columns),
        least=np.array([column.least for column in columns]),
        defaulted=training.defaulted,
        customers=training.customers,
    )


def _values(columns: Sequence[_Column], training: TrainingCases) -> Values:
    if not columns:
        return np.zeros((training.defaulted.size, 0))
    return np.column_stack([column.values(training) for column in columns])


def _columns(training: TrainingCases) -> Iterator[_Column]:
    """Yield the columns whose values differ between these cases, scaled to a standard deviation of 1."""
    ranked = list(_rank_columns(training))
    known = [column for column in ranked if training.priors[column.name].more_is_better is not None]
    of_several = [_MeanRank(known)] if len(known) > 1 else []
    for column in (*_weight_columns(training), *ranked, *of_several):
        spread = float(column.values(training).std())
        if spread > 0:
            yield replace(column, scale=1 / spread)


def _weight_columns(training: TrainingCases) -> Iterator[_Weight]:
    for feature in DEFAULT.features:
        yield _Weight(feature, 1.0, training.points_scale)


def _rank_columns(training: TrainingCases) -> Iterator[_Ranked]:
    """Yield a column for each further reading that enough cases have, if it differs between them."""
    for name in training.further_names():
        prior, readings = training.priors[name], training.readings(name)
        known = np.sort(readings[~np.isnan(readings)])
        if known.size >= max(2, MIN_SHARE * readings.size) and known[0] < known[-1]:
            ranked = _rank_column(name, known, stepped=prior.step == 1)
            yield ranked if _decide_direction(ranked, prior, training) else _reverse(ranked)


def _rank_column(name: str, known: Values, *, stepped: bool) -> _Ranked:
    """Return bands with about equally many cases; a band is worth the share of the known cases below its limit."""
    quantiles = np.quantile(known, np.arange(1, BANDS) / BANDS, method="higher")
    knots = np.unique([known[0], *quantiles, *([] if stepped else known[-1:])])
    below = np.searchsorted(known, knots, side="left") / known.size
    return _Ranked(name, True, knots, below / below[-1] if below[-1] else below, stepped)


def _reverse(ranked: _Ranked) -> _Ranked:
    return replace(ranked, more_is_better=False, worths=1 - ranked.worths)


def _decide_direction(ranked: _Ranked, prior: Prior, training: TrainingCases) -> bool:
    """Return whether more is better: as the prior states, or else as the readings of these cases show."""
    if prior.more_is_better is not None:
        return prior.more_is_better
    known, bad = ~np.isnan(training.readings(ranked.name)), training.defaulted == 1
    worths = ranked.values(training)
    return bool((known & bad).any() and worths[known & bad].mean() < worths[known].mean())


def _floats(column: pl.Series) -> Values:
    return column.cast(pl.Float64).fill_null(float("nan")).to_numpy().round(DIGITS)


def _folds(defaulted: Outcomes) -> int:
    fewest = int(min((defaulted == 1).sum(), (defaulted == 0).sum()))
    return max(2, min(FOLDS, fewest // DEFAULTS_PER_FOLD))


# Quality on unseen customers


def measure_on_unseen(
    training: TrainingCases, model: Model, other: Model, against: str, *, by_rank: bool = True
) -> dict[str, Any]:
    """Measure what a model predicts for cases that it did not see, and compare it with another one on the same folds.

    Args:
        model, other: the model to measure, and the one to compare it with.
        against: the name of `other`, in words.
        by_rank: whether the model may change ranks, so that the AUC is compared, too.
    """
    count = _folds(training.defaulted)
    forecasts, others = np.zeros((2, REPEATS, training.defaulted.size))
    for turn in range(REPEATS):
        for unseen in folds(training.customers, training.defaulted, count, SEED + turn):
            seen, held_out = training.select(~unseen), training.select(unseen)
            forecasts[turn, unseen], others[turn, unseen] = model(seen)(held_out), other(seen)(held_out)
    return {
        "cases": int(training.defaulted.size),
        "customers": int(np.unique(training.customers).size),
        "defaults": int(training.defaulted.sum()),
        "crossValidation": f"{count} folds, {REPEATS} times",
        **_measure_quality(training, expit(forecasts)),
        "comparison": {
            "against": against,
            **compare(forecasts, others, training.defaulted, training.customers, SEED, by_rank=by_rank),
        },
    }


def _measure_quality(training: TrainingCases, forecasts: Values) -> dict[str, Any]:
    defaulted, default_risk = training.defaulted, training.log_odds()
    low, high = measures.auc_interval(defaulted, list(forecasts), SEED)
    default_low, default_high = measures.auc_interval(defaulted, [default_risk], SEED)
    return {
        "auc": _mean([measures.auc(defaulted, forecast) for forecast in forecasts]),
        "aucInterval": [_round(low), _round(high)],
        "ks": _mean([measures.ks(defaulted, forecast) for forecast in forecasts]),
        "brier": _mean([measures.brier(defaulted, forecast) for forecast in forecasts]),
        "brierOfBaseRate": _round(float(defaulted.mean() * (1 - defaulted.mean()))),
        "defaultScorecardAuc": _round(measures.auc(defaulted, default_risk)),
        "defaultScorecardAucInterval": [_round(default_low), _round(default_high)],
        "calibrationTable": measures.calibration_table(defaulted, list(forecasts)),
    }


def forecast_recalibrated(seen: TrainingCases) -> Forecast:
    """Return how the default scorecard predicts with its intercept and slope fitted to these cases."""
    fitted_link = recalibrate(seen.log_odds(), seen.defaulted)
    return lambda held_out: fitted_link.intercept + fitted_link.slope * held_out.log_odds()


def _coefficients(fitted: _Fit) -> list[dict[str, Any]]:
    """Return what is added to the log-odds: per point of the default scorecard, and per band of a further reading."""
    fitted_link = fitted.correction
    return [
        {"column": "intercept", "coefficient": _round(fitted_link.intercept, 6)},
        {"column": "log-odds of the default scorecard", "coefficient": _round(fitted_link.slope, 6)},
        *(
            {"column": column.name, "of": column.unit, "coefficient": _round(-weight, 6)}
            for column, weight in fitted.used_columns()
        ),
    ]


# From the correction to points


def _scorecard(
    fitted: _Fit, training: TrainingCases, calibration: Calibration, name: str, facts: Mapping[str, Any]
) -> Scorecard:
    """Convert the correction to a scorecard of a hundred points.

    The log-odds fall by the sum of each feature's points times its weight. So points are multiplied by the weights and
    scaled to a hundred in all, and the link converts their sum back to the same log-odds.
    """
    point_weight = _LOG_ODDS_PER_POINT * training.points_scale * fitted.correction.slope
    weighted = [(feature, point_weight) for feature in DEFAULT.features]
    for column, weight in fitted.used_columns():
        parts = column.parts if isinstance(column, _MeanRank) else [column]
        weighted.extend((_feature(part, training.priors), weight / len(parts)) for part in parts)
    most = sum(weight * float(feature.max_points) for feature, weight in weighted)
    by_metric: dict[str, list[tuple[Feature, float]]] = {}
    for feature, weight in weighted:
        by_metric.setdefault(feature.metric, []).append((feature, weight * _MAX_POINTS / most))
    features = [feature for feature in map(_sum_features, by_metric.values()) if feature.max_points]
    possible = sum(feature.max_points for feature in features if training.expects(feature.metric))
    scale = _MAX_POINTS / most * float(sum(feature.max_points for feature in features) / possible)
    default_at_zero = _LOG_ODDS_PER_POINT * float(DEFAULT.link.even)
    log_odds_at_zero = fitted.correction.intercept + fitted.correction.slope * default_at_zero
    link = Link(even=to_decimal(log_odds_at_zero * scale, 4), doubling=to_decimal(np.log(2) * scale, 4))
    return Scorecard(name, "1", calibration, tuple(features), link, facts)


def _feature(column: _Weight | _Ranked, priors: Mapping[str, Prior]) -> Feature:
    """Return the feature whose points are the column's values."""
    if isinstance(column, _Weight):
        return column.feature
    limits = [to_decimal(knot, DIGITS) for knot in column.knots]
    prior, way = priors[column.name], -1 if column.more_is_better else 1
    if column.stepped and not column.more_is_better:  # a band ends one `step` before the next
        limits = [limit - prior.step for limit in limits[1:]]
    bands = [Band(limit, to_decimal(worth, 6)) for limit, worth in zip(limits, column.worths, strict=False)][::way]
    last = Band(None, Decimal(0))
    return Feature(
        column.name, column.more_is_better, (*bands, last), prior.reason, step=prior.step, stepped=column.stepped
    )


def _sum_features(weighted: Sequence[tuple[Feature, float]]) -> Feature:
    """Return the feature that earns the weighted sum of what these features of one metric earn.

    Its limits are those of all of them; neighbouring bands whose points become equal are merged.
    """
    feature = weighted[0][0]
    limits = {band.limit for each, _ in weighted for band in each.bands if band.limit is not None}
    bands = [
        Band(limit, to_decimal(sum(each.worth_of(limit) * weight for each, weight in weighted) / _WORTH_PER_POINT, 2))
        for limit in sorted(limits, reverse=feature.more_is_better)
    ]
    merged = [list(same)[-1] for _, same in groupby(bands, key=lambda band: band.points)]
    if feature.stepped and not merged[-1].points:
        merged.pop()
    return replace(feature, bands=(*merged, Band(None, Decimal(0) if feature.stepped else merged[-1].points)))


def to_decimal(value: float, places: int) -> Decimal:
    """Return the number with this many decimals."""
    return Decimal(repr(round(float(value), places))).quantize(Decimal(1).scaleb(-places))


def _mean(values: Sequence[float]) -> float:
    return _round(sum(values) / len(values))


def _round(value: float, places: int = 4) -> float:
    return round(float(value), places)


def _refusal(reason: str) -> Unprocessable:
    return Unprocessable("Risk.NothingToLearn", f"No risk model can be fitted: {reason}.")
