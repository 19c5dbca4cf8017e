"""Integrity: what makes a business look better than it is, and the revenue that is left without it.

Each detector reads rows that are large enough to matter (`candidates`) and returns rows of a finding (`finding`). None
knows a business, a bank or a word of one language by heart where amounts and days suffice, and none says that anybody
did wrong: each has an honest explanation that it can't exclude, and a person can resolve it.
"""

from pipelines.integrity.finding import KIND, Described, described, digest, finding_rows, findings
from pipelines.integrity.revenue import with_exclusions

__all__ = ["KIND", "Described", "described", "digest", "finding_rows", "findings", "with_exclusions"]
