"""Decide which due deliveries a sender may claim next.

Subscriptions take turns, and so do clients: the next slot goes to a client with the fewest deliveries in progress. Over
all senders, a subscription has at most `PER_SUBSCRIPTION` in progress and a client `PER_CLIENT`. A client also never
has more than the claiming sender has free slots: the fuller the sender, the fewer for each, so that hanging receivers
don't block other clients. If the receivers of N clients all hang, and N is at least four, each client has
`SLOTS` / (N + 1) slots, and as many stay free: 60 with four such clients, 9 with thirty, none with `SLOTS`. A slot that
was taken while more were free stays taken until the receiver answers or its deadline passes. So ten clients whose
receivers begin to hang one after the other can take all slots until their first deadlines have passed.

A claim reads the index by subscription, never a whole queue, so its cost doesn't depend on a queue's length.
"""

from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import Column, ColumnElement, ScalarSelect, exists, func, select, text

from storage.core.database import AnySelect, Reading
from storage.core.models import DeliveryStatus, deliveries, subscriptions
from storage.webhooks.conditions import IS_OPEN_TEST, has_status, literal_status

PER_SUBSCRIPTION = 4  # deliveries in progress at once: our judgement, like the next two
PER_CLIENT = 64  # the same, over all of a client's subscriptions
SLOTS = 300  # the same, of one sender

T = TypeVar("T")


def next_numbers(r: Reading, limit: int, free: int) -> list[int]:
    """Return at most `limit` due deliveries: the oldest of each subscription, then the second oldest, and so on."""
    if r.execute(select(deliveries.c.number).where(has_status(DeliveryStatus.DUE)).limit(1)).first() is None:
        return []  # the usual case, and this is asked after every commit
    turns: list[tuple[int, int, UUID]] = []
    if r.dialect.name == "postgresql":
        # With outdated statistics PostgreSQL expects few rows in a queue, and would sort all for each subscription.
        r.execute(text("SET LOCAL enable_bitmapscan = off"))
    for client_id, in_progress, *numbers in r.execute(waiting_subscriptions()):
        waiting = [number for number in numbers if number is not None]
        free_turns = range(in_progress, PER_SUBSCRIPTION)
        turns += [(turn, number, client_id) for turn, number in zip(free_turns, waiting, strict=False)]
    turns += [(0, number, client_id) for client_id, number in r.execute(TESTS_OF_PAUSED)]
    return _share_slots(turns, _count_in_progress(r), free)[:limit]


def _share_slots(turns: Iterable[tuple[int, int, UUID]], in_progress: Counter[UUID], free: int) -> list[int]:
    """Return the numbers of the deliveries to claim, within each client's share of the free slots.

    The next delivery is always one of the client that has the fewest in progress.
    """
    ranked = []
    for turn, number, client_id in sorted(turns):
        ranked.append((in_progress[client_id], turn, number))
        in_progress[client_id] += 1
    in_order = enumerate(sorted(ranked))
    return [number for index, (rank, _, number) in in_order if rank < min(PER_CLIENT, free - index)]


def _count_in_progress(r: Reading) -> Counter[UUID]:
    """Return how many deliveries each client has in progress. All senders' slots limit the number of rows read."""
    query = select(deliveries.c.client_id, func.count()).where(has_status(DeliveryStatus.SENDING))
    return Counter(dict(tuple(row) for row in r.execute(query.group_by(deliveries.c.client_id))))


@cache
def waiting_subscriptions() -> AnySelect:
    """Return a query of the subscriptions with due deliveries that are not paused: the client, how many deliveries are
    in progress, and the numbers of the first few due ones.

    The recursion jumps through the index from one subscription to the next.
    """
    waiting = select(_first_waiting().label("subscription_id")).cte("waiting", recursive=True)
    last = waiting.c.subscription_id
    waiting = waiting.union_all(select(_first_waiting(after=last)).where(last.is_not(None)))
    subscription_id = waiting.c.subscription_id
    columns: list[ColumnElement[Any]] = [
        _nth_due(deliveries.c.client_id, subscription_id, 0).label("client_id"),
        _in_progress(subscription_id).label("in_progress"),
    ]
    columns += [_nth_due(deliveries.c.number, subscription_id, n).label(f"number_{n}") for n in range(PER_SUBSCRIPTION)]
    return select(*columns).where(subscription_id.is_not(None), ~_is_paused(subscription_id))


def _is_paused(subscription_id: ColumnElement[UUID]) -> ColumnElement[bool]:
    return exists().where(subscriptions.c.subscription_id == subscription_id, subscriptions.c.paused_at.is_not(None))


# A test is sent even while its subscription is paused, because the person who requested it waits for the result.
TESTS_OF_PAUSED = (
    select(deliveries.c.client_id, deliveries.c.number)
    .join_from(deliveries, subscriptions, subscriptions.c.subscription_id == deliveries.c.subscription_id)
    .where(
        IS_OPEN_TEST,
        deliveries.c.status == literal_status(DeliveryStatus.DUE),
        subscriptions.c.paused_at.is_not(None),
    )
)


# The order of the index of open deliveries, and of no other index. Otherwise, if outdated statistics say that most
# deliveries are due and belong to one subscription, PostgreSQL reads all deliveries there ever were by another index.
_INDEX_ORDER = (deliveries.c.subscription_id, deliveries.c.number, deliveries.c.client_id)


def _first_waiting(after: ColumnElement[UUID] | None = None) -> ScalarSelect[UUID]:
    query = select(deliveries.c.subscription_id).where(has_status(DeliveryStatus.DUE))
    if after is not None:
        query = query.where(deliveries.c.subscription_id > after)
    return query.order_by(*_INDEX_ORDER).limit(1).scalar_subquery()


def _nth_due(column: Column[T], subscription_id: ColumnElement[UUID], n: int) -> ScalarSelect[T]:
    # BETWEEN instead of "=", with which PostgreSQL would drop the column from ORDER BY
    selected = deliveries.c.subscription_id.between(subscription_id, subscription_id)
    query = select(column).where(has_status(DeliveryStatus.DUE), selected).order_by(*_INDEX_ORDER)
    return query.limit(1).offset(n).scalar_subquery()


def _in_progress(subscription_id: ColumnElement[UUID]) -> ScalarSelect[int]:
    selected = deliveries.c.subscription_id == subscription_id
    return select(func.count()).where(has_status(DeliveryStatus.SENDING), selected).scalar_subquery()
