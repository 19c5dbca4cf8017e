"""The outbox: events as they happened, and one delivery for each subscription that was to hear of them.

Events enter in the transaction that makes them true. Deliveries leave by a lease: `claim_due` hands them to one
sender, `record` ends them; a sender that died loses its lease and the same bytes are sent again. No retry is
automatic otherwise: a delivery that failed stays failed until somebody resends it.

Subscriptions take turns. Each has at most `PER_SUBSCRIPTION` deliveries under way, over all senders, and all of a
client's together `PER_CLIENT`, so that receivers that hang hold nobody else up; and a claim looks at subscriptions,
never through their queues, so that a queue's length costs nothing.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from itertools import islice
from typing import Any, TypeVar
from uuid import UUID, uuid4

from sqlalchemy import (
    Column,
    ColumnElement,
    Row,
    ScalarSelect,
    Select,
    String,
    and_,
    bindparam,
    exists,
    func,
    insert,
    literal_column,
    null,
    select,
    text,
    union_all,
    update,
)

from pipelines.errors import Conflict, NotFound
from pipelines.webhooks import EventType, JobOutcome
from pipelines.webhooks import job_events as events_of_job
from storage import leases
from storage.database import Reading, Writing, insert_into
from storage.models import DeliveryStatus, attempts, deliveries, events, subscription_customers, subscriptions
from storage.paging import Page, Paged, limited, total_of

PER_SUBSCRIPTION = 4  # deliveries under way at once
PER_CLIENT = 64  # a quarter of one sender's slots

T = TypeVar("T")


@dataclass(frozen=True)
class NewEvent:
    """Something that happened to a customer, with the very bytes that tell it."""

    event_id: UUID
    client_id: UUID
    customer_number: int
    job_id: UUID
    event_type: EventType
    body: bytes
    created_at: datetime


@dataclass(frozen=True)
class Claimed:
    """A delivery to be sent now, by us. Without URL and secret its subscription is gone."""

    delivery_id: UUID
    subscription_id: UUID
    client_id: UUID
    event_id: UUID
    body: bytes
    webhook_url: str | None
    sealed_secret: bytes | None


@dataclass(frozen=True)
class Attempt:
    """One try: the receiver's status, or the class of what went wrong before there was any (or while it answered)."""

    attempt_id: UUID
    started_at: datetime
    duration_ms: int
    status_code: int | None
    error: str | None
    response_head: bytes | None


@dataclass(frozen=True)
class Ended:
    """How a claimed delivery ended; without an attempt when there was nobody to send it to."""

    delivery_id: UUID
    status: DeliveryStatus
    attempt: Attempt | None


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
    attempts: tuple[Attempt, ...]


def job_events(customer_number: int, outcome: JobOutcome, now: datetime) -> list[NewEvent]:
    """The events of a job that ends now, ready to be enqueued."""
    return [
        NewEvent(
            event_id=event.event_id,
            client_id=outcome.client_id,
            customer_number=customer_number,
            job_id=outcome.job_id,
            event_type=event.event_type,
            body=event.body,
            created_at=now,
        )
        for event in events_of_job(outcome, now)
    ]


def enqueue(w: Writing, new: Sequence[NewEvent]) -> None:
    """Keep events, and make a delivery due for every subscription that matches each one as of now."""
    if not new:
        return
    w.execute(insert(events), [vars(event) for event in new])
    audience = _audience(w, new)
    due = [_due(event, subscription_id) for event in new for subscription_id in audience(event)]
    if due:
        w.execute(insert(deliveries), due)


class _Audience:
    """Who hears of what: subscriptions by client, type and customer; catch-alls stand under no customer."""

    def __init__(self, matches: Iterable[Row[Any]]) -> None:
        self._subscriptions: defaultdict[tuple[UUID, str, int | None], list[UUID]] = defaultdict(list)
        for match in matches:
            self._subscriptions[match.client_id, match.event_type, match.customer_number].append(match.subscription_id)

    def __call__(self, event: NewEvent) -> list[UUID]:
        scoped = self._subscriptions.get((event.client_id, event.event_type, event.customer_number), [])
        return scoped + self._subscriptions.get((event.client_id, event.event_type, None), [])


def _audience(r: Reading, new: Sequence[NewEvent]) -> _Audience:
    """One statement, so that a subscription which becomes a catch-all meanwhile is not met twice, nor missed."""
    ours = and_(
        subscriptions.c.client_id.in_({event.client_id for event in new}),
        subscriptions.c.event_type.in_({event.event_type for event in new}),
    )
    scope = subscription_customers.c
    columns = (subscriptions.c.subscription_id, subscriptions.c.client_id, subscriptions.c.event_type)
    scoped = (
        select(*columns, scope.customer_number)
        .join_from(subscriptions, subscription_customers)
        .where(ours, scope.customer_number.in_({event.customer_number for event in new}))
    )
    everybody = select(*columns, null().label("customer_number")).where(
        ours, ~exists().where(scope.subscription_id == subscriptions.c.subscription_id)
    )
    return _Audience(r.execute(union_all(scoped, everybody)))


def _due(event: NewEvent, subscription_id: UUID) -> dict[str, Any]:
    return {
        "delivery_id": uuid4(),
        "client_id": event.client_id,
        "event_id": event.event_id,
        "subscription_id": subscription_id,
        "status": DeliveryStatus.DUE,
        "created_at": event.created_at,
        "due_at": event.created_at,
    }


def any_due(r: Reading) -> bool:
    """Whether a claim would find something. Worth a look first: looking wakes nobody, writing wakes everybody."""
    return bool(_next_numbers(r, 1))


def due_since(r: Reading) -> datetime | None:
    """Since when something is due, as of its making or its resending; None when nothing is."""
    return r.execute(select(func.min(deliveries.c.due_at)).where(_status(DeliveryStatus.DUE))).scalar()


def claim_due(w: Writing, holder: UUID, limit: int, lease_s: float, now: datetime) -> list[Claimed]:
    """Take up to `limit` due deliveries, subscriptions in turn, under a lease of `lease_s` seconds."""
    free = _lock_due(w, _next_numbers(w, limit))
    if not free:
        return []
    lease = {"lease_holder": holder, "lease_expires_at": now + timedelta(seconds=lease_s)}
    mine = deliveries.c.number.in_(free)
    w.execute(update(deliveries).where(mine).values(status=DeliveryStatus.SENDING, **lease))
    query = (
        select(
            deliveries.c.delivery_id,
            deliveries.c.subscription_id,
            deliveries.c.client_id,
            deliveries.c.event_id,
            events.c.body,
            subscriptions.c.webhook_url,
            subscriptions.c.secret,
        )
        .join_from(deliveries, events)
        .join(subscriptions, subscriptions.c.subscription_id == deliveries.c.subscription_id, isouter=True)
        .where(mine)
        .order_by(deliveries.c.number)
    )
    return [Claimed(*row) for row in w.execute(query)]


def _lock_due(w: Writing, numbers: Sequence[int]) -> list[int]:
    """Those of the deliveries that are still due and that no other sender is claiming at this moment."""
    query = select(deliveries.c.number).where(
        deliveries.c.number.in_(numbers), deliveries.c.status == DeliveryStatus.DUE
    )
    return list(w.execute(query.with_for_update(skip_locked=True)).scalars())


def _next_numbers(r: Reading, limit: int) -> list[int]:
    """Up to `limit` due deliveries: the first of every subscription, oldest first, then the second ones, and so on."""
    turns: list[tuple[int, int, UUID]] = []
    if r.dialect.name == "postgresql":
        # it believes old statistics of a queue, expects few rows, and would sort all of them at every hop
        r.execute(text("SET LOCAL enable_bitmapscan = off"))
    for client_id, under_way, *numbers in r.execute(_waiting()):
        waiting = [number for number in numbers if number is not None]
        free = range(under_way, PER_SUBSCRIPTION)
        turns += [(turn, number, client_id) for turn, number in zip(free, waiting, strict=False)]
    return list(islice(_within_the_clients_bounds(sorted(turns), _clients_under_way(r)), limit))


def _within_the_clients_bounds(turns: Iterable[tuple[int, int, UUID]], under_way: Counter[UUID]) -> Iterator[int]:
    """The deliveries' numbers, without those that would be too many of one client's under way."""
    for _, number, client_id in turns:
        if under_way[client_id] < PER_CLIENT:
            under_way[client_id] += 1
            yield number


def _clients_under_way(r: Reading) -> Counter[UUID]:
    """How many deliveries each client has under way; all senders' slots bound what is looked at."""
    query = select(deliveries.c.client_id, func.count()).where(_status(DeliveryStatus.SENDING))
    return Counter(dict(tuple(row) for row in r.execute(query.group_by(deliveries.c.client_id))))


@cache
def _waiting() -> Select[Any]:
    """Each subscription with due deliveries: whose it is, how many it has under way, the first few due ones' numbers.

    The recursion hops through the index from one subscription to the next.
    """
    waiting = select(_first_waiting().label("subscription_id")).cte("waiting", recursive=True)
    this = waiting.c.subscription_id
    waiting = waiting.union_all(select(_first_waiting(after=this)).where(this.is_not(None)))
    this = waiting.c.subscription_id
    columns: list[ColumnElement[Any]] = [
        _of_due(deliveries.c.client_id, this, 0).label("client_id"),
        _under_way(this).label("under_way"),
    ]
    columns += [_of_due(deliveries.c.number, this, place).label(f"number_{place}") for place in range(PER_SUBSCRIPTION)]
    return select(*columns).where(this.is_not(None))


def _status(status: DeliveryStatus) -> ColumnElement[bool]:
    """The status, spelled so that both databases see that the index of open deliveries serves."""
    due, sending, this = (
        literal_column(f"'{each}'", String) for each in (DeliveryStatus.DUE, DeliveryStatus.SENDING, status)
    )
    return and_(deliveries.c.status.in_((due, sending)), deliveries.c.status == this)


# spelled so that both databases see that the index of failed deliveries serves
_HAS_FAILED = deliveries.c.status == literal_column(f"'{DeliveryStatus.FAILED}'", String)


def _first_waiting(after: ColumnElement[UUID] | None = None) -> ScalarSelect[UUID]:
    query = select(deliveries.c.subscription_id).where(_status(DeliveryStatus.DUE))
    if after is not None:
        query = query.where(deliveries.c.subscription_id > after)
    return query.order_by(deliveries.c.subscription_id).limit(1).scalar_subquery()


def _of_due(column: Column[T], subscription_id: ColumnElement[UUID], place: int) -> ScalarSelect[T]:
    query = select(column).where(_status(DeliveryStatus.DUE), deliveries.c.subscription_id == subscription_id)
    return query.order_by(deliveries.c.number).limit(1).offset(place).scalar_subquery()


def _under_way(subscription_id: ColumnElement[UUID]) -> ScalarSelect[int]:
    query = select(func.count()).where(_status(DeliveryStatus.SENDING), deliveries.c.subscription_id == subscription_id)
    return query.scalar_subquery()


def record(w: Writing, holder: UUID, ended: Sequence[Ended]) -> None:
    """End deliveries that `holder` claimed.

    An attempt is kept whoever made it, and once: who doesn't hear of its commit records the same again. The status
    changes only while the lease is the holder's: a sender that comes back late doesn't decide about what another has
    taken over.
    """
    if not ended:
        return
    tries = [{**vars(end.attempt), "delivery_id": end.delivery_id} for end in ended if end.attempt is not None]
    if tries:
        w.execute(insert_into(w, attempts).on_conflict_do_nothing(), tries)
    w.execute(
        update(deliveries)
        .where(
            deliveries.c.delivery_id == bindparam("delivery"),
            deliveries.c.status == DeliveryStatus.SENDING,
            deliveries.c.lease_holder == holder,
        )
        .values(status=bindparam("ending"), lease_holder=None, lease_expires_at=None),
        [{"delivery": end.delivery_id, "ending": end.status} for end in ended],
    )


def cancel_due(w: Writing, subscription_id: UUID) -> None:
    """Send nothing more for a subscription that is being deleted."""
    mine = and_(_status(DeliveryStatus.DUE), deliveries.c.subscription_id == subscription_id)
    w.execute(update(deliveries).where(mine).values(status=DeliveryStatus.CANCELLED))


def any_expired(r: Reading, now: datetime) -> bool:
    return r.execute(select(deliveries.c.number).where(_expired(now)).limit(1)).first() is not None


def release_expired(w: Writing, now: datetime) -> int:
    """Make deliveries due again whose sender fell silent; how many there were."""
    return _release(w, _expired(now))


def give_back(w: Writing, holder: UUID) -> int:
    """Make due again what `holder` claimed and won't send, because it stops or has died; how many there were."""
    return _release(w, deliveries.c.lease_holder == holder)


def _release(w: Writing, which: ColumnElement[bool]) -> int:
    due = {"status": DeliveryStatus.DUE, "lease_holder": None, "lease_expires_at": None}
    return w.execute(update(deliveries).where(_status(DeliveryStatus.SENDING), which).values(due)).rowcount


def _expired(now: datetime) -> ColumnElement[bool]:
    return and_(_status(DeliveryStatus.SENDING), leases.over(deliveries.c.lease_expires_at, now))


def find(r: Reading, subscription_id: UUID, page: Page | None = None) -> Paged[int]:
    """The numbers of a subscription's deliveries, newest first. Their attempts are large: `read` a few at a time."""
    query = select(deliveries.c.number).where(deliveries.c.subscription_id == subscription_id)
    newest_first = query.order_by(deliveries.c.number.desc())
    return Paged(r.execute(limited(newest_first, page)).scalars().all(), total_of(r, query), page)


def read(r: Reading, numbers: Sequence[int]) -> list[Delivery]:
    """The deliveries with these numbers, newest first."""
    return _with_attempts(r, _newest_deliveries().where(deliveries.c.number.in_(numbers)))


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
    due = update(deliveries).where(deliveries.c.delivery_id == delivery_id)
    w.execute(due.values(status=DeliveryStatus.DUE, due_at=now))
    return replace(delivery, status=DeliveryStatus.DUE)


def _locked(w: Writing, client_id: UUID | None, delivery_id: UUID) -> Delivery:
    query = _select_deliveries().where(deliveries.c.delivery_id == delivery_id)
    if client_id is not None:
        query = query.where(deliveries.c.client_id == client_id)
    w.execute(query.with_for_update(of=deliveries))
    found = _with_attempts(w, query)
    if not found:
        raise NotFound("Webhook.DeliveryNotFound", "There is no webhook delivery with this id.")
    return found[0]


def _subscribed(r: Reading, subscription_id: UUID) -> bool:
    query = select(subscriptions.c.subscription_id).where(subscriptions.c.subscription_id == subscription_id)
    return r.execute(query).first() is not None


def _newest_deliveries() -> Select[Any]:
    return _select_deliveries().order_by(deliveries.c.number.desc())


def _select_deliveries() -> Select[Any]:
    return select(
        deliveries.c.delivery_id,
        deliveries.c.client_id,
        deliveries.c.event_id,
        events.c.event_type,
        deliveries.c.subscription_id,
        deliveries.c.status,
        deliveries.c.created_at,
    ).join_from(deliveries, events)


def _with_attempts(r: Reading, query: Select[Any]) -> list[Delivery]:
    rows = r.execute(query).all()
    tries = _attempts(r, query)
    return [_delivery(row, tuple(tries[row.delivery_id])) for row in rows]


def _attempts(r: Reading, query: Select[Any]) -> defaultdict[UUID, list[Attempt]]:
    """The attempts at each delivery that `query` finds, in order."""
    found = query.subquery()
    made = select(attempts).join(found, found.c.delivery_id == attempts.c.delivery_id)
    tries: defaultdict[UUID, list[Attempt]] = defaultdict(list)
    for row in r.execute(made.order_by(attempts.c.started_at, attempts.c.attempt_id)):
        values = dict(row._mapping)
        tries[values.pop("delivery_id")].append(Attempt(**values))
    return tries


def _delivery(row: Row[Any], tries: tuple[Attempt, ...]) -> Delivery:
    typed = {"event_type": EventType(row.event_type), "status": DeliveryStatus(row.status)}
    return Delivery(**{**dict(row._mapping), **typed}, attempts=tries)
