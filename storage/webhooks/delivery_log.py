"""The delivery log: what became of deliveries, attempt by attempt, and sending some of them again.

It reads what the outbox has recorded; what is sent again goes back to the outbox, due as if it had just been made.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, and_, bindparam, exists, select, update

from pipelines.vocabulary.errors import Conflict, NotFound
from pipelines.webhooks.events import EventType
from storage.core.database import AnyRow, AnySelect, Reading, Writing, values_of
from storage.core.models import DeliveryStatus, attempts, deliveries, events, subscriptions
from storage.core.paging import Page, Paged, limited, total_of
from storage.webhooks.outbox import OURS, Attempt, spelled

RESENT_AT_ONCE = 10_000  # that one request makes due
ANSWERED = "status"  # the class of what failed although the receiver answered, and completely
CLASSES = ("dns", "connect", "tls", "timeout", "refused", "reset", "protocol", OURS, ANSWERED)

# An attempt that succeeded: any 2xx, answered completely.
SUCCESS = and_(attempts.c.error.is_(None), attempts.c.status_code.between(200, 299))

_HAS_FAILED = deliveries.c.status == spelled(DeliveryStatus.FAILED)


@dataclass(frozen=True)
class Delivery:
    """A delivery as the log shows it, with its attempts in order."""

    delivery_id: UUID
    client_id: UUID
    event_id: UUID
    event_type: EventType
    subscription_id: UUID
    status: DeliveryStatus
    created_at: datetime
    retry_at: datetime | None
    is_test: bool
    attempts: tuple[Attempt, ...]


@dataclass(frozen=True)
class Wanted:
    """Which deliveries of the log; None for any."""

    client_id: UUID | None = None
    subscription_id: UUID | None = None
    status: DeliveryStatus | None = None
    event_type: EventType | None = None
    event_id: UUID | None = None
    customer_number: int | None = None
    error: str | None = None  # of any of its attempts; ANSWERED for an answer that was no success
    created_after: datetime | None = None
    created_before: datetime | None = None
    before: UUID | None = None  # only deliveries made before this one


def find(r: Reading, wanted: Wanted, page: Page | None = None) -> Paged[int]:
    """The numbers of the deliveries that are wanted, newest first. Their attempts are large: `read` a few at a time.

    Raises:
        NotFound: `event_id` or `before` is unknown, or another client's.
    """
    if wanted.event_id is not None:
        _require_event(r, wanted)
    query = select(deliveries.c.number).where(*_conditions(wanted))
    if wanted.before is not None:
        query = query.where(deliveries.c.number < _number(r, wanted))
    if wanted.event_type is not None or wanted.customer_number is not None:
        query = query.join(events, events.c.event_id == deliveries.c.event_id)
    newest_first = query.order_by(deliveries.c.number.desc())
    return Paged(r.execute(limited(newest_first, page)).scalars().all(), total_of(r, query), page)


def _conditions(wanted: Wanted) -> Iterator[ColumnElement[bool]]:
    equal = {
        deliveries.c.client_id: wanted.client_id,
        deliveries.c.subscription_id: wanted.subscription_id,
        deliveries.c.status: wanted.status,
        deliveries.c.event_id: wanted.event_id,
        events.c.event_type: wanted.event_type,
        events.c.customer_number: wanted.customer_number,
    }
    yield from (column == value for column, value in equal.items() if value is not None)
    if wanted.created_after is not None:
        yield deliveries.c.created_at > wanted.created_after
    if wanted.created_before is not None:
        yield deliveries.c.created_at < wanted.created_before
    if wanted.error is not None:
        yield exists().where(attempts.c.delivery_id == deliveries.c.delivery_id, _classed(wanted.error))


def _require_event(r: Reading, wanted: Wanted) -> None:
    query = select(events.c.event_id).where(events.c.event_id == wanted.event_id)
    if wanted.client_id is not None:
        query = query.where(events.c.client_id == wanted.client_id)
    if r.execute(query).first() is None:
        raise NotFound("Webhook.EventNotFound", "There is no event with this id.")


def _number(r: Reading, wanted: Wanted) -> int:
    """Of the delivery `before`."""
    query = select(deliveries.c.number).where(deliveries.c.delivery_id == wanted.before)
    if wanted.client_id is not None:
        query = query.where(deliveries.c.client_id == wanted.client_id)
    number: int | None = r.execute(query).scalar()
    if number is None:
        raise _no_delivery()
    return number


def _classed(error: str) -> ColumnElement[bool]:
    if error != ANSWERED:
        return attempts.c.error == error
    return and_(attempts.c.error.is_(None), ~SUCCESS)


def read(r: Reading, numbers: Sequence[int]) -> list[Delivery]:
    """The deliveries with these numbers, newest first."""
    return _with_attempts(r, _newest_deliveries().where(deliveries.c.number.in_(numbers)))


def get(r: Reading, client_id: UUID | None, delivery_id: UUID) -> Delivery:
    """One delivery; without a client anybody's, for the operator.

    Raises:
        NotFound: unknown, or another client's.
    """
    found = _with_attempts(r, _one(client_id, delivery_id))
    if not found:
        raise _no_delivery()
    return found[0]


def latest(r: Reading, most: int, subscription_id: UUID | None = None, failed: bool = False) -> list[Delivery]:
    """The newest deliveries, for the operator: everybody's or a subscription's, all or those that failed."""
    query = _newest_deliveries().limit(most)
    if subscription_id is not None:
        query = query.where(deliveries.c.subscription_id == subscription_id)
    return _with_attempts(r, query.where(_HAS_FAILED) if failed else query)


def resend(w: Writing, client_id: UUID | None, delivery_id: UUID, now: datetime) -> Delivery:
    """Make a delivery due once more: the same bytes, signed with the secret as it is then.

    Args:
        client_id: whose it must be; None for the operator, who may resend anybody's.

    Raises:
        NotFound: unknown, or another client's.
        Conflict: it has yet to be sent, or is being sent; or its subscription is gone.
    """
    delivery = _locked(w, client_id, delivery_id)
    if delivery.status in (DeliveryStatus.DUE, DeliveryStatus.SENDING):
        raise Conflict("Webhook.DeliveryInFlight", "The delivery is being sent already.")
    if not _subscribed(w, delivery.subscription_id):
        raise Conflict("Webhook.SubscriptionDeleted", "The delivery's subscription was deleted.")
    w.execute(update(deliveries).where(deliveries.c.delivery_id == delivery_id).values(_afresh(now)))
    return replace(delivery, status=DeliveryStatus.DUE, retry_at=None)


def resend_all(
    w: Writing,
    since: datetime,
    now: datetime,
    *,
    until: datetime | None = None,
    client_id: UUID | None = None,
    subscription_id: UUID | None = None,
    customer_number: int | None = None,
    event_type: EventType | None = None,
    status: DeliveryStatus = DeliveryStatus.FAILED,
) -> tuple[int, bool]:
    """Make due once more what was made since a time and has failed, or waits for its retry.

    A bounded number at once, whatever was tried longest ago first: how many, and whether there may be more. What is due
    already is not met again; nor is what was made due with the same `now`, though it may have failed again since. Of
    tests, and of subscriptions that are gone, nothing is sent.
    """
    conditions = [
        *_conditions(Wanted(client_id, subscription_id, event_type=event_type, customer_number=customer_number)),
        deliveries.c.status == spelled(status),
        deliveries.c.created_at >= since,
        deliveries.c.due_at != now,
        ~deliveries.c.is_test,
        exists().where(subscriptions.c.subscription_id == deliveries.c.subscription_id),
    ]
    if until is not None:
        conditions.append(deliveries.c.created_at < until)
    query = select(deliveries.c.number).join_from(deliveries, events).where(*conditions)
    oldest = query.order_by(deliveries.c.due_at, deliveries.c.number).limit(RESENT_AT_ONCE)
    found = w.execute(oldest.with_for_update(of=deliveries, skip_locked=True)).scalars().all()
    if found:
        this = update(deliveries).where(deliveries.c.number == bindparam("this"))
        w.execute(this.values(_afresh(now)), [{"this": number} for number in found])
    return len(found), len(found) == RESENT_AT_ONCE


def _afresh(now: datetime) -> dict[str, Any]:
    """Due as if it had just been made, with all its retries before it."""
    return {"status": DeliveryStatus.DUE, "due_at": now, "attempt_count": 0, "retry_at": None}


def _locked(w: Writing, client_id: UUID | None, delivery_id: UUID) -> Delivery:
    w.execute(_one(client_id, delivery_id).with_for_update(of=deliveries))
    return get(w, client_id, delivery_id)


def _one(client_id: UUID | None, delivery_id: UUID) -> AnySelect:
    query = _select_deliveries().where(deliveries.c.delivery_id == delivery_id)
    return query if client_id is None else query.where(deliveries.c.client_id == client_id)


def _no_delivery() -> NotFound:
    return NotFound("Webhook.DeliveryNotFound", "There is no webhook delivery with this id.")


def _subscribed(r: Reading, subscription_id: UUID) -> bool:
    query = select(subscriptions.c.subscription_id).where(subscriptions.c.subscription_id == subscription_id)
    return r.execute(query).first() is not None


def _newest_deliveries() -> AnySelect:
    return _select_deliveries().order_by(deliveries.c.number.desc())


def _select_deliveries() -> AnySelect:
    return select(
        deliveries.c.delivery_id,
        deliveries.c.client_id,
        deliveries.c.event_id,
        events.c.event_type,
        deliveries.c.subscription_id,
        deliveries.c.status,
        deliveries.c.created_at,
        deliveries.c.retry_at,
        deliveries.c.is_test,
    ).join_from(deliveries, events)


def _with_attempts(r: Reading, query: AnySelect) -> list[Delivery]:
    rows = r.execute(query).all()
    tries = _attempts(r, query)
    return [_delivery(row, tuple(tries[row.delivery_id])) for row in rows]


def _attempts(r: Reading, query: AnySelect) -> defaultdict[UUID, list[Attempt]]:
    """The attempts at each delivery that `query` finds, in order."""
    found = query.subquery()
    made = select(attempts).join(found, found.c.delivery_id == attempts.c.delivery_id)
    tries: defaultdict[UUID, list[Attempt]] = defaultdict(list)
    for row in r.execute(made.order_by(attempts.c.started_at, attempts.c.attempt_id)):
        values = values_of(row)
        tries[values["delivery_id"]].append(Attempt(**{name: values[name] for name in _OF_ATTEMPT}))
    return tries


_OF_ATTEMPT = [field.name for field in fields(Attempt)]


def _delivery(row: AnyRow, tries: tuple[Attempt, ...]) -> Delivery:
    event_type, status = EventType(row.event_type), DeliveryStatus(row.status)
    return Delivery(**values_of(row, event_type=event_type, status=status, attempts=tries))
