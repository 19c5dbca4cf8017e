"""Evaluations with their records, and people's decisions that override them.

Rows are only ever added. A record is stored as the exact bytes that the evaluation produced, with their SHA-256.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from hashlib import sha256
from uuid import UUID

from sqlalchemy import ColumnElement, insert, select

from pipelines.vocabulary.errors import Conflict, Corrupt, NotFound
from storage.core.database import AnySelect, Reading, Writing
from storage.core.models import customers, decision_overrides, evaluations, policies, policy_versions
from storage.core.paging import MAX_COUNTED, Page, Paged, count_some, count_total, limit_to_page
from storage.customers import summaries
from storage.customers.customers import Customer, lock_number
from storage.decisions.policies import StoredPolicy
from storage.work import items
from storage.work.items import DECIDED_BY, POLICY_NAME, ItemKind, NewItem


@dataclass(frozen=True)
class NewEvaluation:
    evaluation_id: UUID
    client_id: UUID
    customer_number: int
    policy_id: UUID
    version: int
    at: datetime
    who: str  # as in the audit trail
    what_if: bool  # requested as such or with overridden attributes, or decided by an unpublished version
    outcome: str
    data_version: int
    as_of: date  # the current date in the service's time zone
    record: bytes
    shadow_of: UUID | None = None  # for a challenger's evaluation: the one that the client got


@dataclass(frozen=True)
class Evaluation:
    """An evaluation without its record."""

    number: int
    evaluation_id: UUID
    client_id: UUID
    customer_number: int
    policy_id: UUID
    version: int
    at: datetime
    who: str
    what_if: bool
    outcome: str
    data_version: int
    as_of: date  # the date of the evaluation in the service's time zone
    shadow_of: UUID | None
    sha256: bytes
    customer_id: UUID
    slug: str  # the policy's
    policy_name: str  # of the version that decided
    overridden_outcome: str | None = None  # the outcome of the last override


@dataclass(frozen=True)
class Override:
    """A person's decision that replaces an evaluation's outcome."""

    outcome: str
    reason: str
    decided_by: str  # the person, as the client names them
    at: datetime
    who: str  # as in the audit trail


def save(w: Writing, new: NewEvaluation) -> None:
    """Store an evaluation with its record. A decision replaces the work item of the customer's earlier decision."""
    decides = not new.what_if and new.shadow_of is None
    if decides:
        lock_number(w, new.customer_number)
    w.execute(insert(evaluations), {**vars(new), "sha256": sha256(new.record).digest()})
    if decides:
        summaries.refresh(w, [new.customer_number], summaries.DECISION_COLUMNS)
        subject = (new.client_id, new.customer_number, new.policy_id)
        items.replace_decision(w, NewItem(new.evaluation_id, ItemKind.DECISION, *subject, new.at), new.outcome)


def get(r: Reading, client_id: UUID, evaluation_id: UUID) -> Evaluation:
    """Return the client's evaluation.

    Raises:
        NotFound: unknown, or another client's.
    """
    selected = _SHOWN.where(evaluations.c.evaluation_id == evaluation_id, evaluations.c.client_id == client_id)
    return _get(r, selected)


def get_of_any_client(r: Reading, evaluation_id: UUID) -> Evaluation:
    """Return an evaluation of any client, for the operator, who belongs to none.

    Raises:
        NotFound: unknown.
    """
    return _get(r, _SHOWN.where(evaluations.c.evaluation_id == evaluation_id))


def read_record(r: Reading, evaluation: Evaluation) -> bytes:
    """Return the evaluation's record, as it was written.

    Raises:
        Corrupt: the record was changed.
    """
    query = select(evaluations.c.record).where(evaluations.c.number == evaluation.number)
    found: bytes = r.execute(query).scalar_one()
    if sha256(found).digest() != evaluation.sha256:
        raise Corrupt("Evaluation.Corrupt", f"The record of evaluation {evaluation.evaluation_id} was changed.")
    return found


def find(
    r: Reading,
    client_id: UUID,
    *,
    customer: Customer | None = None,
    policy: StoredPolicy | None = None,
    shadows: bool = False,
    page: Page | None = None,
) -> Paged[Evaluation]:
    """Return the client's evaluations, or those of one customer or policy, newest first.

    `shadows`: include those of challengers. The total is exact, so the list must be short, such as a customer's.
    """
    query = _SHOWN.where(evaluations.c.client_id == client_id)
    if customer is not None:
        query = query.where(evaluations.c.customer_number == customer.number)
    if policy is not None:
        query = query.where(evaluations.c.policy_id == policy.policy_id)
    if not shadows:
        query = query.where(evaluations.c.shadow_of.is_(None))
    rows = r.execute(limit_to_page(query.order_by(evaluations.c.number.desc()), page))
    total = count_total(r, query.with_only_columns(evaluations.c.number))
    return Paged([Evaluation(*row) for row in rows], total, page)


@dataclass(frozen=True)
class Filter:
    """Which evaluations of all customers are listed. Conditions that are None don't apply."""

    policy: StoredPolicy | None = None
    outcome: str | None = None  # of the evaluation itself, even if it was overridden
    created_after: datetime | None = None
    created_before: datetime | None = None
    decisions_only: bool = False  # no what-ifs

    @property
    def conditions(self) -> list[ColumnElement[bool]]:
        chosen: list[ColumnElement[bool]] = [evaluations.c.shadow_of.is_(None)]
        if self.policy is not None:
            chosen.append(evaluations.c.policy_id == self.policy.policy_id)
        if self.outcome is not None:
            chosen.append(evaluations.c.outcome == self.outcome)
        if self.created_after is not None:
            chosen.append(evaluations.c.at > self.created_after)
        if self.created_before is not None:
            chosen.append(evaluations.c.at < self.created_before)
        if self.decisions_only:
            chosen.append(evaluations.c.what_if.is_(False))
        return chosen


def find_filtered(r: Reading, client_id: UUID, wanted: Filter, page: Page | None = None) -> Paged[Evaluation]:
    """Return evaluations of all customers that pass a filter, newest first, without those of challengers.

    For long lists: the total is counted up to MAX_COUNTED only. The inner query is answered from an index, so that
    only the rows of the page, which are large because they hold the record, are read.
    """
    selected = select(evaluations.c.number).where(evaluations.c.client_id == client_id, *wanted.conditions)
    newest_first = selected.order_by(evaluations.c.at.desc(), evaluations.c.number.desc())
    numbers = limit_to_page(newest_first, page).subquery()
    query = _SHOWN.join(numbers, numbers.c.number == evaluations.c.number)
    rows = r.execute(query.order_by(evaluations.c.at.desc(), evaluations.c.number.desc()))
    found = [Evaluation(*row) for row in rows]
    if page is None:
        return Paged(found, len(found), page)
    total = count_some(r, selected)
    return Paged(found, min(total, MAX_COUNTED), page, total > MAX_COUNTED)


def shadows_of(r: Reading, evaluation: Evaluation) -> list[Evaluation]:
    """Return the challengers' evaluations that were made beside this one."""
    query = _SHOWN.where(evaluations.c.shadow_of == evaluation.evaluation_id).order_by(evaluations.c.number)
    return [Evaluation(*row) for row in r.execute(query)]


def require_decision(evaluation: Evaluation) -> None:
    """Raise Conflict if the evaluation decided nothing: it is a what-if or a challenger's."""
    if evaluation.what_if or evaluation.shadow_of is not None:
        raise Conflict("Evaluation.NotADecision", "A what-if or a challenger's evaluation decides nothing.")


def add_override(
    w: Writing, evaluation: Evaluation, outcome: str, reason: str, decided_by: str, who: str, now: datetime
) -> Override:
    """Store a person's decision that overrides the evaluation, which itself stays unchanged.

    Raises:
        Conflict: the evaluation is a what-if or a challenger's, so there is no decision to override.
    """
    require_decision(evaluation)
    override = Override(outcome, reason, decided_by, now, who)
    w.execute(insert(decision_overrides).values(evaluation_id=evaluation.evaluation_id, **vars(override)))
    summaries.refresh(w, [evaluation.customer_number], summaries.DECISION_COLUMNS)
    items.close_decision(w, evaluation.evaluation_id)
    return override


def overrides_of(r: Reading, evaluation: Evaluation) -> Sequence[Override]:
    """Return the evaluation's overrides, oldest first; the last one applies."""
    selected = decision_overrides.c.evaluation_id == evaluation.evaluation_id
    own = [decision_overrides.c[name] for name in Override.__dataclass_fields__]
    return [Override(*row) for row in r.execute(select(*own).where(selected).order_by(decision_overrides.c.number))]


_OWN = [evaluations.c[name] for name in Evaluation.__dataclass_fields__ if name in evaluations.c]
_LAST_OVERRIDE = (
    select(decision_overrides.c.outcome)
    .where(decision_overrides.c.evaluation_id == evaluations.c.evaluation_id)
    .order_by(decision_overrides.c.number.desc())
    .limit(1)
    .scalar_subquery()
)
_SHOWN: AnySelect = (
    select(*_OWN, customers.c.customer_id, policies.c.slug, POLICY_NAME, _LAST_OVERRIDE)
    .join_from(evaluations, customers, evaluations.c.customer_number == customers.c.number)
    .join(policies, policies.c.policy_id == evaluations.c.policy_id)
    .join(policy_versions, DECIDED_BY)
)


def _get(r: Reading, query: AnySelect) -> Evaluation:
    row = r.execute(query).first()
    if row is None:
        raise NotFound("Evaluation.NotFound", "There is no evaluation with this id.")
    return Evaluation(*row)
