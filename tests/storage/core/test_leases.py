"""A role has one holder at a time; a holder that stops renewing is replaced."""

from datetime import datetime, timedelta, tzinfo
from typing import Self
from uuid import UUID, uuid4

import pytest

from pipelines.vocabulary.errors import Conflict
from storage.core import leases
from storage.core.store import Store

ONE, OTHER = uuid4(), uuid4()


def hold(store: Store, holder: UUID, now: datetime, name: str = leases.DISPATCHER) -> bool:
    with store.db.writing() as w:
        return leases.hold(w, name, holder, ttl_s=10, now=now)


def release(store: Store, holder: UUID) -> None:
    with store.db.writing() as w:
        leases.release(w, leases.DISPATCHER, holder)


def test_free_role_is_taken_and_renewed_by_its_holder(store: Store, now: datetime) -> None:
    assert hold(store, ONE, now)
    assert hold(store, ONE, now + timedelta(seconds=9))
    assert not hold(store, OTHER, now + timedelta(seconds=18))


def test_role_goes_to_another_when_its_lease_has_ended(store: Store, now: datetime) -> None:
    assert hold(store, ONE, now)
    assert not hold(store, OTHER, now + timedelta(seconds=9))
    assert hold(store, OTHER, now + timedelta(seconds=10))
    assert not hold(store, ONE, now + timedelta(seconds=11))


def test_only_its_holder_can_release_a_role_which_is_then_free(store: Store, now: datetime) -> None:
    assert hold(store, ONE, now)
    release(store, OTHER)
    assert not hold(store, OTHER, now)
    release(store, ONE)
    assert hold(store, OTHER, now)


def test_role_taken_before_the_clock_was_set_back_is_free(store: Store, now: datetime) -> None:
    hold(store, ONE, now + timedelta(hours=2))
    with store.db.reading() as r:
        assert not leases.is_held(r, leases.DISPATCHER, now)
    assert hold(store, OTHER, now)


def test_family_of_roles_counts_holders_with_a_current_lease(store: Store, now: datetime) -> None:
    def count(name: str, after_s: int = 0) -> int:
        with store.db.reading() as r:
            return leases.count_holders(r, name, now + timedelta(seconds=after_s))

    hold(store, ONE, now, "worker/here/1")
    hold(store, OTHER, now + timedelta(seconds=5), "worker/here/2")
    hold(store, OTHER, now, "worker/there/1")
    assert (count("worker"), count("worker/here"), count("worker/here", after_s=12), count("work")) == (3, 2, 1, 0)


def test_jobs_are_processed_while_dispatcher_and_worker_hold_their_roles(store: Store, now: datetime) -> None:
    def ready(after_s: int) -> bool:
        with store.db.reading() as r:
            return leases.can_process_jobs(r, now + timedelta(seconds=after_s))

    assert not ready(after_s=0)
    hold(store, ONE, now, leases.DISPATCHER)
    assert not ready(after_s=0)
    hold(store, OTHER, now + timedelta(seconds=5), leases.WORKER)
    assert ready(after_s=9)
    assert not ready(after_s=10)


def test_postgresql_counts_leases_by_its_own_clock(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    class Ahead(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return super().now(tz) + timedelta(hours=2)

    assert hold(store, ONE, leases.clock(store.db))
    monkeypatch.setattr(leases, "datetime", Ahead)
    assert hold(store, OTHER, leases.clock(store.db)) is store.db.is_sqlite


def test_long_work_fails_if_another_took_its_role(store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch) -> None:
    later = now + timedelta(seconds=leases.LONG_LEASE_S)
    times = iter((now, later))
    monkeypatch.setattr(leases, "clock", lambda _: next(times))
    with leases.hold_or_raise(store.db, leases.DISPATCHER) as prolong:
        assert hold(store, OTHER, later)
        release(store, OTHER)
        with pytest.raises(Conflict):
            prolong()
    assert hold(store, ONE, later), "nor is it kept from others"


def test_long_work_continues_after_a_delay_if_nobody_took_its_role(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = now + timedelta(seconds=2 * leases.LONG_LEASE_S)
    times = iter((now, later))
    monkeypatch.setattr(leases, "clock", lambda _: next(times))
    with leases.hold_or_raise(store.db, leases.DISPATCHER) as prolong:
        prolong()
        assert not hold(store, OTHER, later)
    assert hold(store, OTHER, later)
