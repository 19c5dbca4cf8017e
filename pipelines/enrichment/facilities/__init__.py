"""Facilities: group fundings by lenders and repayments to them into loans, advances and lines of credit."""

from pipelines.enrichment.facilities.inferring import add_inferred
from pipelines.enrichment.facilities.joining import mark_facilities
from pipelines.enrichment.facilities.summary import (
    FACILITIES,
    add_interest,
    describe_facilities,
    list_flows,
    summarise_facilities,
)

__all__ = [
    "FACILITIES",
    "add_inferred",
    "add_interest",
    "describe_facilities",
    "list_flows",
    "mark_facilities",
    "summarise_facilities",
]
