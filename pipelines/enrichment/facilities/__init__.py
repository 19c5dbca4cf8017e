"""Facilities: what lenders gave and what went back to them, joined into the loans and advances they belong to."""

import polars as pl

from pipelines.enrichment.facilities.joining import with_facility_ids
from pipelines.enrichment.facilities.summary import FACILITIES, facilities_of, flows_of, with_interest
from pipelines.vocabulary.schemas import UUID

__all__ = ["FACILITIES", "facilities", "facilities_of", "flows_of", "with_interest"]


def facilities(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Fill `facility_id` on rows that fund or repay a facility and on repayments that were returned.

    The sum of a facility's rows is what it gave less what it got back. Ids derive from the facility's first row, so
    they stay when later rows come.

    Args:
        rows: whole customers, with category, counterparty and transfers filled.
    """
    return (
        rows.drop("facility_id", strict=False)
        .with_columns(facility_id=pl.lit(None, UUID))
        .map_batches(with_facility_ids, predicate_pushdown=False, projection_pushdown=False)
    )
