"""Related parties of a customer, such as its directors, guarantors and group companies.

A client sends the whole list. Every list that differs from the one before is stored; the last one is in force.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, delete, func, insert, select

from storage.core.database import AnyRow, AnySelect, Reading, Writing
from storage.core.models import Flow, customers, related_abns, related_parties
from storage.core.paging import Page, Paged, count_total, limit_to_page
from storage.customers.customers import Customer, lock, record_knowledge_change, require_known_changes, versions
from storage.jobs.jobs import request_recomputation


@dataclass(frozen=True)
class Party:
    name: str
    abn: str | None
    abn_checksum_valid: bool | None  # null without an ABN
    role: str


@dataclass(frozen=True)
class PartyList:
    """A whole list, as it was sent."""

    parties: Sequence[Party]
    set_at: datetime
    set_by: str


def put(
    w: Writing, customer: Customer, parties: Sequence[Party], who: str, now: datetime, known: int | None = None
) -> None:
    """Replace the list, and queue the customer to be enriched with it. An equal list does not count as a change.

    Args:
        known: the number of lists that the caller knows; None if that does not matter.

    Raises:
        Conflict: there are more lists by now.
    """
    lock(w, customer)
    require_known_changes(w, known, _newest_first(customer))
    if list(read_current(w, customer)) == list(parties):
        return
    row = {"customer_number": customer.number, "parties": [asdict(party) for party in parties]}
    w.execute(insert(related_parties).values(**row, set_at=now, set_by=who))
    w.execute(delete(related_abns).where(related_abns.c.customer_number == customer.number))
    abns = sorted({party.abn for party in parties if party.abn and party.abn != customer.abn})
    if abns:
        w.execute(insert(related_abns), [{"customer_number": customer.number, "abn": abn} for abn in abns])
    record_knowledge_change(w, customer)
    if versions(w, [customer.number])[customer.number] > 0:  # else nothing is enriched yet
        request_recomputation(w, customer, Flow.REENRICHMENT, now)


def read_current(r: Reading, customer: Customer) -> Sequence[Party]:
    """Return the list in force; empty if there never was one."""
    row = r.execute(_newest_first(customer).limit(1)).first()
    return () if row is None else _as_list(row).parties


def find_history(r: Reading, customer: Customer, page: Page | None = None) -> Paged[PartyList]:
    """Return every list, newest first."""
    query = _newest_first(customer)
    return Paged([_as_list(row) for row in r.execute(limit_to_page(query, page))], count_total(r, query), page)


def find_in_force(r: Reading, customer_numbers: Iterable[int]) -> dict[int, Sequence[Party]]:
    """Return the lists in force, by customer number. Customers without one are left out."""
    selected = related_parties.c.customer_number.in_(list(customer_numbers))
    newest = select(func.max(related_parties.c.number)).where(selected).group_by(related_parties.c.customer_number)
    rows = r.execute(select(related_parties).where(related_parties.c.number.in_(newest)))
    return {row.customer_number: _as_list(row).parties for row in rows}


@dataclass(frozen=True)
class Relation:
    """Two customers of one client: the first declares the other, by its ABN, as a related party."""

    customer_number: int
    other_number: int
    abn: str


def find_relations_declared_by(r: Reading, customer_numbers: Iterable[int]) -> list[Relation]:
    """Return the relations in which these customers declare others."""
    return _relations(r, _declaring.c.number.in_(list(customer_numbers)))


def find_relations_to(r: Reading, customer_numbers: Iterable[int]) -> list[Relation]:
    """Return the relations in which others declare these customers."""
    return _relations(r, _declared.c.number.in_(list(customer_numbers)))


_declaring, _declared = customers.alias("declaring"), customers.alias("declared")


def _relations(r: Reading, which: ColumnElement[bool]) -> list[Relation]:
    same_client = (_declared.c.abn == related_abns.c.abn) & (_declared.c.client_id == _declaring.c.client_id)
    query = (
        select(_declaring.c.number, _declared.c.number, related_abns.c.abn)
        .join_from(related_abns, _declaring, _declaring.c.number == related_abns.c.customer_number)
        .join(_declared, same_client)
        .where(which)
        .order_by(_declaring.c.number, _declared.c.number)
    )
    return [Relation(*row) for row in r.execute(query)]


def _newest_first(customer: Customer) -> AnySelect:
    selected = related_parties.c.customer_number == customer.number
    return select(related_parties).where(selected).order_by(related_parties.c.number.desc())


def _as_list(row: AnyRow) -> PartyList:
    return PartyList([Party(**party) for party in row.parties], row.set_at, row.set_by)
