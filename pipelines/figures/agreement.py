"""Pairs of accounts that agree on so many days that they may be the same."""

from collections.abc import Sequence

import polars as pl

SAME_SHARE = 0.5  # of the days with rows in the period that both cover, of the side with fewer such days; our judgement


def select_agreeing(
    pairs: pl.LazyFrame, within: Sequence[str], sides: tuple[str, str], days: pl.LazyFrame, periods: pl.LazyFrame
) -> pl.LazyFrame:
    """Return the pairs that agree on at least SAME_SHARE of their days.

    Args:
        pairs: keys `within`; `sides`, the names of the two columns that identify the pair; and `same`, the number of
            days on which both agree.
        within: keys that both sides share, such as the customer.
        days: keys `within`, `side` and `date`: each day on which a side could agree with another one.
        periods: keys `within`, `side`, and the `first` and `last` day that the side covers.
    """
    compared = pairs
    for side in sides:
        covered = periods.rename({"side": side, "first": f"first of {side}", "last": f"last of {side}"})
        compared = compared.join(covered, on=[*within, side], validate="m:1")
    begin, end = pl.max_horizontal("^first of .*$"), pl.min_horizontal("^last of .*$")
    for side in sides:
        own = compared.join(days.rename({"side": side}), on=[*within, side])
        common = own.filter(pl.col("date").is_between(begin, end))
        counted = common.group_by(*within, *sides).agg(pl.len().alias(f"days of {side}"))
        compared = compared.join(counted, on=[*within, *sides], validate="1:1")
    agreeing = compared.filter(pl.col("same") >= SAME_SHARE * pl.min_horizontal("^days of .*$"))
    return agreeing.select(pl.exclude("^(first|last|days) of .*$"))
