"""A scorecard: the points that each reading earns, and the chance of default that the points stand for.

    points = sum over the features of the points of the band that its reading falls in
    odds   = 2 ^ ((even − points) / doubling)                    of default within 12 months
    value  = odds / (1 + odds)                                   the estimated probability, to four decimals

More points never mean a higher value, and within a feature a better reading never earns fewer points: a scorecard that
breaks this can't be created. Powers are computed with decimals, so every machine prints the same digits.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext
from itertools import pairwise
from typing import Any, Literal

import polars as pl

READING = pl.Decimal(38, 4)
POINTS = pl.Decimal(38, 2)
VALUE = pl.Decimal(38, 4)
POINTS_OF = "points_of_"  # prefix of a metric's slug in the name of the column with its points
Calibration = Literal["none", "synthetic", "client"]
"""What a scorecard was fitted to: nothing, the synthetic portfolio, or a client's own outcomes."""

_EXACT = Context(prec=28, rounding=ROUND_HALF_EVEN)
_FURTHEST = Decimal(60)  # doublings; further away four decimals show 0 or 1 anyway


@dataclass(frozen=True)
class Band:
    """`points` for a reading that reaches `limit`; a feature's last band has no limit and takes all other readings."""

    limit: Decimal | None
    points: Decimal


@dataclass(frozen=True)
class Feature:
    """A metric and its bands, the best first, with falling points.

    A reading reaches a limit from above when more is better (reading ≥ limit), from below otherwise (reading ≤ limit).
    `missing`: points where there is no reading. `step`: the smallest difference between two readings.
    """

    metric: str
    more_is_better: bool
    bands: tuple[Band, ...]
    reason: str
    missing: Decimal = Decimal(0)
    step: Decimal = Decimal("0.0001")

    @property
    def most(self) -> Decimal:
        return max(self.bands[0].points, self.missing)

    def points(self) -> pl.Expr:
        """Return the points of the reading in the metric's column, as a column POINTS_OF + metric."""
        reading = pl.col(self.metric)
        reached = (
            pl.when(self._reached(reading, pl.lit(band.limit, READING))).then(pl.lit(band.points, POINTS))
            for band in self.bands[:-1]
        )
        known = pl.coalesce(*reached, pl.lit(self.bands[-1].points, POINTS))
        points = pl.when(reading.is_null()).then(pl.lit(self.missing, POINTS)).otherwise(known)
        return points.alias(POINTS_OF + self.metric)

    def points_of(self, reading: Decimal | None) -> Decimal:
        """Return the points of one reading."""
        if reading is None:
            return self.missing
        return next(band.points for band in self.bands if band.limit is None or self._reached(reading, band.limit))

    def moves(self) -> Iterator[tuple[Decimal, Decimal | None, Decimal | None]]:
        """Yield each band's points, the reading that just enters it from a worse band, and the one from a better band.

        A reading is None where there is no such band.
        """
        back = -self.step if self.more_is_better else self.step
        better_limits = [None, *(band.limit for band in self.bands[:-1])]
        for band, better in zip(self.bands, better_limits, strict=True):
            yield band.points, band.limit, None if better is None else better + back

    def _reached(self, reading: Any, limit: Any) -> Any:
        return reading >= limit if self.more_is_better else reading <= limit

    def faults(self) -> Iterator[str]:
        limits = [band.limit for band in self.bands[:-1] if band.limit is not None]
        if not self.bands or self.bands[-1].limit is not None or len(limits) < len(self.bands) - 1:
            yield f"{self.metric}: only the last band, and it alone, must have no limit"
            return
        if any((worse < better) != self.more_is_better or worse == better for better, worse in pairwise(limits)):
            yield f"{self.metric}: the limits must run from the best to the worst"
        if any(worse.points >= better.points for better, worse in pairwise(self.bands)):
            yield f"{self.metric}: the points must fall from band to band"
        if min(self.bands[-1].points, self.missing) < 0:
            yield f"{self.metric}: points must not be negative"


@dataclass(frozen=True)
class Link:
    """Converts points to a probability: at `even` points default is as likely as not, and `doubling` fewer points
    double its odds.
    """

    even: Decimal
    doubling: Decimal

    def value(self, points: Decimal) -> Decimal:
        with localcontext(_EXACT):
            odds = Decimal(2) ** max(-_FURTHEST, min(_FURTHEST, (self.even - points) / self.doubling))
            return (odds / (1 + odds)).quantize(Decimal("0.0001"))

    def values(self, points: pl.Series) -> pl.Series:
        """Return the values of many points (dtype POINTS → VALUE), computing each distinct one once."""
        distinct = points.unique().drop_nulls()
        known = pl.Series([self.value(each) for each in distinct], dtype=VALUE)
        return points.replace_strict(distinct, known, return_dtype=VALUE) if len(distinct) else points.cast(VALUE)


@dataclass(frozen=True)
class Scorecard:
    """Features and a link. `facts`: what a fitted scorecard was fitted to and how good it was (`fitting`).

    Raises:
        ValueError: the scorecard is not monotone; the message lists every fault.
    """

    name: str
    version: str
    calibration: Calibration
    features: tuple[Feature, ...]
    link: Link
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        faults = [fault for feature in self.features for fault in feature.faults()]
        if len({feature.metric for feature in self.features}) < len(self.features):
            faults.append("a metric counts twice")
        if self.link.doubling <= 0:
            faults.append("more points must lower the odds")
        if faults:
            raise ValueError("; ".join(faults))

    @property
    def most(self) -> Decimal:
        return sum((feature.most for feature in self.features), Decimal(0))

    def scored(self, readings: pl.DataFrame) -> pl.DataFrame:
        """Add points, their sum `points`, and `value` to readings (a column of READING for each feature's metric)."""
        with_points = readings.with_columns(feature.points() for feature in self.features)
        total = pl.sum_horizontal(*(POINTS_OF + feature.metric for feature in self.features))
        summed = with_points.with_columns(points=total.cast(POINTS))
        return summed.with_columns(value=self.link.values(summed["points"]))
