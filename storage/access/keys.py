"""Clients and their API keys.

A key's text consists of its environment's prefix, 32 random bytes and a checksum, so that a mistyped or truncated key
is recognised without a look-up, and leaked keys can be found by pattern. Only its SHA-256 is stored. The text has 256
bits of entropy, so a slow hash would add no security, only time to every request.
"""

import hashlib
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from sqlalchemy import bindparam, insert, select, update

from pipelines.vocabulary.errors import Conflict, NotFound, Unauthenticated
from storage.core.database import AnyRow, AnySelect, Reading, Writing
from storage.core.models import api_keys, clients
from storage.core.paging import Page, Paged, count_total, limit_to_page

SCOPES = (
    "customer:riskscore",
    "customer:reports",
    "customer:completeness",
    "customer:attributes",
    "customer:delete",
    "transactions:enrich",
    "transactions:extract",
    "transactions:aggregate",
    "decision-policies:read",
    "decision-policies:evaluate",
    "decision-policies:write",
    "decision-policies:publish",
    "decision-policies:override",
    "monitoring:rules",
    "webhooks:subscribe",
    "customer:work",
    "access:manage",
)
CHECKSUM_CHARACTERS = 6
UNKNOWN_KEY = ("Key.NotFound", "There is no live key with this id.")
INVALID_KEY = ("Authentication.InvalidKey", "A valid API key is needed in the x-api-key header.")


class EndedKey(Unauthenticated):
    """A known key that was revoked or has expired."""

    def __init__(self, key_id: UUID, client_id: UUID) -> None:
        super().__init__(*INVALID_KEY)
        self.key_id = key_id
        self.client_id = client_id


@dataclass(frozen=True)
class Client:
    client_id: UUID
    name: str
    decision_policies: bool
    created_at: datetime
    four_eyes: Sequence[str] = ()  # kinds of actions that need an approval


@dataclass(frozen=True)
class Key:
    """An API key as the operator sees it. `hint` is enough to recognise the key, but not to use it."""

    key_id: UUID
    client_id: UUID
    hint: str
    scopes: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    rotated_to: UUID | None  # its successor


@dataclass(frozen=True)
class Principal:
    """The caller of a request: a client, by one of its keys or by a signed-in user."""

    client_id: UUID
    caller_id: UUID  # of the key or the user
    scopes: frozenset[str]
    decision_policies: bool  # whether they are enabled for the client
    is_user: bool = False


def create_client(w: Writing, name: str, decision_policies: bool, now: datetime) -> Client:
    client = Client(uuid4(), name, decision_policies, now)
    w.execute(insert(clients).values(vars(client)))
    return client


def find_clients(r: Reading) -> list[Client]:
    return [Client(*row) for row in r.execute(select(*_CLIENT).order_by(clients.c.created_at))]


def get_client(r: Reading, client_id: UUID) -> Client:
    """Return an existing client."""
    return Client(*r.execute(select(*_CLIENT).where(clients.c.client_id == client_id)).one())


def lock_client(w: Writing, client_id: UUID) -> None:
    """Lock the client until this transaction ends. Rows that refer to the client can still be written."""
    w.execute(select(clients.c.client_id).where(clients.c.client_id == client_id).with_for_update(key_share=True))


def require_client(r: Reading, client_id: UUID) -> None:
    """Raise NotFound if there is no such client."""
    if r.execute(select(clients.c.client_id).where(clients.c.client_id == client_id)).first() is None:
        raise NotFound("Client.NotFound", "There is no client with this id.")


def create_key(
    w: Writing,
    client_id: UUID,
    scopes: Iterable[str],
    expires_at: datetime | None,
    prefix: str,
    now: datetime,
) -> tuple[Key, str]:
    """Create a key. Return it and its text, which is shown once and can't be recovered.

    Raises:
        NotFound: there is no such client.
    """
    require_client(w, client_id)
    text = _new_text(prefix)
    key = Key(uuid4(), client_id, f"{prefix}…{text[-4:]}", tuple(sorted(set(scopes))), now, expires_at, None, None)
    w.execute(insert(api_keys).values({**vars(key), "scopes": list(key.scopes), "key_hash": _hash(text)}))
    return key, text


def find_keys(r: Reading, client_id: UUID | None = None) -> list[Key]:
    query = select(api_keys).order_by(api_keys.c.created_at)
    if client_id is not None:
        query = query.where(api_keys.c.client_id == client_id)
    return [_key(row) for row in r.execute(query)]


def find_page(r: Reading, client_id: UUID, page: Page | None) -> Paged[Key]:
    """Return a client's keys, newest first."""
    query = select(api_keys).where(api_keys.c.client_id == client_id)
    query = query.order_by(api_keys.c.created_at.desc(), api_keys.c.key_id)
    return Paged([_key(row) for row in r.execute(limit_to_page(query, page))], count_total(r, query), page)


def get(r: Reading, client_id: UUID, key_id: UUID) -> Key:
    """Return a client's key, even one that has ended.

    Raises:
        NotFound: there is none.
    """
    query = select(api_keys).where(api_keys.c.client_id == client_id, api_keys.c.key_id == key_id)
    row = r.execute(query).first()
    if row is None:
        raise NotFound(*UNKNOWN_KEY)
    return _key(row)


def revoke(w: Writing, key_id: UUID, now: datetime) -> UUID:
    """Revoke a key: the next request with it is refused in every process. Return the id of its client.

    Raises:
        NotFound: there is no such key, or it was revoked before.
    """
    statement = update(api_keys).where(api_keys.c.key_id == key_id, api_keys.c.revoked_at.is_(None))
    row = w.execute(statement.values(revoked_at=now).returning(api_keys.c.client_id)).first()
    if row is None:
        raise NotFound(*UNKNOWN_KEY)
    client_id: UUID = row.client_id
    return client_id


def rotate(w: Writing, key_id: UUID, overlap: timedelta, prefix: str, now: datetime) -> tuple[Key, str]:
    """Create a successor with the key's client and scopes. Return it and its text. Both are valid until `overlap` ends.

    If the key has an expiry, its successor gets the same lifetime from now on. The overlap never extends the old key's
    own expiry.

    Raises:
        NotFound: there is no such key, or it was revoked or has expired.
        Conflict: the key has a successor already, which must be rotated instead.
    """
    row = w.execute(select(api_keys).where(api_keys.c.key_id == key_id).with_for_update()).first()
    if row is None or _has_ended(row, now):
        raise NotFound(*UNKNOWN_KEY)
    if row.rotated_to is not None:
        raise Conflict("Key.AlreadyRotated", f"The key was rotated already; its successor is {row.rotated_to}.")
    expires_at = None if row.expires_at is None else now + (row.expires_at - row.created_at)
    key, text = create_key(w, row.client_id, row.scopes, expires_at, prefix, now)
    ends_at = min(now + overlap, row.expires_at or now + overlap)
    statement = update(api_keys).where(api_keys.c.key_id == key_id)
    w.execute(statement.values(rotated_to=key.key_id, expires_at=ends_at))
    return key, text


def authenticate(r: Reading, text: str, prefix: str, now: datetime) -> Principal:
    """Return the client and scopes of a key.

    Raises:
        Unauthenticated: the key is unknown, revoked, expired, mistyped, or of the other environment. The caller gets
            the same response in all cases; for the audit trail, an EndedKey says which key it was.
    """
    row = _look_up(r, text) if _is_well_formed(text, prefix) else None
    if row is None:
        raise Unauthenticated(*INVALID_KEY)
    if _has_ended(row, now):
        raise EndedKey(row.key_id, row.client_id)
    return Principal(row.client_id, row.key_id, frozenset(row.scopes), row.decision_policies)


_CLIENT = [clients.c[name] for name in Client.__dataclass_fields__]
_WITH_HASH: AnySelect = (
    select(api_keys, clients.c.decision_policies)
    .join_from(api_keys, clients)
    .where(api_keys.c.key_hash == bindparam("key_hash"))
)


def _look_up(r: Reading, text: str) -> AnyRow | None:
    return r.execute(_WITH_HASH, {"key_hash": _hash(text)}).first()


def _has_ended(row: AnyRow, now: datetime) -> bool:
    return row.revoked_at is not None or (row.expires_at is not None and row.expires_at <= now)


def _key(row: AnyRow) -> Key:
    own = {name: getattr(row, name) for name in Key.__dataclass_fields__}
    own["scopes"] = tuple(row.scopes)
    return Key(**own)


def _new_text(prefix: str) -> str:
    body = prefix + secrets.token_urlsafe(32)
    return body + _checksum(body)


def _is_well_formed(text: str, prefix: str) -> bool:
    body, tail = text[:-CHECKSUM_CHARACTERS], text[-CHECKSUM_CHARACTERS:]
    return text.isascii() and body.startswith(prefix) and secrets.compare_digest(_checksum(body), tail)


def _checksum(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()[:CHECKSUM_CHARACTERS]


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
