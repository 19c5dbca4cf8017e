"""The type of each account: many feeds leave it out, so it is what the last submission that states one states."""

from collections.abc import Sequence

import polars as pl

ACCOUNT: Sequence[str] = ("customer_number", "account_id")
TYPE = "account_type"


def find_account_types(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the type of each account (`customer_number`, `account_id`, `account_type`); null if none is stated.

    Args:
        rows: those that were revised or replaced by their posting included, because what they state still holds.
    """
    stated = pl.col(TYPE).sort_by("received_seq", "date").drop_nulls().last()
    return rows.group_by(ACCOUNT).agg(stated)


def replace_account_types(rows: pl.DataFrame, types: pl.DataFrame) -> pl.DataFrame:
    """Replace each row's `account_type` by that of its account (of `find_account_types`)."""
    keys = rows.select(ACCOUNT)  # alone, because joining copies rows, and a long history takes gigabytes
    return rows.with_columns(keys.join(types, on=ACCOUNT, how="left", validate="m:1", maintain_order="left")[TYPE])
