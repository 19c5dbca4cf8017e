"""Offsets: stated closing balances less the sum of the account's amounts up to that day.

If no row is missing, every day's offset equals the balance before the first row. Where the offset changes, rows with a
sum of that change are missing.
"""

from decimal import Decimal

import polars as pl

from pipelines.figures.accounts import BALANCE, BY_ACCOUNT
from pipelines.figures.facts import Facts
from pipelines.vocabulary.plans import collect

ROUNDING = Decimal("0.02")  # AUD: balances that differ by no more than two cents agree; our judgement


def offsets(facts: Facts) -> pl.DataFrame:
    """Return one row per account and day with rows, by account and day.

    Columns: `customer_number`; `account_id`; `date`; `transaction_id` of the day's last row; `stated_by`, the
    `transaction_id` of the row that states the closing balance; and `offset` (AUD; null where the closing balance is
    unknown).
    """
    return facts.cached(_offsets)


def _offsets(facts: Facts) -> pl.DataFrame:
    stated = facts.stated_closings.lazy().rename({"transaction_id": "stated_by"})
    moved = pl.col("net").cum_sum().over(BY_ACCOUNT)
    return (
        facts.rows.lazy()
        .group_by(*BY_ACCOUNT, "date")
        .agg(pl.col("transaction_id").last(), net=pl.col("amount").cast(BALANCE).sum())
        .join(stated, on=(*BY_ACCOUNT, "date"), how="left", validate="1:1")
        .sort(*BY_ACCOUNT, "date")
        .select(*BY_ACCOUNT, "date", "transaction_id", "stated_by", offset=pl.col("closing_balance") - moved)
        .pipe(collect)
    )
