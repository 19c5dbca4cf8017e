"""Drivers: the reading and points of each feature of the scorecard, and its percentile among the client's customers."""

from functools import lru_cache

import polars as pl

from pipelines.figures.periods import BY_CUSTOMER
from pipelines.metrics import METRICS
from pipelines.risk_models.coverage import concern_of
from pipelines.scorecards.expected import Expected
from pipelines.scorecards.scorecard import COVERAGE_OF, POINTS_OF, READING, Feature, Scorecard
from pipelines.vocabulary.printing import RATIO, SCORE

PERCENTILE = "percentile_of_"


@lru_cache(maxsize=100)
def drivers(features: tuple[Feature, ...], expected: Expected) -> pl.Expr:
    """Return a list of structs, in the scorecard's order. A null reading is a missing one."""
    return pl.concat_list(*(_driver(feature, expected) for feature in features))


def _driver(feature: Feature, expected: Expected) -> pl.Expr:
    metric, coverage = METRICS[feature.metric], pl.col(COVERAGE_OF + feature.metric)
    return pl.struct(
        pl.lit(feature.metric).alias("metric"),
        pl.lit(metric.name).alias("name"),
        pl.col(feature.metric).alias("reading"),
        pl.lit(metric.unit).alias("unit"),
        pl.col(POINTS_OF + feature.metric).fill_null(0).cast(SCORE).alias("points"),
        pl.when(coverage.is_null()).then(0).otherwise(pl.lit(feature.most, SCORE)).cast(SCORE).alias("maxPoints"),
        coverage.cast(RATIO).alias("coverage"),
        _state(feature.metric, expected).alias("state"),
        pl.lit("higher_is_better" if feature.more_is_better else "lower_is_better").alias("direction"),
        pl.col(PERCENTILE + feature.metric).alias("peerPercentile"),
        pl.lit(feature.reason).alias("reason"),
    )


def _state(slug: str, expected: Expected) -> pl.Expr:
    """Return `known`, `unknown`, `not_expected`, or `provisional` if it depends on provisional revenue."""
    coverage = pl.col(COVERAGE_OF + slug)
    provisional = not expected.words and concern_of(METRICS[slug], METRICS).by_meaning
    return (
        pl.when(coverage.is_null())
        .then(pl.lit("not_expected"))
        .when(pl.col(slug).is_null() | (coverage == 0))
        .then(pl.lit("unknown"))
        .otherwise(pl.lit("provisional" if provisional else "known"))
    )


def with_percentiles(scored: pl.DataFrame, scorecard: Scorecard, peers: pl.DataFrame | None) -> pl.DataFrame:
    """Add for each metric the highest percentile of the peers that the reading reaches, where both are known."""
    slugs = [feature.metric for feature in scorecard.features]
    if peers is None:
        return scored.with_columns(pl.lit(None, pl.Int64).alias(PERCENTILE + slug) for slug in slugs)
    reached = (
        scored.select(BY_CUSTOMER, *slugs)
        .unpivot(index=BY_CUSTOMER, variable_name="metric", value_name="reading")
        .drop_nulls("reading")
        .with_columns(pl.col("reading").cast(pl.Float64))
        .sort("reading")
        .join_asof(_steps(peers), left_on="reading", right_on="quantile", by="metric", check_sortedness=False)
        .with_columns(pl.col("metric").cast(pl.Enum(slugs)))
        .pivot("metric", index=BY_CUSTOMER, values="percentile")
    )
    columns = {slug: pl.col(slug) if slug in reached.columns else pl.lit(None) for slug in slugs}
    named = reached.select(BY_CUSTOMER, **{PERCENTILE + slug: each.cast(pl.Int64) for slug, each in columns.items()})
    return scored.join(named, on=BY_CUSTOMER, how="left", validate="1:1")


def _steps(peers: pl.DataFrame) -> pl.DataFrame:
    """Convert PEERS to `metric, quantile, percentile`, the highest percentile of each quantile, as sorted floats."""
    return (
        peers.with_columns(percentile=pl.int_ranges(0, pl.col("quantiles").list.len()))
        .explode("quantiles", "percentile")
        .group_by("metric", quantile=pl.col("quantiles").cast(READING).cast(pl.Float64))
        .agg(pl.col("percentile").max())
        .sort("quantile")
    )
