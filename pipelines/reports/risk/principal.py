"""Principal reasons: the four that cost a customer most, each either bad or not verified, and never both.

What limits the rating comes first, then drivers by the points that they lost. A driver loses points by its reading
(`adverse`) or by evidence that is not there (`unverified`): what could not be verified is not bad, and the answer to
it is evidence. More than four reasons are not likely to help anybody (commentary to US Regulation B,
1002.9(b)(2)).
"""

import polars as pl

from pipelines.figures.periods import BY_CUSTOMER
from pipelines.metrics import METRICS
from pipelines.reports.risk.rating import EVIDENCE
from pipelines.risk_models.event_definitions import definitions
from pipelines.scorecards.scorecard import COVERAGE_OF, POINTS_OF, Feature, Scorecard

MOST = 4
ADVERSE, UNVERIFIED = "adverse", "unverified"
_SHOWN = ("code", "kind", "words")
_BY_UNIT = {"ratio": "{} %", "days": "{} days", "months": "{} months"}


def with_principal_reasons(scored: pl.DataFrame, scorecard: Scorecard) -> pl.DataFrame:
    """Add `principalReasons`, a list of structs `code, kind, words`; empty where no points were lost.

    Args:
        scored: from `rating.with_rating`.
    """
    frame = scored.lazy()
    lost = [
        each for number, feature in enumerate(scorecard.features) for each in _of_driver(frame, number + 1, feature)
    ]
    listed = (
        pl.concat([_of_limits(frame), *lost])
        .filter(pl.col("lost") > 0)
        .sort(BY_CUSTOMER, pl.col("place") > 0, -pl.col("lost"), "place", "kind")
        .group_by(BY_CUSTOMER, maintain_order=True)
        .agg(principalReasons=pl.struct(_SHOWN).head(MOST))
        .collect(engine="in-memory")
    )
    return scored.join(listed, on=BY_CUSTOMER, how="left", validate="1:1", maintain_order="left").with_columns(
        pl.col("principalReasons").fill_null([])
    )


def _of_limits(scored: pl.LazyFrame) -> pl.LazyFrame:
    """Return what limits the rating: events, and too little evidence."""
    sentences = {code: f"{event.sentence}." for code, event in definitions().items()}
    percent = (100 * pl.col("covered")).round(0).cast(pl.Int64)
    too_little = pl.format("Only {} % of the expected evidence could be verified.", percent)
    is_evidence = pl.col("code") == EVIDENCE
    return (
        scored.select(BY_CUSTOMER, "covered", code="limitedBy")
        .explode("code")
        .drop_nulls("code")
        .select(
            BY_CUSTOMER,
            "code",
            place=pl.lit(0),
            kind=pl.when(is_evidence).then(pl.lit(UNVERIFIED)).otherwise(pl.lit(ADVERSE)),
            lost=pl.lit(1.0),
            words=pl.when(is_evidence).then(too_little).otherwise(pl.col("code").replace(sentences)),
        )
    )


def _of_driver(scored: pl.LazyFrame, place: int, feature: Feature) -> tuple[pl.LazyFrame, pl.LazyFrame]:
    """Return the points that the driver lost by its reading, and those that it lost by missing evidence."""
    metric, coverage = METRICS[feature.metric], pl.col(COVERAGE_OF + feature.metric).cast(pl.Float64)
    seen = pl.when(pl.col(feature.metric).is_null()).then(0).otherwise(coverage)
    most, points = float(feature.most), pl.col(POINTS_OF + feature.metric).cast(pl.Float64)
    is_expected = coverage.is_not_null()
    adverse = pl.when(is_expected & (seen > 0)).then(seen * most - points)
    unverified = pl.when(is_expected).then((1 - seen) * most)
    words = pl.format("{}: {}.", pl.lit(metric.name), _reading(feature.metric, metric.unit))
    return (
        _lost(scored, feature, place, adverse, ADVERSE, words),
        _lost(scored, feature, place, unverified, UNVERIFIED, pl.lit(f"{metric.name}: could not be verified.")),
    )


def _lost(scored: pl.LazyFrame, feature: Feature, place: int, lost: pl.Expr, kind: str, words: pl.Expr) -> pl.LazyFrame:
    return scored.select(
        BY_CUSTOMER,
        code=pl.lit(feature.metric),
        place=pl.lit(place),
        kind=pl.lit(kind),
        lost=lost.round(2),  # points are rounded down to hundredths
        words=words,
    )


def _reading(slug: str, unit: str) -> pl.Expr:
    """Write a reading to one decimal place: `36.1 %`, `2 days`."""
    size = (pl.col(slug).cast(pl.Float64) * (100 if unit == "ratio" else 1)).round(1).cast(pl.Decimal(38, 1))
    return pl.format(_BY_UNIT.get(unit, "{}"), size.cast(pl.String).str.strip_suffix(".0"))
