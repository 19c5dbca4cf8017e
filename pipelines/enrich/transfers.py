"""Transfers between the customer's own accounts: the two sides of one movement, paired.

A pair is an amount out of one account and the same amount into another, close in time, one to one. Pairs of the same
day are taken first, then those a day apart, and so on; at each distance, the n-th amount out of an account meets the
n-th into another. So a join never holds more rows than the accounts have, times the number of accounts, and thousands
of equal amounts on one day (a hostile feed, or a synthetic one) are paired in a few joins. What is known to be with
somebody else, a named merchant or the bank itself, takes no part: its amount may be met by chance.
"""

import hashlib

import polars as pl

from pipelines.enrich.taxonomy import TRANSFER
from pipelines.schemas import UUID, posted

MAX_CALENDAR_DAYS = 6
MAX_BUSINESS_DAYS = 3
CONFIDENCE = 0.99  # not calibrated

_NEVER_OWN_KINDS = ("business", "government")
_NEVER_OWN_CATEGORIES = ("interest_received", "interest_charged", "bank_fees", "merchant_fees", "loan_fees")
_SIDE = ("customer_number", "size")
# Days from the amount out to the amount in: near before far, and money leaves before it arrives.
_DISTANCES = sorted(range(-MAX_CALENDAR_DAYS, MAX_CALENDAR_DAYS + 1), key=lambda days: (abs(days), days < 0))


def transfers(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Fill `is_transfer` and `transfer_pair_id`; a paired row's category becomes the transfer between own accounts."""
    return (
        rows.drop("is_transfer", "transfer_pair_id", strict=False)
        .with_columns(transfer_pair_id=pl.lit(None, UUID))
        .map_batches(_with_pairs, predicate_pushdown=False, projection_pushdown=False)
        .with_columns(is_transfer=pl.col("transfer_pair_id").is_not_null())
        .pipe(_categorised)
    )


def _with_pairs(rows: pl.DataFrame) -> pl.DataFrame:
    """`transfer_pair_id` filled. Eager, because each round of pairing needs what the round before left free."""
    numbered = rows.drop("transfer_pair_id").with_row_index("row")
    pairs = numbered.pipe(_sides).pipe(_paired)
    return numbered.join(pairs, on="row", how="left", validate="1:1", maintain_order="left").drop("row")


def _categorised(rows: pl.LazyFrame) -> pl.LazyFrame:
    """A found pair is certain of what it is, whatever its text says; card repayments keep their own category."""
    found = pl.col("is_transfer") & pl.col("category_group").ne_missing(TRANSFER.group)
    return rows.with_columns(
        category=pl.when(found).then(pl.lit(TRANSFER.slug)).otherwise("category"),
        category_group=pl.when(found).then(pl.lit(TRANSFER.group)).otherwise("category_group"),
        confidence=pl.when("is_transfer").then(pl.lit(CONFIDENCE)).otherwise("confidence"),
    )


def _sides(numbered: pl.DataFrame) -> pl.DataFrame:
    """Rows that can be one side of a transfer."""
    return numbered.filter(posted(), pl.col("amount") != 0, ~_with_somebody_else()).select(
        "row",
        "customer_number",
        "account_id",
        "transaction_id",
        "date",
        size=pl.col("amount").abs(),
        out=pl.col("amount") < 0,
    )


def _with_somebody_else() -> pl.Expr:
    named = pl.col("counterparty_kind").is_in(_NEVER_OWN_KINDS)
    charged = pl.col("category").is_in(_NEVER_OWN_CATEGORIES)
    return named.fill_null(value=False) | charged.fill_null(value=False)


def _paired(sides: pl.DataFrame) -> pl.DataFrame:
    """Pairs of rows: `row` and `transfer_pair_id`, two rows a pair."""
    free = sides.filter(pl.col("account_id").n_unique().over(_SIDE) > 1, pl.col("out").n_unique().over(_SIDE) > 1)
    chosen = [_meeting(free.clear(), 0)]
    for days in _DISTANCES:
        while not (found := _meeting(free, days)).is_empty():
            chosen.append(found)
            free = free.filter(~pl.col("row").is_in(pl.concat([found["row_out"], found["row_in"]]).implode()))
    return _with_ids(pl.concat(chosen))


def _meeting(free: pl.DataFrame, days: int) -> pl.DataFrame:
    """Pairs whose amount arrives `days` after it left, each row at most once."""
    nth = pl.int_range(pl.len()).over(*_SIDE, "account_id", "date", "out", order_by="transaction_id")
    numbered = free.with_columns(nth=nth)
    into = numbered.filter(~pl.col("out")).select(
        *_SIDE,
        "nth",
        date=pl.col("date") - pl.duration(days=days),
        row_in="row",
        id_in="transaction_id",
        account_in="account_id",
        date_in="date",
    )
    return (
        numbered.filter("out")
        .join(into, on=[*_SIDE, "nth", "date"])
        .filter(pl.col("account_id") != pl.col("account_in"), _few_business_days())
        .sort("customer_number", "transaction_id", "id_in")
        .unique("row", keep="first", maintain_order=True)
        .unique("row_in", keep="first", maintain_order=True)
        .select("row_in", "id_in", row_out="row", id_out="transaction_id")
    )


def _few_business_days() -> pl.Expr:
    first, last = pl.min_horizontal("date", "date_in"), pl.max_horizontal("date", "date_in")
    return pl.business_day_count(first, last) <= MAX_BUSINESS_DAYS


def _with_ids(pairs: pl.DataFrame) -> pl.DataFrame:
    ids = [hashlib.sha256(left + right).digest()[:16] for left, right in pairs.select("id_out", "id_in").rows()]
    named = pairs.with_columns(transfer_pair_id=pl.Series(ids, dtype=UUID))
    return pl.concat([named.select("transfer_pair_id", row=side) for side in ("row_out", "row_in")]).select(
        "row", "transfer_pair_id"
    )
