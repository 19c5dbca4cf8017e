"""Evaluations are stored byte for byte, and never changed."""

from dataclasses import replace
from datetime import date, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DatabaseError

from pipelines.vocabulary.errors import Conflict, Corrupt, NotFound
from storage.core.paging import Page
from storage.core.store import Store
from storage.customers.customers import Customer
from storage.decisions import evaluations, policies
from storage.decisions.evaluations import Evaluation, NewEvaluation, Override
from tests.storage.decisions.test_policies import get_policy, save_a_draft
from tests.storage.examples import a_client, a_customer

RECORD = b'{"outcome":"blocked","of":"\xc3\xa9"}'


def make_evaluation(
    store: Store, customer: Customer, now: datetime, slug: str = "loan", of: UUID | None = None
) -> Evaluation:
    version = save_a_draft(store, customer.client_id, now, slug)
    new = NewEvaluation(
        evaluation_id=uuid4(),
        client_id=customer.client_id,
        customer_number=customer.number,
        policy_id=version.policy_id,
        version=version.version,
        at=now,
        who="a key",
        what_if=False,
        outcome="blocked",
        data_version=3,
        as_of=date(2026, 11, 20),
        record=RECORD,
        shadow_of=of,
    )
    with store.db.writing() as w:
        evaluations.save(w, new)
        return evaluations.get(w, customer.client_id, new.evaluation_id)


def test_evaluation_is_stored_unchanged(store: Store, now: datetime) -> None:
    customer = a_customer(store, a_client(store, now), now)
    retained = make_evaluation(store, customer, now)
    assert (retained.customer_id, retained.slug, retained.version, retained.outcome) == (
        customer.customer_id,
        "loan",
        1,
        "blocked",
    )
    assert (retained.at, retained.as_of, retained.data_version, retained.what_if) == (now, date(2026, 11, 20), 3, False)
    with store.db.reading() as r:
        assert evaluations.read_record(r, retained) == RECORD
        assert evaluations.get_of_any_client(r, retained.evaluation_id) == retained


def test_changed_record_is_reported(store: Store, now: datetime) -> None:
    retained = make_evaluation(store, a_customer(store, a_client(store, now), now), now)
    with store.db.reading() as r, pytest.raises(Corrupt):
        evaluations.read_record(r, replace(retained, sha256=bytes(32)))


def test_evaluations_are_found_by_customer_and_policy_newest_first(store: Store, now: datetime) -> None:
    client_id = a_client(store, now)
    first, second = a_customer(store, client_id, now), a_customer(store, client_id, now)
    one = make_evaluation(store, first, now)
    two = make_evaluation(store, first, now + timedelta(hours=1), slug="overdraft")
    three = make_evaluation(store, second, now)
    shadow = make_evaluation(store, second, now, slug="overdraft", of=three.evaluation_id)
    make_evaluation(store, a_customer(store, a_client(store, now), now), now)
    overdraft = get_policy(store, client_id, "overdraft")
    with store.db.reading() as r:
        assert evaluations.find(r, client_id).items == [three, two, one]
        assert evaluations.find(r, client_id, customer=first).items == [two, one]
        assert evaluations.find(r, client_id, policy=overdraft).items == [two]
        assert evaluations.find(r, client_id, policy=overdraft, shadows=True).items == [shadow, two]
        page = evaluations.find(r, client_id, page=Page(2, 2))
        assert (page.items, page.total) == ([one], 3)
        assert evaluations.shadows_of(r, three) == [shadow]
        assert evaluations.shadows_of(r, one) == []


def test_another_clients_evaluation_is_not_found(store: Store, now: datetime) -> None:
    retained = make_evaluation(store, a_customer(store, a_client(store, now), now), now)
    with store.db.reading() as r:
        for client_id, evaluation_id in ((a_client(store, now), retained.evaluation_id), (retained.client_id, uuid4())):
            with pytest.raises(NotFound) as refused:
                evaluations.get(r, client_id, evaluation_id)
            assert refused.value.code == "Evaluation.NotFound"


def test_overrides_leave_the_evaluation_unchanged(store: Store, now: datetime) -> None:
    retained = make_evaluation(store, a_customer(store, a_client(store, now), now), now)
    with store.db.writing() as w:
        evaluations.add_override(w, retained, "conditional", "Seen the contract.", "J. Lee", "a key", now)
        evaluations.add_override(w, retained, "proceed", "Guarantee obtained.", "M. Chan", "a key", now)
        assert evaluations.overrides_of(w, retained) == [
            Override("conditional", "Seen the contract.", "J. Lee", now, "a key"),
            Override("proceed", "Guarantee obtained.", "M. Chan", now, "a key"),
        ]
        assert evaluations.get(w, retained.client_id, retained.evaluation_id) == replace(
            retained, overridden_outcome="proceed"
        )
        [listed] = evaluations.find(w, retained.client_id).items
        assert (listed.outcome, listed.overridden_outcome) == ("blocked", "proceed")


def test_only_a_decision_can_be_overridden(store: Store, now: datetime) -> None:
    retained = make_evaluation(store, a_customer(store, a_client(store, now), now), now)
    for other in (replace(retained, what_if=True), replace(retained, shadow_of=uuid4())):
        with store.db.writing() as w, pytest.raises(Conflict) as refused:
            evaluations.add_override(w, other, "proceed", "Guarantee obtained.", "M. Chan", "a key", now)
        assert refused.value.code == "Evaluation.NotADecision"


@pytest.mark.parametrize("table", ["evaluations", "decision_overrides"])
def test_database_refuses_to_change_evaluations(store: Store, now: datetime, table: str) -> None:
    retained = make_evaluation(store, a_customer(store, a_client(store, now), now), now)
    with store.db.writing() as w:
        evaluations.add_override(w, retained, "proceed", "Guarantee obtained.", "M. Chan", "a key", now)
    with pytest.raises(DatabaseError, match="are never changed"), store.db.writing() as w:
        w.execute(text(f"UPDATE {table} SET outcome = 'conditional'"))


def test_evaluation_must_name_an_existing_version(store: Store, now: datetime) -> None:
    customer = a_customer(store, a_client(store, now), now)
    retained = make_evaluation(store, customer, now)
    with store.db.reading() as r:
        version = policies.version(r, get_policy(store, customer.client_id), retained.version)
    new = NewEvaluation(
        uuid4(), customer.client_id, customer.number, version.policy_id, 9, now, "a key", False, "proceed", 3,
        date(2026, 11, 20), RECORD,
    )  # fmt: skip
    with pytest.raises(DatabaseError), store.db.writing() as w:
        evaluations.save(w, new)
