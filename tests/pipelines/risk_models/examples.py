"""Readings, and points and values computed by hand: no expression, no shared code."""

from collections.abc import Mapping
from decimal import ROUND_DOWN, Decimal
from fractions import Fraction
from itertools import pairwise

import polars as pl
from hypothesis import strategies as st

from pipelines.scorecards.scorecard import COVERAGE, COVERAGE_OF, READING, Feature, Scorecard

Readings = Mapping[str, Decimal | None]
ALL = Decimal(1)


def frame(*readings: Readings, coverage: Readings | None = None) -> pl.DataFrame:
    """Return one row per customer, numbered from 1; readings are covered in full unless `coverage` says otherwise."""
    columns = dict.fromkeys(readings[0], READING)
    known = pl.DataFrame(list(readings), schema=columns).with_columns(customer_number=pl.int_range(1, pl.len() + 1))
    shares = {slug: ALL if coverage is None else coverage[slug] for slug in columns}
    return known.with_columns(pl.lit(share, COVERAGE).alias(COVERAGE_OF + slug) for slug, share in shares.items())


@st.composite
def any_coverage(draw: st.DrawFn, scorecard: Scorecard) -> Readings:
    """Draw coverage in full, in part, not at all, or not expected."""
    part = st.integers(0, 10_000).map(lambda share: Decimal(share).scaleb(-4))
    share = st.sampled_from([ALL, Decimal(0), None]) | part
    return {feature.metric: draw(share) for feature in scorecard.features}


@st.composite
def any_readings(draw: st.DrawFn, scorecard: Scorecard) -> Readings:
    """Draw readings at and around the limits, far from them, or missing."""
    return {feature.metric: draw(any_reading(feature)) for feature in scorecard.features}


def any_reading(feature: Feature) -> st.SearchStrategy[Decimal | None]:
    limits = [band.limit for band in feature.bands if band.limit is not None]
    near = [limit + sign * feature.step for limit in limits for sign in (-1, 0, 1)]
    return st.sampled_from([None, *near, min(limits) - 100, max(limits) + 100])


def points_by_hand(feature: Feature, reading: Decimal | None, coverage: Decimal | None = ALL) -> Decimal:
    """Return the worth of the covered share and, for the rest, at most that of a missing reading, rounded down."""
    if coverage is None:
        return Decimal(0)
    worth = Fraction(feature.missing) if reading is None else _worth_by_hand(feature, reading)
    share = Fraction(coverage)
    return _round_down(share * worth + (1 - share) * min(worth, Fraction(feature.missing)), "0.01")


def _worth_by_hand(feature: Feature, reading: Decimal) -> Fraction:
    """Return the most points of any band whose limit the reading reaches, or those on the line between two limits."""
    limits = [(Fraction(band.limit), Fraction(band.points)) for band in feature.bands if band.limit is not None]
    at, way = Fraction(reading), 1 if feature.more_is_better else -1
    reached = [points for limit, points in limits if way * at >= way * limit]
    worth = max([*reached, Fraction(feature.bands[-1].points)])
    if feature.stepped or not reached or worth == limits[0][1]:
        return worth
    (best, most), (worst, least) = next((better, worse) for better, worse in pairwise(limits) if worse[1] == worth)
    on_line = least + (most - least) * (at - worst) / (best - worst)
    return Fraction(_round_down(on_line, "0.0001"))


def _round_down(value: Fraction, step: str) -> Decimal:
    return (Decimal(value // Fraction(step)) * Decimal(step)).quantize(Decimal(step), ROUND_DOWN)


def total_by_hand(scorecard: Scorecard, readings: Readings, coverage: Readings | None = None) -> Decimal:
    """Return the points, on the scale of all features, of the features whose evidence is expected."""
    shares = dict.fromkeys(readings, ALL) if coverage is None else coverage
    expected = [each for each in scorecard.features if shares[each.metric] is not None]
    earned = sum(Fraction(points_by_hand(each, readings[each.metric], shares[each.metric])) for each in expected)
    possible = sum(Fraction(each.max_points) for each in expected)
    every = sum(Fraction(each.max_points) for each in scorecard.features)
    return _round_down(every * earned / possible if possible else Fraction(0), "0.01")


def value_by_hand(scorecard: Scorecard, points: Decimal) -> Decimal:
    """Compute the value with the logistic function instead of powers of two."""
    logit = (scorecard.link.even - points) / scorecard.link.doubling * Decimal(2).ln()
    return (1 / (1 + (-logit).exp())).quantize(Decimal("0.0001"))


LINES = (("A", "0.02"), ("B", "0.05"), ("C", "0.12"), ("D", "0.30"), ("E", "1"))


def rating_by_hand(scorecard: Scorecard, points: Decimal) -> str:
    value = value_by_hand(scorecard, points)
    return next(name for name, limit in LINES if value <= Decimal(limit))
