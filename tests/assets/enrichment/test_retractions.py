"""Submissions, retractions and refreshes of a customer in batches, as Dagster's runs execute them."""

import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from uuid import UUID

import polars as pl
import pytest
from sqlalchemy import func, select

from assets.core.batches import read_claimed_batch, without_jobs
from assets.enrichment.transactions import recompute
from pipelines.vocabulary.errors import Conflict, NotFound
from pipelines.vocabulary.report_status import ReportStatus
from storage.core.models import Flow, JobStatus, Queue, events
from storage.core.store import Store
from storage.jobs import batches, jobs, outcomes
from storage.jobs.jobs import Job
from tests.assets.conftest import FillStore
from tests.assets.lender import BAD, COFFEE, RENT, SALE, Item, Lender, risk_status, run_refreshes

pytestmark = pytest.mark.service  # a whole job per test, not one step; the steps have tests of their own


@pytest.fixture
def lender(store: Store) -> Lender:
    return Lender(store)


@pytest.fixture
def lender_with_rent(fill_store: FillStore) -> tuple[Lender, Job]:
    return fill_store(with_rent)


def with_rent(store: Store) -> tuple[Lender, Job]:
    lender = Lender(store)
    return lender, lender.submit_and_end(RENT)


def test_rows_of_a_retracted_submission_are_gone_and_repeated_ones_become_the_later_submissions(lender: Lender) -> None:
    first, second = lender.submit_and_end(RENT, COFFEE), lender.submit_and_end(COFFEE, SALE)
    [coffee] = [row["transaction_id"] for row in lender.rows(first) if row["description"] == "COFFEE"]
    ended = lender.retract_and_end(first)
    assert (ended.status, ended.error) == (JobStatus.COMPLETED, None)
    assert lender.rows(first) == []
    assert lender.descriptions(second) == lender.descriptions() == ["COFFEE", "SALE"]
    assert coffee in {row["transaction_id"] for row in lender.rows(second)}
    assert lender.customer.enriched_rows == 2


def test_a_finished_jobs_result_does_not_change(lender: Lender) -> None:
    first, second = lender.submit_and_end(COFFEE), lender.submit_and_end(COFFEE, SALE)
    lender.retract_and_end(first)
    assert (lender.now(first), lender.now(second)) == (first, second)
    with lender.store.db.reading() as r:
        [repeated] = outcomes.find_duplicates(r, lender.store.lake, second).items
    [coffee] = [row for row in lender.rows(second) if row["description"] == "COFFEE"]
    assert repeated == {"index": 0, "transactionId": UUID(bytes=coffee["transaction_id"])}


def test_all_rows_can_be_retracted_and_submitted_again(lender_with_rent: tuple[Lender, Job]) -> None:
    lender, first = lender_with_rent
    lender.retract_and_end(first)
    assert lender.rows() == []
    assert lender.customer.enriched_rows == 0
    again = lender.submit_and_end(RENT)
    assert (again.enriched_rows, again.duplicate_rows) == (1, 0)
    assert lender.descriptions() == ["RENT"]


def test_a_row_that_was_refused_stays_refused(lender: Lender, monkeypatch: pytest.MonkeyPatch) -> None:
    first = lender.submit_and_end(COFFEE)
    lender.submit_and_end(BAD, COFFEE)
    monkeypatch.setattr("pipelines.intake.rows.FAULTS", ())  # later rules, which refuse nothing
    monkeypatch.setattr("pipelines.intake.rows._first_fault", lambda: pl.lit(None, pl.Int32))
    assert lender.retract_and_end(first).status is JobStatus.COMPLETED
    assert lender.descriptions() == ["COFFEE"]


def test_retracting_twice_returns_the_same_job(lender_with_rent: tuple[Lender, Job]) -> None:
    lender, first = lender_with_rent
    once = lender.retract(first)
    assert lender.retract(first) == once
    lender.end_all()
    assert lender.retract(first) == lender.now(once)


def test_concurrent_retractions_are_one_job(lender_with_rent: tuple[Lender, Job]) -> None:
    lender, first = lender_with_rent
    with ThreadPoolExecutor(8) as pool:
        asked = list(pool.map(lender.retract, [first] * 8))
    assert len({job.job_id for job in asked}) == 1


def test_a_retraction_sends_no_event(lender_with_rent: tuple[Lender, Job]) -> None:
    lender, first = lender_with_rent
    retraction = lender.retract_and_end(first)
    with lender.store.db.reading() as r:
        reported = select(func.count()).select_from(events).where(events.c.job_id == retraction.job_id)
        assert r.execute(reported).scalar_one() == 0


def test_only_a_completed_submission_can_be_retracted(lender: Lender) -> None:
    failed, first, waiting = lender.submit_and_end(BAD), lender.submit_and_end(RENT), lender.submit(SALE)
    for job, code in ((failed, "Submission.Failed"), (waiting, "Submission.Unfinished")):
        with pytest.raises(Conflict) as refused:
            lender.retract(job)
        assert refused.value.code == code
    for other in (lender.ask_for_reports(), lender.retract(first)):
        with pytest.raises(NotFound):
            lender.retract(other)


def test_a_retraction_that_needs_a_damaged_file_fails_and_changes_nothing_and_may_be_tried_again(
    lender: Lender,
) -> None:
    first, second = lender.submit_and_end(RENT, COFFEE), lender.submit_and_end(COFFEE)
    file = lender.store.lake.root / (second.landing_path or "")
    good = file.read_bytes()
    file.write_bytes(good[:-1] + b"?")
    fresh = lender.store.lake.__class__(lender.store.lake.root)  # which has not verified the file yet
    lender.store = Store(lender.store.settings, lender.store.db, fresh, lender.store.vault)
    later = lender.submit(SALE)
    failed = lender.retract_and_end(first)
    assert (failed.status, failed.error and failed.error["code"]) == (JobStatus.FAILED, "Lake.ChecksumMismatch")
    assert (second.landing_path or "?") in (failed.error or {})["message"]
    assert lender.now(later).status is JobStatus.COMPLETED
    assert lender.descriptions() == ["COFFEE", "RENT", "SALE"]
    file.write_bytes(good)
    assert lender.retract_and_end(first).status is JobStatus.COMPLETED
    assert lender.descriptions() == ["COFFEE", "SALE"]


def test_recomputing_a_day_by_hand_brings_nothing_back(lender: Lender) -> None:
    first = lender.submit_and_end(RENT, COFFEE)
    lender.submit_and_end(COFFEE)
    lender.retract_and_end(first)
    before = lender.rows()
    today = datetime.now(UTC).date()
    with without_jobs(lender.store, Queue.ENRICHMENT, today, [lender.customer.number]) as work:
        recompute(lender.store, work)
    assert lender.rows() == before


def test_a_retraction_whose_batch_was_released_is_done_by_the_next(lender_with_rent: tuple[Lender, Job]) -> None:
    lender, first = lender_with_rent
    lender.submit_and_end(SALE)
    retraction = lender.retract(first)
    store, day = lender.store, datetime.now(UTC).date()
    with store.db.writing() as w:
        batch = batches.claim(w, Queue.ENRICHMENT, store.settings, datetime.now(UTC))
        assert batch is not None
        batches.release(w, batch.token, store.settings, datetime.now(UTC))
    with pytest.raises(batches.Superseded):
        read_claimed_batch(store, batch.token, day)
    assert lender.now(retraction).status is JobStatus.QUEUED
    assert lender.descriptions() == ["RENT", "SALE"]
    lender.end_all()
    assert lender.descriptions() == ["SALE"]


def test_a_report_is_stale_from_the_moment_a_retraction_is_accepted(lender_with_rent: tuple[Lender, Job]) -> None:
    lender, first = lender_with_rent
    lender.submit_and_end(SALE)
    lender.ask_for_reports()
    run_refreshes(lender)
    assert risk_status(lender) is ReportStatus.READY
    lender.retract(first)
    assert risk_status(lender) is ReportStatus.STALE
    lender.end_all()
    assert risk_status(lender) is ReportStatus.STALE
    lender.ask_for_reports()
    run_refreshes(lender)
    assert risk_status(lender) is ReportStatus.READY


def test_retracting_nothing_but_duplicates_leaves_the_report_ready(lender: Lender) -> None:
    lender.submit_and_end(RENT)
    again = lender.submit_and_end(RENT)
    lender.ask_for_reports()
    run_refreshes(lender)
    lender.retract_and_end(again)
    assert risk_status(lender) is ReportStatus.READY


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_submissions_retractions_and_refreshes_in_any_order_end_correctly(lender: Lender, seed: int) -> None:
    """Batches begin at random; in the end the rows are those of a service that never got the retracted submissions."""
    chance = random.Random(seed)
    pool, sent = (RENT, COFFEE, SALE), list[tuple[Job, Sequence[Item]]]()
    gone = set[UUID]()
    for _ in range(14):
        match chance.choice(("submit", "submit", "retract", "refresh", "batch", "batch")):
            case "submit":
                items = chance.choices(pool, k=3)
                sent.append((lender.submit(*items), items))
            case "retract":
                ended = [job for job, _ in sent if lender.now(job).status is JobStatus.COMPLETED]
                if ended:
                    gone.add(lender.retract(chance.choice(ended)).retracts or UUID(int=0))
            case "refresh":
                if lender.customer.enriched_rows:
                    lender.ask_for_reports()
                    run_refreshes(lender)
            case "batch":
                lender.end_all()
    lender.end_all()
    untouched = Lender(lender.store)
    for job, rows in sent:
        if job.job_id not in gone:
            untouched.submit_and_end(*rows)
    assert lender.descriptions() == untouched.descriptions()
    assert lender.customer.enriched_rows == untouched.customer.enriched_rows
    with lender.store.db.reading() as r:
        live = [job for job in jobs.find(r, lender.customer.client_id).items if job.completed_at is None]
        retractions = jobs.find(r, lender.customer.client_id, flow=Flow.RETRACTION).items
    assert live == []
    assert {job.retracts for job in retractions} == gone
