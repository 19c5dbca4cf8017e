"""Submissions, withdrawals and refreshes of a customer, through the batches that the runs make of them."""

import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from uuid import UUID

import polars as pl
import pytest
from sqlalchemy import func, select

from assets.core import batches as work_of
from assets.enrichment.transactions import recompute
from pipelines.reports.report_view import ReportStatus
from pipelines.vocabulary.errors import Conflict, NotFound
from storage.core.models import Flow, JobStatus, Queue, events
from storage.core.store import Store
from storage.jobs import batches, jobs, outcomes
from storage.jobs.jobs import Job
from tests.assets.conftest import Filled
from tests.assets.lender import BAD, COFFEE, RENT, SALE, Item, Lender, refreshed, risk_status


@pytest.fixture
def lender(store: Store) -> Lender:
    return Lender(store)


@pytest.fixture
def rented(filled: Filled) -> tuple[Lender, Job]:
    return filled(with_rent)


def with_rent(store: Store) -> tuple[Lender, Job]:
    lender = Lender(store)
    return lender, lender.sent(RENT)


def test_a_withdrawn_submissions_rows_are_gone_and_what_was_repeated_is_the_later_ones(lender: Lender) -> None:
    first, second = lender.sent(RENT, COFFEE), lender.sent(COFFEE, SALE)
    [coffee] = [row["transaction_id"] for row in lender.rows(first) if row["description"] == "COFFEE"]
    ended = lender.withdrawn(first)
    assert (ended.status, ended.error) == (JobStatus.COMPLETED, None)
    assert lender.rows(first) == []
    assert lender.descriptions(second) == lender.descriptions() == ["COFFEE", "SALE"]
    assert coffee in {row["transaction_id"] for row in lender.rows(second)}
    assert lender.customer.enriched_rows == 2


def test_how_a_finished_job_ended_stays_as_it_was(lender: Lender) -> None:
    first, second = lender.sent(COFFEE), lender.sent(COFFEE, SALE)
    lender.withdrawn(first)
    assert (lender.now(first), lender.now(second)) == (first, second)
    with lender.store.db.reading() as r:
        [repeated] = outcomes.duplicates(r, lender.store.lake, second).items
    [coffee] = [row for row in lender.rows(second) if row["description"] == "COFFEE"]
    assert repeated == {"index": 0, "transactionId": UUID(bytes=coffee["transaction_id"])}


def test_the_last_rows_may_go_and_come_back(rented: tuple[Lender, Job]) -> None:
    lender, first = rented
    lender.withdrawn(first)
    assert lender.rows() == []
    assert lender.customer.enriched_rows == 0
    again = lender.sent(RENT)
    assert (again.enriched_rows, again.duplicate_rows) == (1, 0)
    assert lender.descriptions() == ["RENT"]


def test_a_row_that_was_refused_stays_refused(lender: Lender, monkeypatch: pytest.MonkeyPatch) -> None:
    first = lender.sent(COFFEE)
    lender.sent(BAD, COFFEE)
    monkeypatch.setattr("pipelines.intake.rows.FAULTS", ())  # rules that refuse nothing any more
    monkeypatch.setattr("pipelines.intake.rows._first_fault", lambda: pl.lit(None, pl.Int32))
    assert lender.withdrawn(first).status is JobStatus.COMPLETED
    assert lender.descriptions() == ["COFFEE"]


def test_withdrawing_twice_is_withdrawing_once(rented: tuple[Lender, Job]) -> None:
    lender, first = rented
    once = lender.withdraw(first)
    assert lender.withdraw(first) == once
    lender.end_all()
    assert lender.withdraw(first) == lender.now(once)


def test_withdrawals_asked_for_at_once_are_one(rented: tuple[Lender, Job]) -> None:
    lender, first = rented
    with ThreadPoolExecutor(8) as pool:
        asked = list(pool.map(lender.withdraw, [first] * 8))
    assert len({job.job_id for job in asked}) == 1


def test_a_withdrawal_is_no_event(rented: tuple[Lender, Job]) -> None:
    lender, first = rented
    withdrawal = lender.withdrawn(first)
    with lender.store.db.reading() as r:
        told = select(func.count()).select_from(events).where(events.c.job_id == withdrawal.job_id)
        assert r.execute(told).scalar_one() == 0


def test_only_a_submission_that_ended_well_can_be_withdrawn(lender: Lender) -> None:
    failed, first, waiting = lender.sent(BAD), lender.sent(RENT), lender.submit(SALE)
    for job, code in ((failed, "Submission.Failed"), (waiting, "Submission.Unfinished")):
        with pytest.raises(Conflict) as refused:
            lender.withdraw(job)
        assert refused.value.code == code
    for other in (lender.ask_for_reports(), lender.withdraw(first)):
        with pytest.raises(NotFound):
            lender.withdraw(other)


def test_a_withdrawal_that_needs_a_damaged_file_fails_and_changes_nothing_and_may_be_tried_again(
    lender: Lender,
) -> None:
    first, second = lender.sent(RENT, COFFEE), lender.sent(COFFEE)
    file = lender.store.lake.root / (second.landing_path or "")
    good = file.read_bytes()
    file.write_bytes(good[:-1] + b"?")
    fresh = lender.store.lake.__class__(lender.store.lake.root)  # that has not seen the file yet
    lender.store = Store(lender.store.settings, lender.store.db, fresh, lender.store.vault)
    later = lender.submit(SALE)
    failed = lender.withdrawn(first)
    assert (failed.status, failed.error and failed.error["code"]) == (JobStatus.FAILED, "Lake.ChecksumMismatch")
    assert (second.landing_path or "?") in (failed.error or {})["message"]
    assert lender.now(later).status is JobStatus.COMPLETED
    assert lender.descriptions() == ["COFFEE", "RENT", "SALE"]
    file.write_bytes(good)
    assert lender.withdrawn(first).status is JobStatus.COMPLETED
    assert lender.descriptions() == ["COFFEE", "SALE"]


def test_recomputing_a_day_by_hand_brings_nothing_back(lender: Lender) -> None:
    first = lender.sent(RENT, COFFEE)
    lender.sent(COFFEE)
    lender.withdrawn(first)
    before = lender.rows()
    today = datetime.now(UTC).date()
    with work_of.without_jobs(lender.store, Queue.ENRICHMENT, today, [lender.customer.number]) as work:
        recompute(lender.store, work)
    assert lender.rows() == before


def test_a_withdrawal_whose_run_was_given_up_comes_true_with_the_next(rented: tuple[Lender, Job]) -> None:
    lender, first = rented
    lender.sent(SALE)
    withdrawal = lender.withdraw(first)
    store, day = lender.store, datetime.now(UTC).date()
    with store.db.writing() as w:
        batch = batches.claim(w, Queue.ENRICHMENT, store.settings, datetime.now(UTC))
        assert batch is not None
        batches.release(w, batch.token, store.settings, datetime.now(UTC))
    with pytest.raises(batches.Superseded):
        work_of.claimed(store, batch.token, day)
    assert lender.now(withdrawal).status is JobStatus.QUEUED
    assert lender.descriptions() == ["RENT", "SALE"]
    lender.end_all()
    assert lender.descriptions() == ["SALE"]


def test_a_report_is_stale_from_the_moment_a_withdrawal_is_accepted(rented: tuple[Lender, Job]) -> None:
    lender, first = rented
    lender.sent(SALE)
    lender.ask_for_reports()
    refreshed(lender)
    assert risk_status(lender) is ReportStatus.READY
    lender.withdraw(first)
    assert risk_status(lender) is ReportStatus.STALE
    lender.end_all()
    assert risk_status(lender) is ReportStatus.STALE
    lender.ask_for_reports()
    refreshed(lender)
    assert risk_status(lender) is ReportStatus.READY


def test_withdrawing_nothing_but_duplicates_leaves_the_report_ready(lender: Lender) -> None:
    lender.sent(RENT)
    again = lender.sent(RENT)
    lender.ask_for_reports()
    refreshed(lender)
    lender.withdrawn(again)
    assert risk_status(lender) is ReportStatus.READY


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_in_any_order_submissions_withdrawals_and_refreshes_end_right(lender: Lender, seed: int) -> None:
    """Batches are cut at random; at the end a service that never saw the withdrawn submissions holds the same."""
    chance = random.Random(seed)
    pool, sent = (RENT, COFFEE, SALE), list[tuple[Job, Sequence[Item]]]()
    gone = set[UUID]()
    for _ in range(14):
        match chance.choice(("submit", "submit", "withdraw", "refresh", "batch", "batch")):
            case "submit":
                items = chance.choices(pool, k=3)
                sent.append((lender.submit(*items), items))
            case "withdraw":
                ended = [job for job, _ in sent if lender.now(job).status is JobStatus.COMPLETED]
                if ended:
                    gone.add(lender.withdraw(chance.choice(ended)).withdraws or UUID(int=0))
            case "refresh":
                if lender.customer.enriched_rows:
                    lender.ask_for_reports()
                    refreshed(lender)
            case "batch":
                lender.end_all()
    lender.end_all()
    untouched = Lender(lender.store)
    for job, rows in sent:
        if job.job_id not in gone:
            untouched.sent(*rows)
    assert lender.descriptions() == untouched.descriptions()
    assert lender.customer.enriched_rows == untouched.customer.enriched_rows
    with lender.store.db.reading() as r:
        live = [job for job in jobs.find(r, lender.customer.client_id).items if job.completed_at is None]
        withdrawals = jobs.find(r, lender.customer.client_id, flow=Flow.WITHDRAWAL).items
    assert live == []
    assert {job.withdraws for job in withdrawals} == gone
