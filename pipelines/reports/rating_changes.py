"""Whose ratings change if another scorecard is used: ratings by both, from the same readings, events and findings."""

import polars as pl

from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.integrity import without_findings
from pipelines.reports.risk.rating import LETTERS, add_rating, rating
from pipelines.risk_models.events import ceilings
from pipelines.risk_models.readings import readings
from pipelines.scorecards.expected import Expected
from pipelines.scorecards.scorecard import VALUE, Scorecard

SIDES = ("before", "after")
RATINGS = pl.Schema(
    {
        BY_CUSTOMER: pl.Int64(),
        "value_before": VALUE,
        "rating_before": pl.String(),
        "value_after": VALUE,
        "rating_after": pl.String(),
    }
)


def compare_ratings(facts: Facts, before: Scorecard, after: Scorecard, expected: Expected) -> pl.DataFrame:
    """Return RATINGS of every customer, as reports would show them."""
    seen = without_findings(facts)
    if seen is None:
        return _compare(facts, facts, before, after, expected)
    clean = _compare(seen, facts, before, after, expected)
    others = _compare(facts, facts, before, after, expected).join(clean, on=BY_CUSTOMER, how="anti")
    return pl.concat([others, clean]).sort(BY_CUSTOMER)


def _compare(facts: Facts, all_facts: Facts, before: Scorecard, after: Scorecard, expected: Expected) -> pl.DataFrame:
    slugs = dict.fromkeys(feature.metric for scorecard in (before, after) for feature in scorecard.features)
    read = readings(facts, list(slugs), expected=expected)
    capped = ceilings(all_facts)
    shown = [
        add_rating(scorecard.score(read), scorecard, capped).select(
            BY_CUSTOMER, pl.col("value").alias(f"value_{side}"), pl.col("rating").alias(f"rating_{side}")
        )
        for side, scorecard in zip(SIDES, (before, after), strict=True)
    ]
    return shown[0].join(shown[1], on=BY_CUSTOMER, how="inner", validate="1:1").sort(BY_CUSTOMER)


def compare_values(before: pl.Series, after: pl.Series) -> pl.DataFrame:
    """Return the same columns, without customers, of values alone: no evidence or event caps a rating."""
    values = pl.DataFrame({"value_before": before, "value_after": after})
    return values.with_columns(rating(pl.col(f"value_{side}")).alias(f"rating_{side}") for side in SIDES)


def count_changes(ratings: pl.DataFrame) -> pl.DataFrame:
    """Return `before, after, customers`: how many have each pair of ratings that differ."""
    return (
        ratings.filter(pl.col("rating_before") != pl.col("rating_after"))
        .group_by(before="rating_before", after="rating_after")
        .agg(customers=pl.len())
        .sort("before", "after")
    )


def describe_changes(ratings: pl.DataFrame) -> str:
    """Return one sentence: how many move, and how many cross the line beyond which lenders commonly don't lend."""
    before, after, worst = ratings["rating_before"], ratings["rating_after"], LETTERS[-1]
    better, worse = int((after < before).sum()), int((after > before).sum())
    in_, out = int(((before == worst) & (after != worst)).sum()), int(((before != worst) & (after == worst)).sum())
    return (
        f"{better + worse} of {ratings.height} change their rating: {better} to a better one, {worse} to a worse one; "
        f"{in_} leave {worst}, {out} fall to it"
    )
