"""The outbox: events as they happened, and one delivery for each subscription that was to hear of them.

Events enter in the transaction that makes them true. Deliveries leave by a lease: `claim_due` hands them to one
sender, `record` ends them; a sender that died loses its lease and the same bytes are sent again. A delivery that
failed stays failed until somebody resends it, unless its subscription asks for retries: then it becomes due again by
the schedule of `pipelines.webhooks.retries`.

    due ─ claim_due ─→ sending ─ record ─→ delivered | failed | retrying ─ make_retries_due ─→ due

What is due for a paused subscription stays due and is passed over, but for tests.

Subscriptions take turns, and so do clients: the next slot is for a client with the fewest deliveries under way. A
subscription has at most `PER_SUBSCRIPTION` of them, over all senders, a client `PER_CLIENT`, and never more than the
claiming sender has slots free: the fuller it is, the fewer each may have, so that receivers that hang hold nobody else
up. N clients with everything hanging have `SLOTS` / (N + 1) each, and as many slots stay free: 60 beside four, 9 beside
thirty, none beside `SLOTS` of them. What was taken while more was free is kept until the receiver answers or its
deadline has passed: so ten clients that begin to hang one after the other can take the last slot, until then.

A claim looks at subscriptions, never through their queues, so that a queue's length costs nothing.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any, TypeVar
from uuid import UUID, uuid4

from sqlalchemy import (
    Column,
    ColumnElement,
    Integer,
    ScalarSelect,
    String,
    and_,
    bindparam,
    exists,
    func,
    insert,
    literal_column,
    null,
    or_,
    select,
    text,
    union_all,
    update,
)

from pipelines.vocabulary.errors import Conflict
from pipelines.webhooks.events import Event, EventType, JobOutcome, extraction_completed
from pipelines.webhooks.events import job_events as events_of_job
from pipelines.webhooks.retries import MAX_RETRIES, longest_wait, streak_after, to_be_retried, wait_after
from storage.core import audit, leases
from storage.core.column_types import UtcDateTime
from storage.core.database import AnyRow, AnySelect, Reading, Writing, insert_into
from storage.core.models import DeliveryStatus, attempts, deliveries, events, subscription_customers, subscriptions

PER_SUBSCRIPTION = 4  # deliveries under way at once
PER_CLIENT = 64  # the same, over all of a client's subscriptions
SLOTS = 300  # the same, of one sender
RETRIES_AT_ONCE = 1_000  # that one transaction makes due
CANCELLED_AT_ONCE = 10_000  # with their subscription
BY_FAILURES = "failures"  # who paused a subscription, when it wasn't somebody
OURS = "secret"  # the class of what failed before the receiver could have any part in it

T = TypeVar("T")


@dataclass(frozen=True)
class NewEvent:
    """Something that happened to a customer, with the very bytes that tell it."""

    event_id: UUID
    client_id: UUID
    customer_number: int | None
    job_id: UUID | None
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
    """One try: the receiver's status, or the class of what went wrong before there was any (or while it answered).

    Its parts in ms, in their order; None for one that it didn't come to.
    """

    attempt_id: UUID
    started_at: datetime
    duration_ms: int
    status_code: int | None
    error: str | None
    response_head: bytes | None
    dns_ms: int | None = None
    connect_ms: int | None = None
    tls_ms: int | None = None
    first_byte_ms: int | None = None

    @property
    def ended_at(self) -> datetime:
        return self.started_at + timedelta(milliseconds=self.duration_ms)


@dataclass(frozen=True)
class Ended:
    """How a claimed delivery ended; without an attempt when there was nobody to send it to.

    What has failed is tried again where its subscription asks for it: that is decided when it is recorded.
    """

    delivery_id: UUID
    status: DeliveryStatus
    attempt: Attempt | None


@dataclass(frozen=True)
class Pause:
    """A subscription that was paused for its failures."""

    subscription_id: UUID
    client_id: UUID
    failures: int
    paused_at: datetime


def job_events(customer_number: int, outcome: JobOutcome, now: datetime) -> list[NewEvent]:
    """The events of a job that ends now, ready to be enqueued."""
    return _of_customer(customer_number, outcome, events_of_job(outcome, now), now)


def extraction_events(customer_number: int, outcome: JobOutcome, now: datetime) -> list[NewEvent]:
    """The event of a job whose rows were extracted and land now."""
    return _of_customer(customer_number, outcome, [extraction_completed(outcome, now)], now)


def _of_customer(customer_number: int, outcome: JobOutcome, happened: Sequence[Event], now: datetime) -> list[NewEvent]:
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
        for event in happened
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

    def __init__(self, matches: Iterable[AnyRow]) -> None:
        self._subscriptions: defaultdict[tuple[UUID, str, int | None], list[UUID]] = defaultdict(list)
        for match in matches:
            self._subscriptions[match.client_id, match.event_type, match.customer_number].append(match.subscription_id)

    def __call__(self, event: NewEvent) -> list[UUID]:
        everybody = self._subscriptions.get((event.client_id, event.event_type, None), [])
        if event.customer_number is None:
            return everybody
        return self._subscriptions.get((event.client_id, event.event_type, event.customer_number), []) + everybody


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


def enqueue_test(w: Writing, event: NewEvent, subscription_id: UUID) -> UUID:
    """Keep a sample event that was asked for, due for one subscription; its delivery's id.

    Raises:
        Conflict: the last one is still under way.
    """
    receiver = select(subscriptions.c.subscription_id).where(subscriptions.c.subscription_id == subscription_id)
    w.execute(receiver.with_for_update())  # one at a time
    if w.execute(_open_test(subscription_id)).first() is not None:
        raise Conflict("Webhook.TestUnderWay", "The last test of this subscription has not ended yet.")
    w.execute(insert(events).values(vars(event)))
    due = _due(event, subscription_id)
    w.execute(insert(deliveries).values(due | {"is_test": True}))
    delivery_id: UUID = due["delivery_id"]
    return delivery_id


def _open_test(subscription_id: UUID) -> AnySelect:
    query = select(deliveries.c.number).where(_IS_OPEN_TEST, deliveries.c.subscription_id == subscription_id)
    return query.limit(1)


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


def any_due(r: Reading, free: int = SLOTS) -> bool:
    """Whether a claim would find something. Worth a look first: looking wakes nobody, writing wakes everybody.

    Args:
        free: how many of the sender's slots are free.
    """
    return bool(_next_numbers(r, 1, free))


def due_since(r: Reading) -> datetime | None:
    """Since when something is due, as of its making, its resending or its retry; None when nothing is. What waits for
    a paused subscription doesn't count.
    """
    paused = select(subscriptions.c.subscription_id).where(subscriptions.c.paused_at.is_not(None))
    sent = and_(_status(DeliveryStatus.DUE), deliveries.c.subscription_id.not_in(paused))
    return r.execute(select(func.min(deliveries.c.due_at)).where(sent)).scalar()


def claim_due(w: Writing, holder: UUID, limit: int, lease_s: float, now: datetime, free: int = SLOTS) -> list[Claimed]:
    """Take up to `limit` due deliveries, subscriptions in turn, under a lease of `lease_s` seconds.

    Args:
        free: how many of the sender's slots are free.
    """
    taken = _lock_due(w, _next_numbers(w, limit, free))
    if not taken:
        return []
    lease = {"lease_holder": holder, "lease_expires_at": now + timedelta(seconds=lease_s)}
    mine = deliveries.c.number.in_(taken)
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


def _next_numbers(r: Reading, limit: int, free: int) -> list[int]:
    """Up to `limit` due deliveries: the first of every subscription, oldest first, then the second ones, and so on."""
    turns: list[tuple[int, int, UUID]] = []
    if r.dialect.name == "postgresql":
        # it believes old statistics of a queue, expects few rows, and would sort all of them at every hop
        r.execute(text("SET LOCAL enable_bitmapscan = off"))
    for client_id, under_way, *numbers in r.execute(_waiting()):
        waiting = [number for number in numbers if number is not None]
        places = range(under_way, PER_SUBSCRIPTION)
        turns += [(turn, number, client_id) for turn, number in zip(places, waiting, strict=False)]
    turns += [(0, number, client_id) for client_id, number in r.execute(_TESTS_OF_PAUSED)]
    return _shared(turns, _clients_under_way(r), free)[:limit]


def _shared(turns: Iterable[tuple[int, int, UUID]], under_way: Counter[UUID], free: int) -> list[int]:
    """The deliveries' numbers, the next always of a client with the fewest under way, until even that has its share."""
    ranked = []
    for turn, number, client_id in sorted(turns):
        ranked.append((under_way[client_id], turn, number))
        under_way[client_id] += 1
    in_order = enumerate(sorted(ranked))
    return [number for place, (rank, _, number) in in_order if rank < min(PER_CLIENT, free - place)]


def _clients_under_way(r: Reading) -> Counter[UUID]:
    """How many deliveries each client has under way; all senders' slots bound what is looked at."""
    query = select(deliveries.c.client_id, func.count()).where(_status(DeliveryStatus.SENDING))
    return Counter(dict(tuple(row) for row in r.execute(query.group_by(deliveries.c.client_id))))


@cache
def _waiting() -> AnySelect:
    """Each subscription with due deliveries: whose it is, how many it has under way, the first few due ones' numbers.

    The recursion hops through the index from one subscription to the next; those that are paused are left out.
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
    return select(*columns).where(this.is_not(None), ~_paused(this))


def _paused(subscription_id: ColumnElement[UUID]) -> ColumnElement[bool]:
    this = subscriptions.c.subscription_id == subscription_id
    return exists().where(this, subscriptions.c.paused_at.is_not(None))


def _status(status: DeliveryStatus) -> ColumnElement[bool]:
    """The status, spelled so that both databases see that the index of open deliveries serves."""
    return and_(is_open(), deliveries.c.status == spelled(status))


def is_open() -> ColumnElement[bool]:
    still = (DeliveryStatus.DUE, DeliveryStatus.SENDING, DeliveryStatus.RETRYING)
    return deliveries.c.status.in_([spelled(each) for each in still])


def spelled(status: DeliveryStatus) -> ColumnElement[str]:
    """The status as text of the statement: both databases see then that an index of only such deliveries serves."""
    return literal_column(f"'{status}'", String)


# spelled so that both databases see that their indexes serve
_IS_OPEN_TEST = text("deliveries.is_test AND deliveries.status IN ('due', 'sending')")
_IS_RETRYING = deliveries.c.status == spelled(DeliveryStatus.RETRYING)

# Asked for by somebody who waits for it: sent all the same.
_TESTS_OF_PAUSED = (
    select(deliveries.c.client_id, deliveries.c.number)
    .join_from(deliveries, subscriptions, subscriptions.c.subscription_id == deliveries.c.subscription_id)
    .where(_IS_OPEN_TEST, deliveries.c.status == spelled(DeliveryStatus.DUE), subscriptions.c.paused_at.is_not(None))
)


# Sorted as only the index of open deliveries is. PostgreSQL, where it believes by old statistics that most deliveries
# are due and of one subscription, otherwise reads all there ever were in the order of another index.
_IN_ORDER = (deliveries.c.subscription_id, deliveries.c.number, deliveries.c.client_id)


def _first_waiting(after: ColumnElement[UUID] | None = None) -> ScalarSelect[UUID]:
    query = select(deliveries.c.subscription_id).where(_status(DeliveryStatus.DUE))
    if after is not None:
        query = query.where(deliveries.c.subscription_id > after)
    return query.order_by(*_IN_ORDER).limit(1).scalar_subquery()


def _of_due(column: Column[T], subscription_id: ColumnElement[UUID], place: int) -> ScalarSelect[T]:
    this = deliveries.c.subscription_id.between(subscription_id, subscription_id)  # equal, it would not be sorted by it
    query = select(column).where(_status(DeliveryStatus.DUE), this).order_by(*_IN_ORDER)
    return query.limit(1).offset(place).scalar_subquery()


def _under_way(subscription_id: ColumnElement[UUID]) -> ScalarSelect[int]:
    query = select(func.count()).where(_status(DeliveryStatus.SENDING), deliveries.c.subscription_id == subscription_id)
    return query.scalar_subquery()


def record(w: Writing, holder: UUID, ended: Sequence[Ended]) -> list[Pause]:
    """End deliveries that `holder` claimed, or let them be tried again; the subscriptions that this paused.

    An attempt is kept whoever made it, and once: who doesn't hear of its commit records the same again. The status
    changes, and the attempt counts for its subscription, only while the lease is the holder's: a sender that comes
    back late doesn't decide about what another has taken over.
    """
    if not ended:
        return []
    reported = {row.delivery_id: row for row in w.execute(_facts().where(_among(ended)))}
    _keep_attempts(w, ended, reported)
    receivers = _locked_receivers(w, {row.subscription_id for row in reported.values()})
    held = {row.delivery_id: row for row in w.execute(_held_by(holder, ended))}
    mine = [_Mine(end, held[end.delivery_id], receivers) for end in ended if end.delivery_id in held]
    if mine:
        this = update(deliveries).where(deliveries.c.number == bindparam("this"))
        w.execute(this.values(lease_holder=None, lease_expires_at=None), [each.values() for each in mine])
    return _counted(w, [each for each in mine if each.counts], receivers)


@dataclass(frozen=True)
class _Mine:
    """The end of a delivery that we still hold: what comes of it."""

    end: Ended
    row: AnyRow
    receivers: Mapping[UUID, AnyRow]  # the subscriptions that are still there

    @property
    def counts(self) -> bool:
        """Whether it says something of the receiver; a test doesn't, nor what never left us."""
        tried = self.end.attempt is not None and self.end.attempt.error != OURS
        return tried and not self.row.is_test and self.row.subscription_id in self.receivers

    @property
    def succeeded(self) -> bool:
        return self.end.status is DeliveryStatus.DELIVERED

    def values(self) -> dict[str, Any]:
        tries = self.row.attempt_count + (self.end.attempt is not None)
        row = {"this": self.row.number, "status": self.end.status, "attempt_count": tries, "retry_at": None}
        if (attempt := self.end.attempt) is None or not self._again(attempt, tries):
            return row
        wait = wait_after(tries, chance=(attempt.attempt_id.int % 1_000) / 1_000)
        return row | {"status": DeliveryStatus.RETRYING, "retry_at": attempt.ended_at + wait}

    def _again(self, attempt: Attempt, tries: int) -> bool:
        receiver = self.receivers.get(self.row.subscription_id)
        if self.end.status is not DeliveryStatus.FAILED or self.row.is_test or receiver is None:
            return False
        return to_be_retried(tries, receiver.max_retries, attempt.status_code, attempt.error)


def _facts() -> AnySelect:
    return select(
        deliveries.c.number,
        deliveries.c.delivery_id,
        deliveries.c.subscription_id,
        deliveries.c.is_test,
        deliveries.c.attempt_count,
    )


def _among(ended: Sequence[Ended]) -> ColumnElement[bool]:
    return deliveries.c.delivery_id.in_([end.delivery_id for end in ended])


def _keep_attempts(w: Writing, ended: Sequence[Ended], reported: Mapping[UUID, AnyRow]) -> None:
    tries = [
        {
            **vars(end.attempt),
            "delivery_id": end.delivery_id,
            "subscription_id": reported[end.delivery_id].subscription_id,
            "is_test": reported[end.delivery_id].is_test,
        }
        for end in ended
        if end.attempt is not None
    ]
    if tries:
        w.execute(insert_into(w, attempts).on_conflict_do_nothing(), tries)


def _locked_receivers(w: Writing, subscription_ids: Iterable[UUID]) -> dict[UUID, AnyRow]:
    """The subscriptions that are still there, each in the same order for everybody, and before their deliveries: who
    deletes one locks in this order, too.
    """
    query: AnySelect = (
        select(
            subscriptions.c.subscription_id,
            subscriptions.c.client_id,
            subscriptions.c.max_retries,
            subscriptions.c.pause_after,
            subscriptions.c.paused_at,
            subscriptions.c.failure_streak,
        )
        .where(subscriptions.c.subscription_id.in_(list(subscription_ids)))
        .order_by(subscriptions.c.subscription_id)
        .with_for_update(key_share=True)
    )
    return {row.subscription_id: row for row in w.execute(query)}


def _held_by(holder: UUID, ended: Sequence[Ended]) -> AnySelect:
    held = and_(deliveries.c.status == DeliveryStatus.SENDING, deliveries.c.lease_holder == holder)
    return _facts().where(_among(ended), held).order_by(deliveries.c.number).with_for_update()


def _counted(w: Writing, ends: Sequence[_Mine], receivers: Mapping[UUID, AnyRow]) -> list[Pause]:
    """Keep each subscription's streak and its last success and failure; those that were paused for it."""
    by_receiver: defaultdict[UUID, list[_Mine]] = defaultdict(list)
    for each in ends:
        by_receiver[each.row.subscription_id].append(each)
    tallies = [_tally(receivers[subscription_id], mine) for subscription_id, mine in sorted(by_receiver.items())]
    if tallies:
        columns = ("failure_streak", "last_delivered_at", "last_failed_at", "paused_at", "paused_by")
        this = update(subscriptions).where(subscriptions.c.subscription_id == bindparam("this"))
        w.execute(this.values({name: _unless_null(name) for name in columns}), [tally for tally, _ in tallies])
    pauses = [pause for _, pause in tallies if pause is not None]
    for pause in pauses:
        ids = {"subscriptionId": pause.subscription_id}
        audit.append(w, audit.SERVICE, "Subscription.Paused", ids, pause.paused_at, client_id=pause.client_id)
    return pauses


def _unless_null(name: str) -> ColumnElement[Any]:
    return func.coalesce(bindparam(f"new_{name}", type_=subscriptions.c[name].type), subscriptions.c[name])


def _tally(receiver: AnyRow, mine: Sequence[_Mine]) -> tuple[dict[str, Any], Pause | None]:
    """What changes of a subscription, None where nothing does, and its pause if it is to be paused."""
    in_order = sorted(mine, key=lambda each: (each.end.attempt.ended_at, each.row.number))  # pyrefly: ignore[missing-attribute]  # what counts was tried
    times = {True: None, False: None} | {each.succeeded: each.end.attempt.ended_at for each in in_order}  # pyrefly: ignore[missing-attribute]
    outcomes = [each.succeeded for each in in_order]
    streak, failures = streak_after(receiver.failure_streak, outcomes, receiver.pause_after)
    this: UUID = receiver.subscription_id
    paused_at = times[False] if failures and receiver.paused_at is None else None
    row = {
        "this": this,
        "new_failure_streak": streak,
        "new_last_delivered_at": times[True],
        "new_last_failed_at": times[False],
        "new_paused_at": paused_at,
        "new_paused_by": paused_at and BY_FAILURES,
    }
    return row, None if paused_at is None else Pause(this, receiver.client_id, failures, paused_at)


def cancel_due(w: Writing, subscription_id: UUID) -> None:
    """Send nothing more for a subscription that is being deleted.

    A bounded number is cancelled here, what waits for its retry first. The rest of a longer queue is due to nobody: a
    sender that claims it cancels it.
    """
    waiting = or_(_status(DeliveryStatus.DUE), _status(DeliveryStatus.RETRYING))
    mine = and_(waiting, deliveries.c.subscription_id == subscription_id)
    # by status backwards: retrying comes before due
    first = select(deliveries.c.number).where(mine).order_by(deliveries.c.status.desc()).limit(CANCELLED_AT_ONCE)
    cancelled = {"status": DeliveryStatus.CANCELLED, "retry_at": None}
    w.execute(update(deliveries).where(mine, deliveries.c.number.in_(first)).values(cancelled))


def any_retry_due(r: Reading, now: datetime) -> bool:
    return bool(_whose_time_has_come(r, now, 1))


def make_retries_due(w: Writing, now: datetime) -> int:
    """Make deliveries due whose time to be tried again has come, a bounded number at once; how many there were."""
    found = _whose_time_has_come(w, now, RETRIES_AT_ONCE)
    if not found:
        return 0
    query = select(deliveries.c.number).where(deliveries.c.number.in_(found), _IS_RETRYING)
    free = w.execute(query.with_for_update(skip_locked=True)).scalars().all()
    due = {"status": DeliveryStatus.DUE, "due_at": now, "retry_at": None}
    return w.execute(update(deliveries).where(deliveries.c.number.in_(free)).values(due)).rowcount


def _whose_time_has_come(r: Reading, now: datetime, most: int) -> Sequence[int]:
    """Mostly there is nothing to retry, and that is one short look."""
    if r.execute(select(deliveries.c.number).where(_IS_RETRYING).limit(1)).first() is None:
        return ()
    return r.execute(_retries_due(), _retry_times(now) | {"most": most}).scalars().all()


@cache
def _retries_due() -> AnySelect:
    """Deliveries whose time has come, or is further away than it can be: then the clock was set back.

    One look-up in the index for each number of tries and each of the two.
    """
    which = [
        and_(_IS_RETRYING, deliveries.c.attempt_count == literal_column(str(tries), Integer), come)
        for tries in range(1, MAX_RETRIES + 1)
        for come in (
            deliveries.c.retry_at <= bindparam("now", type_=UtcDateTime()),
            deliveries.c.retry_at > bindparam(f"latest_{tries}", type_=UtcDateTime()),
        )
    ]
    found = union_all(*(select(deliveries.c.number).where(each) for each in which)).subquery()
    return select(found.c.number).limit(bindparam("most", type_=Integer()))


def _retry_times(now: datetime) -> dict[str, Any]:
    return {"now": now} | {f"latest_{tries}": now + longest_wait(tries) for tries in range(1, MAX_RETRIES + 1)}


def any_expired(r: Reading, now: datetime) -> bool:
    return r.execute(select(deliveries.c.number).where(_expired(now)).limit(1)).first() is not None


def release_expired(w: Writing, now: datetime) -> int:
    """Make deliveries due again whose sender fell silent; how many there were. Those that somebody else has locked,
    perhaps to record them after all, are left to them: waiting could go round in a circle.
    """
    expired = select(deliveries.c.number).where(_expired(now)).with_for_update(skip_locked=True)
    return _release(w, deliveries.c.number.in_(w.execute(expired).scalars().all()))


def give_back(w: Writing, holder: UUID) -> int:
    """Make due again what `holder` claimed and won't send, because it stops or has died; how many there were."""
    return _release(w, deliveries.c.lease_holder == holder)


def _release(w: Writing, which: ColumnElement[bool]) -> int:
    due = {"status": DeliveryStatus.DUE, "lease_holder": None, "lease_expires_at": None}
    return w.execute(update(deliveries).where(_status(DeliveryStatus.SENDING), which).values(due)).rowcount


def _expired(now: datetime) -> ColumnElement[bool]:
    return and_(_status(DeliveryStatus.SENDING), leases.has_ended(deliveries.c.lease_expires_at, now))
