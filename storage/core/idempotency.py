"""Idempotency keys: a request that is sent again gets the same response, and is not executed again.

A key is claimed in its own transaction before anything is done, so that a concurrent duplicate is refused. The response
is stored in the same transaction as the request's effect, so one never exists without the other, even if the process
dies or the commit is interrupted. A request that dies or hangs leaves a claim without a response, which expires. If a
request that hung continues after another one has claimed the key, it can't commit.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Self
from uuid import UUID, uuid4

from sqlalchemy import ColumnElement, and_, delete, or_, select, tuple_, update

from pipelines.vocabulary.errors import Conflict, Unprocessable
from storage.core import leases
from storage.core.database import Writing, insert_into
from storage.core.models import idempotency_keys

RETAINED_FOR = timedelta(hours=24)
CLAIMED_FOR = timedelta(seconds=30)  # far longer than any request takes


@dataclass(frozen=True)
class Claim:
    """One request's right to store the response of a key."""

    client_id: UUID
    key_hash: bytes
    holder: UUID

    @classmethod
    def to(cls, client_id: UUID, key: str) -> Self:
        """Return a claim that is not stored yet."""
        return cls(client_id, hashlib.sha256(key.encode()).digest(), uuid4())


@dataclass(frozen=True)
class StoredResponse:
    """A stored response, to be sent again."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def claim(w: Writing, wanted: Claim, fingerprint: bytes, now: datetime) -> StoredResponse | None:
    """Store a claim and return None; or return the response if the key has one.

    Args:
        fingerprint: SHA-256 of everything that must be equal for two requests to be the same.
        now: the database's time (`leases.clock`), so that processes whose clocks differ agree on when a claim expires.

    Raises:
        Unprocessable: `Idempotency.KeyReused`, the key was used for another request within the last 24 hours.
        Conflict: `Idempotency.InFlight`, the same request is in progress.
    """
    if _take(w, wanted, fingerprint, now):
        return None
    row = w.execute(select(idempotency_keys).where(_is_of(wanted))).first()
    if row is not None and row.fingerprint != fingerprint:
        raise Unprocessable("Idempotency.KeyReused", "This Idempotency-Key was sent with another request.")
    if row is None or row.status is None:
        raise _conflict_in_flight()
    return StoredResponse(row.status, row.headers, row.body)


def store_response(w: Writing, wanted: Claim, response: StoredResponse) -> None:
    """Store the response, in the transaction of the request's effect.

    Raises:
        Conflict: the claim expired and another request has the key; the transaction must not commit.
    """
    statement = update(idempotency_keys).where(_is_of(wanted), idempotency_keys.c.holder == wanted.holder)
    if w.execute(statement.values(vars(response))).rowcount == 0:
        raise _conflict_in_flight()


def release(w: Writing, wanted: Claim) -> None:
    """Release the key, unless a response is stored: then the effect is committed, whatever the client received."""
    is_unanswered = and_(idempotency_keys.c.holder == wanted.holder, idempotency_keys.c.status.is_(None))
    w.execute(delete(idempotency_keys).where(_is_of(wanted), is_unanswered))


def sweep(w: Writing, now: datetime, at_most: int) -> int:
    """Delete keys and responses older than 24 hours, the oldest first; return how many."""
    key = (idempotency_keys.c.client_id, idempotency_keys.c.key_hash)
    old = idempotency_keys.c.created_at <= now - RETAINED_FOR
    oldest = select(*key).where(old).order_by(idempotency_keys.c.created_at).limit(at_most)
    # `old` is repeated because a key may be claimed again between the subquery and the deletion
    return w.execute(delete(idempotency_keys).where(tuple_(*key).in_(oldest), old)).rowcount


def _take(w: Writing, wanted: Claim, fingerprint: bytes, now: datetime) -> bool:
    """Claim the key if it is free: never used, expired, or claimed by a dead request. Return whether it was."""
    fresh = {
        "fingerprint": fingerprint,
        "holder": wanted.holder,
        "claimed_until": now + CLAIMED_FOR,
        "created_at": now,
        **dict.fromkeys(StoredResponse.__dataclass_fields__),
    }
    claim_has_ended = leases.has_ended(idempotency_keys.c.claimed_until, now, CLAIMED_FOR.total_seconds())
    is_abandoned = and_(idempotency_keys.c.status.is_(None), claim_has_ended)
    statement = insert_into(w, idempotency_keys).values(client_id=wanted.client_id, key_hash=wanted.key_hash, **fresh)
    claim_if_free = statement.on_conflict_do_update(
        index_elements=[idempotency_keys.c.client_id, idempotency_keys.c.key_hash],
        set_=fresh,
        where=or_(is_abandoned, idempotency_keys.c.created_at <= now - RETAINED_FOR),
    )
    return w.execute(claim_if_free.returning(idempotency_keys.c.holder)).first() is not None


def _is_of(wanted: Claim) -> ColumnElement[bool]:
    return and_(idempotency_keys.c.client_id == wanted.client_id, idempotency_keys.c.key_hash == wanted.key_hash)


def _conflict_in_flight() -> Conflict:
    return Conflict("Idempotency.InFlight", "A request with this Idempotency-Key is in progress: try again shortly.")
