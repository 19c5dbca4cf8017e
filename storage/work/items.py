"""Work items: what waits for people, and what they did with it.

Each match is an alert. A decision waits for a person as long as it is the latest of its customer and policy (what-ifs
don't count), its outcome leaves something to decide, and nobody has overridden it. An item is written in the
transaction of its match or evaluation, so none of these is stored without its item.

Actions are never changed. On an alert each applies in any state, on a decision only while it waits. A lock on the item
orders them: of two simultaneous actions the last one determines the state, and both are in the item's history.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, and_, bindparam, func, insert, or_, select, update

from pipelines.decisions import INDETERMINATE
from pipelines.vocabulary.errors import Conflict
from storage.core.database import AnyRow, AnySelect, Reading, Writing, read_values
from storage.core.json_member import json_member
from storage.core.models import (
    customers,
    evaluations,
    monitoring_ruleset_versions,
    policies,
    policy_versions,
    rule_matches,
    work_actions,
)
from storage.core.models import work_items as items
from storage.core.paging import Page, Paged, count_total, limit_to_page
from storage.customers import summaries
from storage.customers.customers import Customer, lock_all

UNDECIDED = ("conditional", INDETERMINATE)  # outcomes that leave something to a person


class ItemKind(StrEnum):
    ALERT = "alert"
    DECISION = "decision"


class ItemState(StrEnum):
    """The state of an item. A snoozed item is stored as an open one with the time until which it is snoozed."""

    OPEN = "open"
    ACKNOWLEDGED = "acknowledged"
    SNOOZED = "snoozed"
    CLOSED = "closed"


class ItemAction(StrEnum):
    ACKNOWLEDGE = "acknowledge"
    SNOOZE = "snooze"
    CLOSE = "close"
    REOPEN = "reopen"
    ASSIGN = "assign"


STATE_AFTER = {
    ItemAction.ACKNOWLEDGE: ItemState.ACKNOWLEDGED,
    ItemAction.SNOOZE: ItemState.OPEN,
    ItemAction.CLOSE: ItemState.CLOSED,
    ItemAction.REOPEN: ItemState.OPEN,
}


@dataclass(frozen=True)
class NewItem:
    """A new item. `subject_id` is the ruleset's or the policy's id."""

    item_id: UUID
    kind: ItemKind
    client_id: UUID
    customer_number: int
    subject_id: UUID
    at: datetime


@dataclass(frozen=True)
class Item:
    """An item as it is at a time, with what is shown of its match or evaluation."""

    number: int
    item_id: UUID
    kind: ItemKind
    at: datetime
    state: ItemState
    snoozed_until: datetime | None  # null if it isn't snoozed any more
    assignee: str | None
    customer_id: UUID
    customer_name: str | None
    slug: str  # of the ruleset's version that fired, or of the policy
    subject_name: str  # of the ruleset's version that fired, or of the policy's that decided
    outcome: str | None  # of a decision
    rules: Sequence[str]  # codes, of an alert


@dataclass(frozen=True)
class Action:
    """What a person does with an item."""

    action: ItemAction
    until: datetime | None = None  # of a snooze
    reason: str | None = None
    assignee: str | None = None  # of an assignment; null: to nobody


@dataclass(frozen=True, kw_only=True)
class PastAction(Action):
    at: datetime
    who: str  # as in the audit trail


@dataclass(frozen=True)
class Unassigned:
    """Stands for no assignee in a search."""


NOBODY = Unassigned()


# Opening and closing


def open_alerts(w: Writing, new: Sequence[NewItem]) -> None:
    """Open the items of new matches."""
    w.execute(insert(items), [{**vars(each), "state": ItemState.OPEN} for each in new])
    summaries.refresh(w, {each.customer_number for each in new}, summaries.ALERT_COLUMNS)


def replace_decision(w: Writing, new: NewItem, outcome: str) -> None:
    """Close the item of the customer's earlier decision by the policy, and open one if the new outcome needs a person.

    The new item keeps the assignee of the earlier one. The customer must be locked, so that of two simultaneous
    decisions the later one remains open.
    """
    replaced = w.execute(_OPEN_OF_SUBJECT, {"number": new.customer_number, "subject_id": new.subject_id}).all()
    for row in replaced:
        close_decision(w, row.item_id)
    if outcome in UNDECIDED:
        assignee = replaced[-1].assignee if replaced else None
        w.execute(insert(items), {**vars(new), "state": ItemState.OPEN, "assignee": assignee})


_OPEN_OF_SUBJECT: AnySelect = (
    select(items.c.item_id, items.c.assignee)
    .where(
        items.c.customer_number == bindparam("number"),
        items.c.subject_id == bindparam("subject_id"),
        items.c.state != ItemState.CLOSED,
    )
    .order_by(items.c.number)
)


def close_decision(w: Writing, evaluation_id: UUID) -> None:
    """Close the item of a decision that was overridden or replaced, if it has one."""
    w.execute(_CLOSE, {"closed_id": evaluation_id})


_CLOSE = (
    update(items).where(items.c.item_id == bindparam("closed_id")).values(state=ItemState.CLOSED, snoozed_until=None)
)


# Acting


def act(w: Writing, client_id: UUID, item_id: UUID, action: Action, who: str, now: datetime) -> None:
    """Apply an action to the client's item, and record it.

    Raises:
        Conflict: it is a decision that doesn't wait for a person, or no longer does.
    """
    selected = (items.c.item_id == item_id, items.c.client_id == client_id)
    row = w.execute(select(items).where(*selected).with_for_update()).first()
    if row is None or (row.kind == ItemKind.DECISION and row.state == ItemState.CLOSED):
        raise Conflict("Evaluation.NotWaiting", "The decision doesn't wait for a person.")
    recorded = {"item_id": item_id, "customer_number": row.customer_number, "at": now, "who": who}
    w.execute(insert(work_actions).values(**vars(action), **recorded))
    w.execute(update(items).where(items.c.number == row.number).values(_changed_columns(action)))
    if row.kind == ItemKind.ALERT:
        summaries.refresh(w, [row.customer_number], summaries.ALERT_COLUMNS)


def _changed_columns(action: Action) -> dict[str, Any]:
    if action.action is ItemAction.ASSIGN:
        return {"assignee": action.assignee}
    return {"state": STATE_AFTER[action.action], "snoozed_until": action.until}


def has_ended_snoozes(r: Reading, now: datetime) -> bool:
    """Return whether `end_snoozes` has something to do."""
    return r.execute(select(items.c.number).where(items.c.snoozed_until <= now).limit(1)).first() is not None


def end_snoozes(w: Writing, now: datetime) -> int:
    """Clear the snoozes that have ended, so that customers' summaries count these alerts as open. Return how many.

    All other code compares a snooze's end with the time by itself. To prevent deadlocks, the customers are locked
    before their summaries, as in a batch's commit.
    """
    ended = select(items.c.number, items.c.customer_number).where(items.c.snoozed_until <= now)
    lock_all(w, {row.customer_number for row in w.execute(ended)})
    rows = w.execute(ended.order_by(items.c.number).with_for_update()).all()
    for start in range(0, len(rows), summaries.SLICE):
        numbers = [row.number for row in rows[start : start + summaries.SLICE]]
        w.execute(update(items).where(items.c.number.in_(numbers)).values(snoozed_until=None))
    summaries.refresh(w, {row.customer_number for row in rows}, summaries.ALERT_COLUMNS)
    return len(rows)


# Reading


def get(r: Reading, client_id: UUID, item_id: UUID, now: datetime) -> Item:
    """Return the client's item, which must exist: that of a match, or of a decision that has waited."""
    row = r.execute(_SHOWN.where(items.c.item_id == item_id, items.c.client_id == client_id)).one()
    return _as_item(row, now)


def find_decision(r: Reading, client_id: UUID, evaluation_id: UUID, now: datetime) -> Item | None:
    """Return the item of the client's decision; None if the decision has never waited for a person."""
    row = r.execute(_SHOWN.where(items.c.item_id == evaluation_id, items.c.client_id == client_id)).one_or_none()
    return None if row is None else _as_item(row, now)


def find_history(r: Reading, item: Item) -> list[PastAction]:
    """Return what people did with an item, newest first."""
    selected = work_actions.c.item_id == item.item_id
    own = [work_actions.c[name] for name in PastAction.__dataclass_fields__]
    rows = r.execute(select(*own).where(selected).order_by(work_actions.c.number.desc()))
    return [PastAction(**read_values(row, action=ItemAction(row.action))) for row in rows]


def find_waiting(
    r: Reading,
    client_id: UUID,
    now: datetime,
    *,
    kind: ItemKind | None = None,
    assignee: str | Unassigned | None = None,
    page: Page | None = None,
) -> Paged[Item]:
    """Return what waits for people, newest first: items that are neither closed nor snoozed."""
    conditions = [items.c.state != ItemState.CLOSED, _is_awake(now), *_is_assigned(assignee)]
    if kind is not None:
        conditions.append(items.c.kind == kind)
    return _find(r, client_id, conditions, now, page)


def find_alerts(
    r: Reading,
    client_id: UUID,
    now: datetime,
    *,
    state: ItemState | None = None,
    assignee: str | Unassigned | None = None,
    customer: Customer | None = None,
    ruleset_id: UUID | None = None,
    page: Page | None = None,
) -> Paged[Item]:
    """Return the client's alerts, newest first."""
    conditions = [items.c.kind == ItemKind.ALERT, *_has_state(state, now), *_is_assigned(assignee)]
    if customer is not None:
        conditions.append(items.c.customer_number == customer.number)
    if ruleset_id is not None:
        conditions.append(items.c.subject_id == ruleset_id)
    return _find(r, client_id, conditions, now, page)


def _find(
    r: Reading, client_id: UUID, conditions: Sequence[ColumnElement[bool]], now: datetime, page: Page | None
) -> Paged[Item]:
    """Return items that meet conditions on the items' own columns, which indexes hold.

    Items are counted and skipped by the indexes alone; what is shown of an item is joined only for those of the page.
    This makes late pages several times faster.
    """
    these = select(items.c.number).where(items.c.client_id == client_id, *conditions)
    on_page = limit_to_page(these.order_by(items.c.number.desc()), page).subquery()
    shown = _SHOWN.join(on_page, on_page.c.number == items.c.number).order_by(items.c.number.desc())
    return Paged([_as_item(row, now) for row in r.execute(shown)], count_total(r, these), page)


def _is_assigned(assignee: str | Unassigned | None) -> Sequence[ColumnElement[bool]]:
    if assignee is None:
        return ()
    return (items.c.assignee.is_(None) if isinstance(assignee, Unassigned) else items.c.assignee == assignee,)


def _has_state(state: ItemState | None, now: datetime) -> Sequence[ColumnElement[bool]]:
    match state:
        case None:
            return ()
        case ItemState.OPEN:
            return items.c.state == ItemState.OPEN, _is_awake(now)
        case ItemState.SNOOZED:
            return items.c.state == ItemState.OPEN, items.c.snoozed_until > now
        case _:
            return (items.c.state == state,)


def _is_awake(now: datetime) -> ColumnElement[bool]:
    return or_(items.c.snoozed_until.is_(None), items.c.snoozed_until <= now)


# The version of a policy that made an evaluation, and its name: other versions may have other names.
DECIDED_BY = and_(
    policy_versions.c.policy_id == evaluations.c.policy_id, policy_versions.c.version == evaluations.c.version
)
POLICY_NAME = json_member(policy_versions.c.document, "name")
# The version of a ruleset that fired, and what it was called, as the webhook says.
FIRED_BY = and_(
    monitoring_ruleset_versions.c.ruleset_id == rule_matches.c.ruleset_id,
    monitoring_ruleset_versions.c.version == rule_matches.c.version,
)
RULESET_SLUG, RULESET_NAME = (json_member(monitoring_ruleset_versions.c.document, name) for name in ("slug", "name"))
_SHOWN: AnySelect = (
    select(
        *(items.c[name] for name in ("number", "item_id", "kind", "at", "state", "snoozed_until", "assignee")),
        customers.c.customer_id,
        customers.c.name.label("customer_name"),
        func.coalesce(RULESET_SLUG, policies.c.slug).label("slug"),
        func.coalesce(RULESET_NAME, POLICY_NAME).label("subject_name"),
        evaluations.c.outcome,
        rule_matches.c.rules,
    )
    .join_from(items, customers, customers.c.number == items.c.customer_number)
    .outerjoin(rule_matches, rule_matches.c.match_id == items.c.item_id)
    .outerjoin(monitoring_ruleset_versions, FIRED_BY)
    .outerjoin(evaluations, evaluations.c.evaluation_id == items.c.item_id)
    .outerjoin(policies, policies.c.policy_id == items.c.subject_id)
    .outerjoin(policy_versions, DECIDED_BY)
)


def _as_item(row: AnyRow, now: datetime) -> Item:
    snoozed = row.snoozed_until is not None and row.snoozed_until > now
    state = ItemState.SNOOZED if snoozed else ItemState(row.state)
    until = row.snoozed_until if snoozed else None
    return Item(**read_values(row, kind=ItemKind(row.kind), state=state, snoozed_until=until, rules=row.rules or ()))
