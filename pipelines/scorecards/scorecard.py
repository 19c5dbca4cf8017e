"""A scorecard: the points that each reading earns, and the probability of default that the points stand for.

    points of a feature = worth of its reading × coverage         both 0 or more; coverage is 0–1
    points              = maximum points of all features × sum of points / maximum points of the expected features
    odds                = 2 ^ ((even − points) / doubling)        of default within 12 months
    value               = odds / (1 + odds)                       the estimated probability, to four decimals

Coverage says how much of the evidence for a reading was supplied (`risk_models.coverage`); what is unknown earns
nothing. A feature whose evidence is not expected of any customer has no coverage (null) and counts neither in the sum
of points nor in the maximum points of the expected features.

More points never mean a higher value, and within a feature a better reading never earns fewer points: a scorecard that
breaks this can't be created. Points are computed with whole numbers and powers with decimals, so every machine gives
the same digits.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, Literal

import polars as pl

from pipelines.vocabulary.plans import collect

READING = pl.Decimal(38, 4)
POINTS = pl.Decimal(38, 2)
VALUE = pl.Decimal(38, 4)
COVERAGE = pl.Decimal(38, 4)
POINTS_OF = "points_of_"  # prefix of a metric's slug in the name of the column with its points
COVERAGE_OF = "coverage_of_"  # the same, with its coverage
Calibration = Literal["none", "synthetic", "client"]
"""What a scorecard was fitted to: nothing, the synthetic portfolio, or a client's own outcomes."""

_EXACT = Context(prec=28, rounding=ROUND_HALF_EVEN)
_FURTHEST = Decimal(60)  # doublings: beyond them, four decimals show 0 or 1
_WIDE = pl.Int128()
_FINE = 10_000  # readings, coverage and worth have four decimals
_CENT = 100  # points have two
_SMALL = _FINE * _FINE // _CENT  # from coverage × worth to hundredths of a point


@dataclass(frozen=True)
class Band:
    """`points` for a reading that reaches `limit`; a feature's last band has no limit and takes all other readings."""

    limit: Decimal | None
    points: Decimal


@dataclass(frozen=True)
class Piece:
    """One piece of a feature's points: from `limit` on a reading gains `step`.

    It gains it on a straight line over the next `run`, or at once if `run` is 0. All are in ten-thousandths. `way`: 1
    if more is better, else −1.
    """

    limit: int
    run: int
    step: int
    way: int

    def gain_of(self, reading: int) -> int:
        ahead = (reading - self.limit) * self.way
        return self.step * (ahead >= 0) if not self.run else self.step * max(0, min(ahead, self.run)) // self.run


@dataclass(frozen=True)
class Feature:
    """A metric and its bands, the best first, with falling points.

    A reading reaches a limit from above when more is better (reading ≥ limit), from below otherwise (reading ≤ limit).
    If `stepped`, a reading is worth the points of the first band that it reaches. Otherwise the worth runs in a
    straight line from limit to limit, and the last band is worth as much as the last limit.
    `missing`: points if there is no reading. `step`: the smallest difference between two readings.
    """

    metric: str
    more_is_better: bool
    bands: tuple[Band, ...]
    reason: str
    missing: Decimal = Decimal(0)
    step: Decimal = Decimal("0.0001")
    stepped: bool = True

    @property
    def max_points(self) -> Decimal:
        return max(self.bands[0].points, self.missing)

    def points_of(self, reading: Decimal | None, coverage: Decimal = Decimal(1)) -> Decimal:
        """Return the points of one reading with this coverage.

        The covered share earns the reading's worth; the rest earns the worth of a missing reading if that is less.
        Fractions of a hundredth are dropped.
        """
        missing, covered = ten_thousandths(self.missing), ten_thousandths(coverage)
        worth = missing if reading is None else self.worth_of(reading)
        hundredths = (covered * worth + (_FINE - covered) * min(worth, missing)) // _SMALL
        return Decimal(hundredths).scaleb(-2)

    def worth_of(self, reading: Decimal) -> int:
        """Return what a reading is worth if it is covered in full, in ten-thousandths of a point."""
        return self.least + sum(each.gain_of(ten_thousandths(reading)) for each in self.pieces)

    @property
    def least(self) -> int:
        """What the worst reading is worth, in ten-thousandths of a point."""
        return ten_thousandths(self.bands[-1].points)

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        way = 1 if self.more_is_better else -1
        limits = [
            (ten_thousandths(band.limit), ten_thousandths(band.points)) for band in self.bands if band.limit is not None
        ]
        if self.stepped:
            worths = [*(worth for _, worth in limits), self.least]
            return tuple(
                Piece(limit, 0, worth - worse, way) for (limit, worth), worse in zip(limits, worths[1:], strict=True)
            )
        return tuple(
            Piece(worse[0], way * (better[0] - worse[0]), better[1] - worse[1], way)
            for better, worse in pairwise(limits)
        )

    def moves(self) -> Iterator[tuple[Decimal, Decimal | None, Decimal | None]]:
        """Yield each band's points, the reading that just enters it from a worse band, and the one from a better band.

        A reading is None where there is no such band.
        """
        back = -self.step if self.more_is_better else self.step
        better_limits = [None, *(band.limit for band in self.bands[:-1])]
        for band, better in zip(self.bands, better_limits, strict=True):
            yield band.points, band.limit, None if better is None else better + back

    def faults(self) -> Iterator[str]:
        limits = [band.limit for band in self.bands[:-1] if band.limit is not None]
        if not self.bands or self.bands[-1].limit is not None or len(limits) < len(self.bands) - 1:
            yield f"{self.metric}: only the last band, and it alone, must have no limit"
            return
        if any((worse < better) != self.more_is_better or worse == better for better, worse in pairwise(limits)):
            yield f"{self.metric}: the limits must run from the best to the worst"
        falling = self.bands if self.stepped else self.bands[:-1]
        if any(worse.points >= better.points for better, worse in pairwise(falling)):
            yield f"{self.metric}: the points must fall from band to band"
        if not self.stepped and self.bands[-1].points != self.bands[-2 if limits else -1].points:
            yield f"{self.metric}: the last band must continue the last limit"
        if min(self.bands[-1].points, self.missing) < 0:
            yield f"{self.metric}: points must not be negative"


def points_earned(coverage: pl.Expr, worth: pl.Expr, missing: pl.Expr) -> pl.Expr:
    """Return the points of a reading with this coverage. All inputs are whole ten-thousandths (Int128)."""
    return as_points((coverage * worth + (_FINE - coverage) * pl.min_horizontal(worth, missing)) // _SMALL)


def ten_thousandths(number: Decimal) -> int:
    """Return a decimal of four places in ten-thousandths."""
    return int(number.scaleb(4))


def physical(column: str) -> pl.Expr:
    """Return a decimal column as whole numbers of its smallest unit."""
    return pl.col(column).to_physical().cast(_WIDE)


def as_points(hundredths: pl.Expr) -> pl.Expr:
    """Return whole hundredths as POINTS, exactly."""
    return (hundredths.cast(pl.Decimal(38, 0)).cast(POINTS) * pl.lit(Decimal("0.01"), POINTS)).cast(POINTS)


@dataclass(frozen=True)
class Link:
    """The conversion of points to a probability.

    At `even` points default is as likely as not; `doubling` fewer points double its odds.
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
    def max_points(self) -> Decimal:
        return sum((feature.max_points for feature in self.features), Decimal(0))

    def score(self, readings: pl.DataFrame) -> pl.DataFrame:
        """Score readings: points before any ceiling.

        Args:
            readings: READING in a column for each feature's metric, and COVERAGE in COVERAGE_OF + metric.

        Returns:
            `readings` with POINTS_OF + metric, their sum `earned`, `expected` (the most that could be earned with the
            expected evidence), `covered` (how much of that is covered, as a share), `points` and `value`.
        """
        earned_, rows = self._earned_points(readings), readings.height
        points = (
            earned_["points"].slice(nth * rows, rows).alias(POINTS_OF + feature.metric)
            for nth, feature in enumerate(self.features)
        )
        summed = earned_.group_by("row", maintain_order=True).agg(
            pl.col("covered").sum(), earned=pl.col("points").sum(), expected=pl.col("possible").sum()
        )
        columns = [*points, *(summed[name] for name in ("earned", "expected", "covered"))]
        scored = readings.with_columns(columns).with_columns(
            covered=share_of(pl.col("covered"), pl.col("expected")), points=self.scaled_points()
        )
        return scored.with_columns(value=self.link.values(scored["points"]))

    def _earned_points(self, readings: pl.DataFrame) -> pl.DataFrame:
        """Return what each feature of each row earns, in the order of `by_feature`.

        Columns: `points`, as of `Feature.points_of`, and the `possible` points, both null where the coverage is null;
        and how much of the possible points is `covered`, in millionths of a point.
        """
        known = pl.when(pl.col("reading").is_not_null()).then(pl.col("least") + pl.col("gain"))
        return (
            by_feature(readings, self.features, reading="", coverage=COVERAGE_OF)
            .join(_pieces(self.features).lazy(), on="feature", how="left", maintain_order="left")
            .with_columns(gain=_gain())
            .group_by("feature", "row", maintain_order=True)
            .agg(pl.col("reading", "coverage", "least", "missing", "most").first(), pl.col("gain").sum())
            .select(
                "row",
                points=points_earned(physical("coverage"), known.otherwise("missing"), pl.col("missing")),
                possible=pl.when(pl.col("coverage").is_not_null()).then("most"),
                covered=physical("coverage") * physical("most"),
            )
            .pipe(collect)
        )

    def scale_earned(self, earned: Decimal, expected: Decimal) -> Decimal:
        """Return `earned` out of `expected` (the most that expected features give) on the scale of all features."""
        if not expected:
            return Decimal("0.00")
        return Decimal(int(earned * _CENT) * int(self.max_points * _CENT) // int(expected * _CENT)).scaleb(-2)

    def scaled_points(self) -> pl.Expr:
        """Return `scale_earned` of the columns `earned` and `expected`."""
        earned, expected = physical("earned"), physical("expected")
        possible = pl.when(expected > 0).then(expected)
        return as_points((earned * int(self.max_points * _CENT) // possible).fill_null(0))


def by_feature(readings: pl.DataFrame, features: Sequence[Feature], **columns: str) -> pl.LazyFrame:
    """Return `row` and `feature` (their numbers) and the columns of each feature of each row, feature by feature.

    Args:
        columns: for each name, the prefix that a metric's slug has in the names of the columns of `readings`.
    """
    slugs = [feature.metric for feature in features]
    values = {name: pl.concat([readings[prefix + slug] for slug in slugs]) for name, prefix in columns.items()}
    place = pl.int_range(pl.len(), dtype=pl.Int32)
    return pl.LazyFrame(values).with_columns(row=place % readings.height, feature=place // readings.height)


@lru_cache(maxsize=100)
def _pieces(features: tuple[Feature, ...]) -> pl.DataFrame:
    """Return each feature's pieces, at least one, with the `most` points, in POINTS, that the feature can earn.

    `missing` is what no reading earns and `least` what the worst one earns. They and the pieces are in
    ten-thousandths.
    """
    rows = [
        (nth, feature.max_points, ten_thousandths(feature.missing), feature.least, *astuple(piece))
        for nth, feature in enumerate(features)
        for piece in feature.pieces or (Piece(0, 0, 0, 1),)
    ]
    wide = ("missing", "least", "limit", "run", "step", "way")
    return pl.DataFrame(rows, schema={"feature": pl.Int32, "most": POINTS, **dict.fromkeys(wide, _WIDE)}, orient="row")


def _gain() -> pl.Expr:
    """Return `Piece.gain_of` the reading."""
    ahead, run = (physical("reading") - pl.col("limit")) * pl.col("way"), pl.col("run")
    part = pl.min_horizontal(ahead.clip(lower_bound=0), run) * pl.col("step") // pl.when(run > 0).then(run)
    return pl.when(run > 0).then(part).otherwise((ahead >= 0).cast(_WIDE) * pl.col("step"))


def share_of(covered: pl.Expr, expected: pl.Expr) -> pl.Expr:
    """Return the share of the expected points (POINTS) that is covered, rounded down; 0 where none are expected.

    Args:
        covered: the sum of maximum points × coverage, in millionths of a point.
    """
    possible = expected.to_physical().cast(_WIDE)
    share = (covered // pl.when(possible > 0).then(possible)).fill_null(0)
    return (share.cast(pl.Decimal(38, 0)).cast(COVERAGE) * pl.lit(Decimal("0.0001"), COVERAGE)).cast(COVERAGE)
