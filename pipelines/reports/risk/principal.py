"""Principal reasons: the four that cost a customer most, each either bad or not verified, and never both.

What limits the rating comes first, then drivers by the points that they lost. A driver loses points by its reading
(`adverse`) or by missing evidence (`unverified`). What could not be verified is not bad: the applicant can supply the
evidence. More than four reasons are not likely to help anybody (commentary to US Regulation B, 1002.9(b)(2)).
"""

from functools import cache

import polars as pl

from pipelines.figures.periods import BY_CUSTOMER
from pipelines.reports.risk.rating import EVIDENCE
from pipelines.risk_models.event_definitions import definitions
from pipelines.vocabulary.plans import collect
from pipelines.vocabulary.report_values import RATIO, RATIO_SCALE, number_text, percent_text

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
        pl.concat([_limit_reasons(scored.lazy()), *(listed.lazy().select(lost) for lost in _lost_points())])
        .filter(pl.col("lost") > 0)
        .sort(BY_CUSTOMER, pl.col("place") > 0, -pl.col("lost"), "place", "kind")
        .group_by(BY_CUSTOMER, maintain_order=True)
        .agg(principalReasons=pl.struct(_SHOWN).head(MAX_REASONS))
        .pipe(collect)
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
def _lost_points() -> tuple[tuple[pl.Expr | str, ...], ...]:
    """Return the points that a driver lost by its reading, and those that it lost by missing evidence."""
    name, coverage, place = pl.col("name"), pl.col("coverage").cast(pl.Float64), pl.col("feature") + 1
    most, points = pl.col("most").cast(pl.Float64), pl.col("points").cast(pl.Float64)
    seen = pl.when(pl.col("reading").is_null()).then(0).otherwise(coverage)
    is_expected = coverage.is_not_null()
    adverse = pl.when(is_expected & (seen > 0)).then(seen * most - points)
    unverified = pl.when(is_expected).then((1 - seen) * most)
    words = pl.format("{}: {}.", name, reading_text()), pl.format("{}: could not be verified.", name)
    # Rounded, because points are rounded down to hundredths.
    return (
        _reason(pl.col("metric"), place, pl.lit(ADVERSE), adverse.round(2), words[0]),
        _reason(pl.col("metric"), place, pl.lit(UNVERIFIED), unverified.round(2), words[1]),
    )


def _reason(code: pl.Expr, place: pl.Expr, kind: pl.Expr, lost: pl.Expr, words: pl.Expr) -> tuple[pl.Expr | str, ...]:
    named = {"code": code, "place": place, "kind": kind, "lost": lost, "words": words}
    return BY_CUSTOMER, *(each.alias(name) for name, each in named.items())


def reading_text() -> pl.Expr:
    """Write a reading as pages do (`wording.reading`): `36.12 %`, `2.5 days`, `1 month`."""
    reading, unit = pl.col("reading"), pl.col("unit")
    size = reading.cast(RATIO).abs().round(1)
    time = pl.when(size == 1).then(unit.str.strip_suffix("s")).otherwise(unit)
    return (
        pl.when(unit == "ratio")
        .then(percent_text(reading))
        .when(unit.is_in(["days", "months"]))
        .then(pl.concat_str(number_text(reading, 1), pl.lit(" "), time))
        .otherwise(number_text(reading, RATIO_SCALE))
    )
