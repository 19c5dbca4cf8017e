"""Drivers: the reading and points of each feature of the scorecard, and its percentile among the client's customers."""

from functools import lru_cache

import polars as pl

from pipelines.figures.context import ClientPortfolio
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.metrics import METRICS
from pipelines.risk_models.needed_evidence import find_needed_evidence
from pipelines.scorecards.scorecard import COVERAGE_OF, POINTS, POINTS_OF, READING, Feature, by_feature
from pipelines.vocabulary.plans import collect
from pipelines.vocabulary.report_values import RATIO, SCORE

_FEATURES = pl.Schema(
    {
        "metric": pl.String(),
        "name": pl.String(),
        "unit": pl.String(),
        "most": POINTS,
        "direction": pl.String(),
        "reason": pl.String(),
        "by_meaning": pl.Boolean(),
    }
)


def by_driver(scored: pl.DataFrame, features: tuple[Feature, ...]) -> pl.DataFrame:
    """Return one row per feature and customer: all customers for the first feature, then for the second …

    The columns are `customer_number`, `feature` (its number), `reading`, `coverage` and `points` of the customer, and
    what describes the feature: `metric`, `name`, `unit`, `most` (points), `direction`, `reason`, `by_meaning` (whether
    the reading depends on what payments are for).
    """
    rows = by_feature(scored, features, reading="", coverage=COVERAGE_OF, points=POINTS_OF).pipe(collect)
    customers, described = scored[BY_CUSTOMER].gather(rows["row"]), _feature_table(features)[rows["feature"]]
    return rows.drop("row").with_columns(customers, *described.get_columns())


@lru_cache(maxsize=100)
def _feature_table(features: tuple[Feature, ...]) -> pl.DataFrame:
    return pl.DataFrame([_row(feature) for feature in features], schema=_FEATURES, orient="row")


def _row(feature: Feature) -> tuple[object, ...]:
    metric = METRICS[feature.metric]
    direction = "higher_is_better" if feature.more_is_better else "lower_is_better"
    by_meaning = find_needed_evidence(metric, METRICS).by_meaning
    return metric.slug, metric.name, metric.unit, feature.max_points, direction, feature.reason, by_meaning


def drivers(listed: pl.DataFrame, portfolio: ClientPortfolio) -> pl.DataFrame:
    """Return `customer_number, drivers`: a list of structs, in the scorecard's order. A missing reading is null.

    Args:
        listed: from `by_driver`.
    """
    every = _add_percentiles(listed.lazy(), portfolio.peers)
    shown = every.select(BY_CUSTOMER, drivers=_driver(portfolio.expected.words))
    by_customer = shown.group_by(BY_CUSTOMER, maintain_order=True).agg("drivers")
    return by_customer.pipe(collect)


@lru_cache
def _driver(words_expected: bool) -> pl.Expr:
    """`state`: `known`, `unknown`, `not_expected`, or `provisional` if it depends on provisional revenue."""
    reading, coverage = pl.col("reading"), pl.col("coverage")
    state = (
        pl.when(coverage.is_null())
        .then(pl.lit("not_expected"))
        .when(reading.is_null() | (coverage == 0))
        .then(pl.lit("unknown"))
        .when(pl.col("by_meaning") & (not words_expected))
        .then(pl.lit("provisional"))
        .otherwise(pl.lit("known"))
    )
    return pl.struct(
        "metric",
        "name",
        "reading",
        "unit",
        pl.col("points").fill_null(0).cast(SCORE),
        pl.when(coverage.is_not_null()).then("most").otherwise(0).cast(SCORE).alias("maxPoints"),
        coverage.cast(RATIO),
        state.alias("state"),
        "direction",
        "peerPercentile",
        "reason",
    )


def _add_percentiles(listed: pl.LazyFrame, peers: pl.DataFrame | None) -> pl.LazyFrame:
    """Add `peerPercentile`: the highest percentile of the peers that the reading reaches.

    It is null if the reading or the peers' percentiles are not known.
    """
    if peers is None:
        return listed.with_columns(peerPercentile=pl.lit(None, pl.Int64))
    driver = (BY_CUSTOMER, "feature")
    reached = (
        listed.select(*driver, "metric", pl.col("reading").cast(pl.Float64))
        .drop_nulls("reading")
        .sort("reading")
        .join_asof(_steps(peers.lazy()), left_on="reading", right_on="quantile", by="metric", check_sortedness=False)
        .select(*driver, peerPercentile=pl.col("percentile").cast(pl.Int64))
    )
    return listed.join(reached, on=driver, how="left", validate="1:1", maintain_order="left")


def _steps(peers: pl.LazyFrame) -> pl.LazyFrame:
    """Convert PEERS to `metric, quantile, percentile`, the highest percentile of each quantile, as sorted floats."""
    return (
        peers.with_columns(percentile=pl.int_ranges(0, pl.col("quantiles").list.len()))
        .explode("quantiles", "percentile")
        .group_by("metric", quantile=pl.col("quantiles").cast(READING).cast(pl.Float64))
        .agg(pl.col("percentile").max())
        .sort("quantile")
    )
