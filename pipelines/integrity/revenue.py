"""True revenue: stated revenue less the receipts of open findings. Recognised loans never count as revenue."""

from collections.abc import Sequence

import polars as pl

from pipelines.figures.facts import Facts
from pipelines.figures.periods import BY_CUSTOMER
from pipelines.integrity.finding import excluding_rows


def exclusions(facts: Facts) -> pl.DataFrame:
    """Return `transaction_id` of each row that true revenue leaves out, and `known_from`: its finding's last day."""
    last = pl.col("date").max().over(BY_CUSTOMER, "finding", "about")
    dated = excluding_rows(facts).with_columns(known_from=last)
    return dated.filter(pl.col("left_out") != 0).select("transaction_id", "known_from")


def with_exclusions(facts: Facts, columns: Sequence[str]) -> pl.DataFrame:
    """Return these columns of `Facts.rows` and `is_excluded`: whether true revenue leaves the row out.

    A finding counts from the day of its last row on. If several customers in `facts` are one customer as of different
    days, findings are computed once, from all rows (`Facts.whole`).

    Args:
        columns: `customer_number`, `date` and `transaction_id` at least.
    """
    rows, left_out = facts.rows.select(columns), facts.whole.cached(exclusions)
    if left_out.is_empty():
        return rows.with_columns(is_excluded=pl.lit(value=False))
    marked = rows.join(left_out, on="transaction_id", how="left", validate="m:1", maintain_order="left")
    is_known = pl.col("known_from") <= pl.col("date").max().over(BY_CUSTOMER)
    return marked.with_columns(pl.col(BY_CUSTOMER).set_sorted(), is_excluded=is_known.fill_null(value=False)).drop(
        "known_from"
    )
