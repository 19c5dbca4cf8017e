"""The delivery log: deliveries and their attempts, and the resending of deliveries.

It reads what the outbox has recorded. A delivery that is resent goes back to the outbox, due as if it were new.
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
from storage.core.database import AnyRow, AnySelect, Reading, Writing, read_values
from storage.core.models import DeliveryStatus, attempts, deliveries, events, subscriptions
from storage.core.paging import Page, Paged, count_total, limit_to_page
from storage.webhooks.conditions import literal_status
from storage.webhooks.outbox import UNREADABLE_SECRET, Attempt

RESENT_AT_ONCE = 10_000  # how many deliveries one request makes due
ANSWERED = "status"  # the class of failures with a complete response that is not a 2xx
CLASSES = ("dns", "connect", "tls", "timeout", "refused", "reset", "protocol", UNREADABLE_SECRET, ANSWERED)

# An attempt succeeds with a complete response of any 2xx status.
SUCCESS = and_(attempts.c.error.is_(None), attempts.c.status_code.between(200, 299))

_HAS_FAILED = deliveries.c.status == literal_status(DeliveryStatus.FAILED)


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
class Filter:
    """A selection of deliveries; None means any."""

    client_id: UUID | None = None
    subscription_id: UUID | None = None
    status: DeliveryStatus | None = None
    event_type: EventType | None = None
    event_id: UUID | None = None
    customer_number: int | None = None
    error: str | None = None  # of any of its attempts; ANSWERED for a response that is not a 2xx
    created_after: datetime | None = None
    created_before: datetime | None = None
    before: UUID | None = None  # only deliveries created before this one


def find(r: Reading, wanted: Filter, page: Page | None = None) -> Paged[int]:
    """Return the numbers of the selected deliveries, newest first. Attempts are large, so `read` a few at a time.

    Raises:
        NotFound: `event_id` or `before` is unknown, or another client's.
    """
    if wanted.event_id is not None:
        _require_event(r, wanted)
    query = select(deliveries.c.number).where(*_conditions(wanted))
    if wanted.before is not None:
        query = query.where(deliveries.c.number < _number_of_before(r, wanted))
    if wanted.event_type is not None or wanted.customer_number is not None:
        query = query.join(events, events.c.event_id == deliveries.c.event_id)
    newest_first = query.order_by(deliveries.c.number.desc())
    return Paged(r.execute(limit_to_page(newest_first, page)).scalars().all(), count_total(r, query), page)


def _conditions(wanted: Filter) -> Iterator[ColumnElement[bool]]:
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
        yield exists().where(attempts.c.delivery_id == deliveries.c.delivery_id, _is_of_class(wanted.error))


def _require_event(r: Reading, wanted: Filter) -> None:
    query = select(events.c.event_id).where(events.c.event_id == wanted.event_id)
    if wanted.client_id is not None:
        query = query.where(events.c.client_id == wanted.client_id)
    if r.execute(query).first() is None:
        raise NotFound("Webhook.EventNotFound", "There is no event with this id.")


def _number_of_before(r: Reading, wanted: Filter) -> int:
    """Return the number of the delivery `wanted.before`. Raise NotFound."""
    query = select(deliveries.c.number).where(deliveries.c.delivery_id == wanted.before)
    if wanted.client_id is not None:
        query = query.where(deliveries.c.client_id == wanted.client_id)
    number: int | None = r.execute(query).scalar()
    if number is None:
        raise _no_delivery()
    return number


def _is_of_class(error: str) -> ColumnElement[bool]:
    if error != ANSWERED:
        return attempts.c.error == error
    return and_(attempts.c.error.is_(None), ~SUCCESS)


def read(r: Reading, numbers: Sequence[int]) -> list[Delivery]:
    """Return the deliveries with these numbers, newest first."""
    return _with_attempts(r, _newest_deliveries().where(deliveries.c.number.in_(numbers)))


def get(r: Reading, client_id: UUID | None, delivery_id: UUID) -> Delivery:
    """Return the client's delivery; for an operator, without `client_id`, any client's.

    Raises:
        NotFound: unknown, or another client's.
    """
    rows = _with_attempts(r, _select_one(client_id, delivery_id))
    if not rows:
        raise _no_delivery()
    return rows[0]


def find_latest(r: Reading, limit: int, subscription_id: UUID | None = None, failed: bool = False) -> list[Delivery]:
    """Return the newest deliveries for an operator: all clients' or a subscription's, all or only failed ones."""
    query = _newest_deliveries().limit(limit)
    if subscription_id is not None:
        query = query.where(deliveries.c.subscription_id == subscription_id)
    return _with_attempts(r, query.where(_HAS_FAILED) if failed else query)


def resend(w: Writing, client_id: UUID | None, delivery_id: UUID, now: datetime) -> Delivery:
    """Make a delivery due again: the same bytes, signed with the secret at the time of sending.

    Args:
        client_id: None for an operator, who may resend any client's.

    Raises:
        NotFound: unknown, or another client's.
        Conflict: it is due or being sent, or its subscription was deleted.
    """
    delivery = _lock(w, client_id, delivery_id)
    if delivery.status in (DeliveryStatus.DUE, DeliveryStatus.SENDING):
        raise Conflict("Webhook.DeliveryInFlight", "The delivery is already due or being sent.")
    if not _has_subscription(w, delivery.subscription_id):
        raise Conflict("Webhook.SubscriptionDeleted", "The delivery's subscription was deleted.")
    w.execute(update(deliveries).where(deliveries.c.delivery_id == delivery_id).values(_due_again(now)))
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
    """Make due again the deliveries that were created since a time and have this status (failed or retrying).

    Tests, and deliveries of deleted subscriptions, are not resent. One call makes at most RESENT_AT_ONCE due, those due
    longest ago first. To resend all, call this with the same `now` until no more are left. A delivery that was made
    due with that `now` is not selected again, even if it has failed since.

    Returns:
        How many were made due, and whether there may be more.
    """
    conditions = [
        *_conditions(Filter(client_id, subscription_id, event_type=event_type, customer_number=customer_number)),
        deliveries.c.status == literal_status(status),
        deliveries.c.created_at >= since,
        deliveries.c.due_at != now,
        ~deliveries.c.is_test,
        exists().where(subscriptions.c.subscription_id == deliveries.c.subscription_id),
    ]
    if until is not None:
        conditions.append(deliveries.c.created_at < until)
    query = select(deliveries.c.number).join_from(deliveries, events).where(*conditions)
    oldest = query.order_by(deliveries.c.due_at, deliveries.c.number).limit(RESENT_AT_ONCE)
    numbers = w.execute(oldest.with_for_update(of=deliveries, skip_locked=True)).scalars().all()
    if numbers:
        this = update(deliveries).where(deliveries.c.number == bindparam("this"))
        w.execute(this.values(_due_again(now)), [{"this": number} for number in numbers])
    return len(numbers), len(numbers) == RESENT_AT_ONCE


def _due_again(now: datetime) -> dict[str, Any]:
    """Return the values that make a delivery due as if it were new, with all its retries to come."""
    return {"status": DeliveryStatus.DUE, "due_at": now, "attempt_count": 0, "retry_at": None}


def _lock(w: Writing, client_id: UUID | None, delivery_id: UUID) -> Delivery:
    w.execute(_select_one(client_id, delivery_id).with_for_update(of=deliveries))
    return get(w, client_id, delivery_id)


def _select_one(client_id: UUID | None, delivery_id: UUID) -> AnySelect:
    query = _select_deliveries().where(deliveries.c.delivery_id == delivery_id)
    return query if client_id is None else query.where(deliveries.c.client_id == client_id)


def _no_delivery() -> NotFound:
    return NotFound("Webhook.DeliveryNotFound", "There is no webhook delivery with this id.")


def _has_subscription(r: Reading, subscription_id: UUID) -> bool:
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
    tries = _read_attempts(r, query)
    return [_delivery(row, tuple(tries[row.delivery_id])) for row in rows]


def _read_attempts(r: Reading, query: AnySelect) -> defaultdict[UUID, list[Attempt]]:
    """Return the attempts of each delivery that `query` finds, in order."""
    selected = query.subquery()
    attempts_query = select(attempts).join(selected, selected.c.delivery_id == attempts.c.delivery_id)
    tries: defaultdict[UUID, list[Attempt]] = defaultdict(list)
    for row in r.execute(attempts_query.order_by(attempts.c.started_at, attempts.c.attempt_id)):
        values = read_values(row)
        tries[values["delivery_id"]].append(Attempt(**{name: values[name] for name in _ATTEMPT_FIELDS}))
    return tries


_ATTEMPT_FIELDS = [field.name for field in fields(Attempt)]


def _delivery(row: AnyRow, tries: tuple[Attempt, ...]) -> Delivery:
    event_type, status = EventType(row.event_type), DeliveryStatus(row.status)
    return Delivery(**read_values(row, event_type=event_type, status=status, attempts=tries))
