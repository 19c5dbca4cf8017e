"""A customer's timeline: everything that happened to it, from the tables that record it, newest first.

Each kind of entry has a source: a query whose rows an index returns in order of time. A page reads at most its own
length from each source and merges them, so it costs the same at any depth. Entries of the same time are ordered by
source, and within a source by a column of its table, so that a cursor points to exactly one entry.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from heapq import merge
from itertools import islice
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Table, and_, false, null, or_, select

from storage.core.database import AnyRow, AnySelect, Reading
from storage.core.models import (
    Flow,
    attachments,
    attributes,
    corrections,
    customers,
    decision_overrides,
    evaluations,
    jobs,
    monitoring_ruleset_versions,
    notes,
    policy_versions,
    related_parties,
    resolutions,
    rule_matches,
    statements,
    work_actions,
    work_items,
)
from storage.customers.customers import Customer
from storage.work.items import DECIDED_BY, FIRED_BY, POLICY_NAME, RULESET_NAME


class EntryKind(StrEnum):
    """What happened. Entries with the same time are listed in this order."""

    WORKED = "item_worked"
    RAISED = "alert_raised"
    OVERRIDDEN = "decision_overridden"
    EVALUATED = "evaluated"
    NOTE_DELETED = "note_deleted"
    NOTE_ADDED = "note_added"
    ATTACHMENT_DELETED = "attachment_deleted"
    ATTACHMENT_ADDED = "attachment_added"
    RESOLVED = "finding_resolved"
    ATTRIBUTE_SET = "attribute_set"
    PARTIES_SET = "related_parties_set"
    CORRECTION_REVOKED = "correction_revoked"
    CORRECTION_MADE = "correction_made"
    JOB_ENDED = "job_ended"
    STATEMENT_READ = "statement_read"
    JOB_RECEIVED = "job_received"
    CREATED = "customer_created"


RANKS = {kind: rank for rank, kind in enumerate(EntryKind)}
RECEIVED = (Flow.ENRICHMENT, Flow.EXTRACTION, Flow.RETRACTION)
ENDED = (*RECEIVED, Flow.REPORT_REFRESH)


@dataclass(frozen=True)
class Place:
    """A place in a timeline: that of an entry. `tie` orders the entries of one source and moment."""

    at: datetime
    kind: EntryKind
    tie: int | UUID


@dataclass(frozen=True)
class Entry:
    place: Place
    who: str | None  # as in the audit trail; null: not recorded
    shown: Mapping[str, Any]  # the ids and facts that the source selects

    @property
    def key(self) -> tuple[datetime, int, Any]:
        """The key by which entries are sorted, oldest first. Ties are only compared within one kind."""
        return self.place.at, -RANKS[self.place.kind], self.place.tie


def read_page(r: Reading, customer: Customer, after: Place | None, count: int) -> tuple[list[Entry], Place | None]:
    """Return the entries after a place, newest first, and the place of the last one if there are more."""
    read = [_read(r, source, customer, after, count + 1) for source in _SOURCES]
    entries = list(islice(merge(*read, key=lambda entry: entry.key, reverse=True), count + 1))
    return entries[:count], entries[count - 1].place if len(entries) > count else None


@dataclass(frozen=True)
class _Source:
    """The entries of one kind. The query selects `who`, and what is shown."""

    kind: EntryKind
    query: AnySelect
    customer: ColumnElement[Any]
    at: ColumnElement[Any]
    tie: ColumnElement[Any]


def _read(r: Reading, source: _Source, customer: Customer, after: Place | None, count: int) -> list[Entry]:
    query = source.query.add_columns(source.at.label("at"), source.tie.label("tie"))
    selected = query.where(source.customer == customer.number)
    if after is not None:
        selected = selected.where(_is_after(source, after))
    rows = r.execute(selected.order_by(source.at.desc(), source.tie.desc()).limit(count))
    return [_entry(source.kind, row) for row in rows]


def _is_after(source: _Source, place: Place) -> ColumnElement[bool]:
    behind = RANKS[source.kind] - RANKS[place.kind]
    if behind > 0:
        return source.at <= place.at
    tied = and_(source.at == place.at, source.tie < place.tie) if behind == 0 else false()
    return or_(source.at < place.at, tied)


def _entry(kind: EntryKind, row: AnyRow) -> Entry:
    shown = row._asdict()
    place = Place(shown.pop("at"), kind, shown.pop("tie"))
    return Entry(place, shown.pop("who"), shown)


_NOBODY = null().label("who")


def _source(
    kind: EntryKind, table: Table, at: str, *shown: str, who: str | None = None, tie: str = "number"
) -> _Source:
    """Return the source of a table that has a row for each entry, by the names of its columns."""
    columns, actor = table.c, _NOBODY if who is None else table.c[who].label("who")
    query = select(actor, *(columns[name] for name in shown)).where(columns[at].is_not(None))
    return _Source(kind, query, columns.customer_number, columns[at], columns[tie])


def _with(source: _Source, other: Table, condition: ColumnElement[bool], *shown: ColumnElement[Any]) -> _Source:
    """Return a source that also shows columns of another table."""
    return replace(source, query=source.query.add_columns(*shown).join(other, condition))


def _where(source: _Source, condition: ColumnElement[bool]) -> _Source:
    return replace(source, query=source.query.where(condition))


_CORRECTED = ("correction_id", "category", "counterparty_name")
_RESULT = ("status", "enriched_rows", "duplicate_rows", "rejected_rows", "error")
_STATEMENT = ("statement_id", "job_id", "bank_name", "period_start", "period_end", "row_count")
_OVERRIDE = [decision_overrides.c[name] for name in ("who", "evaluation_id", "outcome", "decided_by")]

_SOURCES = (
    _with(
        _source(EntryKind.WORKED, work_actions, "at", "item_id", "action", "until", "reason", "assignee", who="who"),
        work_items,
        work_items.c.item_id == work_actions.c.item_id,
        work_items.c.kind.label("item_kind"),
    ),
    _with(
        _source(EntryKind.RAISED, rule_matches, "at", "match_id", "rules"),
        monitoring_ruleset_versions,
        FIRED_BY,
        RULESET_NAME.label("ruleset_name"),
    ),
    _Source(
        EntryKind.OVERRIDDEN,
        select(*_OVERRIDE).join_from(decision_overrides, evaluations),
        customer=evaluations.c.customer_number,
        at=decision_overrides.c.at,
        tie=decision_overrides.c.number,
    ),
    _where(
        _with(
            _source(
                EntryKind.EVALUATED, evaluations, "at", "evaluation_id", "version", "outcome", "what_if", who="who"
            ),
            policy_versions,
            DECIDED_BY,
            POLICY_NAME.label("policy_name"),
        ),
        evaluations.c.shadow_of.is_(None),
    ),
    _source(EntryKind.NOTE_DELETED, notes, "deleted_at", "note_id", who="deleted_by"),
    _source(EntryKind.NOTE_ADDED, notes, "created_at", "note_id", "evaluation_id", "match_id", who="created_by"),
    _source(EntryKind.ATTACHMENT_DELETED, attachments, "deleted_at", "attachment_id", who="deleted_by"),
    _source(EntryKind.ATTACHMENT_ADDED, attachments, "created_at", "attachment_id", "file_name", who="created_by"),
    _source(EntryKind.RESOLVED, resolutions, "made_at", "kind", "reason", who="made_by"),
    _source(EntryKind.ATTRIBUTE_SET, attributes, "set_at", "name", "value", who="set_by"),
    _source(EntryKind.PARTIES_SET, related_parties, "set_at", who="set_by"),
    _source(EntryKind.CORRECTION_REVOKED, corrections, "revoked_at", *_CORRECTED, who="revoked_by"),
    _source(EntryKind.CORRECTION_MADE, corrections, "made_at", *_CORRECTED, who="made_by"),
    _where(
        _source(EntryKind.JOB_ENDED, jobs, "completed_at", "job_id", "flow", *_RESULT, tie="received_seq"),
        jobs.c.flow.in_(ENDED),
    ),
    _source(EntryKind.STATEMENT_READ, statements, "extracted_at", *_STATEMENT, tie="statement_id"),
    _where(
        _source(EntryKind.JOB_RECEIVED, jobs, "created_at", "job_id", "flow", who="created_by", tie="received_seq"),
        jobs.c.flow.in_(RECEIVED),
    ),
    _Source(
        EntryKind.CREATED,
        select(customers.c.created_by.label("who")),
        customers.c.number,
        customers.c.created_at,
        customers.c.number,
    ),
)
