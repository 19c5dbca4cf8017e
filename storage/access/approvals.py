"""Four eyes: one person or key requests an action, and another approves it before anything happens.

Which actions need an approval is a setting of the client. To require one for fewer actions needs an approval, too. A
subject has at most one pending request: a later one
supersedes it, unless it asks for the same. Requests are never changed, only decided.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID, uuid4

from sqlalchemy import insert, select, update

from pipelines.vocabulary.errors import Conflict, NotFound
from storage.access.keys import lock_client, require_client
from storage.core.database import AnyRow, AnySelect, Reading, Writing, read_values
from storage.core.models import ApprovalKind, ApprovalStatus, approvals, clients
from storage.core.paging import Page, Paged, count_total, limit_to_page

REQUIRABLE: Final = tuple(kind for kind in ApprovalKind if kind is not ApprovalKind.LIFT)  # what clients choose from

NO_FOUR_EYES: Final = "none"  # in the audit trail, instead of the actions


@dataclass(frozen=True)
class Request:
    """A requested action."""

    kind: ApprovalKind
    subject_id: str
    subject: Mapping[str, str]  # ids by their public names
    request: Mapping[str, Any]  # JSON; its form depends on the kind


@dataclass(frozen=True)
class Approval(Request):
    """A request, and what became of it."""

    approval_id: UUID
    client_id: UUID
    requested_by: str  # as in the audit trail
    requested_at: datetime
    status: ApprovalStatus
    decided_by: str | None = None
    decided_at: datetime | None = None
    reason: str | None = None  # why it was declined


def set_four_eyes(w: Writing, client_id: UUID, kinds: Iterable[ApprovalKind]) -> None:
    """Set which actions of the client need an approval. Pending requests stay.

    Raises:
        NotFound: there is no such client.
    """
    require_client(w, client_id)
    named = [kind for kind in REQUIRABLE if kind in set(kinds)]
    w.execute(update(clients).where(clients.c.client_id == client_id).values(four_eyes=named))


def read_four_eyes(r: Reading, client_id: UUID) -> list[ApprovalKind]:
    """Return which actions of the client need an approval, in the order of REQUIRABLE."""
    stored = r.execute(select(clients.c.four_eyes).where(clients.c.client_id == client_id)).scalar_one()
    return [ApprovalKind(kind) for kind in stored]


def is_needed(r: Reading, client_id: UUID, kind: ApprovalKind) -> bool:
    """Return whether actions of this kind need an approval."""
    return kind in read_four_eyes(r, client_id)


def request(w: Writing, client_id: UUID, new: Request, who: str, now: datetime) -> tuple[Approval, Approval | None]:
    """Store a request; return it and the pending one for the same subject, which it supersedes.

    If the pending one is equal, nothing changes, and it is returned instead.
    """
    lock_client(w, client_id)  # so that the second of two simultaneous requests for a subject sees the first
    same_subject = (approvals.c.kind == new.kind, approvals.c.subject_id == new.subject_id)
    pending = (approvals.c.client_id == client_id, approvals.c.status == ApprovalStatus.PENDING)
    row = w.execute(_SHOWN.where(*pending, *same_subject).with_for_update()).first()
    earlier = None if row is None else _approval(row)
    if earlier is not None:
        if earlier.request == new.request:
            return earlier, None
        earlier = _decide(w, earlier, ApprovalStatus.SUPERSEDED, who, now)
    approval = Approval(**vars(new), approval_id=uuid4(), client_id=client_id, requested_by=who, requested_at=now,
                    status=ApprovalStatus.PENDING)  # fmt: skip
    w.execute(insert(approvals).values(vars(approval)))
    return approval, earlier


def get(r: Reading, client_id: UUID, approval_id: UUID) -> Approval:
    """Return the client's approval.

    Raises:
        NotFound: unknown, or another client's.
    """
    query = _SHOWN.where(approvals.c.approval_id == approval_id, approvals.c.client_id == client_id)
    row = r.execute(query).first()
    if row is None:
        raise NotFound("Approval.NotFound", "There is no approval with this id.")
    return _approval(row)


def find(
    r: Reading,
    client_id: UUID,
    *,
    kind: ApprovalKind | None = None,
    status: ApprovalStatus | None = None,
    subject_id: str | None = None,
    page: Page | None = None,
) -> Paged[Approval]:
    """Return the client's approvals, newest first."""
    query = _SHOWN.where(approvals.c.client_id == client_id)
    if kind is not None:
        query = query.where(approvals.c.kind == kind)
    if status is not None:
        query = query.where(approvals.c.status == status)
    if subject_id is not None:
        query = query.where(approvals.c.subject_id == subject_id)
    rows = r.execute(limit_to_page(query.order_by(approvals.c.number.desc()), page))
    return Paged([_approval(row) for row in rows], count_total(r, query), page)


def approve(w: Writing, approval: Approval, who: str, now: datetime) -> Approval:
    """Approve a pending request. Its action must be performed in the same transaction.

    Raises:
        Conflict: it isn't pending any more, or `who` requested it.
    """
    _lock_for(w, approval, who)
    return _decide(w, approval, ApprovalStatus.APPROVED, who, now)


def decline(w: Writing, approval: Approval, reason: str, who: str, now: datetime) -> Approval:
    """Decline a pending request.

    Raises:
        Conflict: it isn't pending any more, or `who` requested it.
    """
    _lock_for(w, approval, who)
    return _decide(w, approval, ApprovalStatus.DECLINED, who, now, reason)


def withdraw(w: Writing, approval: Approval, who: str, now: datetime) -> Approval:
    """Withdraw a pending request.

    Raises:
        Conflict: it isn't pending any more, or `who` did not request it.
    """
    _lock(w, approval)
    if approval.requested_by != who:
        raise Conflict("Approval.OtherPerson", "Only the person or key that requested it can withdraw it.")
    return _decide(w, approval, ApprovalStatus.WITHDRAWN, who, now)


def _lock_for(w: Writing, approval: Approval, who: str) -> None:
    """Lock a pending request for a decision by `who`, who must not have requested it."""
    _lock(w, approval)
    if approval.requested_by == who:
        raise Conflict("Approval.SamePerson", "Another person or key than the requester must decide.")


def _lock(w: Writing, approval: Approval) -> None:
    """Lock a pending request. Other decisions on it wait until this transaction ends.

    The client is locked first, as in `request` and by actions that lock it.
    """
    lock_client(w, approval.client_id)
    query = select(approvals.c.status).where(approvals.c.approval_id == approval.approval_id)
    status = w.execute(query.with_for_update()).scalar_one()
    if status != ApprovalStatus.PENDING:
        raise Conflict("Approval.Decided", f"The request is no longer pending: it is {status}.")


def _decide(
    w: Writing, approval: Approval, status: ApprovalStatus, who: str, now: datetime, reason: str | None = None
) -> Approval:
    decided = {"status": status, "decided_by": who, "decided_at": now, "reason": reason}
    w.execute(update(approvals).where(approvals.c.approval_id == approval.approval_id).values(decided))
    return replace(approval, **decided)


_SHOWN: AnySelect = select(*(approvals.c[name] for name in Approval.__dataclass_fields__))


def _approval(row: AnyRow) -> Approval:
    return Approval(**read_values(row, kind=ApprovalKind(row.kind), status=ApprovalStatus(row.status)))
