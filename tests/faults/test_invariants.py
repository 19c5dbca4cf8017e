"""The harness finds violations: each invariant is broken by hand in a correct service."""

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final
from uuid import UUID, uuid4

import pytest
from sqlalchemy import delete, insert, select, update
from sqlalchemy.schema import DropIndex

from storage.access import keys
from storage.core.models import (
    LIVE,
    DeliveryStatus,
    Flow,
    JobStatus,
    attempts,
    customers,
    deliveries,
    events,
    jobs,
    segments,
)
from tests.faults import invariants
from tests.faults.counts import OFTEN, TRIED, never_injected
from tests.faults.invariants import Aftermath, violations
from tests.faults.ledger import Entry
from tests.faults.scenarios import submits_with_keys
from tests.faults.survival import POLL_EVERY_S, watch_for_violations
from tests.faults.world import RUNS_END_WITHIN_S, World
from tests.flows.service import Client

pytestmark = pytest.mark.timeout(300)

ONE_LIVE_REFRESH = next(index for index in jobs.indexes if index.name == "uq_jobs_one_live_refresh")

Tampering = Callable[[Aftermath], None]


def the_job(after: Aftermath) -> UUID:
    return UUID(after.lender.ledger.job_ids()[0])


def an_acknowledged_resource_is_missing(after: Aftermath) -> None:
    after.lender.ledger.write(Entry("POST", "/v1/customer", 201, f"/v1/customer/{uuid4()}"))


def a_row_is_lost(after: Aftermath) -> None:
    [customer_id] = after.lender.ledger.rows
    row = {"date": "2026-10-01", "description": "NEVER SEEN", "amount": 1}
    after.lender.ledger.add_submission(customer_id, after.lender.account_number, [row])


def there_is_an_extra_row(after: Aftermath) -> None:
    [accounts] = after.lender.ledger.rows.values()
    accounts[after.lender.account_number].popitem()


def a_count_is_wrong(after: Aftermath) -> None:
    with after.world.store.db.writing() as w:
        w.execute(update(jobs).where(jobs.c.job_id == the_job(after)).values(enriched_rows=jobs.c.enriched_rows - 1))


def a_delivery_is_lost(after: Aftermath) -> None:
    mine = select(events.c.event_id).where(events.c.job_id == the_job(after))
    sent = select(deliveries.c.delivery_id).where(deliveries.c.event_id.in_(mine))
    with after.world.store.db.writing() as w:
        w.execute(delete(attempts).where(attempts.c.delivery_id.in_(sent)))
        w.execute(delete(deliveries).where(deliveries.c.event_id.in_(mine)))


def an_event_is_lost(after: Aftermath) -> None:
    a_delivery_is_lost(after)
    with after.world.store.db.writing() as w:
        w.execute(delete(events).where(events.c.job_id == the_job(after)))


def other_bytes_were_sent(after: Aftermath) -> None:
    with after.world.store.db.writing() as w:
        w.execute(update(events).where(events.c.job_id == the_job(after)).values(body=b"{}"))


def a_customer_goes_to_another_client(after: Aftermath) -> None:
    with after.world.store.db.writing() as w:
        prefix = after.world.settings.key_prefix
        stranger = keys.authenticate(w, after.world.stranger.key, prefix, datetime.now(UTC)).client_id
        [customer_id] = after.lender.ledger.rows
        w.execute(update(customers).where(customers.c.customer_id == UUID(customer_id)).values(client_id=stranger))


def a_file_is_changed(after: Aftermath) -> None:
    with after.world.store.db.reading() as r:
        path = r.execute(select(segments.c.path).limit(1)).scalar_one()
    with (after.world.settings.lake / path).open("ab") as file:
        file.write(b"\0")


def a_customer_is_created_twice(after: Aftermath) -> None:
    Client.call(after.lender, "POST", "/v1/customer", {"abn": "51824753556"})


def a_refresh_is_done_twice(after: Aftermath) -> None:
    [customer_id] = after.lender.ledger.rows
    Client.call(after.lender, "POST", f"/v1/customer/{customer_id}/reports/refresh")
    after.world.drain()


def a_submission_counts_as_asked_twice(after: Aftermath) -> None:
    [accepted] = (entry for entry in after.lender.ledger.entries if entry.path.endswith("/transactions") and entry.key)
    after.lender.ledger.write(replace(accepted, key="another"))


def an_unexpected_error_was_answered(after: Aftermath) -> None:
    after.lender.ledger.write(Entry("GET", "/v1/jobs", 500, code="Service.Failure"))


def a_key_is_logged(after: Aftermath) -> None:
    with after.world.service.log.open("a") as log:
        log.write(f"called with {after.lender.key}\n")


def a_delivery_goes_to_a_wrong_subscription(after: Aftermath) -> None:
    """Add a cancelled delivery to another subscription."""
    other = UUID(after.lender.subscribe("job.failed"))
    with after.world.store.db.writing() as w:
        mine = deliveries.c.event_id.in_(select(events.c.event_id).where(events.c.job_id == the_job(after)))
        copied = w.execute(select(deliveries).where(mine)).mappings().first()
        assert copied is not None
        changed = {"delivery_id": uuid4(), "subscription_id": other, "status": DeliveryStatus.CANCELLED}
        w.execute(insert(deliveries).values({name: copied[name] for name in copied if name != "number"} | changed))


def a_run_of_dagster_never_ends(after: Aftermath) -> None:
    """Let a run be in progress for longer than any should be."""
    with closing(sqlite3.connect(after.world.settings.dagster_home / "dagster.db")) as dagster, dagster:
        dagster.execute("UPDATE runs SET status = 'STARTING' WHERE id = (SELECT max(id) FROM runs)")
    after.world.runs_under_way()
    for run_id in after.world.runs_seen:
        after.world.runs_seen[run_id] -= RUNS_END_WITHIN_S


def a_second_refresh_is_live(after: Aftermath) -> None:
    with after.world.store.db.writing() as w:
        w.execute(DropIndex(ONE_LIVE_REFRESH, if_exists=True))
        refreshed = w.execute(select(jobs).where(jobs.c.flow == Flow.REPORT_REFRESH)).mappings().first()
        assert refreshed is not None
        copied = {name: refreshed[name] for name in refreshed if name != "received_seq"}
        for _ in range(2):
            w.execute(insert(jobs).values(copied | {"job_id": uuid4(), "status": JobStatus.RUNNING}))


def a_job_never_ends(after: Aftermath) -> None:
    with after.world.store.db.writing() as w:
        w.execute(update(jobs).where(jobs.c.job_id == the_job(after)).values(status=JobStatus.RUNNING))


TAMPERINGS: Final[list[tuple[Tampering, invariants.Check]]] = [
    (an_acknowledged_resource_is_missing, invariants.acknowledged_resources_can_be_read_and_have_ended),
    (a_row_is_lost, invariants.visible_rows_are_the_submitted_ones),
    (there_is_an_extra_row, invariants.visible_rows_are_the_submitted_ones),
    (a_count_is_wrong, invariants.a_job_is_completed_if_and_only_if_its_rows_are_visible),
    (a_delivery_is_lost, invariants.each_event_has_one_delivery_per_subscription),
    (an_event_is_lost, invariants.each_job_has_its_events_once),
    (other_bytes_were_sent, invariants.receivers_got_the_stored_bytes),
    (a_customer_is_created_twice, invariants.requests_with_a_key_were_done_once),
    (a_refresh_is_done_twice, invariants.requests_with_a_key_were_done_once),
    (a_submission_counts_as_asked_twice, invariants.requests_with_a_key_were_done_once),
    (an_unexpected_error_was_answered, invariants.no_answer_was_an_unexpected_error),
    (a_key_is_logged, invariants.no_log_holds_a_secret),
    (a_customer_goes_to_another_client, invariants.no_other_client_can_read_it),
    (a_file_is_changed, invariants.every_named_file_is_intact),
    (a_delivery_goes_to_a_wrong_subscription, invariants.each_event_has_one_delivery_per_subscription),
    (a_run_of_dagster_never_ends, invariants.no_dagster_run_stays_in_progress),
    (a_second_refresh_is_live, invariants.at_most_one_refresh_is_live),
    (a_job_never_ends, invariants.nothing_stays_in_progress),
]


@pytest.mark.slow
@pytest.mark.parametrize(("tampering", "check"), TAMPERINGS, ids=lambda each: each.__name__)
def test_each_tampering_is_found(world: World, tampering: Tampering, check: invariants.Check) -> None:
    after = Aftermath(world, world.lender(seed=TAMPERINGS.index((tampering, check))))
    after.lender.subscribe("job.completed")
    submits_with_keys(after.lender)
    world.drain()
    assert list(check(after)) == []
    tampering(after)
    found = violations(after)
    end_what_is_live(world)
    assert any(each.startswith(check.__name__) for each in found)


@pytest.mark.slow
def test_a_temporary_violation_is_found_too(world: World) -> None:
    after = Aftermath(world, world.lender(seed=len(TAMPERINGS)))
    submits_with_keys(after.lender)
    world.drain()
    with watch_for_violations(after) as seen:
        a_second_refresh_is_live(after)
        time.sleep(5 * POLL_EVERY_S)
        end_what_is_live(world)
    assert any(found.startswith("at_most_one_refresh_is_live") for found in seen)
    assert not any(found.startswith("at_most_one_refresh_is_live") for found in violations(after))


def test_each_invariant_has_a_tampering() -> None:
    assert {check for _, check in TAMPERINGS} == set(invariants.CHECKS.values())


def test_a_fault_that_is_never_injected_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TRIED, "imaginary", OFTEN)
    assert "imaginary" in never_injected()


def end_what_is_live(world: World) -> None:
    """End all live work, for the tests that follow."""
    with world.store.db.writing() as w:
        w.execute(update(jobs).where(jobs.c.status.in_(LIVE)).values(status=JobStatus.FAILED))
