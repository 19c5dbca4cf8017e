"""Customers: a client's borrowers, each with the versions of its enriched transactions."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID, uuid4

from sqlalchemy import bindparam, insert, select, update
from sqlalchemy.exc import IntegrityError

from pipelines.vocabulary.errors import Conflict, NotFound
from storage.core.database import AnySelect, Reading, Writing
from storage.core.models import clients, customers
from storage.core.paging import Page, Paged, count_total, limit_to_page
from storage.customers import summaries

MAX_OTHERS = 11  # customers with the same ABN that a creation reports


@dataclass(frozen=True)
class Customer:
    number: int
    customer_id: UUID
    client_id: UUID
    abn: str
    abn_checksum_valid: bool
    name: str | None
    reference: str | None
    state: str | None
    created_at: datetime
    created_by: str | None  # as in the audit trail; null: not recorded
    data_version: int  # of the enriched transactions' content; 0 before the first
    location_version: int  # counts how often that content moved to another file
    enriched_rows: int  # current rows: what the API lists
    enrichment_version: int  # of the enrichment that gives the stored transactions; 0 before the first
    knowledge_version: int  # counts changes to corrections and related parties of this customer


@dataclass(frozen=True)
class NewCustomer:
    abn: str
    abn_checksum_valid: bool
    name: str | None = None
    reference: str | None = None
    state: str | None = None


@dataclass(frozen=True)
class Creation:
    """The result of `create`: the customer, whether it is new, and the client's other customers with the same ABN.

    Of the others, the first MAX_OTHERS are listed.
    """

    customer: Customer
    created: bool
    others: tuple[UUID, ...]


def create(w: Writing, client_id: UUID, new: NewCustomer, who: str, now: datetime) -> Creation:
    """Create a customer, or return the existing one with this ABN and reference."""
    if (existing := _with_reference(w, client_id, new)) is not None:
        return Creation(existing, created=False, others=())
    others = _with_abn(w, client_id, new.abn)
    customer_id = uuid4()
    row = {"customer_id": customer_id, "client_id": client_id, "created_at": now, "created_by": who, **vars(new)}
    try:
        with w.begin_nested():
            w.execute(insert(customers).values(row))
    except IntegrityError:  # another process was first with the same reference
        return create(w, client_id, new, who, now)
    customer = get(w, client_id, customer_id)
    summaries.add(w, [customer.number])
    return Creation(customer, created=True, others=others)


def get(r: Reading, client_id: UUID, customer_id: UUID) -> Customer:
    """Return the client's customer.

    Raises:
        NotFound: unknown, or another client's.
    """
    row = r.execute(_OF_CLIENT, {"customer_id": customer_id, "client_id": client_id}).first()
    if row is None:
        raise NotFound("Customer.NotFound", "There is no customer with this id.")
    return Customer(*row)


_OF_CLIENT: AnySelect = select(customers).where(
    customers.c.customer_id == bindparam("customer_id"), customers.c.client_id == bindparam("client_id")
)


def find_names(r: Reading, client_id: UUID, customer_ids: Collection[UUID]) -> dict[UUID, str]:
    """Return the names of these customers of the client, by id. Customers without a name are left out."""
    query = select(customers.c.customer_id, customers.c.name).where(customers.c.client_id == client_id)
    selected = customers.c.customer_id.in_(customer_ids), customers.c.name.is_not(None)
    return {row.customer_id: row.name for row in r.execute(query.where(*selected))}


def get_of_any_client(r: Reading, customer_id: UUID) -> Customer:
    """Return a customer of any client, for the operator.

    Raises:
        NotFound: unknown.
    """
    row = r.execute(select(customers).where(customers.c.customer_id == customer_id)).first()
    if row is None:
        raise NotFound("Customer.NotFound", "There is no customer with this id.")
    return Customer(*row)


def lock(w: Writing, customer: Customer) -> None:
    """Lock the customer until this transaction ends. Rows that refer to the customer can still be written."""
    lock_number(w, customer.number)


def lock_number(w: Writing, number: int) -> None:
    """Lock the customer with this number, as `lock` does."""
    w.execute(_LOCK, {"number": number})


_LOCK = select(customers.c.number).where(customers.c.number == bindparam("number")).with_for_update(key_share=True)


def require_known_changes(w: Writing, known: int | None, changes: AnySelect) -> None:
    """Raise Conflict if a locked customer has another number of these changes than the caller knows.

    Args:
        known: None if that does not matter to the caller.
    """
    if known is not None and count_total(w, changes) != known:
        raise Conflict("Customer.ChangedMeanwhile", "It was changed meanwhile, so nothing was changed now.")


def lock_all(w: Writing, customer_numbers: Iterable[int]) -> None:
    """Lock several customers as `lock` does, in the order in which the commit of a batch locks them."""
    selected = customers.c.number.in_(list(customer_numbers))
    w.execute(select(customers.c.number).where(selected).order_by(customers.c.number).with_for_update(key_share=True))


def find(
    r: Reading,
    client_id: UUID,
    abn: str | None = None,
    reference: str | None = None,
    page: Page | None = None,
) -> Paged[Customer]:
    """Return the client's customers in order of creation, filtered by exact ABN and reference."""
    query = select(customers).where(customers.c.client_id == client_id).order_by(customers.c.number)
    if abn is not None:
        query = query.where(customers.c.abn == abn)
    if reference is not None:
        query = query.where(customers.c.reference == reference)
    rows = r.execute(limit_to_page(query, page))
    return Paged([Customer(*row) for row in rows], count_total(r, query), page)


def numbers(r: Reading, client_id: UUID, customer_ids: Iterable[UUID]) -> dict[UUID, int]:
    """Return the internal numbers of those of `customer_ids` that are customers of the client."""
    query = select(customers.c.customer_id, customers.c.number).where(
        customers.c.client_id == client_id, customers.c.customer_id.in_(list(customer_ids))
    )
    return {row.customer_id: row.number for row in r.execute(query)}


def ids_of(r: Reading, customer_numbers: Iterable[int]) -> dict[int, UUID]:
    query = select(customers.c.number, customers.c.customer_id)
    return {
        row.number: row.customer_id for row in r.execute(query.where(customers.c.number.in_(list(customer_numbers))))
    }


def _with_reference(r: Reading, client_id: UUID, new: NewCustomer) -> Customer | None:
    if new.reference is None:
        return None
    same = (customers.c.client_id == client_id, customers.c.abn == new.abn, customers.c.reference == new.reference)
    row = r.execute(select(customers).where(*same)).first()
    return None if row is None else Customer(*row)


def _with_abn(r: Reading, client_id: UUID, abn: str) -> tuple[UUID, ...]:
    query = select(customers.c.customer_id).where(customers.c.client_id == client_id, customers.c.abn == abn)
    return tuple(r.execute(query.order_by(customers.c.number).limit(MAX_OTHERS)).scalars())


def versions(r: Reading, customer_numbers: Iterable[int]) -> dict[int, int]:
    """Return the data version of each customer, in order of customer number."""
    query = select(customers.c.number, customers.c.data_version).order_by(customers.c.number)
    rows = r.execute(query.where(customers.c.number.in_(list(customer_numbers))))
    return {row.number: row.data_version for row in rows}


def names(r: Reading, customer_numbers: Iterable[int]) -> list[tuple[int, str | None, str]]:
    """Return number, name and ABN of each customer, in order of number."""
    query = select(customers.c.number, customers.c.name, customers.c.abn).order_by(customers.c.number)
    rows = r.execute(query.where(customers.c.number.in_(list(customer_numbers))))
    return [(row.number, row.name, row.abn) for row in rows]


def clients_of(r: Reading, customer_numbers: Iterable[int]) -> dict[int, UUID]:
    """Return the client of each customer, by customer number."""
    query = select(customers.c.number, customers.c.client_id).where(customers.c.number.in_(list(customer_numbers)))
    return {row.number: row.client_id for row in r.execute(query)}


def with_transactions(r: Reading, client_id: UUID) -> list[int]:
    """Return the numbers of the client's customers that have enriched transactions."""
    query = select(customers.c.number).where(customers.c.client_id == client_id, customers.c.enriched_rows > 0)
    return list(r.execute(query.order_by(customers.c.number)).scalars())


def knowledge_versions(r: Reading, customer_numbers: Iterable[int]) -> dict[int, int]:
    """Return how often the knowledge about each customer has changed, by customer number.

    Knowledge is what enrichment uses besides transactions (corrections, related parties, models), for this customer or
    for all customers of its client.
    """
    version = (customers.c.knowledge_version + clients.c.knowledge_version).label("version")
    query = select(customers.c.number, version).join_from(customers, clients)
    rows = r.execute(query.where(customers.c.number.in_(list(customer_numbers))))
    return {row.number: row.version for row in rows}


def record_knowledge_change(w: Writing, customer: Customer) -> None:
    """Record a change of the knowledge about a customer.

    Work that was computed without it and isn't committed yet will be computed again.
    """
    changed = {"knowledge_version": customers.c.knowledge_version + 1}
    w.execute(update(customers).where(customers.c.number == customer.number).values(changed))


def record_knowledge_change_for_all(w: Writing, client_id: UUID) -> None:
    """Record a change of the knowledge about all customers of a client."""
    changed = {"knowledge_version": clients.c.knowledge_version + 1}
    w.execute(update(clients).where(clients.c.client_id == client_id).values(changed))
