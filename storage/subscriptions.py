"""Webhook subscriptions: who is told of which events, at which URL, signed with which secret.

A subscription without customers is a catch-all: it hears of every customer of its client, future ones too. The
secret is sealed for the subscription's id and leaves this module in clear twice only: when it is made, and when it
is rotated.
"""

import secrets
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Row, Select, insert, select, update
from sqlalchemy import delete as delete_from

from pipelines.errors import Fault, InvalidRequest, NotFound
from pipelines.webhooks import SECRET_BYTES, EventType, key_of, new_secret
from storage import outbox
from storage.customers import numbers
from storage.database import Reading, Writing, insert_into
from storage.models import customers, subscription_customers, subscriptions
from storage.paging import Page, Paged, limited, total_of
from storage.vault import Vault


@dataclass(frozen=True)
class Subscription:
    """What the client may read again: everything but the secret."""

    subscription_id: UUID
    client_id: UUID
    event_type: EventType
    webhook_url: str
    customer_ids: tuple[UUID, ...]  # empty: catch-all
    created_at: datetime


_COLUMNS = (
    subscriptions.c.subscription_id,
    subscriptions.c.client_id,
    subscriptions.c.event_type,
    subscriptions.c.webhook_url,
    subscriptions.c.created_at,
)


def create(
    w: Writing,
    client_id: UUID,
    event_type: EventType,
    url: str,
    customer_ids: Sequence[UUID],
    vault: Vault,
    now: datetime,
) -> tuple[Subscription, str]:
    """A new subscription and its secret in Base64. `url` must have passed `check_webhook_url`.

    Raises:
        InvalidRequest: `Webhook.UnknownCustomer` for ids that are not the client's own, each with its pointer.
    """
    scope = own_customers(w, client_id, customer_ids)
    subscription_id, secret = uuid4(), new_secret(secrets.token_bytes(SECRET_BYTES))
    row = {"subscription_id": subscription_id, "client_id": client_id, "event_type": event_type, "webhook_url": url}
    w.execute(insert(subscriptions).values(**row, secret=_sealed(vault, subscription_id, secret), created_at=now))
    _add(w, subscription_id, scope)
    return get(w, client_id, subscription_id), secret


def get(r: Reading, client_id: UUID, subscription_id: UUID) -> Subscription:
    """The client's subscription.

    Raises:
        NotFound: unknown, or another client's.
    """
    found = _with_customers(r, _select(client_id).where(subscriptions.c.subscription_id == subscription_id))
    if not found:
        raise NotFound("Webhook.SubscriptionNotFound", "There is no webhook subscription with this id.")
    return found[0]


def find(r: Reading, client_id: UUID, page: Page | None = None) -> Paged[Subscription]:
    """The client's subscriptions in order of creation."""
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


def rotate(w: Writing, client_id: UUID, subscription_id: UUID, vault: Vault) -> str:
    """A new secret in Base64. What is sent from now on is signed with it, whenever the event happened.

    Raises:
        NotFound: unknown, or another client's.
    """
    _locked(w, client_id, subscription_id)
    secret = new_secret(secrets.token_bytes(SECRET_BYTES))
    statement = update(subscriptions).where(subscriptions.c.subscription_id == subscription_id)
    w.execute(statement.values(secret=_sealed(vault, subscription_id, secret)))
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


def _select(client_id: UUID) -> Select[Any]:
    return select(*_COLUMNS).where(subscriptions.c.client_id == client_id)


def _locked(w: Writing, client_id: UUID, subscription_id: UUID) -> Subscription:
    """The subscription, which nobody else changes until this transaction ends."""
    query = _select(client_id).where(subscriptions.c.subscription_id == subscription_id)
    w.execute(query.with_for_update())
    return get(w, client_id, subscription_id)


def _with_customers(r: Reading, query: Select[Any]) -> list[Subscription]:
    rows = r.execute(query).all()
    scopes = _scopes(r, query)
    return [_subscription(row, tuple(scopes[row.subscription_id])) for row in rows]


def _scopes(r: Reading, query: Select[Any]) -> defaultdict[UUID, list[UUID]]:
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


def _subscription(row: Row[Any], customer_ids: tuple[UUID, ...]) -> Subscription:
    return Subscription(
        subscription_id=row.subscription_id,
        client_id=row.client_id,
        event_type=EventType(row.event_type),
        webhook_url=row.webhook_url,
        customer_ids=customer_ids,
        created_at=row.created_at,
    )


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
