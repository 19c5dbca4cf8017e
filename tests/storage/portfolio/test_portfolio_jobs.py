"""A portfolio job's slices are listed once and recorded once each, and its result is stored once."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import polars as pl
import pytest
from sqlalchemy import func, select

from pipelines.vocabulary.errors import Corrupt, NotFound
from storage.core.models import Flow, JobStatus, portfolio_job_slices, segments
from storage.core.paging import Page
from storage.core.store import Store
from storage.decisions import backtests
from storage.decisions.backtests import Against, Knowledge, Request
from storage.jobs import jobs
from storage.portfolio import portfolio_jobs
from storage.portfolio.portfolio_jobs import (
    BACKTEST,
    SIMULATION,
    Kind,
    NewPortfolioJob,
    PartialResult,
    Population,
    PortfolioJob,
    Slice,
)
from tests.storage.examples import a_client, a_customer

NOW = datetime(2026, 7, 1, 2, 15, tzinfo=UTC)
SUBJECT = UUID(int=7)
CHANGES = (None, "outcome", "limits", "outcome")  # of the rows of a slice


@pytest.fixture
def client_id(store: Store) -> UUID:
    return a_client(store, NOW)


def request_job(store: Store, client_id: UUID, kind: Kind = BACKTEST, **also: Any) -> PortfolioJob:
    new = replace(NewPortfolioJob(kind, client_id, SUBJECT, 2, "{}"), **also)
    with store.db.writing() as w:
        return portfolio_jobs.get_of_any_client(w, portfolio_jobs.request(w, new, "somebody", NOW).job_id)


def begin_job(store: Store, client_id: UUID, *parts: list[int], kind: Kind = BACKTEST) -> PortfolioJob:
    job = request_job(store, client_id, kind)
    with store.db.writing() as w:
        portfolio_jobs.list_slices(w, portfolio_jobs.begin(w, job.job_id, NOW), parts)
        return portfolio_jobs.get_of_any_client(w, job.job_id)


def rows(numbers: list[int]) -> pl.DataFrame:
    nth = range(len(numbers))
    return pl.DataFrame({"customer_number": numbers, "change": [CHANGES[each % len(CHANGES)] for each in nth]})


def slice_of(store: Store, job: PortfolioJob) -> Slice | None:
    with store.db.reading() as r:
        return next(iter(portfolio_jobs.find_remaining_slices(r, job)), None)


def record(store: Store, job: PortfolioJob, slice_: Slice, failed: int = 0) -> None:
    numbers = list(range(slice_.first_customer, slice_.last_customer + 1))
    tally = {
        "counts": pl.DataFrame(
            {"side": ["before"], "n": [len(numbers)]}, schema_overrides={"side": pl.Enum(["before"])}
        )
    }
    part = PartialResult(rows(numbers), tally, len(numbers) - failed)
    file = portfolio_jobs.put_rows(store.lake, job, part.rows)
    with store.db.writing() as w:
        portfolio_jobs.record(w, store.lake, slice_, part, failed, file, NOW)


def record_all(store: Store, job: PortfolioJob, failed: int = 0) -> None:
    while slice_ := slice_of(store, job):
        record(store, job, slice_, failed)


def end(store: Store, job: PortfolioJob, result: Mapping[str, Any]) -> PortfolioJob:
    with store.db.writing() as w:
        portfolio_jobs.end(w, job, result, NOW)
        return portfolio_jobs.get_of_any_client(w, job.job_id)


def list_numbers(store: Store, job: PortfolioJob, change: str | None = None, page: Page | None = None) -> list[int]:
    with store.db.reading() as r:
        listing = portfolio_jobs.read_listing(r, job, change)
    frames = portfolio_jobs.read_rows(store.lake, listing, page)
    return [number for frame in frames for number in frame["customer_number"]]


def test_the_newest_finished_backtest_of_a_version_is_found_on_either_side(store: Store, client_id: UUID) -> None:
    def finish_job(against: Against, other: int | None, version: int = 2, **also: Any) -> UUID:
        wanted = Request(against, other, (NOW.date(),), Knowledge.NOW, {})
        job = request_job(store, client_id, request=wanted.as_json(), version=version, **also)
        return end(store, job, {}).job_id

    def latest(version: int) -> UUID | None:
        with store.db.reading() as r:
            return backtests.latest_of_version(r, SUBJECT, version)

    both = finish_job(Against.VERSION, 1)
    finish_job(Against.CHALLENGER, None)
    finish_job(Against.VERSION, 1, subject_id=UUID(int=8))
    request_job(store, client_id, request=Request(Against.VERSION, 1, (NOW.date(),), Knowledge.NOW, {}).as_json())
    assert [latest(version) for version in (1, 2, 3, 12)] == [both, both, None, None]
    newer = finish_job(Against.RECORDED, None)
    assert [latest(version) for version in (1, 2)] == [both, newer]


def test_a_requested_job_is_read_back_unchanged(store: Store, client_id: UUID) -> None:
    attached = pl.DataFrame({"customer_number": [1], "defaulted": [True]})
    job = request_job(store, client_id, request='{"a":1}', attachment=attached)
    assert (job.kind, job.subject_id, job.version, job.request) == (BACKTEST, SUBJECT, 2, '{"a":1}')
    assert (job.created_by, job.status, job.is_done) == ("somebody", JobStatus.QUEUED, False)
    assert (job.customers_total, job.customers_done, job.customers_failed) == (None, 0, 0)
    with store.db.reading() as r:
        found = portfolio_jobs.read_attachment(r, job)
        assert portfolio_jobs.read_result(r, job) is None
        assert jobs.get(r, client_id, job.job_id).flow is Flow.POLICY_BACKTEST
    assert job.has_attachment
    assert found is not None
    assert found.equals(attached)
    without = request_job(store, client_id)
    with store.db.reading() as r:
        assert (without.has_attachment, portfolio_jobs.read_attachment(r, without)) == (False, None)


def test_a_job_is_found_only_by_its_client_kind_and_subject(store: Store, client_id: UUID) -> None:
    job = request_job(store, client_id)
    with store.db.reading() as r:
        assert portfolio_jobs.get(r, BACKTEST, client_id, job.job_id, SUBJECT) == job
        assert portfolio_jobs.get(r, BACKTEST, client_id, job.job_id) == job
        for kind, client, id_, subject in (
            (BACKTEST, a_client(store, NOW), job.job_id, SUBJECT),
            (BACKTEST, client_id, uuid4(), SUBJECT),
            (BACKTEST, client_id, job.job_id, UUID(int=8)),
            (SIMULATION, client_id, job.job_id, None),
        ):
            with pytest.raises(NotFound, match=f"There is no {kind.noun}"):
                portfolio_jobs.get(r, kind, client, id_, subject)


def test_jobs_are_listed_newest_first_and_wait_in_order_of_receipt(store: Store, client_id: UUID) -> None:
    first, second = request_job(store, client_id), request_job(store, client_id)
    request_job(store, client_id, subject_id=UUID(int=8))
    begin_job(store, client_id)
    with store.db.reading() as r:
        found = portfolio_jobs.find(r, SUBJECT, Page(2, 1))
        assert ([each.job_id for each in found.items], found.total) == ([second.job_id], 3)
        assert [each.job_id for each in portfolio_jobs.find_waiting(r)][:2] == [first.job_id, second.job_id]
        assert len(portfolio_jobs.find_waiting(r)) == 3


def test_slices_are_listed_once(store: Store, client_id: UUID) -> None:
    job = begin_job(store, client_id, [3, 5], [8])
    with store.db.writing() as w:
        portfolio_jobs.list_slices(w, portfolio_jobs.begin(w, job.job_id, NOW + timedelta(hours=1)), [[3], [5], [9]])
        again = portfolio_jobs.get_of_any_client(w, job.job_id)
    assert (again.customers_total, again.started_at, again.status) == (3, NOW, JobStatus.RUNNING)
    assert slice_of(store, job) == Slice(job, 0, 3, 5)


def test_a_job_without_customers_has_one_empty_slice(store: Store, client_id: UUID) -> None:
    job = begin_job(store, client_id)
    assert (job.customers_total, slice_of(store, job)) == (0, Slice(job, 0, 0, 0))


def test_a_slice_holds_the_clients_customers_of_its_range(store: Store, client_id: UUID) -> None:
    numbers = [a_customer(store, client_id, NOW).number for _ in range(3)]
    a_customer(store, a_client(store, NOW), NOW)
    population = Population(client_id, None, with_transactions=False)
    with store.db.reading() as r:
        assert [number for number, _ in portfolio_jobs.find_customers(r, population)] == numbers
        within = Slice(request_job(store, client_id), 0, numbers[1], numbers[2])
        assert [number for number, _ in portfolio_jobs.find_customers(r, population, within)] == numbers[1:]


def test_of_two_runs_the_first_records_a_slice(store: Store, client_id: UUID) -> None:
    job = begin_job(store, client_id, [1, 2, 3, 4], [5, 6])
    slice_ = slice_of(store, job)
    assert slice_ is not None
    for failed in (1, 0):
        record(store, job, slice_, failed)
    with store.db.reading() as r:
        found = portfolio_jobs.get_of_any_client(r, job.job_id)
        assert r.execute(select(func.count()).select_from(segments)).scalar_one() == 1
    assert (found.customers_total, found.customers_done, found.customers_failed) == (6, 3, 1)
    assert slice_of(store, job) == Slice(job, 1, 5, 6)


def test_tallies_come_back_in_order_and_are_removed_with_the_result(store: Store, client_id: UUID) -> None:
    job = begin_job(store, client_id, [1, 4], [5])
    record_all(store, job)
    with store.db.reading() as r:
        tallies = [each["counts"] for each in portfolio_jobs.read_tallies(r, job)]
    assert [each["n"].to_list() for each in tallies] == [[4], [1]]
    assert tallies[0].schema["side"] == pl.Enum(["before"])
    done = end(store, job, {"events": 3})
    with store.db.reading() as r:
        assert portfolio_jobs.read_result(r, done) == {"events": 3}
        assert r.execute(select(func.count(portfolio_job_slices.c.tallies))).scalar_one() == 0
    assert done.status is JobStatus.COMPLETED


def test_a_job_ends_once(store: Store, client_id: UUID) -> None:
    """A run that was presumed dead must not change the result."""
    job = begin_job(store, client_id, [1, 2])
    record_all(store, job, failed=1)
    done = end(store, job, {"events": 3})
    assert done.status is JobStatus.COMPLETED_WITH_ERRORS
    assert end(store, job, {"events": 4}) == done
    with store.db.writing() as w:
        portfolio_jobs.fail(w, job, {"code": "Backtest.Failed", "message": "It failed."}, NOW)
        assert portfolio_jobs.get_of_any_client(w, job.job_id) == done
        assert portfolio_jobs.read_result(w, done) == {"events": 3}


def test_a_failed_job_has_its_error(store: Store, client_id: UUID) -> None:
    job = begin_job(store, client_id)
    error = {"code": "Backtest.Stopped", "message": "The run was stopped."}
    with store.db.writing() as w:
        portfolio_jobs.fail(w, job, error, NOW)
        failed = jobs.get(w, client_id, job.job_id)
    assert (failed.status, failed.error) == (JobStatus.FAILED, error)


def test_rows_are_listed_from_several_files_and_filtered_by_change(store: Store, client_id: UUID) -> None:
    job = begin_job(store, client_id, [1, 4], [11, 12], [21, 21], [31, 34])
    record_all(store, job)
    assert list_numbers(store, job) == [2, 3, 4, 12, 32, 33, 34]
    assert list_numbers(store, job, "limits") == [3, 33]
    assert [list_numbers(store, job, page=Page(nth, 3)) for nth in (1, 2, 3, 4)] == [[2, 3, 4], [12, 32, 33], [34], []]
    assert list_numbers(store, job, "outcome", Page(2, 2)) == [12, 32]


def test_no_more_rows_are_listed_than_the_kind_allows(
    store: Store, client_id: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = begin_job(store, client_id, [1, 3], [11, 13], kind=SIMULATION)
    record_all(store, job)
    assert list_numbers(store, job) == [1, 2, 3, 11, 12, 13]
    few = Kind(Flow.RULESET_SIMULATION, "simulation", None, 4)
    monkeypatch.setitem(portfolio_jobs.KINDS, Flow.RULESET_SIMULATION, few)
    with store.db.reading() as r:
        job = portfolio_jobs.get_of_any_client(r, job.job_id)
        assert portfolio_jobs.read_listing(r, job).total == 4
    assert list_numbers(store, job) == [1, 2, 3, 11]
    assert [list_numbers(store, job, page=Page(nth, 3)) for nth in (1, 2, 3)] == [[1, 2, 3], [11], []]


def test_a_damaged_file_is_reported(store: Store, client_id: UUID) -> None:
    job = begin_job(store, client_id, [1, 3])
    record_all(store, job)
    with store.db.reading() as r:
        [(path, _, _)] = portfolio_jobs.read_listing(r, job).files
    assert path.startswith(f"backtests/{job.job_id}/")
    (store.lake.root / path).write_bytes(b"damaged")
    fresh = type(store.lake)(store.lake.root)
    with store.db.reading() as r, pytest.raises(Corrupt):
        list(portfolio_jobs.read_rows(fresh, portfolio_jobs.read_listing(r, job), None))
