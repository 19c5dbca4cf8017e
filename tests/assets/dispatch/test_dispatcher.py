"""Waiting jobs are claimed and launched once, without delay, and only when a worker can run them."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
import requests
from sqlalchemy import select

from assets.core.graphql import RefusedError, execution_params
from assets.dagster_internals import dagster_home
from assets.dispatch import dispatcher
from assets.dispatch.dispatcher import DispatchOutcome, Leadership, dispatch, dispatch_queue
from storage.core import heartbeat, leases
from storage.core.heartbeat import find_overdue_loops
from storage.core.models import Queue, jobs
from storage.core.store import Store
from storage.jobs import batches
from storage.jobs.batches import Batch
from tests.storage.examples import ABN, a_client, a_customer, a_submission
from tests.waiting import until


class Launcher:
    """A replacement for Dagster that records launched batches, or fails."""

    def __init__(self, error: Exception | None = None) -> None:
        self.launched: list[Batch] = []
        self.error = error

    def __call__(self, batch: Batch) -> str:
        if self.error:
            raise self.error
        self.launched.append(batch)
        return "run id"


def a_warm_worker(store: Store, now: datetime, slot: int = 1) -> None:
    with store.db.writing() as w:
        leases.hold(w, f"{dagster_home.worker_role(store.settings)}/{slot}", uuid4(), ttl_s=60, now=now)


def submit_jobs(store: Store, now: datetime, count: int) -> None:
    client = a_client(store, now)
    for _ in range(count):
        a_submission(store, a_customer(store, client, now), now, rows=5)


def list_status_and_attempts(store: Store) -> list[tuple[str, int]]:
    with store.db.reading() as r:
        return [(row.status, row.attempts) for row in r.execute(select(jobs.c.status, jobs.c.attempts))]


def test_all_waiting_jobs_of_a_queue_become_one_batch(store: Store, now: datetime) -> None:
    submit_jobs(store, now, count=3)
    a_warm_worker(store, now)
    launcher = Launcher()

    assert dispatch_queue(store, Queue.ENRICHMENT, launcher, now) is DispatchOutcome.LAUNCHED
    assert [(batch.jobs, batch.rows, batch.customers) for batch in launcher.launched] == [(3, 15, 3)]


def test_with_one_worker_the_next_batch_begins_when_the_open_one_commits(store: Store, now: datetime) -> None:
    submit_jobs(store, now, count=1)
    a_warm_worker(store, now)
    launcher = Launcher()
    dispatch_queue(store, Queue.ENRICHMENT, launcher, now)
    submit_jobs(store, now, count=2)

    assert dispatch_queue(store, Queue.ENRICHMENT, launcher, now) is DispatchOutcome.NOTHING_TO_DO
    with store.db.writing() as w:
        batches.commit(w, launcher.launched[0].token)
    assert dispatch_queue(store, Queue.ENRICHMENT, launcher, now) is DispatchOutcome.LAUNCHED
    assert [batch.jobs for batch in launcher.launched] == [1, 2]


def test_a_queue_has_as_many_open_batches_as_there_are_warm_workers(store: Store, now: datetime) -> None:
    for slot in (1, 2):
        a_warm_worker(store, now, slot)
    launcher = Launcher()
    for expected in (DispatchOutcome.LAUNCHED, DispatchOutcome.LAUNCHED, DispatchOutcome.NOTHING_TO_DO):
        submit_jobs(store, now, count=1)
        assert dispatch_queue(store, Queue.ENRICHMENT, launcher, now) is expected
    assert [batch.jobs for batch in launcher.launched] == [1, 1]


def test_workers_of_another_home_do_not_count(store: Store, now: datetime) -> None:
    submit_jobs(store, now, count=1)
    with store.db.writing() as w:
        leases.hold(w, f"{leases.WORKER}/elsewhere/1", uuid4(), ttl_s=60, now=now)
    assert dispatch_queue(store, Queue.ENRICHMENT, Launcher(), now) is DispatchOutcome.NOTHING_TO_DO


def test_queues_do_not_claim_each_others_jobs(store: Store, now: datetime) -> None:
    submit_jobs(store, now, count=1)
    a_warm_worker(store, now)
    assert dispatch_queue(store, Queue.REFRESH, Launcher(), now) is DispatchOutcome.NOTHING_TO_DO


def test_nothing_is_claimed_while_no_worker_is_warm(store: Store, now: datetime) -> None:
    submit_jobs(store, now, count=1)
    assert dispatch_queue(store, Queue.ENRICHMENT, Launcher(), now) is DispatchOutcome.NOTHING_TO_DO
    assert list_status_and_attempts(store) == [("Queued", 0)]


@pytest.mark.parametrize("error", [RefusedError("no such job"), requests.ConnectionError()])
def test_a_launch_that_certainly_failed_costs_no_attempt(store: Store, now: datetime, error: Exception) -> None:
    submit_jobs(store, now, count=1)
    a_warm_worker(store, now)
    assert dispatch_queue(store, Queue.ENRICHMENT, Launcher(error), now) is DispatchOutcome.REFUSED
    assert list_status_and_attempts(store) == [("Queued", 0)]


def test_a_launch_of_unknown_outcome_costs_an_attempt(store: Store, now: datetime) -> None:
    submit_jobs(store, now, count=1)
    a_warm_worker(store, now)
    assert dispatch_queue(store, Queue.ENRICHMENT, Launcher(requests.ReadTimeout()), now) is DispatchOutcome.REFUSED
    assert list_status_and_attempts(store) == [("Queued", 1)]


def test_a_batch_with_an_expired_lease_is_launched_again_with_a_new_token(store: Store, now: datetime) -> None:
    submit_jobs(store, now, count=1)
    a_warm_worker(store, now)
    launcher = Launcher()
    dispatch_queue(store, Queue.ENRICHMENT, launcher, now)
    later = now + timedelta(seconds=store.settings.batch_lease_s + 1)

    assert dispatch_queue(store, Queue.ENRICHMENT, launcher, later) is DispatchOutcome.LAUNCHED
    first, second = launcher.launched
    assert second.token > first.token


def test_a_submission_is_launched_at_once_if_this_process_leads(store: Store) -> None:
    now = datetime.now(UTC)
    a_warm_worker(store, now)
    launcher = Launcher()
    with dispatching(store, launcher, leads=lambda: True):
        time.sleep(0.1)
        submit_jobs(store, now, count=1)
        until(lambda: len(launcher.launched) == 1)
    with dispatching(store, launcher, leads=lambda: False):
        with store.db.writing() as w:
            batches.commit(w, launcher.launched[0].token)
        submit_jobs(store, now, count=1)
        time.sleep(0.2)
    assert len(launcher.launched) == 1


def test_an_unexpected_error_does_not_end_the_dispatcher(store: Store) -> None:
    now = datetime.now(UTC)
    a_warm_worker(store, now)
    launcher, failures = Launcher(), iter([TypeError("nobody foresaw this")])

    def leads() -> bool:
        for failure in failures:
            raise failure
        return True

    with dispatching(store, launcher, leads):
        submit_jobs(store, now, count=1)
        until(lambda: len(launcher.launched) == 1)


def test_a_blocked_dispatcher_is_noticed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "_loops", set())  # without those of servers that other tests run in this process
    monkeypatch.setattr(heartbeat, "ROUND_WITHIN_S", 5 * heartbeat.BEAT_EVERY_S)
    monkeypatch.setattr(dispatcher, "POLL_AGAIN_S", 0.05)
    free, rounds = threading.Event(), 0

    def leads() -> bool:
        nonlocal rounds
        rounds += 1
        return bool(rounds > 1 and free.wait())

    with dispatching(store, Launcher(), leads):
        until(lambda: rounds > 1)
        assert "dispatch enrichment" in [name for _ in range(6) for name in find_overdue_loops()]
        free.set()
        until(lambda: find_overdue_loops() == [])


def test_an_unexpected_error_does_not_end_the_leadership(store: Store) -> None:
    failures, stop = iter([TypeError("nobody foresaw this")]), threading.Event()

    def can_lead() -> bool:
        for failure in failures:
            raise failure
        return True

    leadership = Leadership(store, uuid4(), can_lead)
    keeping = threading.Thread(target=leadership.keep, args=(stop,))
    keeping.start()
    until(leadership.leads)
    stop.set()
    keeping.join()


@contextmanager
def dispatching(store: Store, launch: Launcher, leads: Callable[[], bool]) -> Iterator[None]:
    stop = threading.Event()
    thread = threading.Thread(target=dispatch, args=(store, Queue.ENRICHMENT, launch, leads, stop))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_one_process_leads_until_it_gives_up_and_only_while_it_can_launch(store: Store, now: datetime) -> None:
    one = Leadership(store, uuid4(), can_lead=lambda: True)
    other = Leadership(store, uuid4(), can_lead=lambda: True)
    unable = Leadership(store, uuid4(), can_lead=lambda: False)
    for candidate in (unable, one, other):
        candidate.renew(now)
    assert [candidate.leads() for candidate in (unable, one, other)] == [False, True, False]

    stop = threading.Event()
    stop.set()
    one.keep(stop)
    other.renew(now)
    assert [candidate.leads() for candidate in (one, other)] == [False, True]


def test_the_tags_of_a_run_name_its_batch_and_size_but_no_customer(store: Store, now: datetime) -> None:
    submit_jobs(store, now, count=2)
    a_warm_worker(store, now)
    launcher = Launcher()
    dispatch_queue(store, Queue.ENRICHMENT, launcher, now)
    [batch] = launcher.launched
    execution: dict[str, Any] = execution_params(batch)

    assert execution["selector"]["jobName"] == "enrichment_batch"
    assert {tag["key"]: tag["value"] for tag in execution["executionMetadata"]["tags"]} == {
        "tidemark/batch": str(batch.token),
        "tidemark/queue": "enrichment",
        "tidemark/jobs": "2",
        "tidemark/rows": "10",
        "tidemark/customers": "2",
        "dagster/partition": now.date().isoformat(),
    }
    assert ABN not in str(execution)
