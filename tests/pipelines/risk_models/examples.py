"""Readings, and points and values computed by hand: no expression, no shared code."""

from collections.abc import Mapping
from decimal import Decimal

import polars as pl
from hypothesis import strategies as st

from pipelines.scorecards.scorecard import READING, Feature, Scorecard

Readings = Mapping[str, Decimal | None]


def frame(*readings: Readings) -> pl.DataFrame:
    """Return one row per customer, numbered from 1."""
    columns = dict.fromkeys(readings[0], READING)
    return pl.DataFrame(list(readings), schema=columns).with_row_index("customer_number", offset=1)


@st.composite
def any_readings(draw: st.DrawFn, scorecard: Scorecard) -> Readings:
    """Draw readings at and around the limits, far from them, or missing."""
    return {feature.metric: draw(any_reading(feature)) for feature in scorecard.features}


def any_reading(feature: Feature) -> st.SearchStrategy[Decimal | None]:
    limits = [band.limit for band in feature.bands if band.limit is not None]
    near = [limit + sign * feature.step for limit in limits for sign in (-1, 0, 1)]
    return st.sampled_from([None, *near, min(limits) - 100, max(limits) + 100])


def points_by_hand(feature: Feature, reading: Decimal | None) -> Decimal:
    """Return the most points of any band whose limit the reading reaches."""
    if reading is None:
        return feature.missing
    reached = [feature.bands[-1].points]
    for band in feature.bands:
        if band.limit is not None:
            is_reached = reading >= band.limit if feature.more_is_better else reading <= band.limit
            reached += [band.points] if is_reached else []
    return max(reached)


def total_by_hand(scorecard: Scorecard, readings: Readings) -> Decimal:
    return sum((points_by_hand(each, readings[each.metric]) for each in scorecard.features), Decimal(0))


def value_by_hand(scorecard: Scorecard, points: Decimal) -> Decimal:
    """Compute the value with the logistic function instead of powers of two."""
    logit = (scorecard.link.even - points) / scorecard.link.doubling * Decimal(2).ln()
    return (1 / (1 + (-logit).exp())).quantize(Decimal("0.0001"))


LINES = (("A", "0.02"), ("B", "0.05"), ("C", "0.12"), ("D", "0.30"), ("E", "1"))


def rating_by_hand(scorecard: Scorecard, points: Decimal) -> str:
    value = value_by_hand(scorecard, points)
    return next(name for name, limit in LINES if value <= Decimal(limit))
