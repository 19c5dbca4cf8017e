"""Sensitivity: for each customer, the three smallest changes of drivers that change the rating, up or down.

A driver can move to any other of its bands: to the nearest reading in it. The size of a move is its points divided by
the driver's most points, so that drivers are comparable. All moves are tried. For each driver the smallest move up and
the smallest move down that change the rating are kept, and the three smallest of all are printed. If no single driver
is enough, pairs of drivers that move in the same direction are tried; if no pair is enough, nothing is printed. A
driver without a reading can only gain one; the loss of a reading is never tried, and history doesn't shrink.
"""

from collections.abc import Iterator

import polars as pl

from pipelines.figures.periods import BY_CUSTOMER
from pipelines.metrics import METRICS
from pipelines.reports.risk.rating import rating
from pipelines.scorecards.scorecard import POINTS, POINTS_OF, READING, Scorecard
from pipelines.vocabulary.printing import SCORE, ratio

MOST = 3  # changes printed
AT_ONCE = 1_000_000  # pairs of moves in memory
ONLY_GROWS = "months_of_history"
_BANDS = pl.Schema(
    {
        "metric": pl.String(),
        "feature": pl.Int32(),
        "band_points": POINTS,
        "from_worse": READING,
        "from_better": READING,
        "most": POINTS,
    }
)
_ORDER = ("size", "gain", "feature", "also_feature")  # a total order of a customer's changes


def sensitivity(scored: pl.DataFrame, scorecard: Scorecard) -> pl.DataFrame:
    """Return `customer_number, sensitivity`: a list of structs, the smallest change first.

    Args:
        scored: `customer_number`, `points`, `value`, and the reading of each metric.
    """
    moves = _moves(scored, scorecard)
    alone = moves.with_columns(_no_second_driver()).pipe(_crossing, scorecard)
    rest = moves.join(alone, on=BY_CUSTOMER, how="anti")
    changes = pl.concat([alone, *(pairs.pipe(_crossing, scorecard) for pairs in _pairs(rest))])
    listed = changes.pipe(_smallest).pipe(_printed, scorecard)
    return (
        scored.select(BY_CUSTOMER)
        .join(listed, on=BY_CUSTOMER, how="left", validate="1:1")
        .with_columns(pl.col("sensitivity").fill_null([]))
    )


def _moves(scored: pl.DataFrame, scorecard: Scorecard) -> pl.DataFrame:
    """Return each driver's moves to other bands: `feature` (its number), `reading`, `to`, `gain` (points), `size`."""
    metrics = [feature.metric for feature in scorecard.features]
    rated = scored.select(BY_CUSTOMER, "points", rating_from=rating(pl.col("value")))
    earned = scored.select(pl.col(POINTS_OF + metric).alias(metric) for metric in metrics).unpivot(value_name="now")
    drivers = scored.select(BY_CUSTOMER, *metrics).unpivot(
        index=BY_CUSTOMER, variable_name="metric", value_name="reading"
    )
    gain = pl.col("band_points") - pl.col("now")
    can_decrease = pl.col("reading").is_not_null() & (pl.col("metric") != ONLY_GROWS)
    to = pl.when(gain > 0).then("from_worse").when(can_decrease).then("from_better")
    return (
        drivers.with_columns(earned["now"])
        .join(_bands(scorecard), on="metric", how="inner")
        .with_columns(gain=gain.cast(POINTS), to=to, size=ratio(gain.abs(), pl.col("most")))
        .filter(pl.col("gain") != 0, pl.col("to").is_not_null())
        .join(rated, on=BY_CUSTOMER, how="left", validate="m:1")
        .select(BY_CUSTOMER, "points", "rating_from", "feature", "reading", "to", "gain", "size")
    )


def _bands(scorecard: Scorecard) -> pl.DataFrame:
    rows = [
        (feature.metric, number, points, from_worse, from_better, feature.most)
        for number, feature in enumerate(scorecard.features)
        for points, from_worse, from_better in feature.moves()
    ]
    return pl.DataFrame(rows, schema=_BANDS, orient="row")


def _no_second_driver() -> list[pl.Expr]:
    nothing = pl.lit(None, READING)
    return [pl.lit(None, pl.Int32).alias("also_feature"), nothing.alias("also_reading"), nothing.alias("also_to")]


def _pairs(moves: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield pairs of moves in the same direction by two drivers of a customer, for a limited number of customers."""
    counts = moves.group_by(BY_CUSTOMER).len().sort(BY_CUSTOMER)
    slice_of = (pl.col("len").cast(pl.Int64) ** 2).cum_sum() // AT_ONCE
    for _, customers in counts.with_columns(slice=slice_of).group_by("slice", maintain_order=True):
        first = moves.join(customers, on=BY_CUSTOMER, how="semi").with_columns(up=pl.col("gain") > 0)
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
            .drop("up", "also_gain", "also_size")
            .select(*moves.columns, "also_feature", "also_reading", "also_to")
        )


def _crossing(changes: pl.DataFrame, scorecard: Scorecard) -> pl.DataFrame:
    """Return the changes after which the rating differs, with `rating_to`. More points never make a rating worse."""
    after = changes.with_columns(after=(pl.col("points") + pl.col("gain")).cast(POINTS))
    value = pl.lit(scorecard.link.values(after["after"]))
    return (
        after.drop("after").with_columns(rating_to=rating(value)).filter(pl.col("rating_to") != pl.col("rating_from"))
    )


def _smallest(changes: pl.DataFrame) -> pl.DataFrame:
    """Return each drivers' smallest change in either direction; of these, the MOST smallest."""
    ordered = changes.sort(BY_CUSTOMER, *_ORDER, nulls_last=True).with_columns(up=pl.col("gain") > 0)
    of_drivers = ordered.unique([BY_CUSTOMER, "feature", "also_feature", "up"], keep="first", maintain_order=True)
    return of_drivers.group_by(BY_CUSTOMER, maintain_order=True).head(MOST)


def _printed(changes: pl.DataFrame, scorecard: Scorecard) -> pl.DataFrame:
    metrics = [METRICS[feature.metric] for feature in scorecard.features]
    described = pl.DataFrame(
        {
            "feature": range(len(metrics)),
            "metric": [metric.slug for metric in metrics],
            "name": [metric.name for metric in metrics],
            "unit": [metric.unit for metric in metrics],
        },
        schema={"feature": pl.Int32, "metric": pl.String, "name": pl.String, "unit": pl.String},
    )
    second = described.rename(lambda name: f"also_{name}")
    shown = pl.struct(
        "metric",
        "name",
        "unit",
        pl.col("reading").alias("from"),
        "to",
        pl.col("rating_from").alias("ratingFrom"),
        pl.col("rating_to").alias("ratingTo"),
        pl.col("gain").cast(SCORE).alias("pointsGained"),
        pl.when(pl.col("also_metric").is_not_null())
        .then(
            pl.struct(
                pl.col("also_metric").alias("metric"),
                pl.col("also_name").alias("name"),
                pl.col("also_unit").alias("unit"),
                pl.col("also_reading").alias("from"),
                pl.col("also_to").alias("to"),
            )
        )
        .alias("also"),
        _words().alias("words"),
    )
    return (
        changes.join(described, on="feature", how="left", maintain_order="left", validate="m:1")
        .join(second, on="also_feature", how="left", maintain_order="left", validate="m:1")
        .group_by(BY_CUSTOMER, maintain_order=True)
        .agg(shown.alias("sensitivity"))
    )


def _words() -> pl.Expr:
    change = _change("name", "reading", "to")
    both = pl.format("{} together with {}", change, _change("also_name", "also_reading", "also_to"))
    return pl.format(
        "{} would {} the rating from {} to {}.",
        pl.when(pl.col("also_metric").is_not_null()).then(both).otherwise(change),
        pl.when(pl.col("gain") > 0).then(pl.lit("lift")).otherwise(pl.lit("lower")),
        "rating_from",
        "rating_to",
    )


def _change(name: str, reading: str, to: str) -> pl.Expr:
    known = pl.format("{} going from {} to {}", name, _plain(reading), _plain(to))
    return pl.coalesce(known, pl.format("{} becoming known at {}", name, _plain(to)))


def _plain(column: str) -> pl.Expr:
    """Return a decimal without trailing zeros."""
    return pl.col(column).cast(pl.String).str.strip_chars_end("0").str.strip_chars_end(".")
