"""Integrity: find rows that may make a business look better than it is, and compute revenue without them.

Each detector returns the rows of one kind of finding (`finding`). Most detectors read only rows that are large enough
to matter (`candidates`). Where amounts and days suffice, they use no list of businesses, banks or words. No finding
says that anybody did wrong: each states an honest explanation that it can't exclude, and a person can resolve it.
"""

from pipelines.integrity.finding import KIND, Description, finding_rows, findings, load_descriptions, make_key
from pipelines.integrity.revenue import with_exclusions
from pipelines.integrity.unproven import counts_unproven_until, open_silences, reworded_customers, unproven_since
from pipelines.integrity.without_findings import without_findings

__all__ = [
    "KIND",
    "Description",
    "counts_unproven_until",
    "finding_rows",
    "findings",
    "load_descriptions",
    "make_key",
    "open_silences",
    "reworded_customers",
    "unproven_since",
    "with_exclusions",
    "without_findings",
]
