"""Detect money that goes back in parts: several rows add up to one row in the other direction."""

import polars as pl

from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.integrity.candidates import RECENT, candidates
from pipelines.vocabulary.plans import collect

# All of these are our judgement.
LARGE_SHARE = 10  # the whole is at least 1/LARGE_SHARE of a usual month's receipts
PART_DAYS = 16  # two weeks and a weekend
MAX_PARTS = 8
ROUND = 50_00  # cents; multiples of it often add up by chance
_WHOLE = (BY_CUSTOMER, "whole")


def trips_in_parts(facts: Facts) -> pl.LazyFrame:
    """Return rows of receipts that go back to one or two parties in parts, or several together in one payment.

    The payments are returned, too, with `cents` 0: only receipts contribute to the finding's amount.
    """
    matched = facts.cached(matching_parts).lazy()
    nothing, whole_is_receipt = pl.lit(0, pl.Int64), pl.col("way") > 0
    whole = matched.unique("whole").select(
        BY_CUSTOMER, "about", transaction_id="whole", cents=pl.when(whole_is_receipt).then("size").otherwise(nothing)
    )
    parts = matched.select(
        BY_CUSTOMER, "about", "transaction_id", cents=pl.when(whole_is_receipt).then(nothing).otherwise("part")
    )
    return pl.concat([whole, parts])


def running_sums(facts: Facts) -> pl.DataFrame:
    """Return each large row (the whole) with the rows that may be its parts, and the running sum of each party's parts.

    Parts are payments after a receipt (`way` 1), or receipts before a payment (`way` -1). `so_far` is the running sum
    and `nth` the number of the part, counted from the whole.
    """
    rows = facts.cached(candidates).lazy().filter(pl.col("is_receipt") | pl.col("is_payment"))
    recent = rows.filter(pl.col("age") < RECENT + PART_DAYS)
    way = pl.when("is_receipt").then(1).otherwise(-1)
    period = pl.col("date").dt.epoch("d") // PART_DAYS
    # A part lies in the same period of PART_DAYS as its whole or in the next one in its direction. The join on periods
    # finds them without comparing all rows with all others.
    whole = recent.filter(pl.col("size") * LARGE_SHARE >= pl.col("usual"), pl.col("age") < RECENT).select(
        *(BY_CUSTOMER, "size"),
        whole="transaction_id",
        on="date",
        whole_party="party",
        about="name",
        way=way,
        period=pl.concat_list(period, period + way),
    )
    part = recent.drop_nulls("party").select(
        BY_CUSTOMER, "transaction_id", "date", "party", part="size", way=-way, period=period
    )
    days = (pl.col("date") - pl.col("on")).dt.total_days() * pl.col("way")
    return (
        whole.explode("period")
        .join(part, on=[BY_CUSTOMER, "way", "period"], how="inner")
        .filter(days.is_between(0, PART_DAYS), pl.col("part") < pl.col("size"))
        .sort(*_WHOLE, "party", days, "transaction_id")
        .with_columns(
            so_far=pl.col("part").cum_sum().over(*_WHOLE, "party"),
            nth=pl.int_range(1, pl.len() + 1).over(*_WHOLE, "party"),
        )
        .filter(pl.col("so_far") <= pl.col("size"), pl.col("nth") <= MAX_PARTS)
        .pipe(collect)
    )


def matching_parts(facts: Facts) -> pl.DataFrame:
    """Return the parts, of one party or of two, whose sum equals their whole. `about` names the party of the whole.

    A whole that is a multiple of ROUND counts only if all of its parts belong to its own party.
    """
    parts = facts.cached(running_sums)
    is_sure = (pl.col("party") == pl.col("whole_party")).fill_null(value=False) | (pl.col("size") % ROUND != 0)
    alone = parts.filter(pl.col("so_far") == pl.col("size"), pl.col("nth") > 1, is_sure)
    ends = parts.select(*_WHOLE, "size", "party", "nth", "so_far").filter(pl.col("size") % ROUND != 0)
    both = (
        ends.join(ends.with_columns(so_far=pl.col("size") - pl.col("so_far")), on=[*_WHOLE, "so_far"], suffix="_2")
        .filter(pl.col("party") != pl.col("party_2"))
        .select(*_WHOLE, "party", last="nth")
    )
    if alone.is_empty() and both.is_empty():  # true for most customers
        return alone
    until = pl.concat([alone.select(*_WHOLE, "party", last="nth"), both]).unique([*_WHOLE, "party"], keep="first")
    matched = parts.join(until, on=[*_WHOLE, "party"], validate="m:1")
    return matched.filter(pl.col("nth") <= pl.col("last"))
