"""Fill a lake with customers that have history, through the service's own commit.

A few businesses are enriched and then copied to other customers with new ids: the measurements depend on the number and
place of rows, not on their contents.
"""

import math
import os
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID, uuid4

import polars as pl

from pipelines.enrichment.enrichment import enrich
from pipelines.intake.accounts import identify
from pipelines.intake.as_sent import temporary_digest
from pipelines.intake.lines import as_lines
from pipelines.intake.rows import land_lines, validate
from pipelines.synthetic import plain_rows
from pipelines.vocabulary.schemas import SORT_KEY, SUBMISSION, TRANSACTIONS
from storage.core.models import Queue
from storage.core.store import Store
from storage.customers import customers
from storage.customers.customers import NewCustomer
from storage.enrichment.commit import BatchResult, commit_values, locate_values
from storage.jobs import batches

UNTIL = date(2026, 10, 31)
ORIGINALS = 10  # businesses that are enriched
CUSTOMERS_PER_SEGMENT = 200
WRITTEN_ROWS = 20_000


def fill(store: Store, client_id: UUID, count: int, rows_each: int) -> list[UUID]:
    """Add customers with `rows_each` enriched transactions each; return their public ids, in order of their numbers."""
    originals = _originals(rows_each, min(count, ORIGINALS))
    made: list[UUID] = []
    for start in range(0, count, CUSTOMERS_PER_SEGMENT):
        new = _create(store, client_id, min(CUSTOMERS_PER_SEGMENT, count - start))
        _commit(store, pl.concat(_copies(originals, list(new))))
        made += new.values()
    return made


def _create(store: Store, client_id: UUID, count: int) -> dict[int, UUID]:
    now = datetime.now(UTC)
    with store.db.writing() as w:
        made = [customers.create(w, client_id, new_customer(), "benchmark", now).customer for _ in range(count)]
    return {customer.number: customer.customer_id for customer in made}


def new_customer() -> NewCustomer:
    """Return a customer with a new ABN."""
    return NewCustomer(f"{uuid4().int % 10**11:011d}", abn_checksum_valid=False)


def submission_rows(rows: int, seed: int, customer_number: int = 1) -> pl.DataFrame:
    """Return one account's rows with SUBMISSION and LANDED."""
    fields = dict.fromkeys(("account_name", "bank_name", "account_type", "credit_limit"))
    account, _ = identify(uuid4(), bsb="062000", account_number="10000000", digest=temporary_digest, **fields)
    context: dict[str, Any] = dict.fromkeys(SUBMISSION.names()) | {
        "customer_number": customer_number,
        "job_id": uuid4().bytes,
        "received_seq": -customer_number,  # negative, to differ from those of real jobs
        "received_at": datetime.now(UTC),
        "appended": False,
        "account_id": account.account_id.bytes,
        "account_number": account.account_number,
        "account_identified": True,
        "account_type": account.account_type,
    }
    return _land(rows, seed).join(pl.DataFrame([context], schema=SUBMISSION), how="cross")


def _land(rows: int, seed: int) -> pl.DataFrame:
    """Return rows as landed. Only the first are written as JSON; the others repeat them with different descriptions."""
    first = land_lines(as_lines(plain_rows(min(rows, WRITTEN_ROWS), seed, UNTIL)), temporary_digest)
    repeated = [
        first.with_columns(pl.col("description") + f" {number}") for number in range(1, math.ceil(rows / WRITTEN_ROWS))
    ]
    return pl.concat([first, *repeated]).head(rows).with_columns(position=pl.int_range(pl.len(), dtype=pl.UInt32))


def _originals(rows: int, count: int) -> Sequence[pl.DataFrame]:
    sent = pl.concat([submission_rows(rows, seed, customer_number=seed + 1) for seed in range(count)])
    accepted = validate(sent.lazy(), "Australia/Sydney").accepted.collect()
    enriched = enrich(pl.DataFrame(schema=TRANSACTIONS), accepted).transactions.collect()
    return enriched.partition_by("customer_number", maintain_order=True)


def _copies(originals: Sequence[pl.DataFrame], numbers: Sequence[int]) -> Iterator[pl.DataFrame]:
    for index, number in enumerate(numbers):
        frame = originals[index % len(originals)]
        ids = os.urandom(16 * frame.height)
        yield frame.with_columns(
            pl.lit(number, pl.Int64).alias("customer_number"),
            pl.Series("transaction_id", [ids[at : at + 16] for at in range(0, len(ids), 16)], pl.Binary),
        ).sort(SORT_KEY)


def _commit(store: Store, frame: pl.DataFrame) -> None:
    now = datetime.now(UTC)
    stored = store.lake.put_frame(f"transactions/{now:%Y-%m-%d}/{uuid4()}.parquet", frame)
    values = locate_values(frame, frame["customer_number"].unique().sort())
    with store.db.writing() as w:
        token = batches.open_without_jobs(w, Queue.ENRICHMENT, now.date(), store.settings, now)
        versions = {value.customer_number: 0 for value in values}
        segment = (stored, frame.height)
        commit_values(w, store.lake, BatchResult(token=token, versions=versions, segment=segment, values=values), now)
