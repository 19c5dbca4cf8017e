"""Amounts unlike the others of their kind.

The measure is the modified z-score of Iglewicz and Hoaglin ("How to Detect and Handle Outliers", ASQC 1993):

    z = 0.6745 · (x − median) / MAD,   an outlier where |z| > 3.5

with MAD the median of |x − median|; where more than half of the amounts are equal and the MAD is 0, they advise the
mean of |x − median| times 1.2533 in place of MAD / 0.6745. x is the logarithm of the amount: what a business pays and
is paid is spread by factors, so on a plain scale every twentieth supplier's bill would stand out, and none that is far
too small ever would.
"""

from collections.abc import Sequence

import polars as pl

from pipelines.vocabulary.schemas import posted

FEWEST = 8  # rows of a kind: of fewer, nobody can say what is usual
Z_LIMIT = 3.5
MATERIAL = 1.2  # times the usual, or the other way round: less is not worth anyone's time, however even the others

_SCALE = 0.6745  # the MAD of a normal distribution with standard deviation 1
_MEAN_SCALE = 1.2533  # its standard deviation over its mean absolute deviation


def find_outliers(numbered: pl.DataFrame) -> pl.Series:
    """Rows whose amount is unlike the others of their series or, without one, of their counterparty and direction.

    What moves between own accounts has no usual amount.

    Args:
        numbered: rows of whole customers with their number in `row` (UInt32).
    """
    booked = (
        numbered.lazy()
        .filter(posted(), pl.col("amount") != 0, pl.col("is_transfer").ne_missing(True))
        .select(
            "row",
            "customer_number",
            "series_id",
            group=pl.when(pl.col("series_id").is_null()).then("counterparty_group"),
            out=pl.col("amount") < 0,
            size=pl.col("amount").abs().cast(pl.Float64).log(),
        )
    )
    in_series = booked.filter(pl.col("series_id").is_not_null()).pipe(_filter_unlike, ("customer_number", "series_id"))
    grouped = booked.filter(pl.col("group").is_not_null()).pipe(_filter_unlike, ("customer_number", "group", "out"))
    return pl.concat([in_series, grouped]).collect()["row"]


def _filter_unlike(booked: pl.LazyFrame, kind: Sequence[str]) -> pl.LazyFrame:
    distance, deviation = pl.col("distance"), pl.col("middle") / _SCALE
    spread = pl.when(deviation > 0).then(deviation).otherwise(pl.col("mean") * _MEAN_SCALE)
    return (
        booked.group_by(kind)
        .agg("row", distance=(pl.col("size") - pl.col("size").median()).abs())
        .filter(pl.col("row").list.len() >= FEWEST)
        .with_columns(middle=distance.list.median(), mean=distance.list.mean())
        .explode("row", "distance")
        .filter(distance > pl.lit(MATERIAL).log(), distance > Z_LIMIT * spread)
        .select("row")
    )
