"""A request for a ruleset evaluation stays until a run that began after it has finished; repeating it adds no row."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import datetime, timedelta
from uuid import UUID, uuid4

import pytest
from sqlalchemy import insert, select

from storage.core.buckets import ALL, BUCKETS
from storage.core.database import Writing
from storage.core.models import customers
from storage.core.store import Store
from storage.monitoring import evaluation_requests
from storage.monitoring.evaluation_requests import (
    WaitingRequests,
    find_unanswered,
    request_for_client,
    request_for_customers,
)
from tests.storage.examples import ABN, a_client
from tests.storage.values import on_postgresql

BUCKET = 7
SECOND = timedelta(seconds=1)


@pytest.fixture
def client_id(store: Store, now: datetime) -> UUID:
    return a_client(store, now)


def create_numbered(store: Store, client_id: UUID, numbers: list[int], now: datetime) -> None:
    """Create customers of the client with these numbers."""
    shared = {"client_id": client_id, "abn": ABN, "abn_checksum_valid": True, "created_at": now}
    with store.db.writing() as w:
        w.execute(insert(customers), [{"number": n, "customer_id": uuid4(), **shared} for n in numbers])


def list_requests(store: Store, bucket: int = BUCKET) -> list[int]:
    with store.db.reading() as r:
        return find_unanswered(r, bucket)


def find_requested(store: Store, bucket: int = BUCKET) -> list[int]:
    with store.db.reading() as r:
        query = select(customers.c.number).where(evaluation_requests.has_request(bucket)).order_by(customers.c.number)
        return list(r.execute(query).scalars())


def waiting(store: Store) -> list[WaitingRequests]:
    with store.db.reading() as r:
        return evaluation_requests.find_waiting(r)


def do(store: Store, change: Callable[[Writing], None]) -> None:
    with store.db.writing() as w:
        change(w)


def test_a_request_concerns_its_customer_or_all_of_its_client(store: Store, client_id: UUID, now: datetime) -> None:
    create_numbered(store, client_id, [7, 8, 71], now)
    other = a_client(store, now)
    create_numbered(store, other, [135, 199, 200], now)
    do(store, lambda w: request_for_customers(w, [199], now))
    assert find_requested(store) == [199]
    do(store, lambda w: request_for_client(w, client_id, now))
    assert (find_requested(store), find_requested(store, 8)) == ([7, 71, 199], [8])


@pytest.mark.parametrize("of", ["a customer", "a client"])
def test_a_repeated_request_stays_when_the_first_is_answered(
    store: Store, client_id: UUID, now: datetime, of: str
) -> None:
    def ask(at: datetime) -> None:
        do(
            store,
            lambda w: request_for_customers(w, [7], at) if of == "a customer" else request_for_client(w, client_id, at),
        )

    create_numbered(store, client_id, [7], now)
    ask(now)
    [read] = list_requests(store)
    ask(now + SECOND)
    [anew] = list_requests(store)
    assert waiting(store) == [WaitingRequests(BUCKET, anew, now)]
    do(store, lambda w: evaluation_requests.delete_answered(w, [read]))
    assert list_requests(store) == [anew]
    do(store, lambda w: evaluation_requests.delete_answered(w, [anew]))
    assert (list_requests(store), waiting(store)) == ([], [])


def test_numbers_of_requests_are_never_reused(store: Store, client_id: UUID, now: datetime) -> None:
    """Otherwise a slow run could delete a later request that has the same number as the one that it read."""
    create_numbered(store, client_id, [7, 71], now)
    seen = list[int]()
    for number in (7, 71, 7):
        with store.db.writing() as w:
            request_for_customers(w, [number], now)
        seen += list_requests(store)
        do(store, lambda w: evaluation_requests.delete_answered(w, find_unanswered(w, BUCKET)))
    assert seen == sorted(set(seen))
    assert len(seen) == 3


def test_the_longest_waiting_bucket_comes_first(store: Store, client_id: UUID, now: datetime) -> None:
    create_numbered(store, client_id, [7, 8], now)
    do(store, lambda w: request_for_customers(w, [7], now))
    do(store, lambda w: request_for_customers(w, [8], now - SECOND))
    assert [(each.bucket, each.since) for each in waiting(store)] == [(8, now - SECOND), (7, now)]


def test_a_client_with_many_customers_gets_a_request_in_every_bucket(
    store: Store, client_id: UUID, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluation_requests, "MANY", 3)
    create_numbered(store, client_id, [7, 8], now)
    do(store, lambda w: request_for_client(w, client_id, now))
    assert sorted(each.bucket for each in waiting(store)) == [7, 8]
    create_numbered(store, client_id, [7 + BUCKETS, 7 + 2 * BUCKETS], now)
    do(store, lambda w: request_for_client(w, client_id, now))
    assert sorted(each.bucket for each in waiting(store)) == list(ALL)


@on_postgresql
def test_a_request_made_while_a_run_ends_stays(store: Store, client_id: UUID, now: datetime) -> None:
    create_numbered(store, client_id, [7], now)
    do(store, lambda w: request_for_customers(w, [7], now))
    read = list_requests(store)
    with ThreadPoolExecutor(1) as pool:
        with store.db.writing() as w:
            request_for_customers(w, [7], now)
            ending = pool.submit(do, store, lambda w: evaluation_requests.delete_answered(w, read))
            _, still = wait([ending], timeout=0.5)
            assert still
        ending.result(timeout=10)
    assert len(list_requests(store)) == 1


@on_postgresql
def test_requests_and_answers_do_not_deadlock(store: Store, client_id: UUID, now: datetime) -> None:
    numbers = [7 + BUCKETS * nth for nth in range(20)]
    create_numbered(store, client_id, numbers, now)
    backwards = numbers[::-1]

    def change(nth: int) -> None:
        for _ in range(10):
            if nth % 2:
                do(store, lambda w: request_for_customers(w, backwards if nth > 2 else numbers, now))
            else:
                do(store, lambda w: evaluation_requests.delete_answered(w, find_unanswered(w, BUCKET)))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(change, range(6)))
    do(store, lambda w: request_for_customers(w, numbers, now))
    assert len(list_requests(store)) == len(numbers)
