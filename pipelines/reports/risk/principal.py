"""Principal reasons: the four that cost a customer most, each either bad or not verified, and never both.

What limits the rating comes first, then drivers by the points that they lost. A driver loses points by its reading and
by missing evidence. It has one reason: `adverse` if the reading cost more, else `unverified`. What could not be
verified is not bad: the applicant can supply the evidence. More than four reasons are not likely to help anybody
(commentary to US Regulation B, 1002.9(b)(2)).
"""

from functools import cache

import polars as pl

from pipelines.figures.periods import BY_CUSTOMER
from pipelines.reports.risk.rating import EVIDENCE
from pipelines.risk_models.event_definitions import definitions
from pipelines.vocabulary.plans import SHARING
from pipelines.vocabulary.report_values import percent_text, reading_text

MAX_REASONS = 4
ADVERSE, UNVERIFIED = "adverse", "unverified"
_SHOWN = ("code", "kind", "words")


def principal_reasons(scored: pl.DataFrame, listed: pl.DataFrame) -> pl.DataFrame:
    """Return `customer_number, principalReasons` of those who lost points: a list of structs `code, kind, words`.

    Args:
        scored: from `rating.add_rating`.
        listed: from `drivers.by_driver`.
    """
    return (
        pl.concat([_limit_reasons(scored.lazy()), listed.lazy().select(_lost_points())])
        .filter(pl.col("lost") > 0)
        .sort(BY_CUSTOMER, pl.col("place") > 0, -pl.col("lost"), "place")
        .group_by(BY_CUSTOMER, maintain_order=True)
        .agg(principalReasons=pl.struct(_SHOWN).head(MAX_REASONS))
        .collect(engine="in-memory", optimizations=SHARING)
    )


def _limit_reasons(scored: pl.LazyFrame) -> pl.LazyFrame:
    """Return what limits the rating: events, and too little evidence."""
    limits = scored.select(BY_CUSTOMER, "covered", code="limitedBy").explode("code").drop_nulls("code")
    return limits.select(_limit())


@cache
def _limit() -> tuple[pl.Expr | str, ...]:
    sentences = {code: f"{event.sentence}." for code, event in definitions().items()}
    too_little = pl.format("Only {} of the expected evidence could be verified.", percent_text(pl.col("covered")))
    is_evidence = pl.col("code") == EVIDENCE
    kind = pl.when(is_evidence).then(pl.lit(UNVERIFIED)).otherwise(pl.lit(ADVERSE))
    words = pl.when(is_evidence).then(too_little).otherwise(pl.col("code").replace(sentences))
    return _reason(pl.col("code"), pl.lit(0), kind, pl.lit(1.0), words)


@cache
def _lost_points() -> tuple[pl.Expr | str, ...]:
    """Return the points that a driver lost, by its reading or by missing evidence, whichever lost more."""
    coverage, most, points = (pl.col(name).cast(pl.Float64) for name in ("coverage", "most", "points"))
    seen = pl.when(pl.col("reading").is_null()).then(0).otherwise(coverage)
    is_adverse = seen * most - points > (1 - seen) * most
    read = reading_text(pl.col("reading"), pl.col("unit"))
    part = pl.format("only {} could be verified", percent_text(coverage))
    words = (
        pl.when(seen == 0)
        .then(pl.lit("could not be verified"))
        .when(is_adverse & (seen < 1))
        .then(pl.format("{}; {}", read, part))
        .when(is_adverse)
        .then(read)
        .otherwise(part)
    )
    # Rounded, because points are rounded down to hundredths.
    return _reason(
        pl.col("metric"),
        pl.col("feature") + 1,
        pl.when(is_adverse).then(pl.lit(ADVERSE)).otherwise(pl.lit(UNVERIFIED)),
        pl.when(coverage.is_not_null()).then((most - points).round(2)),
        pl.format("{}: {}.", pl.col("name"), words),
    )


def _reason(code: pl.Expr, place: pl.Expr, kind: pl.Expr, lost: pl.Expr, words: pl.Expr) -> tuple[pl.Expr | str, ...]:
    named = {"code": code, "place": place, "kind": kind, "lost": lost, "words": words}
    return BY_CUSTOMER, *(each.alias(name) for name, each in named.items())
