"""The status of a report."""

from enum import StrEnum


class ReportStatus(StrEnum):
    PENDING = "pending"  # not computed yet
    READY = "ready"
    STALE = "stale"  # older than the data, or its latest computation failed
