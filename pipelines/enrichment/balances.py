"""Check whether the stated running balances follow from the amounts.

A bank states the balance after each row, but the order of rows within a day is unknown: some lists run forwards, some
backwards, some by type. So all rows of an account's day are checked together. They *chain* if the order in which they
were sent, or its reverse, leads from each stated balance to the next. Then only the first row is in doubt: it is right
if the day opens with a balance that the day before may have closed with. A day that chains neither way is right if its
opening balance plus its sum is one of its stated balances. Rows without a balance count in the sums but get no verdict.

A row that this leaves unchecked may be proved by its PDF statement: by the printed balances before and after it.

The **offset** of a row is its stated balance less the sum of all amounts of the account up to it: the balance before
the account's first row. Balances that follow from each other have the same offset, however many rows lie between them.
"""

from functools import cache

import polars as pl

from pipelines.vocabulary.places import add_by_row
from pipelines.vocabulary.schemas import posted

_ACCOUNT = ("customer_number", "account_id")
_DAY = (*_ACCOUNT, "date")
_SENT = ("received_seq", "position")
_SUM = pl.Decimal(38, 2)  # room for any number of amounts


def verify_balances(rows: pl.DataFrame) -> pl.DataFrame:
    """Fill `balance_verified`: true, false, or null where no balance is stated or it can't be checked."""
    unchecked = rows.drop("balance_verified", strict=False)
    checked = unchecked.with_row_index("row").filter(posted()).pipe(_check_days)
    return add_by_row(unchecked, checked).with_columns(
        balance_verified=pl.coalesce("balance_verified", _proven_by_statement())
    )


@cache
def _proven_by_statement() -> pl.Expr:
    """Return true for rows whose balance is proved by the balances of their statement, else null."""
    is_proved = pl.col("statement_proved") & posted()
    return pl.when(is_proved & pl.col("balance").is_not_null()).then(pl.lit(value=True))


def _check_days(posted_rows: pl.DataFrame) -> pl.DataFrame:
    """Return `row` and `balance_verified` of every row that states a balance."""
    stated = posted_rows.pipe(_add_offsets)
    days = stated.pipe(_summarise_days).pipe(_check_openings)
    return stated.join(days, on="day", how="left", validate="m:1").select("row", balance_verified=_verdict())


def _add_offsets(posted_rows: pl.DataFrame) -> pl.DataFrame:
    """Add offsets to rows that state a balance.

    `forwards` and `backwards` hold if the day's rows run in that order, `ending` if the row is the day's last.
    """
    amount, balance, so_far = pl.col("amount").cast(_SUM), pl.col("balance").cast(_SUM), pl.col("so_far")
    return (
        posted_rows.select("row", *_DAY, *_SENT, "amount", "balance")
        .sort(*_DAY, *_SENT)
        .with_columns(account=pl.struct(_ACCOUNT).rle_id(), day=pl.struct(_DAY).rle_id())
        .with_columns(so_far=amount.cum_sum().over("account"))
        .with_columns(day_end=so_far.last().over("day"), day_start=(so_far - amount).first().over("day"))
        .filter(pl.col("balance").is_not_null())
        .with_columns(
            forwards=balance - so_far,
            backwards=balance - (pl.col("day_start") + pl.col("day_end") - so_far + amount),
            ending=balance - pl.col("day_end"),
            nth=pl.int_range(pl.len()).over("day"),
            nth_last=pl.int_range(pl.len(), 0, -1).over("day") - 1,
        )
        .select("row", "account", "day", "forwards", "backwards", "ending", "nth", "nth_last")
    )


def _summarise_days(stated: pl.DataFrame) -> pl.DataFrame:
    """Return each account's days with the offset all rows share in each order, and those it may close with."""
    shared = {way: pl.when(pl.col(way).n_unique() == 1).then(pl.col(way).first()) for way in ("forwards", "backwards")}
    return (
        stated.group_by("account", "day")
        .agg(pl.col("ending").unique(), **{f"{way}_offset": offset for way, offset in shared.items()})
        .with_columns(chained=pl.concat_list("forwards_offset", "backwards_offset").list.drop_nulls())
        .with_columns(closing=pl.when(_is_chain()).then("chained").otherwise("ending"))
    )


@cache
def _is_chain() -> pl.Expr:
    return pl.col("chained").list.len() > 0


def _check_openings(days: pl.DataFrame) -> pl.DataFrame:
    """Add whether each day `follows` from the day before: null for an account's first day."""
    before = pl.col("closing").shift(1).over("account", order_by="day")
    meets = [before.list.set_intersection(pl.col(ways)).list.len() > 0 for ways in ("chained", "ending")]
    return days.select(
        "day",
        chains=_is_chain(),
        runs_forwards=pl.col("forwards_offset").is_not_null(),
        follows=pl.when(before.is_not_null()).then(pl.any_horizontal(meets)),
    )


@cache
def _verdict() -> pl.Expr:
    """Return the verdict on a row. If its day chains, only the day's first row depends on the day before."""
    opens = pl.when("runs_forwards").then(pl.col("nth") == 0).otherwise(pl.col("nth_last") == 0)
    return pl.when(pl.col("chains") & ~opens).then(pl.lit(value=True)).otherwise("follows")
