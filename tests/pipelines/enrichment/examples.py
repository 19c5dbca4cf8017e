"""Build rows from the few values that matter for a test."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import polars as pl

from pipelines.vocabulary.schemas import ACCEPTED, TRANSACTIONS, Direction

ACCOUNT, OTHER_ACCOUNT = b"a" * 16, b"b" * 16

DEFAULTS: Mapping[str, Any] = {
    "customer_number": 1,
    "job_id": b"j" * 16,
    "received_seq": 1,
    "received_at": datetime(2026, 11, 20, tzinfo=UTC),
    "appended": False,
    "account_id": ACCOUNT,
    "account_identified": True,
    "account_type": "transaction",
    "date": date(2026, 3, 2),
    "description": "COFFEE",
    "amount": Decimal("-4.50"),
    "status": "posted",
}


def accepted_rows(*rows: Mapping[str, Any]) -> pl.DataFrame:
    """Return a frame in schema ACCEPTED: one submission of `rows`, in order, unless their fields differ."""
    complete = [{**DEFAULTS, "position": position, **row} for position, row in enumerate(rows)]
    return pl.DataFrame(complete, schema=ACCEPTED)


def submission(seq: int, rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Return a submission with its own place in the order of receipt."""
    return accepted_rows(*({"received_seq": seq, "job_id": seq.to_bytes(16), **row} for row in rows))


def held_rows(*rows: Mapping[str, Any]) -> pl.DataFrame:
    """Return rows in schema TRANSACTIONS as the input of enrichment's steps: identified, nothing derived yet."""
    complete = [
        {**DEFAULTS, "position": position, "transaction_id": position.to_bytes(16), **row}
        for position, row in enumerate(rows)
    ]
    frame = pl.DataFrame(complete, schema=TRANSACTIONS)
    sides = pl.when(pl.col("amount") < 0).then(pl.lit("debit")).otherwise(pl.lit("credit"))
    return frame.with_columns(direction=sides.cast(Direction))
