"""Ratings, which are bands of the estimated probability, and the interval: the probability a margin of points away."""

from decimal import Decimal

import polars as pl

from pipelines.scorecards.scorecard import POINTS, VALUE, Scorecard

# A rating and the highest value that still has it. Our judgement: the lines lie where lenders to small businesses
# commonly stop offering their best terms, stop lending unsecured, require security, and stop lending.
RATINGS = (("A", Decimal("0.02")), ("B", Decimal("0.05")), ("C", Decimal("0.12")), ("D", Decimal("0.30")))
WORST = "E"

# Doublings of the odds to either side of the value: 0.5 at full confidence, 2.5 more at none. Our judgement.
LEAST_MARGIN, FURTHER_MARGIN = Decimal("0.5"), Decimal("2.5")


def rating(value: pl.Expr) -> pl.Expr:
    reached = (pl.when(value <= pl.lit(limit, VALUE)).then(pl.lit(name)) for name, limit in RATINGS)
    return pl.coalesce(*reached, pl.lit(WORST))


def margin_of(confidence: Decimal, scorecard: Scorecard) -> Decimal:
    """Return the margin in points, for a confidence of 0–100."""
    doublings = LEAST_MARGIN + FURTHER_MARGIN * (100 - confidence) / 100
    return (doublings * scorecard.link.doubling).quantize(Decimal("0.01"))


def with_interval(scored: pl.DataFrame, scorecard: Scorecard) -> pl.DataFrame:
    """Add `low` and `high` to frames with `points` and `pdConfidenceScore`."""
    scores = scored["pdConfidenceScore"].unique()
    margins = pl.Series([margin_of(score, scorecard) for score in scores], dtype=POINTS)
    margin = scored["pdConfidenceScore"].replace_strict(scores, margins, return_dtype=POINTS)
    return scored.with_columns(
        low=scorecard.link.values(scored["points"] + margin), high=scorecard.link.values(scored["points"] - margin)
    )
