"""True revenue: stated revenue less the receipts that findings and borrowing explain."""

import polars as pl

from pipelines.figures.facts import Facts
from pipelines.integrity.finding import finding_rows


def with_exclusions(facts: Facts) -> pl.DataFrame:
    """Return `Facts.rows` with `is_excluded`: whether true revenue leaves the row out. Loans are no revenue anyhow."""
    left_out = finding_rows(facts).filter(pl.col("left_out") != 0)["transaction_id"]
    if left_out.is_empty():
        return facts.rows.with_columns(is_excluded=pl.lit(value=False))
    return facts.rows.with_columns(is_excluded=pl.col("transaction_id").is_in(left_out.implode()))
