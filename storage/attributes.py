"""Attributes: what a client knows of a customer, by name, with where it is from and how long it holds.

Only changes are kept, in order, and none is ever overwritten: what holds is the last change of each name.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import Row, Select, func, insert, select

from pipelines.errors import Conflict
from storage.customers import Customer, lock
from storage.database import Reading, Writing
from storage.models import attributes
from storage.paging import Page, Paged, limited, total_of

MOST_PER_CUSTOMER = 200

Value = str | Decimal | bool


@dataclass(frozen=True)
class NewAttribute:
    value: Value
    source: str | None = None
    evidence_date: date | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True)
class Attribute:
    """A name's value as somebody set it; null when they removed it."""

    name: str
    value: Value | None
    source: str | None
    evidence_date: date | None
    expires_at: datetime | None
    set_at: datetime
    set_by: str

    def available(self, now: datetime) -> bool:
        return self.value is not None and (self.expires_at is None or now < self.expires_at)


def put(w: Writing, customer: Customer, given: Mapping[str, NewAttribute | None], who: str, now: datetime) -> None:
    """Merge into what holds: given names are set, or removed for null; the others stay. What is the same already is
    no change.

    Raises:
        Conflict: the customer would have too many.
    """
    lock(w, customer)
    before = {row.name: _content(row) for row in w.execute(_current(customer))}
    after = {name: _columns(attribute) for name, attribute in given.items()}
    changes = {name: columns for name, columns in after.items() if before.get(name, _columns(None)) != columns}
    standing = {name for name, columns in (before | after).items() if columns["value"] is not None}
    if len(standing) > MOST_PER_CUSTOMER:
        raise Conflict("Attribute.TooMany", f"A customer may have {MOST_PER_CUSTOMER} attributes at most.")
    shared = {"customer_number": customer.number, "set_at": now, "set_by": who}
    if changes:
        w.execute(insert(attributes), [{"name": name, **columns, **shared} for name, columns in changes.items()])


def current(r: Reading, customer: Customer) -> list[Attribute]:
    """What holds, by name; expired values included."""
    return [_attribute(row) for row in r.execute(_current(customer)) if row.value is not None]


def of_all(r: Reading, customer_numbers: Iterable[int]) -> list[tuple[int, Attribute]]:
    """What holds for each of the customers, by customer number and name; expired values included."""
    mine = attributes.c.customer_number.in_(list(customer_numbers))
    last = select(func.max(attributes.c.number)).where(mine).group_by(attributes.c.customer_number, attributes.c.name)
    query = select(attributes).where(attributes.c.number.in_(last), attributes.c.value.is_not(None))
    rows = r.execute(query.order_by(attributes.c.customer_number, attributes.c.name))
    return [(row.customer_number, _attribute(row)) for row in rows]


def history(r: Reading, customer: Customer, page: Page | None = None) -> Paged[Attribute]:
    """Every change, newest first."""
    query = select(attributes).where(attributes.c.customer_number == customer.number)
    rows = r.execute(limited(query.order_by(attributes.c.number.desc()), page))
    return Paged([_attribute(row) for row in rows], total_of(r, query), page)


def _current(customer: Customer) -> Select[Any]:
    """The last change of each name."""
    mine = attributes.c.customer_number == customer.number
    last = select(func.max(attributes.c.number)).where(mine).group_by(attributes.c.name)
    return select(attributes).where(attributes.c.number.in_(last)).order_by(attributes.c.name)


CONTENT = ("value", "source", "evidence_date", "expires_at")


def _columns(attribute: NewAttribute | None) -> dict[str, Any]:
    if attribute is None:
        return dict.fromkeys(CONTENT)
    return {**vars(attribute), "value": _as_json(attribute.value)}


def _content(row: Row[Any]) -> dict[str, Any]:
    return {name: getattr(row, name) for name in CONTENT}


def _attribute(row: Row[Any]) -> Attribute:
    value = None if row.value is None else json.loads(row.value, parse_int=Decimal, parse_float=Decimal)
    return Attribute(row.name, value, row.source, row.evidence_date, row.expires_at, row.set_at, row.set_by)


def _as_json(value: Value) -> str:
    """JSON text; a number's is its very digits."""
    return f"{value:f}" if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False)
