"""How much of the risk figure and of each driver's reading rests on rows of statements that don't reconcile.

`metrics.unreconciled` gives each reading's share. The share of the risk figure is the mean of its readings' shares,
weighted by the maximum points that each can earn.
"""

from collections.abc import Iterable, Mapping

import polars as pl

from pipelines.figures.facts import Facts
from pipelines.figures.lineage import Constant, Formula
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.figures.unreconciled import SIZE, format_shares, has_unreconciled_rows, share
from pipelines.metrics import unreconciled
from pipelines.scorecards.scorecard import Feature, Scorecard

WORDS = "the mean of the readings' shares, weighted by the maximum points of each reading"


def share_lines(facts: Facts, scored: pl.DataFrame, scorecard: Scorecard) -> list[pl.DataFrame]:
    """Return `figures.unreconciled.format_shares` for the risk value and for each driver.

    The list is empty if the customers have no unreconciled rows.

    Args:
        scored: the scorecard's customers, with their readings by metric.
    """
    if not has_unreconciled_rows(facts):
        return []
    slugs = [feature.metric for feature in scorecard.features]
    known = scored.lazy().select(
        BY_CUSTOMER, *(pl.col(slug).is_not_null().alias(_known_column(slug)) for slug in slugs)
    )
    joined = unreconciled.shares(facts, slugs).lazy().join(known, on=BY_CUSTOMER, how="inner", validate="1:1")
    shares = joined.with_columns(
        pl.when(_known_column(slug)).then(pl.col(slug).fill_null(0)).alias(slug) for slug in slugs
    )
    weighted = _weighted_mean((feature, pl.col(feature.metric)) for feature in scorecard.features)
    value = shares.select(BY_CUSTOMER, place=pl.lit(""), value=weighted)
    readings = (
        shares.select(BY_CUSTOMER, place=pl.lit(f"/drivers/{nth}"), reading=slug) for nth, slug in enumerate(slugs)
    )
    return pl.collect_all([format_shares(frame, "place") for frame in (value, *readings)], engine="in-memory")


def _known_column(slug: str) -> str:
    return f"known {slug}"


def _weighted_mean(shares: Iterable[tuple[Feature, pl.Expr]]) -> pl.Expr:
    """Return the weighted mean of the shares. Missing readings have neither share nor weight."""
    parts, weights = list[pl.Expr](), list[pl.Expr]()
    for feature, one_share in shares:
        parts.append((one_share * pl.lit(feature.max_points, SIZE)).cast(SIZE))
        weights.append(pl.when(one_share.is_not_null()).then(pl.lit(feature.max_points, SIZE)))
    return share(pl.sum_horizontal(*parts), pl.sum_horizontal(*weights))


def explain_value(shares: Mapping[Feature, Formula]) -> Formula:
    """Explain the share of the risk figure by those of the drivers that have a reading."""

    def apply(inputs: Mapping[str, Constant]) -> Constant:
        known = ((feature, pl.lit(inputs[feature.metric], SIZE).fill_null(0)) for feature in shares)
        weighted: Constant = pl.select(_weighted_mean(known)).item()
        return weighted

    return Formula(WORDS, {feature.metric: each for feature, each in shares.items()}, apply)
