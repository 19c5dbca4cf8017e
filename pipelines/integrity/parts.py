"""Money that goes back in parts: no two rows have equal amounts, but several rows add up to one."""

import polars as pl

from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.integrity.candidates import RECENT, candidates

# All our judgement.
LARGE_SHARE = 10  # the whole is at least 1/LARGE_SHARE of a usual month's receipts
PART_DAYS = 16  # two weeks and a weekend
MOST_PARTS = 8
ROUND = 50_00  # cents; multiples of it often add up by chance
_WHOLE = (BY_CUSTOMER, "whole")


def in_parts(facts: Facts) -> pl.DataFrame:
    """Return receipts that go back to one or two parties in parts, and receipts that go back in one payment."""
    recent = facts.cached(candidates).filter(pl.col("age") < RECENT + PART_DAYS)
    receipts, payments = (recent.filter(side) for side in ("is_receipt", "is_payment"))
    forth = _sums(receipts, payments, 1).pipe(_meeting)
    back = _sums(payments, receipts, -1).pipe(_meeting)
    whole = forth.unique("whole").select(BY_CUSTOMER, "about", transaction_id="whole", cents="size")
    parts = forth.select(BY_CUSTOMER, "about", "transaction_id", cents=pl.lit(0, pl.Int64))
    gone = back.unique("whole").select(BY_CUSTOMER, "about", transaction_id="whole", cents=pl.lit(0, pl.Int64))
    received = back.select(BY_CUSTOMER, "about", "transaction_id", cents="part")
    return pl.concat([whole, parts, received, gone])


def _sums(wholes: pl.DataFrame, parts: pl.DataFrame, way: int) -> pl.DataFrame:
    """Return the parts after (`way` 1) or before (`way` -1) each whole, with the running sum of each party's parts."""
    large = wholes.filter(pl.col("size") * LARGE_SHARE >= pl.col("usual"), pl.col("age") < RECENT)
    whole = large.select(
        BY_CUSTOMER,
        "size",
        whole="transaction_id",
        on="date",
        payer="party",
        about="name",
        period=_epoch() // PART_DAYS,
    ).with_columns(period=pl.concat_list("period", pl.col("period") + way))
    part = parts.select(BY_CUSTOMER, "transaction_id", "date", "party", part="size", period=_epoch() // PART_DAYS)
    days = (pl.col("date") - pl.col("on")).dt.total_days() * way
    return (
        whole.explode("period")
        .join(part, on=[BY_CUSTOMER, "period"], how="inner")
        .filter(days.is_between(0, PART_DAYS), pl.col("part") < pl.col("size"), pl.col("party").is_not_null())
        .sort(*_WHOLE, "party", days, "transaction_id")
        .with_columns(
            so_far=pl.col("part").cum_sum().over(*_WHOLE, "party"),
            nth=pl.int_range(1, pl.len() + 1).over(*_WHOLE, "party"),
        )
        .filter(pl.col("so_far") <= pl.col("size"), pl.col("nth") <= MOST_PARTS)
    )


def _epoch() -> pl.Expr:
    return pl.col("date").dt.epoch("d")


def _meeting(sums: pl.DataFrame) -> pl.DataFrame:
    """Return the parts, of one party or of two, whose sum is their whole. `about` names the party of the whole."""
    is_sure = (pl.col("party") == pl.col("payer")).fill_null(value=False) | (pl.col("size") % ROUND != 0)
    alone = sums.filter(pl.col("so_far") == pl.col("size"), pl.col("nth") > 1, is_sure)
    ends = sums.filter(pl.col("size") % ROUND != 0).select(*_WHOLE, "size", "party", "nth", "so_far")
    both = (
        ends.join(ends.with_columns(so_far=pl.col("size") - pl.col("so_far")), on=[*_WHOLE, "so_far"], suffix="_2")
        .filter(pl.col("party") != pl.col("party_2"))
        .select(*_WHOLE, "party", last="nth")
    )
    until = pl.concat([alone.select(*_WHOLE, "party", last="nth"), both]).unique([*_WHOLE, "party"], keep="first")
    return sums.join(until, on=[*_WHOLE, "party"], validate="m:1").filter(pl.col("nth") <= pl.col("last"))
