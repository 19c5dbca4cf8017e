"""Account details and end-of-day balances, as reports use them."""

from decimal import Decimal
from functools import cache

import polars as pl

from pipelines.intake.accounts import mask_account_number
from pipelines.vocabulary.report_values import uuid_text
from pipelines.vocabulary.schemas import MONEY, last_stated, not_retracted, posted

BY_ACCOUNT = ("customer_number", "account_id")
BALANCE = pl.Decimal(38, 2)
_DAYS = 2**32  # more than any number of days (`_account_and_day`)
ROUNDING = Decimal("0.02")  # AUD: balances that differ by no more than two cents agree; our judgement
DETAILS = (
    *("account_identified", "account_name", "bsb", "account_number"),
    *("bank_name", "account_type", "credit_limit"),
)


def state_details(transactions: pl.LazyFrame) -> pl.LazyFrame:
    """Return the DETAILS that each submission states of an account beside its rows of each day.

    Rows that were revised or replaced by their posting count, because what they state of the account still holds.

    Args:
        transactions: schema TRANSACTIONS, rows that aren't current included.

    Returns:
        `customer_number, account_id, date, received_seq`, DETAILS, and `is_posted` (whether any of the rows is posted).
    """
    rows = transactions.filter(not_retracted()).group_by(*BY_ACCOUNT, "date", "received_seq")
    return rows.agg(pl.col(DETAILS).max(), is_posted=posted().any())


def describe_accounts(stated: pl.LazyFrame) -> pl.LazyFrame:
    """Return one row per account with posted rows: its keys and DETAILS, each as stated by the last submission that
    states it, beside that submission's last such row.

    A submission may leave details out, and many do: a daily feed, or a statement that doesn't print the limit. So a
    detail that is left out is as it was; a limit that has ended is stated as 0.

    Args:
        stated: of `state_details`.
    """
    described = stated.group_by(BY_ACCOUNT).agg(last_stated(DETAILS), pl.col("is_posted").any())
    return described.filter(pl.col("is_posted")).drop("is_posted")


def unchanged_details(accepted: pl.DataFrame, duplicates: pl.DataFrame, transactions: pl.DataFrame) -> pl.Series:
    """Return the `job_id` of submissions that state a type or a limit of an account in vain: all their rows of that
    account repeat stored rows, so nothing states these details, and others apply.

    Args:
        accepted: rows of submissions, schema ACCEPTED.
        duplicates: those of them that repeat a stored row, schema DUPLICATES.
        transactions: all rows of the customers after these submissions, schema TRANSACTIONS.
    """
    of_account, details = ("job_id", *BY_ACCOUNT), ("account_type", "credit_limit")
    adding = accepted.join(duplicates, on=["job_id", "position"], how="anti")
    stated = accepted.select(*of_account, *details).unique().join(adding, on=of_account, how="anti")
    applying = describe_accounts(state_details(transactions.lazy())).select(*BY_ACCOUNT, *details).collect()
    both = stated.join(applying, on=BY_ACCOUNT, how="left", suffix="_applying", validate="m:1")
    others = (pl.col(name).is_not_null() & pl.col(name).ne_missing(pl.col(f"{name}_applying")) for name in details)
    return both.filter(pl.any_horizontal(others))["job_id"].unique()


@cache
def reported_details() -> tuple[pl.Expr, ...]:
    """Return the account's columns as reports show them, with at most the last four characters of its number."""
    return (
        uuid_text("account_id").alias("accountId"),
        pl.col("account_name").alias("accountName"),
        pl.col("bank_name").alias("bankName"),
        mask_account_number(pl.col("account_number")).alias("accountNumberMasked"),
        pl.col("account_type").cast(pl.String).alias("accountType"),
        pl.col("account_identified").alias("identified"),
    )


def closing_balances(posted: pl.LazyFrame) -> pl.LazyFrame:
    """Return the closing balance of each account on each day with rows.

    Banks list a day's rows oldest or newest first, so their order proves nothing. Within a day each balance is the
    next row's opening balance (`balance - amount`), except the last, which closes the day. If a row is missing, the
    chain has several pieces; the piece received last closes the day. A day that ends where it began (a ring) leaves
    the balance as it was and has no row here. A day without any balance is unknown.

    Args:
        posted: sorted by SORT_KEY: of a day's rows, the later one was received later.

    Returns:
        `customer_number, account_id, date`, `closing_balance` (AUD; null: unknown), the `transaction_id` of the row
        that states it (else of the day's last row), `moved` (AUD: the sum of the account's amounts up to the day's end)
        and `is_partly_stated` (whether other rows of the day state no balance), sorted.
    """
    numbered = posted.select(*BY_ACCOUNT, "date", "amount", "balance", "transaction_id", day=_account_and_day())
    rows = numbered.with_row_index("row")
    return (
        rows.join(rows.pipe(_closing_rows), on="row", how="inner")
        .sort("day")
        .select(
            *BY_ACCOUNT,
            "date",
            "transaction_id",
            "is_partly_stated",
            closing_balance=pl.col("balance").cast(BALANCE),
            moved=pl.col("net").cast(BALANCE).cum_sum().over(pl.col("day") // _DAYS),
        )
    )


def add_offsets(closings: pl.DataFrame) -> pl.DataFrame:
    """Add `offset` (AUD): the closing balance less the sum of the account's amounts up to then; null where unknown.

    If another row of the day comes after the one that states a balance, its balance doesn't close the day, although
    nothing shows it within the day. So the balance of a partly stated day counts as unknown if it contradicts the
    known balances before and after it.

    Args:
        closings: of `closing_balances`.
    """
    offset = pl.col("closing_balance") - pl.col("moved")
    before = offset.forward_fill().shift().over(BY_ACCOUNT)
    after = offset.backward_fill().shift(-1).over(BY_ACCOUNT)
    differs = pl.min_horizontal((offset - before).abs(), (offset - after).abs()) > pl.lit(ROUNDING)
    contradicts = (pl.col("is_partly_stated") & differs).fill_null(value=False)
    return closings.with_columns(offset=pl.when(~contradicts).then(offset))


def derive_unknown(closings: pl.DataFrame) -> pl.DataFrame:
    """Fill unknown closing balances with those that follow from the known ones and the rows in between.

    A balance follows from the one before and from the one after. If the two differ, a row is missing in between, and
    the lower one is taken: leaving out balances must not make a customer look better. What is derived is exact if no
    row is missing; only `risk_models.covered_days` says whether that is proven. An account that never states a balance
    has none.

    Args:
        closings: of `closing_balances`.
    """
    if not closings.select((pl.col("closing_balance").is_null() | pl.col("is_partly_stated")).any()).item():
        return closings
    offset = pl.col("offset")
    before, after = (each.over(BY_ACCOUNT) for each in (offset.forward_fill(), offset.backward_fill()))
    derived = add_offsets(closings).with_columns(closing_balance=pl.min_horizontal(before, after) + pl.col("moved"))
    return derived.drop("offset")


def _account_and_day() -> pl.Expr:
    """Return account and day as one number in the same order: grouping by it takes half the time of grouping by ids."""
    return pl.struct(BY_ACCOUNT).rank("dense").cast(pl.Int64) * _DAYS + pl.col("date").to_physical()


def _closing_rows(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Return the `row` that closes each day, or the day's last row where that is unknown, with what it is known from.

    `net`: the sum of the day's amounts; `is_partly_stated`.
    """
    closing, opening = (value.to_physical() for value in (pl.col("balance"), pl.col("balance") - pl.col("amount")))
    closings = rows.select("day", "row", cents=closing, uses=1, net="amount")
    # A closing that is also the next row's opening cancels out; what is left over closes the day.
    openings = rows.select("day", row=pl.lit(None, pl.UInt32), cents=opening, uses=-1, net=pl.lit(None, MONEY))
    row, is_stated = pl.col("row"), pl.col("cents").is_not_null()
    return (
        pl.concat([closings, openings])
        .group_by("day", "cents")
        .agg(pl.col("uses", "net").sum(), row.max())
        .select(
            "day",
            "net",
            stated=pl.when(is_stated, pl.col("uses") > 0).then(row),
            other=pl.when(~is_stated).then(row),
        )
        .group_by("day")
        .agg(pl.col("net").sum(), pl.col("stated", "other").max())
        .select(
            "net",
            row=pl.coalesce("stated", "other"),
            is_partly_stated=pl.all_horizontal(pl.col("stated", "other").is_not_null()),
        )
    )
