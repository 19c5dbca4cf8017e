"""The audit trail: who did what to which resource, when, and with which outcome.

An entry holds ids and nothing personal, so that it may outlive its customer. It is written in the transaction of the
action that it records, so neither is stored without the other. Entries are never changed or removed: there is no
function for it, and on both databases a trigger refuses it (`models`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from sqlalchemy import func, insert, select, tuple_

from storage.core.database import Reading, Writing, read_values
from storage.core.models import audit

Ids = UUID | str | Sequence[UUID]


class Outcome(StrEnum):
    DONE = "done"
    REFUSED = "refused"


@dataclass(frozen=True)
class Actor:
    """Who acts: a client's key or user in one request, the operator, the service, or a caller without a valid key."""

    who: str  # the id of the key or the user, `operator`, `service` or ANONYMOUS
    client_id: UUID | None = None
    request_id: str | None = None  # as in the response: the caller's, if it sent one
    own_request_id: str | None = None  # always made by the service


ANONYMOUS = "anonymous"
OPERATOR = Actor("operator")
SERVICE = Actor("service")  # acts by itself, by a configured rule


@dataclass(frozen=True)
class Entry:
    """An entry of the trail. `resource`: ids by name, such as `{"subscriptionId": "…"}`."""

    at: datetime
    who: str
    client_id: UUID | None
    action: str
    resource: Mapping[str, str | list[str]]
    outcome: Outcome
    times: int  # occurrences within a minute: repeated refusals are counted, not written one by one
    request_id: str | None
    own_request_id: str | None


def append(
    w: Writing,
    actor: Actor,
    action: str,
    resource: Mapping[str, Ids],
    now: datetime,
    *,
    outcome: Outcome = Outcome.DONE,
    times: int = 1,
    client_id: UUID | None = None,
) -> None:
    """Write one entry within the caller's transaction.

    Args:
        action: `Area.Action` in the past tense, such as `Subscription.Deleted`.
        resource: ids of what the action concerns, by their public names such as `customerId`; never anything personal.
        client_id: the client that the resource belongs to, if the actor is not that client.
    """
    ids = {name: _plain(value) for name, value in resource.items()}
    whose = client_id or actor.client_id
    requests = (actor.request_id, actor.own_request_id)
    entry = Entry(now, actor.who, whose, action, ids, outcome, times, *requests)
    w.execute(insert(audit).values(vars(entry)))


def find(
    r: Reading, client_id: UUID | None = None, since: datetime | None = None, limit: int | None = None
) -> Sequence[Entry]:
    """Return entries, newest first: all of them, one client's, or those from a time on."""
    own = [audit.c[name] for name in Entry.__dataclass_fields__]
    query = select(*own).order_by(audit.c.number.desc()).limit(limit)
    if client_id is not None:
        query = query.where(audit.c.client_id == client_id)
    if since is not None:
        query = query.where(audit.c.at >= since)
    return [Entry(**read_values(row, outcome=Outcome(row.outcome))) for row in r.execute(query)]


@dataclass(frozen=True)
class Filter:
    """Which of a client's entries are listed: those that meet every condition that is given."""

    who: str | None = None
    action: str | None = None
    since: datetime | None = None


@dataclass(frozen=True)
class TrailPosition:
    """A position in a client's trail, newest first: just after the entry with this time and number."""

    at: datetime
    number: int


def find_page(
    r: Reading, client_id: UUID, wanted: Filter, after: TrailPosition | None, count: int
) -> tuple[Sequence[Entry], TrailPosition | None]:
    """Return at most `count` of a client's entries, newest first, and where the next ones begin; None if none are left.

    An index has the order of each single filter, so a page of a long trail costs as much as one of a short one.
    """
    own = [audit.c[name] for name in Entry.__dataclass_fields__]
    place = (audit.c.at, audit.c.number)
    query = select(*own, audit.c.number).where(audit.c.client_id == client_id)
    if wanted.who is not None:
        query = query.where(audit.c.who == wanted.who)
    if wanted.action is not None:
        query = query.where(audit.c.action == wanted.action)
    if wanted.since is not None:
        query = query.where(audit.c.at >= wanted.since)
    if after is not None:
        query = query.where(tuple_(*place) < tuple_(after.at, after.number, types=[each.type for each in place]))
    rows = r.execute(query.order_by(*(each.desc() for each in place)).limit(count + 1)).all()
    entries = [Entry(*row[:-1]) for row in rows[:count]]
    return entries, TrailPosition(rows[count - 1].at, rows[count - 1].number) if len(rows) > count else None


def find_actions(r: Reading, client_id: UUID) -> Sequence[str]:
    """Return each action that is in a client's trail, in order.

    Each is found in the index by the one before it, so that a long trail costs no more than a short one.
    """
    own = select(func.min(audit.c.action).label("action")).where(audit.c.client_id == client_id)
    found = own.cte("found", recursive=True)
    following = own.where(audit.c.action > found.c.action).scalar_subquery()
    found = found.union_all(select(following).where(found.c.action.is_not(None)))
    query = select(found.c.action).where(found.c.action.is_not(None))
    return r.execute(query.order_by(found.c.action)).scalars().all()


def _plain(ids: Ids) -> str | list[str]:
    return str(ids) if isinstance(ids, UUID | str) else [str(each) for each in ids]
