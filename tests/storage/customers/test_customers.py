"""Customers are found again by reference and ABN, and only by their own client."""

from datetime import datetime
from uuid import UUID

import pytest

from pipelines.vocabulary.errors import NotFound
from storage.core.paging import Page
from storage.core.store import Store
from storage.customers import customers
from storage.customers.customers import Creation, NewCustomer
from tests.storage.examples import ABN, a_client, a_customer


def create(store: Store, now: datetime, client: UUID, reference: str | None) -> Creation:
    with store.db.writing() as w:
        return customers.create(w, client, NewCustomer(ABN, True, reference=reference), "test", now)


def test_the_same_reference_returns_the_same_customer(store: Store, now: datetime) -> None:
    client = a_client(store, now)
    first, again = create(store, now, client, "L-1"), create(store, now, client, "L-1")
    assert (first.created, again.created) == (True, False)
    assert again.customer == first.customer


def test_without_a_reference_every_create_is_a_new_customer_and_reports_the_others(store: Store, now: datetime) -> None:
    client = a_client(store, now)
    first, second = create(store, now, client, None), create(store, now, client, None)
    assert second.others == (first.customer.customer_id,)


def test_the_same_reference_of_another_client_is_another_customer(store: Store, now: datetime) -> None:
    mine, theirs = create(store, now, a_client(store, now), "L-1"), create(store, now, a_client(store, now), "L-1")
    assert theirs.created
    assert theirs.customer.customer_id != mine.customer.customer_id


def test_another_clients_customer_is_not_found(store: Store, now: datetime) -> None:
    customer = a_customer(store, a_client(store, now), now)
    with store.db.reading() as r, pytest.raises(NotFound):
        customers.get(r, a_client(store, now), customer.customer_id)


def test_customers_are_listed_in_pages(store: Store, now: datetime) -> None:
    client = a_client(store, now)
    ids = [a_customer(store, client, now).customer_id for _ in range(5)]
    with store.db.reading() as r:
        second = customers.find(r, client, page=Page(2, 2))
        everything = customers.find(r, client)
    assert [customer.customer_id for customer in second.items] == ids[2:4]
    assert (second.total, second.current_page, second.page_size, second.total_pages) == (5, 2, 2, 3)
    assert (everything.total, everything.current_page, everything.page_size, everything.total_pages) == (5, None, 5, 1)


def test_names_are_those_of_the_clients_own_customers(store: Store, now: datetime) -> None:
    mine, theirs = a_client(store, now), a_client(store, now)
    with store.db.writing() as w:
        named = customers.create(w, mine, NewCustomer(ABN, True, name="Cafe"), "test", now).customer.customer_id
        nameless = customers.create(w, mine, NewCustomer(ABN, True), "test", now).customer.customer_id
        others = customers.create(w, theirs, NewCustomer(ABN, True, name="Bakery"), "test", now).customer.customer_id
    with store.db.reading() as r:
        assert customers.find_names(r, mine, [named, nameless, others]) == {named: "Cafe"}
        assert customers.find_names(r, mine, []) == {}
