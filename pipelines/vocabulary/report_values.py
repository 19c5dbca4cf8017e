"""Values as reports hold them: ratios, scores, and counts, dollars, reasons and ids as text.

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


def count_text(count: pl.Expr, one: str, more: str) -> pl.Expr:
    """Write `1 row was`, `1,234 rows were`, given `row was` and `rows were`. Null stays null."""
    return pl.format("{} {}", _group_digits(count), pl.when(count == 1).then(pl.lit(one)).otherwise(pl.lit(more)))


def dollars_text(amount: pl.Expr) -> pl.Expr:
    """Write an amount, which has two decimals, as pages do: `$1,234.50`, `−$1,234.50`. Null stays null."""
    sign = pl.when(amount < 0).then(pl.lit("−$")).otherwise(pl.lit("$"))
    return pl.concat_str(sign, _group_digits(amount.abs()))


def percent_text(share: pl.Expr) -> pl.Expr:
    """Write a share of at most four decimals as pages do: `32.15 %`, `−4.00 %`. Null stays null."""
    percent = (share.cast(RATIO) * 100).round(2)
    digits = percent.abs().cast(pl.String)
    sign = pl.when(percent < 0).then(pl.lit("−")).otherwise(pl.lit(""))
    return pl.concat_str(
        sign, _group_digits(digits.str.extract(r"^(\d+)")), digits.str.extract(r"(\.\d\d)"), pl.lit(" %")
    )


def _group_digits(number: pl.Expr) -> pl.Expr:
    """Write a number of at most two decimals with a comma after each three digits, counted from the right."""
    in_threes = number.cast(pl.String).str.reverse().str.replace_all(r"(\d{3})", "${1},").str.reverse()
    return in_threes.str.strip_prefix(",")


def name_band(figure: pl.Expr, bands: Sequence[tuple[str, int]], lowest: str) -> pl.Expr:
    """Return the name of the first band (best first) whose limit the figure reaches, else `lowest`."""
    reached = (pl.when(figure >= limit).then(pl.lit(name)) for name, limit in bands)
    return pl.coalesce(*reached, pl.lit(lowest))


def reason(code: str, condition: pl.Expr, message: pl.Expr) -> pl.Expr:
    """Return `{code, message}` where `condition` is true, else null."""
    return pl.when(condition).then(pl.struct(pl.lit(code).alias("code"), message.alias("message")))


def reasons(*each: pl.Expr) -> pl.Expr:
    """Return the list of the reasons that are not null, in this order."""
    return pl.concat_list(*each).list.drop_nulls()


@cache
def uuid_text(column: str) -> pl.Expr:
    """Return the usual 36 characters of a 16-byte id."""
    # One replacement costs half as much as joining five slices where there are few rows, as in reports.
    return pl.col(column).bin.encode("hex").str.replace(r"^(.{8})(.{4})(.{4})(.{4})", "$1-$2-$3-$4-")
