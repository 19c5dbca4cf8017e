"""Columns from which a fitted scorecard's log-odds are corrected. In each, higher is better.

A column of a default feature's points changes the weight that the feature has. The others are ranks of readings that
the default scorecard doesn't have: of one reading, or the mean rank of all whose direction is known.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import polars as pl

from pipelines.scorecards.correction import Correction
from pipelines.scorecards.default import DEFAULT
from pipelines.scorecards.measures import Values
from pipelines.scorecards.scorecard import POINTS_OF, Feature
from pipelines.scorecards.training import LOG_ODDS_PER_POINT, Prior, TrainingCases

# Our judgement.
BANDS = 10
MIN_SHARE = 0.02  # of the cases; a reading that fewer have is too rare to generalise from


@dataclass(frozen=True, eq=False)
class FeaturePoints:
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
        return -LOG_ODDS_PER_POINT * self.points_scale / self.scale

    def values(self, training: TrainingCases) -> Values:
        points = training.scored[POINTS_OF + self.feature.metric].fill_null(0).cast(pl.Float64).to_numpy()
        return points * self.scale


@dataclass(frozen=True, eq=False)
class ReadingRanks:
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
class MeanRank:
    """A column of the mean of several readings' ranks, all with a known direction."""

    parts: Sequence[ReadingRanks]
    scale: float = 1.0
    least: float = 0.0
    unit: ClassVar[str] = "rank"
    name: ClassVar[str] = "mean rank of all readings with a known direction"

    def values(self, training: TrainingCases) -> Values:
        total: Values = np.sum([part.values(training) for part in self.parts], axis=0)
        return total / len(self.parts) * self.scale


Column = FeaturePoints | ReadingRanks | MeanRank


@dataclass(frozen=True, eq=False)
class Fit:
    """Columns, and the correction that gives each a weight."""

    columns: Sequence[Column]
    correction: Correction

    def log_odds(self, training: TrainingCases) -> Values:
        return self.correction.log_odds(training.log_odds(), column_values(self.columns, training))

    def used_columns(self) -> Iterator[tuple[Column, float]]:
        """Yield the columns whose weight is not 0, and the weight of their unscaled values."""
        for column, weight in zip(self.columns, self.correction.weights, strict=True):
            if weight:
                yield column, float(weight) * column.scale


def list_columns(training: TrainingCases) -> Iterator[Column]:
    """Yield the columns whose values differ between these cases, scaled to a standard deviation of 1."""
    ranked = list(_rank_columns(training))
    known = [column for column in ranked if training.priors[column.name].more_is_better is not None]
    mean_rank = [MeanRank(known)] if len(known) > 1 else []
    for column in (*_point_columns(training), *ranked, *mean_rank):  # `Cases.own` must be the first ones
        spread = float(column.values(training).std())
        if spread > 0:
            yield replace(column, scale=1 / spread)


def _point_columns(training: TrainingCases) -> Iterator[FeaturePoints]:
    for feature in DEFAULT.features:
        yield FeaturePoints(feature, 1.0, training.points_scale)


def _rank_columns(training: TrainingCases) -> Iterator[ReadingRanks]:
    """Yield a column for each further reading that enough cases have, if it differs between them."""
    for name in training.further_names():
        prior, readings = training.priors[name], training.readings(name)
        known = np.sort(readings[~np.isnan(readings)])
        if known.size >= max(2, MIN_SHARE * readings.size) and known[0] < known[-1]:
            ranked = _rank_column(name, known, stepped=prior.step == 1)
            yield ranked if _decide_direction(ranked, prior, training) else _reverse(ranked)


def _rank_column(name: str, known: Values, *, stepped: bool) -> ReadingRanks:
    """Return bands with about equally many cases; a band is worth the share of the known cases below its limit."""
    quantiles = np.quantile(known, np.arange(1, BANDS) / BANDS, method="higher")
    knots = np.unique([known[0], *quantiles, *([] if stepped else known[-1:])])
    below = np.searchsorted(known, knots, side="left") / known.size
    return ReadingRanks(name, True, knots, below / below[-1] if below[-1] else below, stepped)


def _reverse(ranked: ReadingRanks) -> ReadingRanks:
    return replace(ranked, more_is_better=False, worths=1 - ranked.worths)


def _decide_direction(ranked: ReadingRanks, prior: Prior, training: TrainingCases) -> bool:
    """Return whether more is better: as the prior states, or else as the readings of these cases show."""
    if prior.more_is_better is not None:
        return prior.more_is_better
    known, bad = ~np.isnan(training.readings(ranked.name)), training.defaulted == 1
    worths = ranked.values(training)
    return bool((known & bad).any() and worths[known & bad].mean() < worths[known].mean())


def column_values(columns: Sequence[Column], training: TrainingCases) -> Values:
    """Return the columns' values (cases × columns)."""
    if not columns:
        return np.zeros((training.defaulted.size, 0))
    return np.column_stack([column.values(training) for column in columns])
