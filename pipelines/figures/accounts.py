"""What the reports say of an account: which one it is, and what stood in it at the end of each day."""

import polars as pl

from pipelines.intake.accounts import masked
from pipelines.vocabulary.printing import uuid_text

BY_ACCOUNT = ("customer_number", "account_id")
BALANCE = pl.Decimal(38, 2)
DETAILS = ("account_identified", "account_name", "account_number", "bank_name", "account_type", "credit_limit")


def described(posted: pl.LazyFrame) -> pl.LazyFrame:
    """One row per account: its keys and DETAILS, in the words of the submission received last."""
    newest = pl.col("received_seq") == pl.col("received_seq").max()
    return posted.group_by(BY_ACCOUNT).agg(pl.col(DETAILS).filter(newest).max())


def printed_details() -> tuple[pl.Expr, ...]:
    """The account as reports show it: never more of its number than the last four characters."""
    return (
        uuid_text("account_id").alias("accountId"),
        pl.col("account_name").alias("accountName"),
        pl.col("bank_name").alias("bankName"),
        masked(pl.col("account_number")).alias("accountNumberMasked"),
        pl.col("account_type").cast(pl.String).alias("accountType"),
        pl.col("account_identified").alias("identified"),
    )


def closing_balances(posted: pl.LazyFrame) -> pl.LazyFrame:
    """One row per account and day with rows, sorted: `customer_number, account_id, date`, `closing_balance` (null:
    unknown) and the `transaction_id` of the row that states it.

    Banks list a day's rows oldest or newest first, so their order proves nothing. Within a day each balance is the
    next row's opening (`balance - amount`), except the last: that one closes the day. A chain in several pieces
    (a missing row) is closed by the piece received last; a day that ends where it began (a ring) leaves the balance
    as it was and has no row here; a day without any balance is unknown.

    Args:
        posted: in SORT_KEY's order: of a day's rows, the later one was received later.
    """
    numbered = posted.select(*BY_ACCOUNT, "date", "amount", "balance", "transaction_id", day=_account_and_day())
    rows = numbered.with_row_index("row")
    balance = pl.col("balance")
    return (
        rows.join(rows.pipe(_closing_rows), on="row", how="semi")
        .sort("day")
        .select(
            *BY_ACCOUNT,
            "date",
            closing_balance=balance.cast(BALANCE),
            transaction_id=pl.when(balance.is_not_null()).then("transaction_id"),
        )
    )


def _account_and_day() -> pl.Expr:
    """Both as one number, in their order: to group by numbers takes half the time of grouping by ids."""
    return pl.struct(BY_ACCOUNT).rank("dense").cast(pl.Int64) * 2**32 + pl.col("date").to_physical()


def _closing_rows(rows: pl.LazyFrame) -> pl.LazyFrame:
    """The `row` that closes each `day`; where no balance is known, its last one."""
    closing, opening = (each.to_physical() for each in (pl.col("balance"), pl.col("balance") - pl.col("amount")))
    closings = rows.select("day", "row", cents=closing, uses=1)
    openings = rows.select("day", row=pl.lit(None, pl.UInt32), cents=opening, uses=-1)
    row, known = pl.col("row"), pl.col("cents").is_not_null()
    return (
        pl.concat([closings, openings])
        .group_by("day", "cents")
        .agg(pl.col("uses").sum(), row.max())
        .group_by("day")
        .agg(pl.when(known.any()).then(row.filter(pl.col("uses") > 0).max()).otherwise(row.max()))
    )
