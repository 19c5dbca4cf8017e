"""How much of the risk figure and of each driver's reading rests on rows of statements that don't reconcile.

A reading's share is told by the metrics (`metrics.unreconciled`). The risk figure rests on its readings as far as they
can bring points: its share is theirs, weighed by the points of each one's best band.
"""

from collections.abc import Iterable, Mapping

import polars as pl

from pipelines.figures.facts import Facts
from pipelines.figures.lineage import Constant, Formula
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.figures.unreconciled import SIZE, has_unreconciled_rows, lines, share
from pipelines.metrics import unreconciled
from pipelines.scorecards.scorecard import Feature, Scorecard

WORDS = "the shares of its readings, each weighed by the points of its best band"


def resting(facts: Facts, scored: pl.DataFrame, scorecard: Scorecard) -> list[pl.DataFrame]:
    """`figures.unreconciled.lines`, place by place; nothing is worked out where there are no such rows.

    Args:
        scored: of the scorecard's customers, their readings by metric.
    """
    if not has_unreconciled_rows(facts):
        return []
    slugs = [feature.metric for feature in scorecard.features]
    read = scored.lazy().select(BY_CUSTOMER, *(pl.col(slug).is_not_null().alias(_known(slug)) for slug in slugs))
    described = unreconciled.shares(facts, slugs).lazy().join(read, on=BY_CUSTOMER, how="inner", validate="1:1")
    shares = described.with_columns(pl.when(_known(slug)).then(pl.col(slug).fill_null(0)).alias(slug) for slug in slugs)
    weighed = _weighed((feature, pl.col(feature.metric)) for feature in scorecard.features)
    value = shares.select(BY_CUSTOMER, place=pl.lit(""), value=weighed)
    readings = (
        shares.select(BY_CUSTOMER, place=pl.lit(f"/drivers/{nth}"), reading=slug) for nth, slug in enumerate(slugs)
    )
    return pl.collect_all([lines(each, "place") for each in (value, *readings)], engine="in-memory")


def _known(slug: str) -> str:
    return f"known {slug}"


def _weighed(shares: Iterable[tuple[Feature, pl.Expr]]) -> pl.Expr:
    """Readings that are missing have no share, and no weight."""
    parts, weights = list[pl.Expr](), list[pl.Expr]()
    for feature, each in shares:
        parts.append((each * pl.lit(feature.most, SIZE)).cast(SIZE))
        weights.append(pl.when(each.is_not_null()).then(pl.lit(feature.most, SIZE)))
    return share(pl.sum_horizontal(*parts), pl.sum_horizontal(*weights))


def of_value(shares: Mapping[Feature, Formula]) -> Formula:
    """Where the share of the risk figure comes from: those of the drivers that have a reading."""

    def apply(given: Mapping[str, Constant]) -> Constant:
        each = ((feature, pl.lit(given[feature.metric], SIZE).fill_null(0)) for feature in shares)
        weighed: Constant = pl.select(_weighed(each)).item()
        return weighed

    return Formula(WORDS, {feature.metric: each for feature, each in shares.items()}, apply)
