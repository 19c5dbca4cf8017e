"""Large lists come in bounded parts, and in one order whatever the parts are."""

from datetime import datetime
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select

from pipelines.figures.row_filter import RowFilter
from storage.core.models import customers as customers_table
from storage.core.paging import Page
from storage.core.store import Store
from storage.customers import customers
from storage.enrichment import client_listing, transactions
from storage.enrichment.transactions import Listing
from tests.storage.values import commit, content, customers_of_a_bucket, date_of, on_sqlite


@pytest.fixture
def short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "PART_ROWS", 4)
    monkeypatch.setattr(client_listing, "PART_ROWS", 4)


def find_ids(store: Store, number: int) -> tuple[UUID, UUID]:
    with store.db.reading() as r:
        query = select(customers_table.c.client_id, customers_table.c.customer_id)
        client_id, customer_id = r.execute(query.where(customers_table.c.number == number)).one()
    return client_id, customer_id


def list_rows(store: Store, number: int, **options: Any) -> Listing:
    with store.db.reading() as r:
        customer = customers.get(r, *find_ids(store, number))
        return transactions.list_transactions(r, store.lake, customer, **options)


def rows_of(listing: Listing) -> list[str]:
    return [row for part in listing.slices() for row in part["description"]]


@pytest.mark.usefixtures("short_parts")
@on_sqlite
def test_a_long_history_is_listed_in_parts_and_in_order(store: Store, now: datetime) -> None:
    (number,) = customers_of_a_bucket(store, 1, now)
    commit(store, {number: 11}, now)
    parts = list(list_rows(store, number).slices())
    assert [part.height for part in parts] == [4, 4, 3]
    assert [row for part in parts for row in part["description"]] == content(number, 1, 11)


@pytest.mark.usefixtures("short_parts")
@on_sqlite
def test_a_customers_pages_are_parts_of_one_order(store: Store, now: datetime) -> None:
    (number,) = customers_of_a_bucket(store, 1, now)
    commit(store, {number: 11}, now)
    every = content(number, 1, 11)
    pages = (None, Page(1, 3), Page(2, 5), Page(3, 5), Page(4, 5), Page(2, 11), Page(1, 50))
    for text in ("", "row 1", every[4], "none"):
        chosen = RowFilter(text=text) if text else None
        rows = [row for row in every if text in row]
        for newest_first in (False, True):
            ordered = rows[::-1] if newest_first else rows
            for page in pages:
                listing = list_rows(store, number, page=page, chosen=chosen, newest_first=newest_first)
                expected = ordered if page is None else ordered[page.offset : page.offset + page.count]
                assert (rows_of(listing), listing.total) == (expected, len(rows)), (text, newest_first, page)


@pytest.mark.usefixtures("short_parts")
def test_a_clients_list_is_in_order_of_date_on_every_page(store: Store, now: datetime) -> None:
    numbers = customers_of_a_bucket(store, 3, now)
    for number, rows in zip(numbers, (6, 1, 8), strict=True):
        commit(store, {number: rows}, now)
    ordered = sorted(
        (date_of(row), number, text)
        for number, rows in zip(numbers, (6, 1, 8), strict=True)
        for row, text in enumerate(content(number, 1, rows))
    )
    expected = [text for _, _, text in ordered]
    client_id, _ = find_ids(store, numbers[0])
    for page in (None, Page(1, 5), Page(2, 5), Page(3, 5), Page(4, 5), Page(1, 100), Page(9, 1)):
        if page is None:
            with store.db.reading() as r:
                listing = client_listing.list_everything(r, store.lake, client_id)
        else:
            listing = client_listing.read_page(store, client_id, page)
        assert listing.total == 15
        assert rows_of(listing) == (expected if page is None else expected[page.offset : page.offset + page.count])


def test_each_current_location_is_read_in_parts_and_only_the_current_ones(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = customers_of_a_bucket(store, 4, now)
    commit(store, dict.fromkeys(numbers, 1), now)
    commit(store, {numbers[1]: 2}, now)
    with store.db.reading() as r:
        expected = transactions.current_locations(r)
    for at_once in (1, 2, 3, 4, 5):
        monkeypatch.setattr(transactions, "LOCATIONS_READ_AT_ONCE", at_once)
        assert list(transactions.find_all_current_locations(store.db)) == expected
    assert [place.row_count for place in expected] == [1, 2, 1, 1]
