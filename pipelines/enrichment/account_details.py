"""What is stated of each account: many feeds leave it out, so it is what the last submission that states it states."""

from collections.abc import Sequence

import polars as pl

from pipelines.vocabulary.schemas import last_stated

ACCOUNT: Sequence[str] = ("customer_number", "account_id")
DETAILS: Sequence[str] = ("account_type", "account_name")


def find_details(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the DETAILS of each account (ACCOUNT); null if none are stated.

    Args:
        rows: those that were revised or replaced by their posting included, because what they state still holds.
    """
    return rows.group_by(ACCOUNT).agg(last_stated(DETAILS))


def replace_details(rows: pl.DataFrame, details: pl.DataFrame) -> pl.DataFrame:
    """Replace each row's DETAILS by those of its account (of `find_details`)."""
    keys = rows.select(ACCOUNT)  # alone, because joining copies rows, and a long history takes gigabytes
    found = keys.join(details, on=ACCOUNT, how="left", validate="m:1", maintain_order="left")
    return rows.with_columns(found[name] for name in DETAILS)
