"""Faults as clients cause them, labelled: a stretch of rows never sent, a stretch sent twice.

Rows are taken away after balances were chained, so that the statement's balance jumps where they are missing.
"""

from dataclasses import replace
from datetime import date, timedelta
from random import Random

import polars as pl

from pipelines.sandbox.model import LABELLED, Business
from pipelines.sandbox.statements import without_lone_legs


def injected(business: Business, rng: Random) -> Business:
    """The business with its trading account hurt: one in three by a gap, one in three by an overlap."""
    fault = rng.choice((with_gap, with_overlap, None))
    main, *others = business.accounts
    stretch = _stretch(main.transactions, rng)
    if fault is None or stretch is None:
        return business
    hurt = replace(main, transactions=fault(main.transactions, *stretch))
    return replace(business, accounts=without_lone_legs((hurt, *others)))


def with_gap(rows: pl.DataFrame, first: date, last: date) -> pl.DataFrame:
    """The rows without those from `first` to `last`; the next one, where the balance jumps, is labelled."""
    missing = pl.col("date").is_between(first, last)
    if rows.filter(missing)["amount"].sum() == 0:
        return rows  # nothing would jump
    follows = pl.col("date") > last
    is_first_after = follows & (follows.cum_sum() == 1)
    return rows.with_columns(_labelled("gap", is_first_after)).filter(~missing)


def with_overlap(rows: pl.DataFrame, first: date, last: date) -> pl.DataFrame:
    """The rows up to `last` in one submission, those since `first` in a second: whole days come twice."""
    earlier = rows.filter(pl.col("date") <= last)
    later = rows.filter(pl.col("date") >= first).with_columns(
        pl.lit(1, pl.UInt8).alias("submission"), _labelled("duplicate", pl.col("date") <= last)
    )
    return pl.concat([earlier, later])


def _labelled(fault: str, where: pl.Expr) -> pl.Expr:
    return pl.when(where).then(pl.lit(fault, LABELLED["injected"])).otherwise("injected").alias("injected")


def _stretch(rows: pl.DataFrame, rng: Random) -> tuple[date, date] | None:
    """A fortnight or 30 days (at most a third) from inside what the account covers; None when that is a week."""
    dates = rows["date"].to_list()
    covered = (dates[-1] - dates[0]).days
    days = min(rng.choice((14, 30)), covered // 3)
    if covered < 7:
        return None
    first: date = dates[0] + timedelta(days=rng.randrange(1, covered - days))
    return first, first + timedelta(days=days - 1)
