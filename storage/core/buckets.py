"""Which of 64 fixed buckets a customer belongs to: what compaction, backfill and the portfolio's assets work by.

The bucket is the customer's internal number modulo 64. Numbers are handed out one after another, so the remainder
alone keeps the buckets within one customer of each other at every size; a hash would only spread them less evenly.
It is the same sum in SQL, Polars and DuckDB, and the number of buckets never changes: a partition key names the same
customers for ever.
"""

from sqlalchemy import ColumnElement

from storage.core.models import customers

BUCKETS = 64
ALL = range(BUCKETS)


def bucket_of(customer_number: int) -> int:
    """0–63."""
    return customer_number % BUCKETS


def in_bucket(bucket: int) -> ColumnElement[bool]:
    """SQL: customers of this bucket."""
    return customers.c.number % BUCKETS == bucket
