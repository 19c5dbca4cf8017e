"""Ruleset evaluations that changes ask for: of one customer, whose attributes changed, or of all of a client, whose
rulesets did.

Who changes something asks in the same transaction. A run reads what was asked for before it evaluates, and removes that
when it has finished: what is asked for meanwhile stays, and leads to another run. So does what a run that was killed
had read. Asked for again, a request is the same row by a new number, so there are never more of them than customers.

A client's customers are asked for in each bucket, because runs are of buckets, and each answers its own part.
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

MANY = 1_000  # customers: who has so many is asked for in every bucket, without a ruleset evaluation of the others

_ROW = ruleset_evaluation_requests.c


@dataclass(frozen=True)
class Waiting:
    """What was asked for in a bucket."""

    bucket: int
    newest: int  # the number of what was asked for last
    since: datetime  # the oldest


def for_customers(w: Writing, customer_numbers: Iterable[int], now: datetime) -> None:
    """Ask for a ruleset evaluation of each of these customers, after this transaction."""
    rows = [{"bucket": bucket_of(number), "customer_number": number} for number in sorted(set(customer_numbers))]
    _ask(w, rows, ["customer_number"], now)


def for_client(w: Writing, client_id: UUID, now: datetime) -> None:
    """Ask for a ruleset evaluation of all of the client's customers, after this transaction."""
    some = select(customers.c.number).where(customers.c.client_id == client_id).limit(MANY)
    numbers = w.execute(some).scalars().all()
    buckets = ALL if len(numbers) == MANY else sorted({bucket_of(number) for number in numbers})
    _ask(w, [{"bucket": bucket, "client_id": client_id} for bucket in buckets], ["client_id", "bucket"], now)


def waiting(r: Reading) -> list[Waiting]:
    """The buckets in which something was asked for, the longest first."""
    since = func.min(_ROW.requested_at)
    query = select(_ROW.bucket, func.max(_ROW.number), since).group_by(_ROW.bucket)
    return [Waiting(*row) for row in r.execute(query.order_by(since, _ROW.bucket))]


def unanswered(r: Reading, bucket: int) -> list[int]:
    """What was asked for in the bucket, for `answer`: whoever evaluates after having read this sees what changed."""
    query = select(_ROW.number).where(_ROW.bucket == bucket)
    return list(r.execute(query.order_by(_ROW.customer_number, _ROW.number)).scalars())


def concerned(bucket: int) -> ColumnElement[bool]:
    """SQL: the bucket's customers who are asked for, alone or with all of their client's."""
    theirs = customers.alias()
    mine = _ROW.bucket == bucket
    alone = select(_ROW.customer_number).where(mine, _ROW.customer_number.is_not(None))
    here = theirs.c.number % BUCKETS == bucket
    together = select(theirs.c.number).where(mine, here, theirs.c.client_id == _ROW.client_id)
    return customers.c.number.in_(union_all(alone, together))


def answer(w: Writing, numbers: Sequence[int]) -> None:
    """These were evaluated, as `unanswered` told them, in its order; what has been asked for again since stays."""
    if numbers:
        w.execute(
            delete(ruleset_evaluation_requests).where(_ROW.number == bindparam("evaluated")),
            [{"evaluated": n} for n in numbers],
        )


def _ask(w: Writing, rows: Sequence[Mapping[str, Any]], key: Sequence[str], now: datetime) -> None:
    """The rows in order, so that two transactions that ask for the same never wait for each other in a circle."""
    if rows:
        new = insert_into(w, ruleset_evaluation_requests)
        again = new.on_conflict_do_update(index_elements=key, set_={"number": new.excluded.number})
        w.execute(again, [{**row, "requested_at": now} for row in rows])
