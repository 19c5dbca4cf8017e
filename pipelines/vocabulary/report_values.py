"""Values as reports hold them: ratios, scores, bands, and ids as text.

Scores and ratios are decimals of a fixed scale, rounded half to even, not floats. So the same rows give the same bytes
on every machine and in every order.
"""

from collections.abc import Sequence
from functools import cache

import polars as pl

RATIO_SCALE = 4
RATIO = pl.Decimal(38, RATIO_SCALE)
SCORE = pl.Decimal(5, 2)


def ratio(numerator: pl.Expr, denominator: pl.Expr) -> pl.Expr:
    """Return `numerator / denominator` to four decimals; null if either is null or the denominator is zero.

    Every ratio must use this function: by itself, Polars keeps the numerator's scale, and a single zero denominator
    raises for the whole frame.
    """
    nonzero = pl.when(denominator != 0).then(denominator)
    return numerator.cast(RATIO) / nonzero


def score(points: pl.Expr) -> pl.Expr:
    """Return points on the scale of 0–100, with two decimals."""
    return points.cast(RATIO).round(2).cast(SCORE)


def name_band(figure: pl.Expr, bands: Sequence[tuple[str, int]], lowest: str) -> pl.Expr:
    """Return the name of the first band (best first) whose limit the figure reaches, else `lowest`."""
    reached = (pl.when(figure >= limit).then(pl.lit(name)) for name, limit in bands)
    return pl.coalesce(*reached, pl.lit(lowest))


@cache
def uuid_text(column: str) -> pl.Expr:
    """Return the usual 36 characters of a 16-byte id."""
    # One replacement costs half as much as joining five slices where there are few rows, as in reports.
    return pl.col(column).bin.encode("hex").str.replace(r"^(.{8})(.{4})(.{4})(.{4})", "$1-$2-$3-$4-")
