"""Divide customers into 64 fixed buckets: the unit of compaction, backfill and the portfolio's assets.

The bucket is the customer's internal number modulo 64. Numbers are sequential, so the buckets differ by at most one
customer; a hash would spread them less evenly. The calculation is the same in SQL, Polars and DuckDB. The number of
buckets never changes, so a partition key always means the same customers.
"""

from sqlalchemy import ColumnElement

from storage.core.models import customers

BUCKETS = 64
ALL = range(BUCKETS)


def bucket_of(customer_number: int) -> int:
    """Return the bucket, 0–63."""
    return customer_number % BUCKETS


def in_bucket(bucket: int) -> ColumnElement[bool]:
    """Return the SQL condition that a customer is in this bucket."""
    return customers.c.number % BUCKETS == bucket
