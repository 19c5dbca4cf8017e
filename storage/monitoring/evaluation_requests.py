"""Requests for ruleset evaluations: of one customer whose attributes changed, or of all customers of a client whose
rulesets changed.

A request is written in the transaction of the change. A run reads the requests before it evaluates, and deletes them
when it has finished. Requests made meanwhile stay and lead to another run, and so do those of a run that was killed. A
repeated request is the same row with a new number, so a customer has at most one row, and a client one in each bucket.

A request for a client is one row for each bucket, because a run evaluates one bucket and answers only its own part.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, bindparam, delete, func, select, union_all

from storage.core.buckets import ALL, BUCKETS, bucket_of
from storage.core.database import Reading, Writing, insert_into
from storage.core.models import customers, ruleset_evaluation_requests

MANY = 1_000  # customers: a client with this many gets a request in every bucket, without looking up which it needs

_ROW = ruleset_evaluation_requests.c


@dataclass(frozen=True)
class WaitingRequests:
    """The requests of a bucket."""

    bucket: int
    newest: int  # the number of the last request
    since: datetime  # when the oldest request was made


def request_for_customers(w: Writing, customer_numbers: Iterable[int], now: datetime) -> None:
    """Request a ruleset evaluation of each of these customers, after this transaction."""
    rows = [{"bucket": bucket_of(number), "customer_number": number} for number in sorted(set(customer_numbers))]
    _insert_requests(w, rows, ["customer_number"], now)


def request_for_client(w: Writing, client_id: UUID, now: datetime) -> None:
    """Request a ruleset evaluation of all of the client's customers, after this transaction."""
    some = select(customers.c.number).where(customers.c.client_id == client_id).limit(MANY)
    numbers = w.execute(some).scalars().all()
    buckets = ALL if len(numbers) == MANY else sorted({bucket_of(number) for number in numbers})
    _insert_requests(
        w, [{"bucket": bucket, "client_id": client_id} for bucket in buckets], ["client_id", "bucket"], now
    )


def find_waiting(r: Reading) -> list[WaitingRequests]:
    """Return the buckets with requests, the one that has waited longest first."""
    since = func.min(_ROW.requested_at)
    query = select(_ROW.bucket, func.max(_ROW.number), since).group_by(_ROW.bucket)
    return [WaitingRequests(*row) for row in r.execute(query.order_by(since, _ROW.bucket))]


def find_unanswered(r: Reading, bucket: int) -> list[int]:
    """Return the numbers of the bucket's requests, for `delete_answered`.

    A ruleset evaluation that begins afterwards sees the changes that led to the requests.
    """
    query = select(_ROW.number).where(_ROW.bucket == bucket)
    return list(r.execute(query.order_by(_ROW.customer_number, _ROW.number)).scalars())


def has_request(bucket: int) -> ColumnElement[bool]:
    """Return the SQL condition that a customer is in the bucket and has a request of its own or of its client."""
    of_clients = customers.alias()
    in_bucket = _ROW.bucket == bucket
    own = select(_ROW.customer_number).where(in_bucket, _ROW.customer_number.is_not(None))
    numbered = of_clients.c.number % BUCKETS == bucket
    clients_own = select(of_clients.c.number).where(in_bucket, numbered, of_clients.c.client_id == _ROW.client_id)
    return customers.c.number.in_(union_all(own, clients_own))


def delete_answered(w: Writing, numbers: Sequence[int]) -> None:
    """Delete requests that `find_unanswered` returned, in the same order.

    Requests that were repeated meanwhile have new numbers and stay.
    """
    if numbers:
        w.execute(
            delete(ruleset_evaluation_requests).where(_ROW.number == bindparam("evaluated")),
            [{"evaluated": n} for n in numbers],
        )


def _insert_requests(w: Writing, rows: Sequence[Mapping[str, Any]], key: Sequence[str], now: datetime) -> None:
    """Write requests. The rows are sorted, so that transactions that request the same can't deadlock."""
    if rows:
        new = insert_into(w, ruleset_evaluation_requests)
        again = new.on_conflict_do_update(index_elements=key, set_={"number": new.excluded.number})
        w.execute(again, [{**row, "requested_at": now} for row in rows])
