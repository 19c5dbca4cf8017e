"""Convert a correction of the default scorecard to a scorecard of its own."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import groupby
from typing import Any

import numpy as np

from pipelines.scorecards.columns import FeaturePoints, Fit, MeanRank, ReadingRanks
from pipelines.scorecards.correction import Correction
from pipelines.scorecards.default import DEFAULT
from pipelines.scorecards.scorecard import Band, Calibration, Feature, Link, Scorecard
from pipelines.scorecards.training import DIGITS, LOG_ODDS_PER_POINT, Prior, TrainingCases

MAX_POINTS = 100  # of a fitted scorecard
_WORTH_PER_POINT = 10_000  # the unit of `Feature.worth_of`

Weighted = tuple[Feature, float]  # a feature, and by how much a point of it lowers the log-odds


def to_scorecard(
    fitted: Fit, training: TrainingCases, calibration: Calibration, name: str, facts: Mapping[str, Any]
) -> Scorecard:
    """Convert the correction to a scorecard of a hundred points.

    The log-odds fall by the sum of each feature's points times its weight. So points are multiplied by the weights and
    scaled to a hundred in all, and the link converts their sum back to the same log-odds.
    """
    weighted = list(_weigh_features(fitted, training))
    most = sum(weight * float(feature.max_points) for feature, weight in weighted)
    features = tuple(_sum_by_metric([(feature, weight * MAX_POINTS / most) for feature, weight in weighted]))
    # A scorecard scales its points up if not all of its evidence is expected.
    expected = sum(feature.max_points for feature in features if training.expects(feature.metric))
    scale = MAX_POINTS / most * float(sum(feature.max_points for feature in features) / expected)
    return Scorecard(name, "1", calibration, features, _make_link(fitted.correction, scale), facts)


def _weigh_features(fitted: Fit, training: TrainingCases) -> Iterator[Weighted]:
    """Yield features with their weights: the default scorecard's, and those of the columns that correct it."""
    of_default = LOG_ODDS_PER_POINT * training.points_scale * fitted.correction.slope
    for feature in DEFAULT.features:
        yield feature, of_default
    for column, weight in fitted.used_columns():
        parts = column.parts if isinstance(column, MeanRank) else [column]
        for part in parts:
            yield _make_feature(part, training.priors), weight / len(parts)


def _sum_by_metric(weighted: Sequence[Weighted]) -> Iterator[Feature]:
    """Yield one feature for each metric, without those that earn nothing."""
    by_metric: dict[str, list[Weighted]] = {}
    for feature, weight in weighted:
        by_metric.setdefault(feature.metric, []).append((feature, weight))
    for same_metric in by_metric.values():
        feature = _sum_features(same_metric)
        if feature.max_points:
            yield feature


def _make_link(correction: Correction, scale: float) -> Link:
    """Return the link from points to log-odds.

    Args:
        scale: points for each unit of the log-odds.
    """
    default_at_zero = LOG_ODDS_PER_POINT * float(DEFAULT.link.even)
    log_odds_at_zero = correction.intercept + correction.slope * default_at_zero
    return Link(even=to_decimal(log_odds_at_zero * scale, 4), doubling=to_decimal(np.log(2) * scale, 4))


def _make_feature(column: FeaturePoints | ReadingRanks, priors: Mapping[str, Prior]) -> Feature:
    """Return the feature whose points are the column's values."""
    if isinstance(column, FeaturePoints):
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


def _sum_features(weighted: Sequence[Weighted]) -> Feature:
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
