"""The timeline against an oracle: all entries of a customer, sorted in plain Python, and cut into pages."""

import random
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import Any
from uuid import uuid4

from sqlalchemy import Table, event, insert, select

from storage.core.models import (
    attachments,
    attributes,
    corrections,
    customers,
    decision_overrides,
    evaluations,
    jobs,
    notes,
    related_parties,
    resolutions,
    rule_matches,
    statement_files,
    statements,
    work_actions,
)
from storage.core.store import Store
from storage.customers.customers import Customer
from storage.work import timeline
from storage.work.items import Action, ItemAction
from storage.work.timeline import Entry, EntryKind, Place
from tests.storage.work.test_items import Team

# Of each kind: the table, the columns of time and of the tie, and which rows are entries.
ORACLE: dict[EntryKind, tuple[Table, str, str, Any]] = {
    EntryKind.WORKED: (work_actions, "at", "number", None),
    EntryKind.RAISED: (rule_matches, "at", "number", None),
    EntryKind.EVALUATED: (evaluations, "at", "number", lambda row: row["shadow_of"] is None),
    EntryKind.NOTE_DELETED: (notes, "deleted_at", "number", None),
    EntryKind.NOTE_ADDED: (notes, "created_at", "number", None),
    EntryKind.ATTACHMENT_DELETED: (attachments, "deleted_at", "number", None),
    EntryKind.ATTACHMENT_ADDED: (attachments, "created_at", "number", None),
    EntryKind.RESOLVED: (resolutions, "made_at", "number", None),
    EntryKind.ATTRIBUTE_SET: (attributes, "set_at", "number", None),
    EntryKind.PARTIES_SET: (related_parties, "set_at", "number", None),
    EntryKind.CORRECTION_REVOKED: (corrections, "revoked_at", "number", None),
    EntryKind.CORRECTION_MADE: (corrections, "made_at", "number", None),
    EntryKind.JOB_ENDED: (jobs, "completed_at", "received_seq", lambda row: row["flow"] in timeline.ENDED),
    EntryKind.STATEMENT_READ: (statements, "extracted_at", "statement_id", None),
    EntryKind.JOB_RECEIVED: (jobs, "created_at", "received_seq", lambda row: row["flow"] in timeline.RECEIVED),
}


def entries_of(store: Store, customer: Customer) -> list[Place]:
    """Return the places of all entries, newest first."""
    with store.db.reading() as r:
        found = list(_places(r, customer))
    return sorted(found, key=lambda place: (place.at, -list(EntryKind).index(place.kind), place.tie), reverse=True)


def _places(r: Any, customer: Customer) -> Iterator[Place]:
    for kind, (table, at, tie, is_entry) in ORACLE.items():
        for row in r.execute(select(table)).mappings():
            own = row["customer_number"] == customer.number and row[at] is not None
            if own and (is_entry is None or is_entry(row)):
                yield Place(row[at], kind, row[tie])
    overrides = {row.number: row for row in r.execute(select(decision_overrides))}
    of = {row.evaluation_id: row.customer_number for row in r.execute(select(evaluations))}
    for number, row in overrides.items():
        if of[row.evaluation_id] == customer.number:
            yield Place(row.at, EntryKind.OVERRIDDEN, number)
    yield Place(customer.created_at, EntryKind.CREATED, customer.number)


def a_busy_team(store: Store, now: datetime) -> Team:
    """Return a team whose customers have random entries of every kind, many at the same moment."""
    chance, team = random.Random(3), Team(store, now)
    customer_numbers = (team.one.number, team.other.number)

    def when() -> datetime:
        return now + timedelta(minutes=chance.randrange(6))

    for nth in range(40):
        team.now = when()
        mine = chance.choice((team.one, team.other))
        made = team.decision(mine, "conditional", of=None)
        team.decision(mine, "proceed", of=made)
        if nth % 3 == 0:
            team.override(made)
        if nth % 5 == 0:
            team.decision(mine, "proceed", what_if=True)
    for customer in (team.one, team.other):
        team.now = when()
        alert = team.alert(customer)
        for _ in range(3):
            team.now = when()
            team.act(alert, Action(ItemAction.ACKNOWLEDGE))
    team.now = now
    with store.db.writing() as w:
        for _ in range(12):
            own = {"customer_number": chance.choice(customer_numbers)}
            by = {"created_by": "dana", "created_at": when(), "deleted_at": chance.choice((None, when()))}
            w.execute(insert(notes).values(**own, **by, note_id=uuid4(), text="A note."))
            file = {"attachment_id": uuid4(), "file_name": "a", "sha256": bytes(32), "size": 1}
            w.execute(insert(attachments).values(**own, **by, **file))
            w.execute(insert(attributes).values(**own, name="score", value="1", set_at=when(), set_by="dana"))
            w.execute(insert(related_parties).values(**own, parties=[], set_at=when(), set_by="dana"))
            solved = {"kind": "finding", "key": "k", "reason": "Seen.", "made_at": when(), "made_by": "dana"}
            w.execute(insert(resolutions).values(**own, **solved))
            correction = {"correction_id": uuid4(), "client_id": team.client_id, "made_at": when(), "made_by": "dana"}
            w.execute(insert(corrections).values(**own, **correction, revoked_at=chance.choice((None, when()))))
            _add_job(w, team, own, chance, when)
    return team


def _add_job(w: Any, team: Team, own: dict[str, int], chance: random.Random, when: Any) -> None:
    flow = chance.choice(("Enrichment", "Extraction", "Withdrawal", "Correction", "ReportRefresh"))
    job = {"job_id": uuid4(), "client_id": team.client_id, "flow": flow, "status": "Completed", "warnings": []}
    w.execute(insert(jobs).values(**own, **job, created_at=when(), completed_at=when()))
    file = {"file_id": uuid4(), "job_id": job["job_id"], "position": 1, "file_name": "a.pdf", "sha256": bytes(32)}
    w.execute(insert(statement_files).values(**own, **file, bytes=1, had_password=False, created_at=when()))
    read = {"statement_id": uuid4(), "file_id": file["file_id"], "job_id": job["job_id"], "position": 1}
    more = {"account_id": uuid4(), "kind": "bank", "verdict": "proven", "reasons": [], "row_count": 1}
    pages = {"first_page": 1, "last_page": 1, "read_by_ocr": False, "period_start": date(2026, 1, 1)}
    w.execute(insert(statements).values(**own, **read, **more, **pages, extracted_at=when()))


def pages_of(store: Store, customer: Customer, chance: random.Random) -> Iterator[list[Entry]]:
    """Read the whole timeline in pages of different lengths."""
    after: Place | None = None
    while True:
        with store.db.reading() as r:
            entries, after = timeline.read_page(r, customer, after, chance.randint(1, 40))
        yield entries
        if after is None:
            return


def test_pages_of_any_length_are_the_timeline_of_the_oracle(store: Store, now: datetime) -> None:
    team = a_busy_team(store, now)
    for customer in (team.one, team.other):
        expected = entries_of(store, customer)
        assert {place.kind for place in expected} == set(EntryKind)
        for seed in range(2):
            pages = pages_of(store, customer, random.Random(seed))
            assert [entry.place for page in pages for entry in page] == expected


def test_entries_that_are_added_meanwhile_neither_repeat_nor_hide_older_ones(store: Store, now: datetime) -> None:
    team = a_busy_team(store, now)
    expected = entries_of(store, team.one)
    seen = list[Place]()
    for page in pages_of(store, team.one, random.Random(1)):
        seen += [entry.place for entry in page]
        team.now = now + timedelta(days=1)
        team.decision(team.one, "proceed")
    assert seen == expected


def test_a_page_reads_no_more_than_its_length_from_each_source(store: Store, now: datetime) -> None:
    """So the cost of a page doesn't grow with the timeline."""
    team = a_busy_team(store, now)
    statements_run = list[str]()
    event.listen(store.db.engine, "before_cursor_execute", lambda *run: statements_run.append(run[2]))
    with store.db.reading() as r:
        entries, _ = timeline.read_page(r, team.one, None, 3)
    assert len(entries) == 3
    assert len([each for each in statements_run if "LIMIT" in each]) == len(EntryKind)


def test_a_new_customer_has_one_entry(store: Store, now: datetime) -> None:
    team = Team(store, now)
    with store.db.reading() as r:
        [created], following = timeline.read_page(r, team.one, None, 50)
        number = r.execute(select(customers.c.number).where(customers.c.customer_id == team.one.customer_id)).scalar()
    assert (created.place, following) == (Place(now, EntryKind.CREATED, number or 0), None)
