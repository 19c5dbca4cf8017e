"""Sensitivity: for each customer, the three smallest changes of drivers that change the rating, up or down.

A driver can move to any of its targets: round readings, at least one in each of its bands. The size of a move is the
points gained or lost, divided by the driver's maximum points, so that drivers are comparable. All moves are tried. For
each driver the smallest move up and the smallest move down that change the rating are found, and the three smallest of
all are reported. If no single driver is enough, pairs of drivers that move to a band's limit in the same direction are
tried; if no pair is enough, nothing is reported. A driver without a reading can only gain one; the loss of a reading is
never tried, and history doesn't shrink. Each driver's coverage stays as it is.

Only drivers that a lender or an applicant can act on move, and not low days, lowest balances or bad events, which are
past. A driver moves only as far as the other drivers' readings allow (`_is_possible`).
"""

from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from functools import lru_cache
from itertools import pairwise
from typing import Any

import polars as pl

from pipelines.figures.periods import BY_CUSTOMER
from pipelines.metrics import METRICS
from pipelines.metrics.definition import Metric
from pipelines.pages.wording import plain, write_reading
from pipelines.reports.risk.rating import rating_of_points, worst
from pipelines.scorecards.scorecard import (
    COVERAGE_OF,
    POINTS,
    POINTS_OF,
    READING,
    Feature,
    Scorecard,
    by_feature,
    physical,
    points_earned,
    ten_thousandths,
)
from pipelines.vocabulary.plans import AS_WRITTEN, collect
from pipelines.vocabulary.report_values import SCORE, ratio

MAX_CHANGES = 3  # reported for each customer
AT_ONCE = 1_000_000  # pairs of moves in memory
ONLY_GROWS = "months_of_history"
_BUFFER, _LOWEST = "buffer_days_180d", "min_balance_days_180d"
_BELOW_WEEK, _BELOW_MONTH = "below_7d_outflow_share_180d", "below_30d_outflow_share_180d"
_DEBT_SERVICE, _NEW_DEBT = "debt_service_to_revenue_180d", "new_debt_to_revenue_180d"
_LENDERS, _STACKED = "lenders_repaid_45d", "stacked_running_180d"
_CHANGEABLE = (
    *(_BUFFER, "inflow_to_outflow_180d", "revenue_trend_90d", "income_concentration_180d", _DEBT_SERVICE),
    *(_LENDERS, _STACKED, ONLY_GROWS),
)
_BOUNDING = (_LOWEST, _BELOW_WEEK, _BELOW_MONTH, _DEBT_SERVICE, _NEW_DEBT)
_WEEK, _MONTH = 7, 30  # days of outflow that _BELOW_WEEK and _BELOW_MONTH are about
_TINY = 1e-4  # readings have four decimals
_STEPS = 4  # equal steps between two limits of a driver whose points run in a straight line: so three targets
_DIGITS = 3  # significant digits of a round reading
_TARGETS = pl.Schema(
    {
        "feature": pl.Int32(),
        "to": READING,
        "is_limit": pl.Boolean(),
        "worth": pl.Int128(),  # of the target reading, in ten-thousandths of a point
        "missing": pl.Int128(),  # the worth of a missing reading, in ten-thousandths of a point
        "max_points": POINTS,  # of the driver
        "can_decrease": pl.Boolean(),
    }
)
_MOVE = {"metric": pl.String(), "name": pl.String(), "unit": pl.String(), "from": READING, "to": READING}
_CHANGE = {
    **_MOVE,
    **dict.fromkeys(("ratingFrom", "ratingTo"), pl.String()),
    "pointsGained": SCORE,
    "also": pl.Struct(_MOVE),
    "words": pl.String(),
}
_SENSITIVITY = pl.Schema({BY_CUSTOMER: pl.Int64(), "sensitivity": pl.List(pl.Struct(_CHANGE))})
_STATE = ("earned", "expected", "ceiling")  # columns of a customer that its rating follows from
_ORDER = ("size", "gain", "feature", "also_feature")  # a total order of a customer's changes


def sensitivity(scored: pl.DataFrame, scorecard: Scorecard) -> pl.DataFrame:
    """Return `customer_number, sensitivity` of customers with such changes: a list of structs, the smallest first.

    Args:
        scored: from `rating.add_rating`.
    """
    moves = _moves(scored, scorecard)
    alone = moves.lazy().with_columns(_no_second_driver()).pipe(_select_rating_changes, scorecard)
    limits = moves.lazy().filter(pl.col("is_limit")).join(alone.lazy(), on=BY_CUSTOMER, how="anti")
    rest = limits.collect(engine="in-memory", optimizations=AS_WRITTEN)
    changes = pl.concat([alone, *(pairs.pipe(_select_rating_changes, scorecard) for pairs in _pairs(rest))])
    return _describe_changes(changes.lazy().pipe(_select_smallest).pipe(collect), scorecard.features)


def _moves(scored: pl.DataFrame, scorecard: Scorecard) -> pl.DataFrame:
    """Return each driver's moves: `feature` (its number), `reading`, `to`, `gain` (points), `size`, `is_limit`."""
    gain = points_earned(physical("coverage"), pl.col("worth"), pl.col("missing")) - pl.col("now")
    can_decrease = pl.col("reading").is_not_null() & pl.col("can_decrease")
    customers = scored.lazy().select(
        BY_CUSTOMER,
        *_STATE,
        rating_from="rating",
        row=pl.int_range(pl.len(), dtype=pl.Int32),
        **_fixed_readings(scorecard.features),
    )
    return (
        by_feature(scored, scorecard.features, reading="", coverage=COVERAGE_OF, now=POINTS_OF)
        .join(_targets(scorecard.features).lazy(), on="feature", how="inner")
        .with_columns(gain=gain)
        .filter(pl.col("gain") != 0, (pl.col("gain") > 0) | can_decrease)
        .join(customers, on="row", how="left", validate="m:1")
        .filter(_is_possible(scorecard.features))
        .select(
            *(BY_CUSTOMER, *_STATE, "rating_from", "feature", "reading", "to", "gain", "is_limit"),
            size=ratio(pl.col("gain").abs(), pl.col("max_points")),
        )
        .pipe(collect)
    )


def _fixed_readings(features: tuple[Feature, ...]) -> Mapping[str, pl.Expr]:
    """Return the readings that limit others, as floats by `fixed_` and slug; null if it is no driver."""
    slugs = {feature.metric for feature in features}
    read = {slug: pl.col(slug) if slug in slugs else pl.lit(None) for slug in _BOUNDING}
    return {f"fixed_{slug}": each.cast(pl.Float64) for slug, each in read.items()}


@lru_cache(maxsize=100)
def _is_possible(features: tuple[Feature, ...]) -> pl.Expr:
    """Match moves that are possible while the drivers that can't move stay as they are.

    No mean balance is below the lowest one, and the days below 7 and below 30 days of outflow say how low and how high
    it can be. Nobody repays lenders without debt service, or has running facilities without it or new debt.
    """
    lowest, weeks, months, service, new = (pl.col(f"fixed_{slug}") for slug in _BOUNDING)
    to = pl.col("to").cast(pl.Float64)
    least = pl.max_horizontal(lowest, weeks * lowest + (months - weeks) * _WEEK + (1 - months) * _MONTH)
    most = pl.when(months == 1).then(weeks * _WEEK + (1 - weeks) * _MONTH)
    impossible = {
        _BUFFER: (to < least - _TINY).fill_null(value=False) | (to > most + _TINY).fill_null(value=False),
        _LENDERS: (service == 0) & (to > 0),
        _STACKED: (service == 0) & (new == 0) & (to > 0),
    }
    numbers = {feature.metric: number for number, feature in enumerate(features)}
    excluded = [(pl.col("feature") == numbers[slug]) & each for slug, each in impossible.items() if slug in numbers]
    return ~pl.any_horizontal(pl.lit(value=False), *excluded).fill_null(value=False)


@lru_cache(maxsize=100)
def _targets(features: tuple[Feature, ...]) -> pl.DataFrame:
    """Return every driver's targets (schema `_TARGETS`); `feature` is the driver's number in the scorecard."""
    rows = [
        (
            number,
            to,
            is_limit,
            feature.worth_of(to),
            ten_thousandths(feature.missing),
            feature.max_points,
            feature.metric != ONLY_GROWS,
        )
        for number, feature in enumerate(features)
        for to, is_limit in _target_readings(feature).items()
    ]
    return pl.DataFrame(rows, schema=_TARGETS, orient="row")


def _target_readings(feature: Feature) -> dict[Decimal, bool]:
    """Return the round readings that a driver can move to, and whether each is a band's limit (or next to one)."""
    if feature.metric not in _CHANGEABLE:
        return {}
    limits = [band.limit for band in feature.bands if band.limit is not None]
    if feature.stepped:
        # For each band: the reading that just enters it from the worse side, rounded towards better, and the one that
        # just enters it from the better side, rounded towards worse.
        entries = (each for _, *both in feature.moves() for each in zip(both, (1, -1), strict=True))
        better = 1 if feature.more_is_better else -1
        return {_round_reading(to, way * better, feature): True for to, way in entries if to is not None}
    between = {
        _round_reading(worse + (better - worse) * nth / _STEPS, 0, feature): False
        for better, worse in pairwise(limits)
        for nth in range(1, _STEPS)
    }
    return {**between, **dict.fromkeys(limits, True)}


def _round_reading(reading: Decimal, way: int, feature: Feature) -> Decimal:
    """Round a reading to _DIGITS: up (`way` 1) or down (−1), unless that changes its points; 0: to the nearest."""
    if not reading:
        return Decimal(0)
    place = max(Decimal(1).scaleb(reading.adjusted() - _DIGITS + 1), feature.step)
    rounding = {1: ROUND_CEILING, -1: ROUND_FLOOR, 0: ROUND_HALF_EVEN}[way]
    rounded = (reading / place).to_integral_value(rounding) * place
    return rounded if not way or feature.points_of(rounded) == feature.points_of(reading) else reading


def _no_second_driver() -> list[pl.Expr]:
    nothing = pl.lit(None, READING)
    return [pl.lit(None, pl.Int32).alias("also_feature"), nothing.alias("also_reading"), nothing.alias("also_to")]


def _pairs(moves: pl.DataFrame) -> Iterator[pl.LazyFrame]:
    """Yield pairs of moves in the same direction by two drivers of a customer, for a limited number of customers."""
    if moves.is_empty():
        return
    counts = moves.group_by(BY_CUSTOMER).len().sort(BY_CUSTOMER)
    slice_of = (pl.col("len").cast(pl.Int64) ** 2).cum_sum() // AT_ONCE
    for _, customers in counts.with_columns(slice=slice_of).group_by("slice", maintain_order=True):
        chosen = moves.lazy().join(customers.lazy(), on=BY_CUSTOMER, how="semi")
        first = chosen.with_columns(up=pl.col("gain") > 0)
        second = first.select(
            BY_CUSTOMER,
            "up",
            also_feature="feature",
            also_reading="reading",
            also_to="to",
            also_gain="gain",
            also_size="size",
        )
        yield (
            first.join(second, on=[BY_CUSTOMER, "up"], how="inner")
            .filter(pl.col("feature") < pl.col("also_feature"))
            .with_columns(pl.col("gain") + pl.col("also_gain"), pl.col("size") + pl.col("also_size"))
            .select(*moves.columns, "also_feature", "also_reading", "also_to")
        )


def _select_rating_changes(changes: pl.LazyFrame, scorecard: Scorecard) -> pl.DataFrame:
    """Return the changes after which the rating differs, with `rating_to`. More points never make a rating worse."""
    rating_to = worst(rating_of_points(pl.col("points"), scorecard.link), pl.col("ceiling"))
    return (
        changes.with_columns(earned=(pl.col("earned") + pl.col("gain")).cast(POINTS))
        .with_columns(points=scorecard.scaled_points())
        .with_columns(rating_to=rating_to)
        .filter(pl.col("rating_to") != pl.col("rating_from"))
        .collect(engine="in-memory", optimizations=AS_WRITTEN)
    )


def _select_smallest(changes: pl.LazyFrame) -> pl.LazyFrame:
    """Return each customer's MAX_CHANGES smallest changes, at most one of each driver or pair in either direction."""
    ordered = changes.sort(BY_CUSTOMER, *_ORDER, nulls_last=True).with_columns(up=pl.col("gain") > 0)
    of_drivers = ordered.unique([BY_CUSTOMER, "feature", "also_feature", "up"], keep="first", maintain_order=True)
    return of_drivers.group_by(BY_CUSTOMER, maintain_order=True).head(MAX_CHANGES)


def _describe_changes(changes: pl.DataFrame, features: tuple[Feature, ...]) -> pl.DataFrame:
    """Return `customer_number, sensitivity`, with the drivers' names and units in each struct."""
    metrics = [METRICS[feature.metric] for feature in features]
    described: dict[int, list[dict[str, object]]] = {}
    for row in changes.iter_rows(named=True):
        described.setdefault(row[BY_CUSTOMER], []).append(_describe_change(row, metrics))
    columns = {BY_CUSTOMER: list(described), "sensitivity": list(described.values())}
    return pl.DataFrame(columns, schema=_SENSITIVITY)


def _describe_change(row: Mapping[str, Any], metrics: Sequence[Metric]) -> dict[str, object]:
    moved = _move(metrics[row["feature"]], row["reading"], row["to"])
    change = _words(metrics[row["feature"]], row["reading"], row["to"])
    also = None
    if row["also_feature"] is not None:
        second = (metrics[row["also_feature"]], row["also_reading"], row["also_to"])
        also, change = _move(*second), f"{change} together with {_words(*second)}"
    way = "lift" if row["gain"] > 0 else "lower"
    return {
        **moved,
        "ratingFrom": row["rating_from"],
        "ratingTo": row["rating_to"],
        "pointsGained": row["gain"],
        "also": also,
        "words": f"{change} would {way} the rating from {row['rating_from']} to {row['rating_to']}.",
    }


def _move(metric: Metric, reading: Decimal | None, to: Decimal) -> dict[str, object]:
    return {"metric": metric.slug, "name": metric.name, "unit": metric.unit, "from": reading, "to": to}


def _words(metric: Metric, reading: Decimal | None, to: Decimal) -> str:
    """Return what changes. A reading that rounds to the same figure as its target is written exactly."""
    after = write_reading(to, metric.unit)
    if reading is None:
        return f"{metric.name}, if known to be {after},"
    before = write_reading(reading, metric.unit)
    return f"{metric.name} going from {f'{plain(reading)} {metric.unit}' if before == after else before} to {after}"
