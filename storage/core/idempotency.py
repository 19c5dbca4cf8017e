"""Idempotency keys: a request that is sent again is answered again, and does nothing again.

A key is claimed in a transaction of its own before anything is done, so that a twin is turned away meanwhile. The
answer is written in the very transaction that makes what it tells of: the thing and its answer can't come apart,
wherever a process dies and however a commit is cut off. A request that died leaves a claim without an answer, which
ends by itself; should it come back to life after that, its claim is no longer the one in the row, and it can't commit.
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
CLAIMED_FOR = timedelta(seconds=30)  # well beyond what a request takes


@dataclass(frozen=True)
class Claim:
    """The right to answer one key, for one request alone."""

    client_id: UUID
    key_hash: bytes
    holder: UUID

    @classmethod
    def to(cls, client_id: UUID, key: str) -> Self:
        """A claim to be made."""
        return cls(client_id, hashlib.sha256(key.encode()).digest(), uuid4())


@dataclass(frozen=True)
class Answer:
    """What was answered: enough to say it again."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def claim(w: Writing, mine: Claim, fingerprint: bytes, now: datetime) -> Answer | None:
    """Make a claim; gives the answer when the key has got one already.

    Args:
        fingerprint: SHA-256 of everything that two requests must share to be one.

    Raises:
        Unprocessable: `Idempotency.KeyReused`, the key came with another request within the last 24 hours.
        Conflict: `Idempotency.InFlight`, the same request is being worked on.
    """
    if _taken(w, mine, fingerprint, now):
        return None
    row = w.execute(select(idempotency_keys).where(_is_of(mine))).first()
    if row is not None and row.fingerprint != fingerprint:
        raise Unprocessable("Idempotency.KeyReused", "This Idempotency-Key was sent with another request.")
    if row is None or row.status is None:
        raise _in_flight()
    return Answer(row.status, row.headers, row.body)


def keep(w: Writing, mine: Claim, answer: Answer) -> None:
    """Keep the answer, in the transaction of what it tells.

    Raises:
        Conflict: the claim ran out and another request has the key; nothing of this one may be committed.
    """
    statement = update(idempotency_keys).where(_is_of(mine), idempotency_keys.c.holder == mine.holder)
    if w.execute(statement.values(vars(answer))).rowcount == 0:
        raise _in_flight()


def release(w: Writing, mine: Claim) -> None:
    """Let go of the key, unless an answer was kept: then what it tells of is there, whatever its sender was told."""
    unanswered = idempotency_keys.c.status.is_(None)
    w.execute(delete(idempotency_keys).where(_is_of(mine), idempotency_keys.c.holder == mine.holder, unanswered))


def sweep(w: Writing, now: datetime, at_most: int) -> int:
    """Forget keys and answers older than 24 hours, the oldest first; gives how many."""
    key = (idempotency_keys.c.client_id, idempotency_keys.c.key_hash)
    old = idempotency_keys.c.created_at <= now - RETAINED_FOR
    oldest = select(*key).where(old).order_by(idempotency_keys.c.created_at).limit(at_most)
    # said twice, since a key may be claimed anew between the look and the deletion
    return w.execute(delete(idempotency_keys).where(tuple_(*key).in_(oldest), old)).rowcount


def _taken(w: Writing, mine: Claim, fingerprint: bytes, now: datetime) -> bool:
    """Whether the key was free: never seen, forgotten by now, or claimed by a request that died."""
    fresh = {
        "fingerprint": fingerprint,
        "holder": mine.holder,
        "claimed_until": now + CLAIMED_FOR,
        "created_at": now,
        **dict.fromkeys(Answer.__dataclass_fields__),
    }
    claim_is_over = leases.over(idempotency_keys.c.claimed_until, now, CLAIMED_FOR.total_seconds())
    dead = and_(idempotency_keys.c.status.is_(None), claim_is_over)
    statement = insert_into(w, idempotency_keys).values(client_id=mine.client_id, key_hash=mine.key_hash, **fresh)
    taken = statement.on_conflict_do_update(
        index_elements=[idempotency_keys.c.client_id, idempotency_keys.c.key_hash],
        set_=fresh,
        where=or_(dead, idempotency_keys.c.created_at <= now - RETAINED_FOR),
    )
    return w.execute(taken.returning(idempotency_keys.c.holder)).first() is not None


def _is_of(mine: Claim) -> ColumnElement[bool]:
    return and_(idempotency_keys.c.client_id == mine.client_id, idempotency_keys.c.key_hash == mine.key_hash)


def _in_flight() -> Conflict:
    return Conflict("Idempotency.InFlight", "A request with this Idempotency-Key is being worked on.")
