"""What the reports say of an account: which one it is, and what stood in it at the end of each day."""

import polars as pl

from pipelines.figures.printing import uuid_text
from pipelines.intake.accounts import masked
from pipelines.schemas import UUID

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
    """One row per account and day with rows: `customer_number, account_id, date`, `closing_balance` (null: unknown)
    and the `transaction_id` of the row that states it.

    Banks list a day's rows oldest or newest first, so their order proves nothing. Within a day each balance is the
    next row's opening (`balance - amount`), except the last: that one closes the day. A chain in several pieces
    (a missing row) is closed by the piece received last; a day that ends where it began (a ring) leaves the balance
    as it was and has no row here; a day without any balance is unknown.
    """
    known = posted.filter(pl.col("balance").is_not_null()).with_row_index("row")
    stating = known.select("row", "transaction_id")
    ends = known.pipe(_ends_of_days).join(stating, on="row", how="left", validate="1:1").drop("row")
    return pl.concat([ends, posted.pipe(_days_without_balance)])


def _ends_of_days(known: pl.LazyFrame) -> pl.LazyFrame:
    """Keys, `closing_balance`, and the number of the `row` that states it."""
    day = (*BY_ACCOUNT, "date")
    order = pl.col("received_seq") * 2**32 + pl.col("position")
    closings = known.select(*day, "row", value="balance", uses=1, order=order)
    openings = known.select(*day, row=None, value=pl.col("balance") - pl.col("amount"), uses=-1, order=None)
    return (
        pl.concat([closings, openings], how="vertical_relaxed")
        .group_by(*day, "value")
        .agg(pl.col("uses").sum(), pl.col("order").max(), pl.col("row").max_by("order"))
        .filter(pl.col("uses") > 0)
        .group_by(day)
        .agg(
            closing_balance=pl.col("value").max_by("order").cast(BALANCE),
            row=pl.col("row").max_by("order"),
        )
    )


def _days_without_balance(posted: pl.LazyFrame) -> pl.LazyFrame:
    days = posted.group_by(*BY_ACCOUNT, "date").agg(known=pl.col("balance").is_not_null().any())
    unknown = pl.lit(None, BALANCE).alias("closing_balance"), pl.lit(None, UUID).alias("transaction_id")
    return days.filter(~pl.col("known")).select(*BY_ACCOUNT, "date", *unknown)
