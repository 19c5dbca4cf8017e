"""Attributes: what a client knows about a customer, by name, with its source and expiry.

Every change is a row that is never overwritten. An attribute's current value is the last change of its name.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import bindparam, func, insert, select

from pipelines.vocabulary.errors import Conflict
from storage.core.database import AnyRow, AnySelect, Reading, Writing
from storage.core.models import attributes
from storage.core.paging import Page, Paged, count_total, limit_to_page
from storage.customers.customers import Customer, lock, require_known_changes
from storage.monitoring import rulesets

MAX_PER_CUSTOMER = 200

Value = str | Decimal | bool


@dataclass(frozen=True)
class NewAttribute:
    value: Value
    source: str | None = None
    evidence_date: date | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True)
class Attribute:
    """A change of an attribute. The value is None if the attribute was removed."""

    name: str
    value: Value | None
    source: str | None
    evidence_date: date | None
    expires_at: datetime | None
    set_at: datetime
    set_by: str

    def is_available(self, now: datetime) -> bool:
        return self.value is not None and (self.expires_at is None or now < self.expires_at)


def put(
    w: Writing,
    customer: Customer,
    given: Mapping[str, NewAttribute | None],
    who: str,
    now: datetime,
    known: int | None = None,
) -> None:
    """Set the given attributes, and remove those given as null. The others stay. Equal values change nothing.

    If a ruleset reads what changes, this requests a ruleset evaluation of the customer.

    Args:
        known: the number of changes that the caller knows; None if that does not matter.

    Raises:
        Conflict: the customer would have too many attributes, or there are more changes by now.
    """
    lock(w, customer)
    require_known_changes(w, known, _changes_of(customer))
    before = {row.name: _content(row) for row in _find_last_changes(w, customer)}
    after = {name: _columns(attribute) for name, attribute in given.items()}
    changes = {name: columns for name, columns in after.items() if before.get(name, _columns(None)) != columns}
    names_with_value = {name for name, columns in (before | after).items() if columns["value"] is not None}
    if len(names_with_value) > MAX_PER_CUSTOMER:
        raise Conflict("Attribute.TooMany", f"A customer may have {MAX_PER_CUSTOMER} attributes at most.")
    shared = {"customer_number": customer.number, "set_at": now, "set_by": who}
    if changes:
        w.execute(insert(attributes), [{"name": name, **columns, **shared} for name, columns in changes.items()])
        rulesets.request_for_attributes(w, customer, changes, now)


def read_current(r: Reading, customer: Customer) -> list[Attribute]:
    """Return the customer's attributes, including expired ones, by name."""
    return [_attribute(row) for row in _find_last_changes(r, customer) if row.value is not None]


def find_current(
    r: Reading, customer_numbers: Iterable[int], until: datetime | None = None
) -> list[tuple[int, Attribute]]:
    """Return the customers' attributes, including expired ones, now or at a time, by customer number and name."""
    selected = attributes.c.customer_number.in_(list(customer_numbers))
    if until is not None:
        selected &= attributes.c.set_at <= until
    key = (attributes.c.customer_number, attributes.c.name)
    last = select(func.max(attributes.c.number)).where(selected).group_by(*key)
    query = select(attributes).where(attributes.c.number.in_(last), attributes.c.value.is_not(None))
    rows = r.execute(query.order_by(attributes.c.customer_number, attributes.c.name))
    return [(row.customer_number, _attribute(row)) for row in rows]


def last_changes(r: Reading, names: Mapping[int, Set[str]]) -> dict[int, int]:
    """Return for each customer the number of the last change of these names, removals included; 0 if there is none.

    Args:
        names: by customer number.
    """
    key = (attributes.c.customer_number, attributes.c.name)
    query = select(*key, func.max(attributes.c.number)).where(attributes.c.customer_number.in_(list(names)))
    last = dict.fromkeys(names, 0)
    for number, name, change in r.execute(query.group_by(*key)) if names else ():
        if name in names[number]:
            last[number] = max(last[number], change)
    return last


def find_changes(
    r: Reading, customer_numbers: Iterable[int], names: Collection[str]
) -> Iterator[tuple[int, Attribute]]:
    """Return every change of these names of the customers, including removals, in order."""
    of_them = (attributes.c.customer_number.in_(list(customer_numbers)), attributes.c.name.in_(list(names)))
    rows = r.execute(select(attributes).where(*of_them).order_by(attributes.c.number)) if names else ()
    return ((row.customer_number, _attribute(row)) for row in rows)


def find_history(r: Reading, customer: Customer, page: Page | None = None) -> Paged[Attribute]:
    """Return every change of the customer's attributes, newest first."""
    query = _changes_of(customer)
    rows = r.execute(limit_to_page(query.order_by(attributes.c.number.desc()), page))
    return Paged([_attribute(row) for row in rows], count_total(r, query), page)


def _changes_of(customer: Customer) -> AnySelect:
    return select(attributes).where(attributes.c.customer_number == customer.number)


def _find_last_changes(r: Reading, customer: Customer) -> Iterable[AnyRow]:
    """Return the last change of each name."""
    return r.execute(_LAST_CHANGES, {"customer_number": customer.number})


_LAST_CHANGES: AnySelect = (
    select(attributes)
    .where(
        attributes.c.number.in_(
            select(func.max(attributes.c.number))
            .where(attributes.c.customer_number == bindparam("customer_number"))
            .group_by(attributes.c.name)
        )
    )
    .order_by(attributes.c.name)
)


CONTENT = ("value", "source", "evidence_date", "expires_at")


def _columns(attribute: NewAttribute | None) -> dict[str, Any]:
    if attribute is None:
        return dict.fromkeys(CONTENT)
    return {**vars(attribute), "value": _as_json(attribute.value)}


def _content(row: AnyRow) -> dict[str, Any]:
    return {name: getattr(row, name) for name in CONTENT}


def _attribute(row: AnyRow) -> Attribute:
    value = None if row.value is None else json.loads(row.value, parse_int=Decimal, parse_float=Decimal)
    return Attribute(row.name, value, row.source, row.evidence_date, row.expires_at, row.set_at, row.set_by)


def _as_json(value: Value) -> str:
    """Return JSON text. A number keeps its digits exactly."""
    return f"{value:f}" if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False)
