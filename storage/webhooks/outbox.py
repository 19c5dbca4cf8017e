"""The outbox: events, and one delivery of each event for every subscription that matches it.

An event is stored in the transaction of the change that it reports. A delivery is sent under a lease: `claim_due` gives
it to one sender, and `record` ends it. If the sender dies, the lease expires and the same bytes are sent again. A
failed delivery stays failed until it is resent, unless its subscription asks for retries: then it becomes due again by
the schedule of `pipelines.webhooks.retries`.

    due ─ claim_due ─→ sending ─ record ─→ delivered | failed | retrying ─ make_retries_due ─→ due

Deliveries to a paused subscription stay due and are not claimed, except for tests. `turns` says which delivery is next.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import (
    ColumnElement,
    Integer,
    and_,
    bindparam,
    exists,
    func,
    insert,
    literal_column,
    null,
    or_,
    select,
    union_all,
    update,
)

from pipelines.vocabulary.errors import Conflict
from pipelines.webhooks.events import Event, EventType, JobOutcome, extraction_completed
from pipelines.webhooks.events import job_events as events_of_job
from pipelines.webhooks.retries import MAX_RETRIES, longest_wait, should_retry, update_streak, wait_after
from storage.core import audit, leases
from storage.core.column_types import UtcDateTime
from storage.core.database import AnyRow, AnySelect, Reading, Writing, insert_into
from storage.core.models import DeliveryStatus, attempts, deliveries, events, subscription_customers, subscriptions
from storage.webhooks.conditions import IS_OPEN_TEST, IS_RETRYING, has_status
from storage.webhooks.turns import SLOTS, next_numbers

RETRIES_AT_ONCE = 1_000  # how many deliveries one transaction makes due
CANCELLED_AT_ONCE = 10_000  # when their subscription is deleted
BY_FAILURES = "failures"  # the value of `paused_by` if failures paused the subscription, not a person
UNREADABLE_SECRET = "secret"  # the class of failures to decrypt the signing secret, no fault of the receiver


@dataclass(frozen=True)
class NewEvent:
    """An event of a customer, with the exact bytes that are sent."""

    event_id: UUID
    client_id: UUID
    customer_number: int | None
    job_id: UUID | None
    event_type: EventType
    body: bytes
    created_at: datetime


@dataclass(frozen=True)
class Claimed:
    """A delivery that this sender must send now. URL and secret are None if its subscription was deleted."""

    delivery_id: UUID
    subscription_id: UUID
    client_id: UUID
    event_id: UUID
    body: bytes
    webhook_url: str | None
    sealed_secret: bytes | None


@dataclass(frozen=True)
class Attempt:
    """One attempt to deliver: the receiver's status, or the class of the failure, or both if the response broke off.

    The durations of its steps follow in order, in ms; None for a step that was not completed.
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
    """The end of a claimed delivery. `attempt` is None if the subscription was deleted, so that nothing was sent.

    Whether a failed delivery is retried is decided when its end is recorded.
    """

    delivery_id: UUID
    status: DeliveryStatus
    attempt: Attempt | None


@dataclass(frozen=True)
class Pause:
    """A subscription that was paused because of its failures."""

    subscription_id: UUID
    client_id: UUID
    failures: int
    paused_at: datetime


def job_events(customer_number: int, outcome: JobOutcome, now: datetime) -> list[NewEvent]:
    """Return the events of a job that ends now, ready to be enqueued."""
    return _new_events(customer_number, outcome, events_of_job(outcome, now), now)


def extraction_events(customer_number: int, outcome: JobOutcome, now: datetime) -> list[NewEvent]:
    """Return the event of a job whose rows were extracted and land now."""
    return _new_events(customer_number, outcome, [extraction_completed(outcome, now)], now)


def _new_events(customer_number: int, outcome: JobOutcome, happened: Sequence[Event], now: datetime) -> list[NewEvent]:
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
    """Store events, and make a delivery of each due for every subscription that matches it now."""
    if not new:
        return
    w.execute(insert(events), [vars(event) for event in new])
    audience = _read_audience(w, new)
    due = [_due_row(event, subscription_id) for event in new for subscription_id in audience(event)]
    if due:
        w.execute(insert(deliveries), due)


class _Audience:
    """The subscriptions to events, by client, event type and customer (None for catch-alls)."""

    def __init__(self, matches: Iterable[AnyRow]) -> None:
        self._subscriptions: defaultdict[tuple[UUID, str, int | None], list[UUID]] = defaultdict(list)
        for match in matches:
            self._subscriptions[match.client_id, match.event_type, match.customer_number].append(match.subscription_id)

    def __call__(self, event: NewEvent) -> list[UUID]:
        catch_alls = self._subscriptions.get((event.client_id, event.event_type, None), [])
        if event.customer_number is None:
            return catch_alls
        return self._subscriptions.get((event.client_id, event.event_type, event.customer_number), []) + catch_alls


def _read_audience(r: Reading, new: Sequence[NewEvent]) -> _Audience:
    """Return the subscriptions to these events.

    This is one SQL statement: with two, a subscription that becomes a catch-all in between could be found twice or not
    at all.
    """
    same_type = and_(
        subscriptions.c.client_id.in_({event.client_id for event in new}),
        subscriptions.c.event_type.in_({event.event_type for event in new}),
    )
    scope = subscription_customers.c
    columns = (subscriptions.c.subscription_id, subscriptions.c.client_id, subscriptions.c.event_type)
    scoped = (
        select(*columns, scope.customer_number)
        .join_from(subscriptions, subscription_customers)
        .where(same_type, scope.customer_number.in_({event.customer_number for event in new}))
    )
    catch_alls = select(*columns, null().label("customer_number")).where(
        same_type, ~exists().where(scope.subscription_id == subscriptions.c.subscription_id)
    )
    return _Audience(r.execute(union_all(scoped, catch_alls)))


def enqueue_test(w: Writing, event: NewEvent, subscription_id: UUID) -> UUID:
    """Store a sample event, due for one subscription. Return the id of its delivery.

    Raises:
        Conflict: the subscription's last test has not ended.
    """
    receiver = select(subscriptions.c.subscription_id).where(subscriptions.c.subscription_id == subscription_id)
    w.execute(receiver.with_for_update())  # so that two requests at the same time can't both pass the next check
    if w.execute(_open_test(subscription_id)).first() is not None:
        raise Conflict("Webhook.TestUnderWay", "The last test of this subscription has not ended yet.")
    w.execute(insert(events).values(vars(event)))
    due = _due_row(event, subscription_id)
    w.execute(insert(deliveries).values(due | {"is_test": True}))
    delivery_id: UUID = due["delivery_id"]
    return delivery_id


def _open_test(subscription_id: UUID) -> AnySelect:
    query = select(deliveries.c.number).where(IS_OPEN_TEST, deliveries.c.subscription_id == subscription_id)
    return query.limit(1)


def _due_row(event: NewEvent, subscription_id: UUID) -> dict[str, Any]:
    return {
        "delivery_id": uuid4(),
        "client_id": event.client_id,
        "event_id": event.event_id,
        "subscription_id": subscription_id,
        "status": DeliveryStatus.DUE,
        "created_at": event.created_at,
        "due_at": event.created_at,
    }


def has_due(r: Reading, free: int = SLOTS) -> bool:
    """Return whether a claim would find something. Check this before a claim, which wakes all watchers by its commit.

    Args:
        free: how many of the sender's slots are free.
    """
    return bool(next_numbers(r, 1, free))


def find_due_since(r: Reading) -> datetime | None:
    """Return when the oldest due delivery became due (created, resent or retried); None if nothing is due.

    Deliveries that wait for a paused subscription don't count.
    """
    paused = select(subscriptions.c.subscription_id).where(subscriptions.c.paused_at.is_not(None))
    due = and_(has_status(DeliveryStatus.DUE), deliveries.c.subscription_id.not_in(paused))
    return r.execute(select(func.min(deliveries.c.due_at)).where(due)).scalar()


def claim_due(w: Writing, holder: UUID, limit: int, lease_s: float, now: datetime, free: int = SLOTS) -> list[Claimed]:
    """Claim at most `limit` due deliveries, subscriptions in turn, under a lease of `lease_s` seconds.

    Args:
        free: how many of the sender's slots are free.
    """
    taken = _lock_due(w, next_numbers(w, limit, free))
    if not taken:
        return []
    lease = {"lease_holder": holder, "lease_expires_at": now + timedelta(seconds=lease_s)}
    selected = deliveries.c.number.in_(taken)
    w.execute(update(deliveries).where(selected).values(status=DeliveryStatus.SENDING, **lease))
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
        .where(selected)
        .order_by(deliveries.c.number)
    )
    return [Claimed(*row) for row in w.execute(query)]


def _lock_due(w: Writing, numbers: Sequence[int]) -> list[int]:
    """Lock and return those of the deliveries that are still due and that no other sender is claiming."""
    query = select(deliveries.c.number).where(
        deliveries.c.number.in_(numbers), deliveries.c.status == DeliveryStatus.DUE
    )
    return list(w.execute(query.with_for_update(skip_locked=True)).scalars())


def record(w: Writing, holder: UUID, ended: Sequence[Ended]) -> list[Pause]:
    """Record the ends of deliveries that `holder` claimed, or schedule their retries. Return the resulting pauses.

    An attempt is always stored, and only once: a sender that doesn't learn of the commit records it again. The status
    changes, and the attempt counts for its subscription, only while `holder` has the lease, so that a late sender
    doesn't decide about a delivery that another has taken over.
    """
    if not ended:
        return []
    reported = {row.delivery_id: row for row in w.execute(_select_facts().where(_among(ended)))}
    _store_attempts(w, ended, reported)
    receivers = _lock_receivers(w, {row.subscription_id for row in reported.values()})
    held = {row.delivery_id: row for row in w.execute(_held_by(holder, ended))}
    decided = [_HeldEnd(end, held[end.delivery_id], receivers) for end in ended if end.delivery_id in held]
    if decided:
        one = update(deliveries).where(deliveries.c.number == bindparam("of_number"))
        w.execute(one.values(lease_holder=None, lease_expires_at=None), [end.values() for end in decided])
    return _update_receivers(w, [end for end in decided if end.counts], receivers)


@dataclass(frozen=True)
class _HeldEnd:
    """The end of a delivery whose lease the recording sender still has."""

    end: Ended
    row: AnyRow
    receivers: Mapping[UUID, AnyRow]  # the subscriptions that still exist

    @property
    def counts(self) -> bool:
        """Whether it counts for the subscription: tests don't, nor failures before anything was sent."""
        tried = self.end.attempt is not None and self.end.attempt.error != UNREADABLE_SECRET
        return tried and not self.row.is_test and self.row.subscription_id in self.receivers

    @property
    def succeeded(self) -> bool:
        return self.end.status is DeliveryStatus.DELIVERED

    def values(self) -> dict[str, Any]:
        tries = self.row.attempt_count + (self.end.attempt is not None)
        row = {"of_number": self.row.number, "status": self.end.status, "attempt_count": tries, "retry_at": None}
        if (attempt := self.end.attempt) is None or not self._is_retried(attempt, tries):
            return row
        wait = wait_after(tries, chance=(attempt.attempt_id.int % 1_000) / 1_000)
        return row | {"status": DeliveryStatus.RETRYING, "retry_at": attempt.ended_at + wait}

    def _is_retried(self, attempt: Attempt, tries: int) -> bool:
        receiver = self.receivers.get(self.row.subscription_id)
        if self.end.status is not DeliveryStatus.FAILED or self.row.is_test or receiver is None:
            return False
        return should_retry(tries, receiver.max_retries, attempt.status_code, attempt.error)


def _select_facts() -> AnySelect:
    return select(
        deliveries.c.number,
        deliveries.c.delivery_id,
        deliveries.c.subscription_id,
        deliveries.c.is_test,
        deliveries.c.attempt_count,
    )


def _among(ended: Sequence[Ended]) -> ColumnElement[bool]:
    return deliveries.c.delivery_id.in_([end.delivery_id for end in ended])


def _store_attempts(w: Writing, ended: Sequence[Ended], reported: Mapping[UUID, AnyRow]) -> None:
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


def _lock_receivers(w: Writing, subscription_ids: Iterable[UUID]) -> dict[UUID, AnyRow]:
    """Lock and return the subscriptions that still exist.

    To avoid deadlocks, all transactions lock subscriptions in order of their ids, and before their deliveries. The
    deletion of a subscription does so too.
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
    return _select_facts().where(_among(ended), held).order_by(deliveries.c.number).with_for_update()


def _update_receivers(w: Writing, ends: Sequence[_HeldEnd], receivers: Mapping[UUID, AnyRow]) -> list[Pause]:
    """Update each subscription's failure streak and its last success and failure. Return those that this pauses."""
    by_receiver: defaultdict[UUID, list[_HeldEnd]] = defaultdict(list)
    for end in ends:
        by_receiver[end.row.subscription_id].append(end)
    tallies = [_tally(receivers[subscription_id], rows) for subscription_id, rows in sorted(by_receiver.items())]
    if tallies:
        columns = ("failure_streak", "last_delivered_at", "last_failed_at", "paused_at", "paused_by")
        one = update(subscriptions).where(subscriptions.c.subscription_id == bindparam("of_subscription"))
        w.execute(one.values({name: _unless_null(name) for name in columns}), [tally for tally, _ in tallies])
    pauses = [pause for _, pause in tallies if pause is not None]
    for pause in pauses:
        ids = {"subscriptionId": pause.subscription_id}
        audit.append(w, audit.SERVICE, "Subscription.Paused", ids, pause.paused_at, client_id=pause.client_id)
    return pauses


def _unless_null(name: str) -> ColumnElement[Any]:
    return func.coalesce(bindparam(f"new_{name}", type_=subscriptions.c[name].type), subscriptions.c[name])


def _tally(receiver: AnyRow, ends: Sequence[_HeldEnd]) -> tuple[dict[str, Any], Pause | None]:
    """Return the new values of a subscription, None for those that stay, and its pause if it is to be paused."""
    in_order = sorted(ends, key=lambda end: (end.end.attempt.ended_at, end.row.number))  # pyrefly: ignore[missing-attribute]  # an end that counts has an attempt
    times = {True: None, False: None} | {end.succeeded: end.end.attempt.ended_at for end in in_order}  # pyrefly: ignore[missing-attribute]
    outcomes = [end.succeeded for end in in_order]
    streak, failures = update_streak(receiver.failure_streak, outcomes, receiver.pause_after)
    subscription_id: UUID = receiver.subscription_id
    paused_at = times[False] if failures and receiver.paused_at is None else None
    row = {
        "of_subscription": subscription_id,
        "new_failure_streak": streak,
        "new_last_delivered_at": times[True],
        "new_last_failed_at": times[False],
        "new_paused_at": paused_at,
        "new_paused_by": paused_at and BY_FAILURES,
    }
    return row, None if paused_at is None else Pause(subscription_id, receiver.client_id, failures, paused_at)


def cancel_due(w: Writing, subscription_id: UUID) -> None:
    """Cancel the open deliveries of a subscription that is being deleted.

    At most CANCELLED_AT_ONCE are cancelled here, those that wait for a retry first. The rest stay due, and the sender
    that claims one cancels it.
    """
    waiting = or_(has_status(DeliveryStatus.DUE), has_status(DeliveryStatus.RETRYING))
    selected = and_(waiting, deliveries.c.subscription_id == subscription_id)
    # descending by status, because "retrying" sorts after "due"
    first = select(deliveries.c.number).where(selected).order_by(deliveries.c.status.desc()).limit(CANCELLED_AT_ONCE)
    cancelled = {"status": DeliveryStatus.CANCELLED, "retry_at": None}
    w.execute(update(deliveries).where(selected, deliveries.c.number.in_(first)).values(cancelled))


def has_retry_due(r: Reading, now: datetime) -> bool:
    return bool(_find_retries_due(r, now, 1))


def make_retries_due(w: Writing, now: datetime) -> int:
    """Make deliveries due whose retry time has come, at most RETRIES_AT_ONCE. Return how many."""
    numbers = _find_retries_due(w, now, RETRIES_AT_ONCE)
    if not numbers:
        return 0
    query = select(deliveries.c.number).where(deliveries.c.number.in_(numbers), IS_RETRYING)
    unlocked = w.execute(query.with_for_update(skip_locked=True)).scalars().all()
    due = {"status": DeliveryStatus.DUE, "due_at": now, "retry_at": None}
    return w.execute(update(deliveries).where(deliveries.c.number.in_(unlocked)).values(due)).rowcount


def _find_retries_due(r: Reading, now: datetime, most: int) -> Sequence[int]:
    # Mostly no delivery waits for a retry, and this query is much cheaper than the next.
    if r.execute(select(deliveries.c.number).where(IS_RETRYING).limit(1)).first() is None:
        return ()
    return r.execute(_retries_due(), _retry_times(now) | {"most": most}).scalars().all()


@cache
def _retries_due() -> AnySelect:
    """Return a query of deliveries whose retry is due.

    A retry time that is further away than any wait also counts as due: it was set before the clock was set back. The
    query does one index look-up for each number of tries and each of these two cases.
    """
    cases = [
        and_(IS_RETRYING, deliveries.c.attempt_count == literal_column(str(tries), Integer), has_come)
        for tries in range(1, MAX_RETRIES + 1)
        for has_come in (
            deliveries.c.retry_at <= bindparam("now", type_=UtcDateTime()),
            deliveries.c.retry_at > bindparam(f"latest_{tries}", type_=UtcDateTime()),
        )
    ]
    retries = union_all(*(select(deliveries.c.number).where(case) for case in cases)).subquery()
    return select(retries.c.number).limit(bindparam("most", type_=Integer()))


def _retry_times(now: datetime) -> dict[str, Any]:
    return {"now": now} | {f"latest_{tries}": now + longest_wait(tries) for tries in range(1, MAX_RETRIES + 1)}


def has_expired(r: Reading, now: datetime) -> bool:
    return r.execute(select(deliveries.c.number).where(_is_expired(now)).limit(1)).first() is not None


def release_expired(w: Writing, now: datetime) -> int:
    """Make deliveries due again whose sender let the lease expire. Return how many.

    Deliveries that another transaction has locked, perhaps to record them after all, are skipped: waiting for them
    could deadlock.
    """
    expired = select(deliveries.c.number).where(_is_expired(now)).with_for_update(skip_locked=True)
    return _release(w, deliveries.c.number.in_(w.execute(expired).scalars().all()))


def give_back(w: Writing, holder: UUID) -> int:
    """Make due again what `holder` claimed and won't send, because it stops or has died. Return how many."""
    return _release(w, deliveries.c.lease_holder == holder)


def _release(w: Writing, which: ColumnElement[bool]) -> int:
    due = {"status": DeliveryStatus.DUE, "lease_holder": None, "lease_expires_at": None}
    return w.execute(update(deliveries).where(has_status(DeliveryStatus.SENDING), which).values(due)).rowcount


def _is_expired(now: datetime) -> ColumnElement[bool]:
    return and_(has_status(DeliveryStatus.SENDING), leases.has_ended(deliveries.c.lease_expires_at, now))
