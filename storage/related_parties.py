"""Related parties: who stands beside a customer, such as its directors, guarantors and group companies.

A client sends the whole list. Every list that differs from the one before is kept, so the last one is what holds.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, Select, insert, select

from storage.customers import Customer, lock
from storage.database import Reading, Writing
from storage.models import related_parties
from storage.paging import Page, Paged, limited, total_of


@dataclass(frozen=True)
class Party:
    name: str
    abn: str | None
    abn_checksum_valid: bool | None  # null without an ABN
    role: str


@dataclass(frozen=True)
class PartyList:
    """A whole list, as somebody sent it."""

    parties: Sequence[Party]
    set_at: datetime
    set_by: str


def put(w: Writing, customer: Customer, parties: Sequence[Party], who: str, now: datetime) -> None:
    """Replace the list; the same list again is no change."""
    lock(w, customer)
    if list(current(w, customer)) == list(parties):
        return
    row = {"customer_number": customer.number, "parties": [asdict(party) for party in parties]}
    w.execute(insert(related_parties).values(**row, set_at=now, set_by=who))


def current(r: Reading, customer: Customer) -> Sequence[Party]:
    """The list that holds; empty when there never was one."""
    row = r.execute(_newest_first(customer).limit(1)).first()
    return () if row is None else _list(row).parties


def history(r: Reading, customer: Customer, page: Page | None = None) -> Paged[PartyList]:
    """Every list, newest first."""
    query = _newest_first(customer)
    return Paged([_list(row) for row in r.execute(limited(query, page))], total_of(r, query), page)


def _newest_first(customer: Customer) -> Select[Any]:
    mine = related_parties.c.customer_number == customer.number
    return select(related_parties).where(mine).order_by(related_parties.c.number.desc())


def _list(row: Row[Any]) -> PartyList:
    return PartyList([Party(**party) for party in row.parties], row.set_at, row.set_by)
