"""A client's own rules are versions that never change; the one last activated reads its customers' rows."""

from datetime import datetime, timedelta
from uuid import uuid4

import pytest
from sqlalchemy import update

from pipelines.enrichment.own_rules import OwnRules, load_own_rules, parse_own_rules
from pipelines.vocabulary.errors import NotFound
from storage.core.models import Flow
from storage.core.models import customers as customers_table
from storage.core.models import own_rules as own_rules_table
from storage.core.store import Store
from storage.enrichment import knowledge, own_rules
from storage.jobs import jobs
from tests.storage.examples import a_client, a_customer


def rules_that_name(name: str) -> OwnRules:
    return parse_own_rules({"counterparties/mine.yaml": f"fuel:\n  {name}: [{name}]\n"})


ZORBLY, QUABLE = rules_that_name("ZORBLY"), rules_that_name("QUABLE")


def test_each_client_counts_its_versions_and_equal_rules_are_one(store: Store, now: datetime) -> None:
    one, other = a_client(store, now), a_client(store, now)
    with store.db.writing() as w:
        added = [own_rules.add(w, one, rules, "operator", now).version for rules in (ZORBLY, QUABLE, ZORBLY)]
        assert added == [1, 2, 1]
        assert own_rules.add(w, other, QUABLE, "operator", now).version == 1
        assert [each.version for each in own_rules.find(w, one)] == [1, 2]
        assert len(own_rules.find(w)) == 3
        assert load_own_rules(own_rules.read_content(w, one, 2)) == QUABLE
        assert own_rules.uses(w) == {}


def test_activated_rules_read_only_their_clients_customers(store: Store, now: datetime) -> None:
    client_id, bystanders = a_client(store, now), a_client(store, now)
    customer, other = a_customer(store, client_id, now), a_customer(store, bystanders, now)
    with store.db.writing() as w:
        for client, rules in ((client_id, ZORBLY), (bystanders, QUABLE)):
            own_rules.activate(w, client, own_rules.add(w, client, rules, "operator", now).version, "operator", now)
    with store.db.reading() as r:
        known = knowledge.read(r, store.lake, [customer.number, other.number])
    names = {number: each.value for each in known.own_lists for number in each.customers}
    assert sorted(names) == sorted([customer.number, other.number])
    assert names[customer.number].directory.purposes_in(["ZORBLY 1", "QUABLE 1"]) == ["fuel", None]
    assert names[other.number].directory.purposes_in(["ZORBLY 1", "QUABLE 1"]) == [None, "fuel"]


def test_activating_and_going_back_enrich_the_customers_again(store: Store, now: datetime) -> None:
    client_id = a_client(store, now)
    customer = a_customer(store, client_id, now)
    with store.db.writing() as w:
        w.execute(update(customers_table).where(customers_table.c.number == customer.number).values(enriched_rows=1))
        for rules in (ZORBLY, QUABLE):
            own_rules.add(w, client_id, rules, "operator", now)
        own_rules.activate(w, client_id, 1, "operator", now)
        own_rules.activate(w, client_id, 2, "operator", now)
        assert own_rules.uses(w) == {client_id: 2}
        own_rules.activate(w, client_id, 1, "operator", now)
        assert own_rules.deactivate(w, client_id, "operator", now) == 1
        assert own_rules.deactivate(w, client_id, "operator", now) is None
        assert own_rules.uses(w) == {}
        assert len(jobs.find(w, client_id, flow=Flow.REENRICHMENT).items) == 4


def test_unknown_clients_and_versions_are_refused(store: Store, now: datetime) -> None:
    client_id = a_client(store, now)
    with store.db.writing() as w:
        with pytest.raises(NotFound):
            own_rules.add(w, uuid4(), ZORBLY, "operator", now)
        own_rules.add(w, client_id, ZORBLY, "operator", now)
        for client, version in ((client_id, 2), (uuid4(), 1)):
            with pytest.raises(NotFound):
                own_rules.activate(w, client, version, "operator", now)


def test_rules_that_cannot_be_read_are_logged_and_left_out(
    store: Store, now: datetime, caplog: pytest.LogCaptureFixture
) -> None:
    for content in (b"nonsense", b'{"counterparties/a.yaml": "feul: {A: [B]}"}', b"[]"):
        client_id = a_client(store, now)
        customer = a_customer(store, client_id, now)
        with store.db.writing() as w:
            own_rules.activate(w, client_id, own_rules.add(w, client_id, ZORBLY, "o", now).version, "o", now)
            w.execute(update(own_rules_table).values(content=content))
        with store.db.reading() as r:
            assert knowledge.read(r, store.lake, [customer.number]).own_lists == []
        assert str(client_id) in caplog.text


def test_a_later_choice_is_known_to_have_changed(store: Store, now: datetime) -> None:
    client_id, other = a_client(store, now), a_client(store, now)
    later = now + timedelta(days=1)
    with store.db.writing() as w:
        own_rules.add(w, client_id, ZORBLY, "operator", now)
        own_rules.activate(w, client_id, 1, "operator", later)
        assert own_rules.was_changed_since(w, client_id, now)
        assert not own_rules.was_changed_since(w, client_id, later)
        assert not own_rules.was_changed_since(w, other, now)
