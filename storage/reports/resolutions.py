"""Resolutions: a person's explanations of findings and events. Every change is stored.

A resolved finding stays in the report, marked as resolved, but no longer affects its figures. Its key is a hash of its
code and its transactions: if the transactions change, the finding has another key and is open again.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

import msgspec
from sqlalchemy import func, insert, select

from pipelines.vocabulary.errors import NotFound
from storage.core.database import AnyRow, AnySelect, Reading, Writing
from storage.core.models import reports, resolutions
from storage.core.paging import Page, Paged, count_total, limit_to_page
from storage.customers.customers import Customer, lock
from storage.jobs.jobs import request_refresh

KINDS = ("finding", "event")


@dataclass(frozen=True)
class Resolution:
    """A finding or an event that was resolved, or whose resolution was revoked (`reason` is null)."""

    kind: str
    key: str
    reason: str | None
    made_at: datetime
    made_by: str


def put(w: Writing, customer: Customer, kind: str, key: str, reason: str | None, who: str, now: datetime) -> None:
    """Resolve a finding or an event, or revoke its resolution (`reason` None). Queue new reports if that is a change.

    Raises:
        NotFound: the customer's risk report has nothing of this kind with this key.
        Conflict: a refresh of the reports is running, which may have read the resolutions already.
        Unprocessable: the customer has no enriched transactions any more.
    """
    lock(w, customer)
    if not _is_reported(w, customer, kind, key):
        raise NotFound("Resolution.NothingFound", f"The customer's risk report has no {kind} with this key.")
    before = {each.key: each.reason for each in read_current(w, customer)}
    if before.get(key) == reason:
        return
    row = {"customer_number": customer.number, "kind": kind, "key": key, "reason": reason}
    w.execute(insert(resolutions).values(**row, made_at=now, made_by=who))
    request_refresh(w, customer, who, now)


def _is_reported(r: Reading, customer: Customer, kind: str, key: str) -> bool:
    selected = (reports.c.customer_number == customer.number, reports.c.kind == "risk")
    data = r.execute(select(reports.c.data).where(*selected)).scalar()
    if data is None:
        return False
    report = msgspec.json.decode(data)
    found = report["events"] if kind == "event" else report["integrity"]["findings"]
    return any(each["key"] == key for each in found)


def read_current(r: Reading, customer: Customer) -> list[Resolution]:
    """Return the customer's resolutions in force, in the order made."""
    return [each for _, each in find_in_force(r, [customer.number])]


def find_in_force(
    r: Reading, customer_numbers: Iterable[int], until: datetime | None = None
) -> list[tuple[int, Resolution]]:
    """Return the customers' resolutions in force, now or at a time, each with the customer's number."""
    selected = resolutions.c.customer_number.in_(list(customer_numbers))
    if until is not None:
        selected &= resolutions.c.made_at <= until
    key = (resolutions.c.customer_number, resolutions.c.key)
    last = select(func.max(resolutions.c.number)).where(selected).group_by(*key)
    query = select(resolutions).where(resolutions.c.number.in_(last), resolutions.c.reason.is_not(None))
    rows = r.execute(query.order_by(resolutions.c.customer_number, resolutions.c.number))
    return [(row.customer_number, _as_resolution(row)) for row in rows]


def find_history(r: Reading, customer: Customer, page: Page | None = None) -> Paged[Resolution]:
    """Return every resolution and revocation, newest first."""
    query = _newest_first(customer)
    return Paged([_as_resolution(row) for row in r.execute(limit_to_page(query, page))], count_total(r, query), page)


def _newest_first(customer: Customer) -> AnySelect:
    selected = resolutions.c.customer_number == customer.number
    return select(resolutions).where(selected).order_by(resolutions.c.number.desc())


def _as_resolution(row: AnyRow) -> Resolution:
    return Resolution(row.kind, row.key, row.reason, row.made_at, row.made_by)
