"""Rulesets in storage: versions, what watches whom, and the ruleset evaluations that a change requests."""

import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID, uuid4

import pytest
from sqlalchemy import delete, select, update
from sqlalchemy.exc import IntegrityError

from pipelines.vocabulary.errors import Conflict, Corrupt, InvalidRequest, NotFound, TidemarkError
from storage.core.buckets import ALL
from storage.core.database import Reading, Writing
from storage.core.models import customers, monitoring_ruleset_versions, rule_states
from storage.core.paging import Page
from storage.core.store import Store
from storage.customers.customers import Customer
from storage.monitoring import attributes, evaluation_requests, rulesets
from storage.monitoring.attributes import NewAttribute
from storage.monitoring.rulesets import RulesetVersion, StoredRuleset
from tests.storage.examples import a_client, a_customer
from tests.storage.ruleset_evaluations import (
    LOW_SCORE,
    SCORE,
    a_rule,
    a_ruleset,
    an_evaluation,
    apply_evaluation,
    create_ruleset,
)
from tests.storage.values import on_postgresql, on_sqlite

LATER = timedelta(hours=1)


def a_customer_with_transactions(store: Store, client_id: UUID, now: datetime) -> Customer:
    customer = a_customer(store, client_id, now)
    with store.db.writing() as w:
        w.execute(update(customers).where(customers.c.number == customer.number).values(data_version=1))
    return customer


def evaluations_requested(store: Store) -> set[int]:
    """Return the customers with a requested ruleset evaluation."""
    with store.db.reading() as r:
        concerned = [select(customers.c.number).where(evaluation_requests.has_request(bucket)) for bucket in ALL]
        return {number for query in concerned for number in r.execute(query).scalars()}


def answer_all_requests(store: Store) -> None:
    with store.db.writing() as w:
        for bucket in ALL:
            evaluation_requests.delete_answered(w, evaluation_requests.find_unanswered(w, bucket))


def states(store: Store) -> list[str]:
    with store.db.reading() as r:
        return list(r.execute(select(rule_states.c.rule).order_by(rule_states.c.rule)).scalars())


def watching(store: Store, customer: Customer) -> list[tuple[str, int]]:
    with store.db.reading() as r:
        active = rulesets.find_active(r, [customer.number])
        return [(each.ruleset.slug, each.version) for each in rulesets.load_active(r, active)]


def test_a_created_ruleset_is_read_back_unchanged(store: Store, now: datetime) -> None:
    ruleset = a_ruleset(a_rule("LONG", repeatAfterDays=7), notes="Nightly.", active=False)
    stored = create_ruleset(store, a_client(store, now), ruleset, now)
    with store.db.reading() as r:
        again = rulesets.get(r, stored.client_id, stored.ruleset_id)
        assert rulesets.with_slug(r, stored.client_id, "early-warning") == again == stored
    assert again.ruleset == ruleset
    assert (again.version, again.active, again.is_archived, again.watches) == (1, False, False, False)


def test_another_clients_ruleset_is_not_found(store: Store, now: datetime) -> None:
    stored = create_ruleset(store, a_client(store, now), a_ruleset(), now)
    other = a_client(store, now)
    with store.db.reading() as r:
        for ruleset_id in (stored.ruleset_id, uuid4()):
            with pytest.raises(NotFound) as raised:
                rulesets.get(r, other, ruleset_id)
            assert raised.value.code == "Ruleset.NotFound"
        assert rulesets.find(r, other).items == []


def test_a_slug_belongs_to_one_ruleset_of_a_client_even_if_it_is_archived(store: Store, now: datetime) -> None:
    client_id = a_client(store, now)
    stored = create_ruleset(store, client_id, a_ruleset(), now)
    with store.db.writing() as w:
        rulesets.archive(w, stored, now)
    assert refusal(lambda: create_ruleset(store, client_id, a_ruleset(), now)) == "Ruleset.SlugTaken"
    create_ruleset(store, a_client(store, now), a_ruleset(), now)
    other = create_ruleset(store, client_id, a_ruleset(slug="other"), now)
    with store.db.writing() as w:
        assert refusal(lambda: rulesets.replace(w, other, a_ruleset(), "test", now)) == "Ruleset.SlugTaken"


def refusal(do: Callable[[], object]) -> str:
    with pytest.raises(TidemarkError) as raised:
        do()
    return raised.value.code


def test_the_number_of_a_clients_rulesets_is_limited(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rulesets, "MAX_RULESETS", 2)
    client_id = a_client(store, now)
    for slug in ("one", "two"):
        create_ruleset(store, client_id, a_ruleset(slug=slug), now)
    assert refusal(lambda: create_ruleset(store, client_id, a_ruleset(slug="three"), now)) == "Ruleset.TooMany"
    with store.db.reading() as r:
        assert [each.slug for each in rulesets.find(r, client_id).items] == ["one", "two"]


def test_rulesets_created_at_the_same_time_do_not_exceed_the_limit(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rulesets, "MAX_RULESETS", 3)
    client_id = a_client(store, now)

    def is_refused(nth: int) -> bool:
        try:
            create_ruleset(store, client_id, a_ruleset(slug=f"of-{nth}"), now)
        except Conflict:
            return True
        return False

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(is_refused, range(8))) == 5


def test_listed_customers_must_be_the_clients_own(store: Store, now: datetime) -> None:
    client_id = a_client(store, now)
    mine, strangers = a_customer(store, client_id, now), a_customer(store, a_client(store, now), now)
    only = {"customers": [str(mine.customer_id), str(strangers.customer_id), str(uuid4())]}
    with pytest.raises(InvalidRequest) as raised:
        create_ruleset(store, client_id, a_ruleset(appliesTo=only), now)
    assert raised.value.code == "Ruleset.UnknownCustomer"
    assert [fault.pointer for fault in raised.value.faults] == ["/appliesTo/customers/1", "/appliesTo/customers/2"]


def test_replacing_makes_a_version_and_keeps_the_older_ones(store: Store, now: datetime) -> None:
    client_id = a_client(store, now)
    stored = create_ruleset(store, client_id, a_ruleset(), now)
    with store.db.writing() as w:
        same = rulesets.replace(w, stored, a_ruleset(), "test", now + LATER)
        renamed = rulesets.replace(w, stored, a_ruleset(slug="renamed"), "test", now + LATER)
    assert same == stored
    assert (renamed.version, renamed.slug, renamed.updated_at) == (2, "renamed", now + LATER)
    with store.db.reading() as r:
        versions = rulesets.find_versions(r, renamed)
        assert [(each.version, each.ruleset.slug) for each in versions.items] == [(2, "renamed"), (1, "early-warning")]
        assert rulesets.find_versions(r, renamed, Page(2, 1)).items == versions.items[1:]
        assert rulesets.read_version(r, stored.ruleset_id, 1).document == stored.document


def test_versions_can_neither_be_rewritten_nor_removed(store: Store, now: datetime) -> None:
    create_ruleset(store, a_client(store, now), a_ruleset(), now)
    for change in (update(monitoring_ruleset_versions).values(document="{}"), delete(monitoring_ruleset_versions)):
        with pytest.raises(IntegrityError), store.db.writing() as w:
            w.execute(change)


@on_sqlite
def test_a_document_that_was_changed_is_not_read(store: Store, now: datetime) -> None:
    stored = create_ruleset(store, a_client(store, now), a_ruleset(), now)
    with store.db.writing() as w:
        w.exec_driver_sql("DROP TRIGGER monitoring_ruleset_versions_rows_are_never_changed")
        changed = stored.document.replace('"30"', '"31"')
        assert changed != stored.document
        w.execute(update(monitoring_ruleset_versions).values(document=changed))
    with store.db.reading() as r, pytest.raises(Corrupt):
        assert rulesets.get(r, stored.client_id, stored.ruleset_id).ruleset


def test_archived_and_inactive_rulesets_do_not_watch(store: Store, now: datetime) -> None:
    client_id = a_client(store, now)
    customer = a_customer_with_transactions(store, client_id, now)
    stored = create_ruleset(store, client_id, a_ruleset(), now)
    create_ruleset(store, client_id, a_ruleset(slug="off", active=False), now)
    assert watching(store, customer) == [("early-warning", 1)]
    with store.db.writing() as w:
        archived = rulesets.archive(w, stored, now + LATER)
        assert archived.archived_at == now + LATER
        assert rulesets.archive(w, stored, now + 2 * LATER) == archived
        assert refusal(lambda: rulesets.replace(w, stored, a_ruleset(active=False), "test", now)) == "Ruleset.Archived"
    assert watching(store, customer) == []
    with store.db.reading() as r:
        assert [each.slug for each in rulesets.find(r, client_id).items] == ["off"]
        assert [each.slug for each in rulesets.find(r, client_id, include_archived=True).items] == [
            "early-warning",
            "off",
        ]
    with store.db.writing() as w:
        assert rulesets.unarchive(w, stored, now).watches
    assert watching(store, customer) == [("early-warning", 1)]


def test_another_clients_customers_are_not_watched(store: Store, now: datetime) -> None:
    create_ruleset(store, a_client(store, now), a_ruleset(), now)
    assert watching(store, a_customer_with_transactions(store, a_client(store, now), now)) == []


def test_a_list_of_customers_is_read_as_their_numbers(store: Store, now: datetime) -> None:
    client_id = a_client(store, now)
    one, _ = a_customer_with_transactions(store, client_id, now), a_customer_with_transactions(store, client_id, now)
    create_ruleset(store, client_id, a_ruleset(appliesTo={"customers": [str(one.customer_id)]}), now)
    with store.db.reading() as r:
        [watched] = rulesets.load_active(r, rulesets.find_active(r, [one.number]))
    assert watched.customers == frozenset({one.number})
    assert evaluations_requested(store) == {one.number}


def test_a_change_of_the_watching_rulesets_requests_a_ruleset_evaluation(store: Store, now: datetime) -> None:
    client_id = a_client(store, now)
    theirs = {a_customer_with_transactions(store, client_id, now).number for _ in range(2)}
    a_customer_with_transactions(store, a_client(store, now), now)  # another client's customer
    off, on = a_ruleset(active=False), a_ruleset()

    stored = create_ruleset(store, client_id, off, now)
    assert evaluations_requested(store) == set()
    steps: list[tuple[Callable[[Writing], object], set[int]]] = [
        (lambda w: rulesets.replace(w, stored, on, "test", now), theirs),
        (lambda w: rulesets.replace(w, stored, on, "test", now), set()),
        (lambda w: rulesets.archive(w, stored, now), set()),
        (lambda w: rulesets.unarchive(w, stored, now), theirs),
        (lambda w: rulesets.replace(w, stored, off, "test", now), set()),
    ]
    for nth, (step, requested) in enumerate(steps):
        with store.db.writing() as w:
            step(w)
        assert evaluations_requested(store) == requested, f"step {nth}"
        answer_all_requests(store)


def test_a_rule_with_the_same_code_keeps_its_state_until_the_ruleset_stops_watching(
    store: Store, now: datetime
) -> None:
    client_id = a_client(store, now)
    customer = a_customer_with_transactions(store, client_id, now)

    def fire(stored: StoredRuleset, *codes: str) -> None:
        apply_evaluation(store, an_evaluation(store, now, {(customer, stored, code): True for code in codes}), now)

    stored = create_ruleset(store, client_id, a_ruleset(a_rule("A"), a_rule("B")), now)
    fire(stored, "A", "B")
    with store.db.writing() as w:
        stored = rulesets.replace(
            w, stored, a_ruleset(a_rule("B", LOW_SCORE), a_rule("C"), attributes=[SCORE]), "t", now
        )
    assert states(store) == ["B"]
    for stopping in ("archived", "inactive"):
        with store.db.writing() as w:
            if stopping == "archived":
                stored = rulesets.archive(w, stored, now)
            else:
                stored = rulesets.replace(w, stored, a_ruleset(active=False), "test", now)
        assert states(store) == [], stopping
        with store.db.writing() as w:
            stored = rulesets.replace(w, rulesets.unarchive(w, stored, now), a_ruleset(a_rule("C")), "test", now)
        fire(stored, "C")
        assert states(store) == ["C"], stopping


def test_a_change_of_an_attribute_that_is_read_requests_a_ruleset_evaluation(store: Store, now: datetime) -> None:
    client_id = a_client(store, now)
    customer = a_customer_with_transactions(store, client_id, now)
    create_ruleset(store, client_id, a_ruleset(a_rule("LOW", LOW_SCORE), attributes=[SCORE]), now)
    answer_all_requests(store)
    for name, value, requested in (
        ("unread", Decimal(1), set()),
        ("score", Decimal(1), {customer.number}),
        ("score", Decimal(1), set()),  # no change
        ("score", None, {customer.number}),
    ):
        with store.db.writing() as w:
            given = {name: None if value is None else NewAttribute(value)}
            attributes.put(w, customer, given, "test", now)
        assert evaluations_requested(store) == requested, (name, value)
        answer_all_requests(store)


@on_postgresql
def test_a_change_of_a_ruleset_waits_for_evaluations_by_it(store: Store, now: datetime) -> None:
    """Otherwise a ruleset evaluation could write states that archiving has just deleted."""
    client_id = a_client(store, now)
    customer = a_customer_with_transactions(store, client_id, now)
    stored = create_ruleset(store, client_id, a_ruleset(), now)

    def archive() -> None:
        with store.db.writing() as w:
            rulesets.archive(w, stored, now)

    with ThreadPoolExecutor(1) as pool:
        with store.db.writing() as w:
            assert rulesets.lock_watching(w, {client_id}) == {(stored.ruleset_id, 1)}
            later = pool.submit(archive)
            _, waiting = wait([later], timeout=0.5)
            assert waiting
        later.result(timeout=10)
    assert watching(store, customer) == []


def test_the_versions_that_watch_now_are_locked(store: Store, now: datetime) -> None:
    client_id = a_client(store, now)
    replaced, retained = (
        create_ruleset(store, client_id, a_ruleset(slug=slug), now) for slug in ("replaced", "retained")
    )
    create_ruleset(store, client_id, a_ruleset(slug="off", active=False), now)
    with store.db.writing() as w:
        rulesets.replace(w, replaced, a_ruleset(a_rule("OTHER"), slug="replaced"), "test", now)
        assert rulesets.lock_watching(w, {client_id}) == {(replaced.ruleset_id, 2), (retained.ruleset_id, 1)}


@on_sqlite
def test_a_client_may_have_more_rulesets_than_a_statement_takes_parameters(store: Store, now: datetime) -> None:
    client_id = a_client(store, now)
    made = {(create_ruleset(store, client_id, a_ruleset(slug=f"slug-{nth}"), now).ruleset_id, 1) for nth in range(6)}
    with store.db.writing() as w:
        driver = w.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        most = driver.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 5)
        assert rulesets.lock_watching(w, {client_id}) == made
        driver.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, most)


@on_postgresql
def test_a_slug_reserved_by_an_open_transaction_is_refused(store: Store, now: datetime) -> None:
    client_id = a_client(store, now)
    renamed = create_ruleset(store, client_id, a_ruleset(slug="old"), now)

    def rename() -> str:
        with store.db.writing() as w:
            return refusal(lambda: rulesets.replace(w, renamed, a_ruleset(slug="new"), "test", now))

    with ThreadPoolExecutor(1) as pool:
        with store.db.writing() as w:
            rulesets.create(w, client_id, a_ruleset(slug="new"), "test", now)
            later = pool.submit(rename)
            _, waiting = wait([later], timeout=0.5)
            assert waiting
        assert later.result(timeout=10) == "Ruleset.SlugTaken"
    with store.db.reading() as r:
        assert rulesets.get(r, client_id, renamed.ruleset_id) == renamed
        assert rulesets.find_versions(r, renamed).total == 1


@on_sqlite
def test_rulesets_used_last_stay_cached_and_others_are_read_again(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    client_id = a_client(store, now)
    customer = a_customer_with_transactions(store, client_id, now)
    for slug in ("a", "b", "c"):
        create_ruleset(store, client_id, a_ruleset(slug=slug), now)
    read, version = list[UUID](), rulesets.read_version

    def note_and_read(r: Reading, ruleset_id: UUID, number: int) -> RulesetVersion:
        read.append(ruleset_id)
        return version(r, ruleset_id, number)

    monkeypatch.setattr(rulesets, "read_version", note_and_read)
    monkeypatch.setattr(rulesets, "MAX_CACHED", 2)
    with store.db.reading() as r:
        a, b, c = rulesets.find_active(r, [customer.number])
        for each in (a, b, a, c, a, b):
            rulesets.load_active(r, [each])
    assert read == [each.ruleset_id for each in (a, b, c, b)]


def test_only_one_of_rulesets_created_at_the_same_time_gets_a_slug(store: Store, now: datetime) -> None:
    client_id = a_client(store, now)

    def create(_nth: int) -> str:
        try:
            create_ruleset(store, client_id, a_ruleset(), now)
        except Conflict as conflict:
            return conflict.code
        return "created"

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(create, range(4))) == ["Ruleset.SlugTaken"] * 3 + ["created"]
