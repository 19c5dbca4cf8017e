"""Offsets: stated closing balances less the sum of the account's amounts up to that day.

If no row is missing, every day's offset equals the balance before the first row. Where the offset changes, rows with a
sum of that change are missing.
"""

import polars as pl

from pipelines.figures.accounts import BY_ACCOUNT, add_offsets
from pipelines.figures.facts import Facts
from pipelines.vocabulary.plans import collect


def offsets(facts: Facts) -> pl.DataFrame:
    """Return one row per account and day with rows, by account and day.

    Columns: `customer_number`; `account_id`; `date`; `transaction_id` of the day's last row; `stated_by`, the
    `transaction_id` of the row that states the closing balance; and `offset` (AUD; null where the closing balance is
    unknown).
    """
    return facts.cached(_offsets)


def _offsets(facts: Facts) -> pl.DataFrame:
    stated = add_offsets(facts.stated_closings).lazy().rename({"transaction_id": "stated_by"})
    return (
        facts.rows.lazy()
        .group_by(*BY_ACCOUNT, "date")
        .agg(pl.col("transaction_id").last())
        .join(stated, on=(*BY_ACCOUNT, "date"), how="left", validate="1:1")
        .sort(*BY_ACCOUNT, "date")
        .select(*BY_ACCOUNT, "date", "transaction_id", "stated_by", "offset")
        .pipe(collect)
    )
