"""Corrections and their jobs are stored in one commit, and change what rows must be recomputed."""

from datetime import datetime
from typing import Any
from uuid import UUID

import polars as pl
import pytest

from storage.core.models import Flow
from storage.core.store import Store
from storage.customers import customers
from storage.customers.customers import Customer
from storage.enrichment import corrections
from storage.enrichment.corrections import NewCorrection, Reach, StoredRows
from storage.jobs import jobs
from storage.jobs.jobs import Job
from tests.storage.examples import a_client, a_customer
from tests.storage.values import commit

TEA = NewCorrection(words="tea", category="meals")


def read_reach(store: Store, customer: Customer, new: NewCorrection) -> tuple[StoredRows, Reach]:
    with store.db.reading() as r:
        on = corrections.read_stored_rows(r, store.lake, customer, client_wide=new.client_wide)
    return on, corrections.measure_reach(store.lake, on, new)


def make_correction(
    store: Store, customer: Customer, new: NewCorrection, now: datetime, on: tuple[StoredRows, Reach] | None = None
) -> tuple[corrections.Correction, Job]:
    on = on or read_reach(store, customer, new)
    with store.db.writing() as w:
        return corrections.make(w, customer, new, on, "a key", now)


def live(store: Store, *of: Customer) -> list[dict[str, Any]]:
    with store.db.reading() as r:
        found = corrections.find_in_force(r, [customer.number for customer in of])
    return found.sort("customer_number", "position").to_dicts()


def find_queued(store: Store, client_id: UUID) -> set[int]:
    with store.db.reading() as r:
        return {job.customer_number for job in jobs.find(r, client_id, flow=Flow.CORRECTION).items}


@pytest.fixture
def client_id(store: Store, now: datetime) -> UUID:
    return a_client(store, now)


@pytest.fixture
def customer(store: Store, client_id: UUID, now: datetime) -> Customer:
    return a_customer(store, client_id, now)


def test_corrections_of_a_customer_are_its_own_and_its_clients(
    store: Store, client_id: UUID, customer: Customer, now: datetime
) -> None:
    neighbour, stranger = a_customer(store, client_id, now), a_customer(store, a_client(store, now), now)
    own, _ = make_correction(store, customer, TEA, now)
    wide, _ = make_correction(
        store, neighbour, NewCorrection(counterparty="Acme", category="rent", client_wide=True), now
    )
    gone, _ = make_correction(store, customer, NewCorrection(words="gone", category="rent"), now)
    with store.db.writing() as w:
        corrections.revoke(w, customer, gone, None, "a key", now)
    assert [(row["customer_number"], row["correction_id"]) for row in live(store, customer, neighbour, stranger)] == [
        (customer.number, own.correction_id.bytes),
        (customer.number, wide.correction_id.bytes),
        (neighbour.number, wide.correction_id.bytes),
    ]
    assert [row["counterparty_group"] for row in live(store, neighbour)] == ["ACME"]
    assert live(store, stranger) == live(store) == []


def test_making_and_revoking_change_the_knowledge_version(
    store: Store, client_id: UUID, customer: Customer, now: datetime
) -> None:
    neighbour = a_customer(store, client_id, now)

    def read_knowledge_versions() -> list[int]:
        with store.db.reading() as r:
            versions = customers.knowledge_versions(r, [customer.number, neighbour.number])
        return [versions[customer.number], versions[neighbour.number]]

    own, _ = make_correction(store, customer, TEA, now)
    assert read_knowledge_versions() == [1, 0]
    make_correction(store, customer, NewCorrection(words="tea", category="rent", client_wide=True), now)
    assert read_knowledge_versions() == [2, 1]
    with store.db.writing() as w:
        corrections.revoke(w, customer, own, None, "a key", now)
    assert read_knowledge_versions() == [3, 1]


def test_a_correction_and_its_job_are_one_commit(
    store: Store, client_id: UUID, customer: Customer, now: datetime
) -> None:
    on = read_reach(store, customer, TEA)

    def make_and_fail() -> None:
        with store.db.writing() as w:
            corrections.make(w, customer, TEA, on, "a key", now)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        make_and_fail()
    assert (live(store, customer), find_queued(store, client_id)) == ([], set())


def test_customers_whose_rows_changed_since_reading_are_recomputed_too(
    store: Store, client_id: UUID, customer: Customer, now: datetime
) -> None:
    neighbour, idle = (a_customer(store, client_id, now) for _ in range(2))
    wide = NewCorrection(words="tea", category="meals", client_wide=True)
    on = read_reach(store, customer, wide)
    commit(store, {neighbour.number: 2}, now)
    make_correction(store, customer, wide, now, on)
    assert find_queued(store, client_id) == {customer.number, neighbour.number}
    assert idle.number not in find_queued(store, client_id)


@pytest.mark.parametrize("part_rows", [1, 3, 1_000])
def test_rows_are_read_in_parts(
    store: Store, client_id: UUID, now: datetime, monkeypatch: pytest.MonkeyPatch, part_rows: int
) -> None:
    monkeypatch.setattr(corrections, "PART_ROWS", part_rows)
    several = [a_customer(store, client_id, now) for _ in range(4)]
    commit(store, {each.number: nth + 1 for nth, each in enumerate(several)}, now)
    with store.db.reading() as r:
        on = corrections.read_stored_rows(r, store.lake, several[0], client_wide=True)
    parts = list(corrections._read_in_parts(store.lake, on.locations, ("customer_number",)))
    assert sum(part.height for part in parts) == sum(location.row_count for location in on.locations)
    assert set(pl.concat(parts)["customer_number"]) == {each.number for each in several}
