"""Webhook subscriptions: who is told of which events, at which URL, signed with which secret, and how patiently.

A subscription without customers is a catch-all: it hears of every customer of its client, future ones too. The
secret is sealed for the subscription's id and leaves this module in clear twice only: when it is made, and when it
is rotated. While a subscription is paused its deliveries are made and wait; when it goes on they are sent in order.
"""

import secrets
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID, uuid4

from sqlalchemy import Update, func, insert, select, update
from sqlalchemy import delete as delete_from

from pipelines.vocabulary.errors import Conflict, Fault, InvalidRequest, NotFound
from pipelines.webhooks.events import SECRET_BYTES, EventType, key_of, new_secret
from storage.access import keys
from storage.core.database import AnyRow, AnySelect, Reading, Writing, insert_into, values_of
from storage.core.models import customers, subscription_customers, subscriptions
from storage.core.paging import Page, Paged, limited, total_of
from storage.core.vault import Vault
from storage.customers.customers import numbers
from storage.webhooks import outbox


@dataclass(frozen=True)
class Subscription:
    """What the client may read again: everything but the secret."""

    subscription_id: UUID
    client_id: UUID
    event_type: EventType
    webhook_url: str
    customer_ids: tuple[UUID, ...]  # empty: catch-all
    created_at: datetime
    max_retries: int
    pause_after: int | None  # failures in a row; None: never
    paused_at: datetime | None
    paused_by: str | None
    failure_streak: int  # failed attempts since one succeeded, or since it went on
    last_delivered_at: datetime | None
    last_failed_at: datetime | None


@dataclass(frozen=True)
class Patience:
    """How a subscription takes failures; by default they are recorded and that is all."""

    max_retries: int = 0
    pause_after: int | None = None


IMPATIENT = Patience()
MOST_SUBSCRIPTIONS = 1_000  # of a client, paused ones among them: a claim looks at each that waits
BY_CLIENT, BY_OPERATOR = "client", "operator"  # who paused it by hand; `outbox.BY_FAILURES` for nobody


_COLUMNS = (
    subscriptions.c.subscription_id,
    subscriptions.c.client_id,
    subscriptions.c.event_type,
    subscriptions.c.webhook_url,
    subscriptions.c.created_at,
    subscriptions.c.max_retries,
    subscriptions.c.pause_after,
    subscriptions.c.paused_at,
    subscriptions.c.paused_by,
    subscriptions.c.failure_streak,
    subscriptions.c.last_delivered_at,
    subscriptions.c.last_failed_at,
)


def create(
    w: Writing,
    client_id: UUID,
    event_type: EventType,
    url: str,
    customer_ids: Sequence[UUID],
    vault: Vault,
    now: datetime,
    patience: Patience = IMPATIENT,
) -> tuple[Subscription, str]:
    """A new subscription and its secret in Base64. `url` must have passed `check_webhook_url`.

    Raises:
        InvalidRequest: `Webhook.UnknownCustomer` for ids that are not the client's own, each with its pointer.
        Conflict: `Webhook.TooManySubscriptions`.
    """
    scope = own_customers(w, client_id, customer_ids)
    _require_fewer_than_most(w, client_id)
    subscription_id, secret = uuid4(), new_secret(secrets.token_bytes(SECRET_BYTES))
    row = {"subscription_id": subscription_id, "client_id": client_id, "event_type": event_type, "webhook_url": url}
    row |= vars(patience)
    w.execute(insert(subscriptions).values(**row, secret=_sealed(vault, subscription_id, secret), created_at=now))
    _add(w, subscription_id, scope)
    return get(w, client_id, subscription_id), secret


def _require_fewer_than_most(w: Writing, client_id: UUID) -> None:
    """For one more; until this transaction ends nobody else makes one for the client."""
    keys.lock_client(w, client_id)
    count = select(func.count()).where(subscriptions.c.client_id == client_id)
    if w.execute(count).scalar_one() >= MOST_SUBSCRIPTIONS:
        most = f"A client may have {MOST_SUBSCRIPTIONS:,} webhook subscriptions at most."
        raise Conflict("Webhook.TooManySubscriptions", most)


def get(r: Reading, client_id: UUID | None, subscription_id: UUID) -> Subscription:
    """The client's subscription; without a client anybody's, for the operator.

    Raises:
        NotFound: unknown, or another client's.
    """
    found = _with_customers(r, _select(client_id).where(subscriptions.c.subscription_id == subscription_id))
    if not found:
        raise NotFound("Webhook.SubscriptionNotFound", "There is no webhook subscription with this id.")
    return found[0]


def find(r: Reading, client_id: UUID | None, page: Page | None = None) -> Paged[Subscription]:
    """The client's subscriptions, or everybody's, in order of creation."""
    query = _select(client_id).order_by(subscriptions.c.created_at, subscriptions.c.subscription_id)
    return Paged(_with_customers(r, limited(query, page)), total_of(r, query), page)


def delete(w: Writing, client_id: UUID, subscription_id: UUID) -> Subscription:
    """Delete a subscription with what it has yet to be told; gives it as it was.

    Raises:
        NotFound: unknown, or another client's.
    """
    gone = _locked(w, client_id, subscription_id)
    w.execute(delete_from(subscriptions).where(subscriptions.c.subscription_id == subscription_id))
    outbox.cancel_due(w, subscription_id)
    return gone


def change(w: Writing, client_id: UUID, subscription_id: UUID, changes: Mapping[str, int | None]) -> Subscription:
    """Set fields of `Patience`, by name. What was made before follows the new ones from its next failure on.

    Raises:
        NotFound: unknown, or another client's.
    """
    _locked(w, client_id, subscription_id)
    if changes:
        w.execute(_this(subscription_id).values(changes))
    return get(w, client_id, subscription_id)


def pause(
    w: Writing, client_id: UUID | None, subscription_id: UUID, by: str, now: datetime
) -> tuple[Subscription, bool]:
    """Let deliveries wait from now on; what is under way still ends. One that is paused stays as it was: the second of
    the two is whether anything changed.

    Args:
        client_id: whose it must be; None for the operator, who may pause anybody's.

    Raises:
        NotFound: unknown, or another client's.
    """
    changes = _locked(w, client_id, subscription_id).paused_at is None
    if changes:
        w.execute(_this(subscription_id).values(paused_at=now, paused_by=by))
    return get(w, client_id, subscription_id), changes


def resume(w: Writing, client_id: UUID | None, subscription_id: UUID) -> tuple[Subscription, bool]:
    """Send what has waited, in its order, and count failures anew. One that isn't paused stays as it was: the second of
    the two is whether anything changed.

    Raises:
        NotFound: unknown, or another client's.
    """
    changes = _locked(w, client_id, subscription_id).paused_at is not None
    if changes:
        w.execute(_this(subscription_id).values(paused_at=None, paused_by=None, failure_streak=0))
    return get(w, client_id, subscription_id), changes


def paused(r: Reading) -> list[Subscription]:
    """Everybody's that are paused, the longest first."""
    query = _select(None).where(subscriptions.c.paused_at.is_not(None))
    return _with_customers(r, query.order_by(subscriptions.c.paused_at, subscriptions.c.subscription_id))


def rotate(w: Writing, client_id: UUID, subscription_id: UUID, vault: Vault) -> str:
    """A new secret in Base64. What is sent from now on is signed with it, whenever the event happened.

    Raises:
        NotFound: unknown, or another client's.
    """
    _locked(w, client_id, subscription_id)
    secret = new_secret(secrets.token_bytes(SECRET_BYTES))
    w.execute(_this(subscription_id).values(secret=_sealed(vault, subscription_id, secret)))
    return secret


def add_customers(w: Writing, client_id: UUID, subscription_id: UUID, customer_ids: Sequence[UUID]) -> Subscription:
    """Scope a subscription to these customers too; a catch-all becomes scoped.

    Raises:
        NotFound: unknown, or another client's.
        InvalidRequest: `Webhook.UnknownCustomer`, as for `create`.
    """
    _locked(w, client_id, subscription_id)
    _add(w, subscription_id, own_customers(w, client_id, customer_ids))
    return get(w, client_id, subscription_id)


def remove_customers(w: Writing, client_id: UUID, subscription_id: UUID, customer_ids: Sequence[UUID]) -> Subscription:
    """Take customers off a subscription; without any left it is a catch-all. Who isn't on it doesn't matter.

    Raises:
        NotFound: unknown, or another client's.
        InvalidRequest: `Webhook.UnknownCustomer`, as for `create`.
    """
    _locked(w, client_id, subscription_id)
    leaving = own_customers(w, client_id, customer_ids)
    w.execute(
        delete_from(subscription_customers).where(
            subscription_customers.c.subscription_id == subscription_id,
            subscription_customers.c.customer_number.in_(leaving),
        )
    )
    return get(w, client_id, subscription_id)


def open_secret(vault: Vault, subscription_id: UUID, sealed: bytes) -> bytes:
    """The HMAC key that a subscription's deliveries are signed with.

    Raises:
        Corrupt: changed, or another subscription's.
    """
    return vault.open(sealed, subscription_id.bytes)


def _sealed(vault: Vault, subscription_id: UUID, secret: str) -> bytes:
    return vault.seal(key_of(secret), subscription_id.bytes)


def _this(subscription_id: UUID) -> Update:
    return update(subscriptions).where(subscriptions.c.subscription_id == subscription_id)


def _select(client_id: UUID | None) -> AnySelect:
    """Subscriptions of a client; None for everybody's."""
    query = select(*_COLUMNS)
    return query if client_id is None else query.where(subscriptions.c.client_id == client_id)


def _locked(w: Writing, client_id: UUID | None, subscription_id: UUID) -> Subscription:
    """The subscription, which nobody else changes until this transaction ends."""
    query = _select(client_id).where(subscriptions.c.subscription_id == subscription_id)
    w.execute(query.with_for_update())
    return get(w, client_id, subscription_id)


def _with_customers(r: Reading, query: AnySelect) -> list[Subscription]:
    rows = r.execute(query).all()
    scopes = _scopes(r, query)
    return [_subscription(row, tuple(scopes[row.subscription_id])) for row in rows]


def _scopes(r: Reading, query: AnySelect) -> defaultdict[UUID, list[UUID]]:
    """The customers of each subscription that `query` finds, in order of their creation."""
    found = query.subquery()
    scoped = (
        select(subscription_customers.c.subscription_id, customers.c.customer_id)
        .join_from(subscription_customers, customers)
        .join(found, found.c.subscription_id == subscription_customers.c.subscription_id)
        .order_by(customers.c.number)
    )
    scopes: defaultdict[UUID, list[UUID]] = defaultdict(list)
    for subscription_id, customer_id in r.execute(scoped):
        scopes[subscription_id].append(customer_id)
    return scopes


def _subscription(row: AnyRow, customer_ids: tuple[UUID, ...]) -> Subscription:
    return Subscription(**values_of(row, event_type=EventType(row.event_type), customer_ids=customer_ids))


def own_customers(r: Reading, client_id: UUID, customer_ids: Sequence[UUID]) -> list[int]:
    """The numbers of the customers.

    Raises:
        InvalidRequest: `Webhook.UnknownCustomer`, as for `create`.
    """
    known = numbers(r, client_id, customer_ids)
    unknown = [index for index, customer_id in enumerate(customer_ids) if customer_id not in known]
    if unknown:
        raise _unknown_customers(unknown)
    return sorted(known.values())


def _unknown_customers(indexes: Sequence[int]) -> InvalidRequest:
    code, message = "Webhook.UnknownCustomer", "There is no customer with this id."
    faults = tuple(Fault(f"/customerIds/{index}", code, message) for index in indexes)
    return InvalidRequest(code, "customerIds must be the client's own customers.", faults)


def _add(w: Writing, subscription_id: UUID, customer_numbers: Sequence[int]) -> None:
    if not customer_numbers:
        return
    w.execute(
        insert_into(w, subscription_customers).on_conflict_do_nothing(),
        [{"subscription_id": subscription_id, "customer_number": number} for number in customer_numbers],
    )
