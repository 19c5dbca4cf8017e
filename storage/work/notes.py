"""Notes that people write on a customer, an evaluation or a match. A deleted note keeps its row, without the text."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID, uuid4

from sqlalchemy import insert, select, update

from pipelines.vocabulary.errors import Fault, InvalidRequest, NotFound
from storage.core.database import AnySelect, Reading, Writing
from storage.core.models import evaluations, notes, rule_matches
from storage.core.paging import Page, Paged, count_total, limit_to_page
from storage.customers.customers import Customer

MAX_TEXT = 10_000  # characters


@dataclass(frozen=True)
class NewNote:
    """A note. It is about the evaluation or the match, of which at most one is given, or else about the customer."""

    text: str
    evaluation_id: UUID | None = None
    match_id: UUID | None = None


@dataclass(frozen=True)
class Note:
    note_id: UUID
    evaluation_id: UUID | None
    match_id: UUID | None
    text: str | None  # null: deleted
    created_at: datetime
    created_by: str  # as in the audit trail
    deleted_at: datetime | None
    deleted_by: str | None


def add(w: Writing, customer: Customer, new: NewNote, who: str, now: datetime) -> Note:
    """Store a note.

    Raises:
        InvalidRequest: the evaluation or the match is not this customer's.
    """
    _require_own(w, customer, new)
    note = Note(uuid4(), new.evaluation_id, new.match_id, new.text, now, who, None, None)
    w.execute(insert(notes).values(customer_number=customer.number, **vars(note)))
    return note


def _require_own(r: Reading, customer: Customer, new: NewNote) -> None:
    evaluation, match = evaluations.c, rule_matches.c
    subjects = (
        ("/evaluationId", new.evaluation_id, evaluation.evaluation_id, evaluation.customer_number),
        ("/matchId", new.match_id, match.match_id, match.customer_number),
    )
    for pointer, given, id_column, owner in subjects:
        if given is not None and r.execute(select(owner).where(id_column == given)).scalar() != customer.number:
            fault = Fault(pointer, "Note.UnknownSubject", "The customer has no evaluation or match with this id.")
            raise InvalidRequest(fault.code, fault.message, (fault,))


def delete(w: Writing, customer: Customer, note_id: UUID, who: str, now: datetime) -> Note:
    """Remove a note's text, but keep its row. A note that is already deleted does not change.

    Raises:
        NotFound: unknown, or another customer's.
    """
    this = (notes.c.note_id == note_id, notes.c.text.is_not(None), notes.c.customer_number == customer.number)
    w.execute(update(notes).where(*this).values(text=None, deleted_at=now, deleted_by=who))
    return get(w, customer, note_id)


def get(r: Reading, customer: Customer, note_id: UUID) -> Note:
    """Return the customer's note, even a deleted one.

    Raises:
        NotFound: unknown, or another customer's.
    """
    row = r.execute(_select_of_customer(customer).where(notes.c.note_id == note_id)).first()
    if row is None:
        raise NotFound("Note.NotFound", "The customer has no note with this id.")
    return Note(*row)


def find(
    r: Reading,
    customer: Customer,
    evaluation_id: UUID | None = None,
    match_id: UUID | None = None,
    page: Page | None = None,
) -> Paged[Note]:
    """Return the customer's notes, or those about an evaluation or a match, newest first."""
    query = _select_of_customer(customer)
    if evaluation_id is not None:
        query = query.where(notes.c.evaluation_id == evaluation_id)
    if match_id is not None:
        query = query.where(notes.c.match_id == match_id)
    rows = r.execute(limit_to_page(query.order_by(notes.c.created_at.desc(), notes.c.number.desc()), page))
    return Paged([Note(*row) for row in rows], count_total(r, query), page)


def _select_of_customer(customer: Customer) -> AnySelect:
    own = [notes.c[name] for name in Note.__dataclass_fields__]
    return select(*own).where(notes.c.customer_number == customer.number)
