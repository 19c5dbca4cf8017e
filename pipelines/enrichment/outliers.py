"""Outliers: amounts unlike the others of the same series or counterparty.

The measure is the modified z-score of Iglewicz and Hoaglin ("How to Detect and Handle Outliers", ASQC 1993):

    z = 0.6745 · (x − median) / MAD,   an outlier where |z| > 3.5

where MAD is the median of |x − median|. If more than half of the amounts are equal, the MAD is 0, and they advise the
mean of |x − median| times 1.2533 instead of MAD / 0.6745. x is the logarithm of the amount, because amounts of a
business vary by factors: on a plain scale every twentieth bill of a supplier would be an outlier, and a bill that is
far too small never would.
"""

from collections.abc import Sequence

import polars as pl

from pipelines.vocabulary.schemas import posted

MIN_ROWS = 8  # rows in a group: with fewer, the usual amount is unknown (our judgement)
Z_LIMIT = 3.5  # Iglewicz and Hoaglin
MIN_RATIO = 1.2  # to the usual amount, or of it to the amount: less is not worth a review (our judgement)

_SCALE = 0.6745  # the MAD of a normal distribution with standard deviation 1
_MEAN_SCALE = 1.2533  # standard deviation of a normal distribution divided by its mean absolute deviation


def find_outliers(numbered: pl.DataFrame) -> pl.Series:
    """Return the rows with an unusual amount for their series or, without one, for their counterparty and direction.

    Transfers between own accounts are left out: they have no usual amount.

    Args:
        numbered: rows of whole customers with their number in `row` (UInt32).
    """
    posted_rows = (
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
    in_series = posted_rows.filter(pl.col("series_id").is_not_null()).pipe(
        _filter_unlike, ("customer_number", "series_id")
    )
    grouped = posted_rows.filter(pl.col("group").is_not_null()).pipe(
        _filter_unlike, ("customer_number", "group", "out")
    )
    return pl.concat([in_series, grouped]).collect(engine="in-memory")["row"]


def _filter_unlike(posted_rows: pl.LazyFrame, kind: Sequence[str]) -> pl.LazyFrame:
    distance, deviation = pl.col("distance"), pl.col("middle") / _SCALE
    spread = pl.when(deviation > 0).then(deviation).otherwise(pl.col("mean") * _MEAN_SCALE)
    return (
        posted_rows.group_by(kind)
        .agg("row", distance=(pl.col("size") - pl.col("size").median()).abs())
        .filter(pl.col("row").list.len() >= MIN_ROWS)
        .with_columns(middle=distance.list.median(), mean=distance.list.mean())
        .explode("row", "distance")
        .filter(distance > pl.lit(MIN_RATIO).log(), distance > Z_LIMIT * spread)
        .select("row")
    )
