"""Which learned model applies to which client's customers, and when that changes."""

from datetime import datetime
from functools import cache
from uuid import UUID

import pytest
from sqlalchemy import update

from pipelines.enrichment.learned import model_file
from storage.core.database import Writing
from storage.core.models import Flow
from storage.core.models import customers as customers_table
from storage.core.store import Store
from storage.customers import customers
from storage.customers.customers import Customer
from storage.enrichment import category_models, knowledge
from storage.jobs import jobs
from tests.storage.examples import a_client, a_customer


@cache
def base_model() -> bytes:
    return model_file.dumps(model_file.load_base())


def a_model(w: Writing, now: datetime, content: bytes | None = None) -> UUID:
    return category_models.add(w, content or base_model(), "f" * 64, {}, None, now).model_id


def with_rows(store: Store, client_id: UUID, now: datetime) -> Customer:
    customer = a_customer(store, client_id, now)
    with store.db.writing() as w:
        w.execute(update(customers_table).where(customers_table.c.number == customer.number).values(enriched_rows=1))
    return customer


def test_an_activated_model_is_used_for_its_clients_customers(store: Store, now: datetime) -> None:
    client_id = a_client(store, now)
    own, other = a_customer(store, client_id, now), a_customer(store, a_client(store, now), now)
    with store.db.writing() as w:
        category_models.activate(w, a_model(w, now), client_id, "operator", now)
    with store.db.reading() as r:
        known = knowledge.read(r, store.lake, [own.number, other.number])
    assert [use.customers for use in known.models] == [frozenset({own.number})]
    assert known.customers["customer_number"].to_list() == sorted([own.number, other.number])


def test_activating_and_going_back_enrich_the_customers_again(store: Store, now: datetime) -> None:
    client_id, bystanders = a_client(store, now), a_client(store, now)
    customer, empty, other = (
        with_rows(store, client_id, now),
        a_customer(store, client_id, now),
        with_rows(store, bystanders, now),
    )
    numbers = [customer.number, empty.number, other.number]
    with store.db.writing() as w:
        before = customers.knowledge_versions(w, numbers)
        category_models.activate(w, a_model(w, now), client_id, "operator", now)
        after = customers.knowledge_versions(w, numbers)
    assert [after[number] - before[number] for number in numbers] == [1, 1, 0]
    with store.db.writing() as w:
        category_models.deactivate(w, client_id, "operator", now)
        queued = jobs.find(w, client_id, flow=Flow.REENRICHMENT).items
        assert [job.customer_number for job in queued] == [customer.number] * 2
        assert not jobs.find(w, bystanders, flow=Flow.REENRICHMENT).items


def test_a_model_for_all_leaves_clients_with_their_own_alone(store: Store, now: datetime) -> None:
    with_own, without = a_client(store, now), a_client(store, now)
    for client_id in (with_own, without):
        with_rows(store, client_id, now)
    with store.db.writing() as w:
        category_models.activate(w, a_model(w, now), with_own, "operator", now)
        category_models.activate(w, a_model(w, now), None, "operator", now)
        assert len(jobs.find(w, with_own, flow=Flow.REENRICHMENT).items) == 1
        assert len(jobs.find(w, without, flow=Flow.REENRICHMENT).items) == 1


def test_a_damaged_model_is_logged_and_left_out(store: Store, now: datetime, caplog: pytest.LogCaptureFixture) -> None:
    client_id = a_client(store, now)
    customer = a_customer(store, client_id, now)
    with store.db.writing() as w:
        category_models.activate(w, a_model(w, now, b"nonsense"), client_id, "operator", now)
    with store.db.reading() as r:
        assert knowledge.read(r, store.lake, [customer.number]).models == []
    assert "is not used" in caplog.text
