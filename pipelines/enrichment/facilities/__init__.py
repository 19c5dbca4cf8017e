"""Facilities: group fundings by lenders and repayments to them into loans, advances and lines of credit."""

import polars as pl

from pipelines.enrichment.facilities.inferring import add_inferred
from pipelines.enrichment.facilities.joining import add_facility_ids
from pipelines.enrichment.facilities.summary import (
    FACILITIES,
    add_interest,
    describe_facilities,
    list_flows,
    summarise_facilities,
)
from pipelines.vocabulary.schemas import UUID

__all__ = [
    "FACILITIES",
    "add_inferred",
    "add_interest",
    "describe_facilities",
    "list_flows",
    "mark_facilities",
    "summarise_facilities",
]


def mark_facilities(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Fill `facility_id` of rows that fund or repay a facility, and of the rows that return bounced repayments.

    The sum of a facility's rows is what was funded less what was repaid. An id is derived from the facility's first
    row, so it stays when later rows are added.

    Args:
        rows: whole customers, with category, counterparty and transfers filled.
    """
    return (
        rows.drop("facility_id", strict=False)
        .with_columns(facility_id=pl.lit(None, UUID))
        .map_batches(add_facility_ids, predicate_pushdown=False, projection_pushdown=False)
    )
