"""A pass over the stored files finds damaged ones, names the customers concerned, and can be resumed."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from storage.core.store import Store
from storage.operations import integrity
from storage.operations.integrity import Problem, check
from tests.storage.examples import a_client, a_customer, a_submission
from tests.storage.values import commit, customers_of_a_bucket, on_sqlite, place_of


@on_sqlite
def test_good_files_are_counted_and_the_pass_is_recorded(store: Store, now: datetime) -> None:
    numbers = customers_of_a_bucket(store, 2, now)
    for number in numbers:
        commit(store, {number: 2}, now)
    a_submission(store, a_customer(store, a_client(store, now), now), now)
    checked = check(store, lambda: now)
    assert (checked.files, checked.complete, checked.damages) == (3, True, [])
    with store.db.reading() as r:
        assert integrity.find_last_finished(r) == now


def flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(("spoil", "problem"), [(flip_a_bit, Problem.CHANGED), (Path.unlink, Problem.MISSING)])
def test_damage_is_reported_with_the_customers_concerned(
    store: Store, now: datetime, spoil: Callable[[Path], None], problem: Problem
) -> None:
    numbers = customers_of_a_bucket(store, 3, now)
    commit(store, dict.fromkeys(numbers, 2), now)
    commit(store, {numbers[0]: 2}, now)
    spoilt = place_of(store, numbers[1]).path
    spoil(store.lake.root / spoilt)
    (damage,) = check(store, lambda: now).damages
    assert (damage.path, damage.problem, len(damage.customers)) == (spoilt, problem, 2)


@on_sqlite
def test_a_damaged_landing_file_is_reported_with_its_customer(store: Store, now: datetime) -> None:
    customer = a_customer(store, a_client(store, now), now)
    job = a_submission(store, customer, now)
    assert job.landing_path is not None
    (store.lake.root / job.landing_path).write_bytes(b"")
    (damage,) = check(store, lambda: now).damages
    assert (damage.path, damage.customers) == (job.landing_path, [customer.customer_id])


@on_sqlite
def test_damage_keeps_the_time_when_it_was_first_found(store: Store, now: datetime) -> None:
    (number,) = customers_of_a_bucket(store, 1, now)
    commit(store, {number: 2}, now)
    path = store.lake.root / place_of(store, number).path
    flip_a_bit(path)
    check(store, lambda: now)
    path.unlink()
    (damage,) = check(store, lambda: now + timedelta(days=7)).damages
    assert (damage.found_at, damage.problem) == (now, Problem.MISSING)


@on_sqlite
def test_a_repaired_file_is_no_longer_reported(store: Store, now: datetime) -> None:
    (number,) = customers_of_a_bucket(store, 1, now)
    commit(store, {number: 2}, now)
    path = store.lake.root / place_of(store, number).path
    good = path.read_bytes()
    path.write_bytes(b"rot")
    assert len(check(store, lambda: now).damages) == 1
    path.write_bytes(good)
    assert check(store, lambda: now).damages == []


def test_a_stopped_pass_continues_where_it_stopped(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(integrity, "SLICE", 2)
    numbers = customers_of_a_bucket(store, 3, now)
    for number in numbers:
        commit(store, {number: 1}, now)
    customer = a_customer(store, a_client(store, now), now)
    for _ in range(3):
        a_submission(store, customer, now)
    passes = [check(store, lambda: now, stop_after_s=0) for _ in range(5)]
    assert [each.files for each in passes] == [2, 1, 2, 1, 0]
    assert [each.complete for each in passes] == [False] * 4 + [True]
    assert check(store, lambda: now + timedelta(days=1), stop_after_s=0).files == 2
    assert check(store, lambda: now + timedelta(days=1), afresh=True).files == 6


@on_sqlite
def test_the_reading_rate_is_limited(store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    clock = SimpleNamespace(sleep=slept.append, monotonic=time.monotonic)  # other threads go on with their own
    monkeypatch.setattr("storage.operations.integrity.time", clock)
    (number,) = customers_of_a_bucket(store, 1, now)
    commit(store, {number: 2}, now)
    checked = check(store, lambda: now, bytes_per_s=1)
    assert sum(slept) == pytest.approx(checked.bytes, rel=0.1)
