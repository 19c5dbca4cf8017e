"""Webhook subscriptions: the event type, customers, URL and signing secret, and how failures are handled.

A subscription without customers is a catch-all: it gets the events of all customers of its client, including future
ones. The secret is encrypted for the subscription's id and leaves this module in plain text only when the subscription
is created and when the secret is rotated. While a subscription is paused, its deliveries are created and wait; when it
is resumed, they are sent in order.
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
from pipelines.webhooks.events import SECRET_BYTES, EventType, decode_secret, new_secret
from storage.access import keys
from storage.core.database import AnyRow, AnySelect, Reading, Writing, insert_into, read_values
from storage.core.models import customers, subscription_customers, subscriptions
from storage.core.paging import Page, Paged, count_total, limit_to_page
from storage.core.vault import Vault
from storage.customers.customers import numbers
from storage.webhooks import outbox


@dataclass(frozen=True)
class Subscription:
    """A subscription as the client may read it: everything except the secret."""

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
    failure_streak: int  # failed attempts since the last success or resumption
    last_delivered_at: datetime | None
    last_failed_at: datetime | None


@dataclass(frozen=True)
class FailureHandling:
    """How a subscription handles failures; by default they are only recorded."""

    max_retries: int = 0
    pause_after: int | None = None


RECORD_ONLY = FailureHandling()
MAX_SUBSCRIPTIONS = 1_000  # of a client, including paused ones: a claim visits each that has due deliveries
BY_CLIENT, BY_OPERATOR = "client", "operator"  # values of `paused_by`; the third is `outbox.BY_FAILURES`


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
    on_failure: FailureHandling = RECORD_ONLY,
) -> tuple[Subscription, str]:
    """Create a subscription. Return it and its secret in Base64. `url` must have passed `check_webhook_url`.

    Raises:
        InvalidRequest: `Webhook.UnknownCustomer` for ids of customers that are not the client's own, with pointers.
        Conflict: `Webhook.TooManySubscriptions`.
    """
    scope = require_own_customers(w, client_id, customer_ids)
    _check_number_of_subscriptions(w, client_id)
    subscription_id, secret = uuid4(), new_secret(secrets.token_bytes(SECRET_BYTES))
    row = {"subscription_id": subscription_id, "client_id": client_id, "event_type": event_type, "webhook_url": url}
    row |= vars(on_failure)
    w.execute(insert(subscriptions).values(**row, secret=_seal(vault, subscription_id, secret), created_at=now))
    _add(w, subscription_id, scope)
    return get(w, client_id, subscription_id), secret


def _check_number_of_subscriptions(w: Writing, client_id: UUID) -> None:
    """Raise Conflict if the client has as many subscriptions as it may. The lock makes the check safe until commit."""
    keys.lock_client(w, client_id)
    count = select(func.count()).where(subscriptions.c.client_id == client_id)
    if w.execute(count).scalar_one() >= MAX_SUBSCRIPTIONS:
        detail = f"A client may have {MAX_SUBSCRIPTIONS:,} webhook subscriptions at most."
        raise Conflict("Webhook.TooManySubscriptions", detail)


def get(r: Reading, client_id: UUID | None, subscription_id: UUID) -> Subscription:
    """Return the client's subscription; for an operator, without `client_id`, any client's.

    Raises:
        NotFound: unknown, or another client's.
    """
    rows = _with_customers(r, _select(client_id).where(subscriptions.c.subscription_id == subscription_id))
    if not rows:
        raise NotFound("Webhook.SubscriptionNotFound", "There is no webhook subscription with this id.")
    return rows[0]


def find(r: Reading, client_id: UUID | None, page: Page | None = None) -> Paged[Subscription]:
    """Return the client's subscriptions, or without `client_id` all clients', in order of creation."""
    query = _select(client_id).order_by(subscriptions.c.created_at, subscriptions.c.subscription_id)
    return Paged(_with_customers(r, limit_to_page(query, page)), count_total(r, query), page)


def delete(w: Writing, client_id: UUID, subscription_id: UUID) -> Subscription:
    """Delete a subscription and cancel its open deliveries. Return it as it was.

    Raises:
        NotFound: unknown, or another client's.
    """
    deleted = _lock(w, client_id, subscription_id)
    w.execute(delete_from(subscriptions).where(subscriptions.c.subscription_id == subscription_id))
    outbox.cancel_due(w, subscription_id)
    return deleted


def change(w: Writing, client_id: UUID, subscription_id: UUID, changes: Mapping[str, int | None]) -> Subscription:
    """Set fields of `FailureHandling` by name. They also apply to the next failure of a delivery created before.

    Raises:
        NotFound: unknown, or another client's.
    """
    _lock(w, client_id, subscription_id)
    if changes:
        w.execute(_this(subscription_id).values(changes))
    return get(w, client_id, subscription_id)


def pause(
    w: Writing, client_id: UUID | None, subscription_id: UUID, who: str, now: datetime
) -> tuple[Subscription, bool]:
    """Pause a subscription: deliveries wait from now on; those in progress still end.

    Args:
        client_id: None for an operator, who may pause any client's.

    Returns:
        The subscription, and whether anything changed: it may have been paused before.

    Raises:
        NotFound: unknown, or another client's.
    """
    changes = _lock(w, client_id, subscription_id).paused_at is None
    if changes:
        w.execute(_this(subscription_id).values(paused_at=now, paused_by=who))
    return get(w, client_id, subscription_id), changes


def resume(w: Writing, client_id: UUID | None, subscription_id: UUID) -> tuple[Subscription, bool]:
    """Resume a subscription: waiting deliveries are sent in order, and the count of failures restarts at 0.

    Returns:
        The subscription, and whether anything changed: it may not have been paused.

    Raises:
        NotFound: unknown, or another client's.
    """
    changes = _lock(w, client_id, subscription_id).paused_at is not None
    if changes:
        w.execute(_this(subscription_id).values(paused_at=None, paused_by=None, failure_streak=0))
    return get(w, client_id, subscription_id), changes


def find_paused(r: Reading) -> list[Subscription]:
    """Return all clients' paused subscriptions, those paused for the longest time first."""
    query = _select(None).where(subscriptions.c.paused_at.is_not(None))
    return _with_customers(r, query.order_by(subscriptions.c.paused_at, subscriptions.c.subscription_id))


def rotate(w: Writing, client_id: UUID, subscription_id: UUID, vault: Vault) -> str:
    """Replace the secret, and return the new one in Base64. It signs everything sent from now on, also older events.

    Raises:
        NotFound: unknown, or another client's.
    """
    _lock(w, client_id, subscription_id)
    secret = new_secret(secrets.token_bytes(SECRET_BYTES))
    w.execute(_this(subscription_id).values(secret=_seal(vault, subscription_id, secret)))
    return secret


def add_customers(w: Writing, client_id: UUID, subscription_id: UUID, customer_ids: Sequence[UUID]) -> Subscription:
    """Add customers to a subscription. A catch-all becomes a subscription to these customers only.

    Raises:
        NotFound: unknown, or another client's.
        InvalidRequest: `Webhook.UnknownCustomer`, as for `create`.
    """
    _lock(w, client_id, subscription_id)
    _add(w, subscription_id, require_own_customers(w, client_id, customer_ids))
    return get(w, client_id, subscription_id)


def remove_customers(w: Writing, client_id: UUID, subscription_id: UUID, customer_ids: Sequence[UUID]) -> Subscription:
    """Remove customers from a subscription; those it doesn't have are ignored. Without customers it is a catch-all.

    Raises:
        NotFound: unknown, or another client's.
        InvalidRequest: `Webhook.UnknownCustomer`, as for `create`.
    """
    _lock(w, client_id, subscription_id)
    removed = require_own_customers(w, client_id, customer_ids)
    w.execute(
        delete_from(subscription_customers).where(
            subscription_customers.c.subscription_id == subscription_id,
            subscription_customers.c.customer_number.in_(removed),
        )
    )
    return get(w, client_id, subscription_id)


def open_secret(vault: Vault, subscription_id: UUID, sealed: bytes) -> bytes:
    """Return the HMAC key that signs a subscription's deliveries.

    Raises:
        Corrupt: the sealed secret was changed, or is another subscription's.
    """
    return vault.open(sealed, subscription_id.bytes)


def _seal(vault: Vault, subscription_id: UUID, secret: str) -> bytes:
    return vault.seal(decode_secret(secret), subscription_id.bytes)


def _this(subscription_id: UUID) -> Update:
    return update(subscriptions).where(subscriptions.c.subscription_id == subscription_id)


def _select(client_id: UUID | None) -> AnySelect:
    """Return a query of a client's subscriptions; of all clients' for None."""
    query = select(*_COLUMNS)
    return query if client_id is None else query.where(subscriptions.c.client_id == client_id)


def _lock(w: Writing, client_id: UUID | None, subscription_id: UUID) -> Subscription:
    """Lock a subscription against changes until this transaction ends, and return it."""
    query = _select(client_id).where(subscriptions.c.subscription_id == subscription_id)
    w.execute(query.with_for_update())
    return get(w, client_id, subscription_id)


def _with_customers(r: Reading, query: AnySelect) -> list[Subscription]:
    rows = r.execute(query).all()
    scopes = _read_scopes(r, query)
    return [_subscription(row, tuple(scopes[row.subscription_id])) for row in rows]


def _read_scopes(r: Reading, query: AnySelect) -> defaultdict[UUID, list[UUID]]:
    """Return the customers of each subscription that `query` finds, in order of creation."""
    selected = query.subquery()
    scoped = (
        select(subscription_customers.c.subscription_id, customers.c.customer_id)
        .join_from(subscription_customers, customers)
        .join(selected, selected.c.subscription_id == subscription_customers.c.subscription_id)
        .order_by(customers.c.number)
    )
    scopes: defaultdict[UUID, list[UUID]] = defaultdict(list)
    for subscription_id, customer_id in r.execute(scoped):
        scopes[subscription_id].append(customer_id)
    return scopes


def _subscription(row: AnyRow, customer_ids: tuple[UUID, ...]) -> Subscription:
    return Subscription(**read_values(row, event_type=EventType(row.event_type), customer_ids=customer_ids))


def require_own_customers(r: Reading, client_id: UUID, customer_ids: Sequence[UUID]) -> list[int]:
    """Return the numbers of the customers, who must all belong to the client.

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
    return InvalidRequest(code, "All customerIds must be customers of this client.", faults)


def _add(w: Writing, subscription_id: UUID, customer_numbers: Sequence[int]) -> None:
    if not customer_numbers:
        return
    w.execute(
        insert_into(w, subscription_customers).on_conflict_do_nothing(),
        [{"subscription_id": subscription_id, "customer_number": number} for number in customer_numbers],
    )
