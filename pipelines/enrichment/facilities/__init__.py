"""Facilities: what lenders gave and what went back to them, joined into the loans and advances they belong to."""

import polars as pl

from pipelines.enrichment.facilities.joining import add_facility_ids
from pipelines.enrichment.facilities.summary import FACILITIES, add_interest, list_flows, summarise_facilities
from pipelines.vocabulary.schemas import UUID

__all__ = ["FACILITIES", "add_interest", "list_flows", "mark_facilities", "summarise_facilities"]


def mark_facilities(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Fill `facility_id` on rows that fund or repay a facility and on repayments that were returned.

    The sum of a facility's rows is what it gave less what it got back. Ids derive from the facility's first row, so
    they stay when later rows come.

    Args:
        rows: whole customers, with category, counterparty and transfers filled.
    """
    return (
        rows.drop("facility_id", strict=False)
        .with_columns(facility_id=pl.lit(None, UUID))
        .map_batches(add_facility_ids, predicate_pushdown=False, projection_pushdown=False)
    )
