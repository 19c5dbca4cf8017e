"""Maintenance of a bucket runs in slices, only for customers who are due, after clients' jobs, and can be resumed."""

import dataclasses
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from dagster import materialize
from sqlalchemy import select, update

from assets.core import waiting
from assets.core.batches import Work
from assets.enrichment import transactions
from assets.portfolio import maintenance as maintenance_work
from assets.portfolio import tables
from assets.portfolio.maintenance import Counts, carry_out, pause, slices
from pipelines.enrichment.enrichment import ENRICHMENT_VERSION, Enriched, enrich
from pipelines.reports import REPORTS
from pipelines.vocabulary.report_status import ReportStatus
from storage.core import models
from storage.core.bucket import Unreachable
from storage.core.settings import Settings
from storage.core.store import Store
from storage.enrichment.transactions import current_locations, current_locations_in_bucket
from storage.portfolio import maintenance
from storage.portfolio.maintenance import BucketProgress, Task
from storage.portfolio.tables import read_reports
from tests.assets.conftest import FillStore
from tests.assets.lender import BUCKET, COFFEE, SALE, Lender, risk_status, run_refreshes, three_in_a_bucket
from tests.conftest import copy_home, open_store

pytestmark = pytest.mark.service  # a whole job per test, not one step; the steps have tests of their own


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Don't pause while a job waits: in these tests nothing would end it."""
    monkeypatch.setattr(maintenance_work, "LONGEST_WAIT_S", 0)


@pytest.fixture
def lenders(fill_store: FillStore) -> list[Lender]:
    return fill_store(outdate_three_lenders)


def outdate_three_lenders(store: Store) -> list[Lender]:
    """Return three lenders, each with a customer in BUCKET whose row an older version of the enrichment made."""
    three = three_in_a_bucket(store)
    with store.db.writing() as w:
        w.execute(update(models.customers).values(enrichment_version=ENRICHMENT_VERSION - 1))
    return three


def run_backfill(store: Store, do: Callable[[Work], Counts] | None = None) -> Counts:
    """Run a backfill with one slice for each customer."""
    sliced = dataclasses.replace(
        store, settings=store.settings.model_copy(update={"portfolio_slice_rows": 1, "portfolio_share": 1})
    )
    return carry_out(sliced, Task.BACKFILL, BUCKET, tables.is_due(), do or partial(tables.reenrich, sliced))


def enrich_with_new_category(*arguments: Any) -> Enriched:
    """Enrich with another category for coffee."""
    enriched = enrich(*arguments)
    coffee = pl.col("description") == "COFFEE"
    new = pl.when(coffee).then(pl.lit("new")).otherwise("category")
    return dataclasses.replace(enriched, transactions=enriched.transactions.with_columns(category=new))


def read_backfill_progress(store: Store) -> BucketProgress:
    with store.db.reading() as r:
        [found] = maintenance.read_progress(r, Task.BACKFILL, [BUCKET])
    return found


def read_enrichment_versions(store: Store) -> list[int]:
    with store.db.reading() as r:
        query = select(models.customers.c.enrichment_version).order_by(models.customers.c.number)
        return list(r.execute(query).scalars())


def test_all_customers_get_the_enrichment_version_but_only_changed_rows_a_data_version(
    store: Store, lenders: list[Lender], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "enrich", enrich_with_new_category)
    before = [lender.customer.data_version for lender in lenders]
    assert run_backfill(store) == Counts(customers=3, changed=1)
    increases = [lender.customer.data_version - version for lender, version in zip(lenders, before, strict=True)]
    assert increases == [0, 1, 0]
    assert [row["category"] for row in lenders[1].rows()] == ["new"]
    assert read_enrichment_versions(store) == [ENRICHMENT_VERSION] * 3
    assert run_backfill(store) == Counts(), "no customer is outdated any more"


@pytest.mark.usefixtures("lenders")
def test_slices_done_before_a_failure_are_not_repeated(store: Store) -> None:
    tried: list[int] = []

    def break_after_first(work: Work) -> Counts:
        if tried:
            raise MemoryError
        tried.extend(work.customers)
        return tables.reenrich(store, work)

    with pytest.raises(MemoryError):
        run_backfill(store, break_after_first)
    assert read_enrichment_versions(store) == [ENRICHMENT_VERSION, ENRICHMENT_VERSION - 1, ENRICHMENT_VERSION - 1]
    broken = read_backfill_progress(store)
    assert (broken.total, broken.done, broken.error) == (3, 1, "MemoryError")

    again = run_backfill(store)
    assert again.customers == 2
    assert read_backfill_progress(store).error is None


def test_a_customer_with_an_unfinished_submission_is_left_to_it(store: Store, lenders: list[Lender]) -> None:
    lenders[1].submit(SALE)
    assert run_backfill(store) == Counts(customers=2, skipped=1)
    assert read_enrichment_versions(store)[1] == ENRICHMENT_VERSION - 1
    lenders[1].end_all()
    assert read_enrichment_versions(store) == [ENRICHMENT_VERSION] * 3


def test_a_submission_received_while_a_slice_is_computed_takes_precedence(store: Store, lenders: list[Lender]) -> None:
    def submit_then_reenrich(work: Work) -> Counts:
        lenders[1].submit(SALE)
        return tables.reenrich(store, work)

    counts = carry_out(store, Task.BACKFILL, BUCKET, tables.is_due(), submit_then_reenrich)
    assert counts == Counts(customers=2, skipped=1)
    assert read_enrichment_versions(store)[1] == ENRICHMENT_VERSION - 1


def test_a_damaged_file_leaves_only_its_own_customers_outdated(store: Store, lenders: list[Lender]) -> None:
    with store.db.reading() as r:
        [place] = current_locations(r, [lenders[1].customer.number])
    (store.lake.root / place.path).write_bytes(b"not what was written")
    forgetful = dataclasses.replace(
        store, lake=type(store.lake)(store.lake.root)
    )  # as a process that has not verified the file yet
    counts = carry_out(forgetful, Task.BACKFILL, BUCKET, tables.is_due(), partial(tables.reenrich, forgetful))
    assert counts == Counts(customers=3, failed=1)
    assert read_enrichment_versions(store) == [ENRICHMENT_VERSION, ENRICHMENT_VERSION - 1, ENRICHMENT_VERSION]


def test_stale_reports_are_refreshed_and_no_first_report_is_computed(store: Store, lenders: list[Lender]) -> None:
    for lender in lenders[:2]:
        lender.ask_for_reports()
        run_refreshes(lender)
    lenders[0].submit_and_end(SALE)
    assert [risk_status(each) for each in lenders] == [ReportStatus.STALE, ReportStatus.READY, ReportStatus.PENDING]

    with store.db.reading() as r:
        condition = tables.is_stale(store.settings, datetime.now(UTC))
        assert [number for number, _ in maintenance.find_due(r, condition, BUCKET)] == [lenders[0].customer.number]
    counts = carry_out(store, Task.REFRESH, BUCKET, condition, partial(tables.refresh_all, store))
    assert counts == Counts(customers=1, changed=1)
    assert [risk_status(each) for each in lenders] == [ReportStatus.READY, ReportStatus.READY, ReportStatus.PENDING]
    with store.db.reading() as r:
        assert read_reports(r, "risk", BUCKET)["is_current"].to_list() == [True, True]


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
def test_four_workers_produce_the_same_files_as_one(
    store: Store, fill_store: FillStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Byte for byte: the files of re-enriched values, and the documents of refreshed reports."""
    lenders = fill_store(outdate_one_in_each_bucket)
    monkeypatch.setattr(transactions, "enrich", enrich_with_new_category)
    store.close()
    other = open_store(Settings(home=copy_home(store.settings.home, tmp_path / "other")))
    alone, shared = maintain_buckets(store, workers=1), maintain_buckets(other, workers=4)
    other.close()
    assert len(alone) == len(lenders)
    assert alone == shared
    assert all(b"new" in rows for rows, _ in alone.values()), "every value was enriched again"


def outdate_one_in_each_bucket(store: Store) -> list[Lender]:
    """Return four lenders, each with an outdated customer in a bucket of its own, and reports."""
    four = [Lender(store) for _ in range(4)]
    for lender in four:
        lender.submit_and_end(COFFEE, SALE)
        lender.ask_for_reports()
        run_refreshes(lender)
    with store.db.writing() as w:
        w.execute(update(models.customers).values(enrichment_version=ENRICHMENT_VERSION - 1))
    return four


def maintain_buckets(store: Store, workers: int) -> dict[int, tuple[bytes, list[str]]]:
    """Enrich all buckets again and refresh their reports, several buckets at once. Return each customer's file and
    reports.
    """

    def maintain(bucket: int) -> tuple[int, tuple[bytes, list[str]]]:
        carry_out(store, Task.BACKFILL, bucket, tables.is_due(), partial(tables.reenrich, store))
        stale = tables.is_stale(store.settings, datetime.now(UTC))
        carry_out(store, Task.REFRESH, bucket, stale, partial(tables.refresh_all, store))
        with store.db.reading() as r:
            [place] = current_locations_in_bucket(r, bucket)
            documents = [read_reports(r, kind, bucket)["data"].item() for kind in REPORTS]
        return place.customer_number, ((store.lake.root / place.path).read_bytes(), documents)

    with ThreadPoolExecutor(workers) as pool:
        return dict(pool.map(maintain, range(1, 5)))


def test_between_slices_maintenance_rests_while_jobs_wait(
    store: Store, lenders: list[Lender], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance_work, "LONGEST_WAIT_S", 60)
    pause(store, worked_s=0)  # no job waits
    lenders[0].submit(SALE)
    pausing = threading.Thread(target=pause, args=(store, 0))
    pausing.start()
    pausing.join(timeout=0.3)
    assert pausing.is_alive()
    lenders[0].end_all()
    pausing.join(timeout=30)
    assert not pausing.is_alive()


def test_slices_are_limited_by_rows_and_a_larger_customer_has_its_own() -> None:
    due = [(1, 40), (2, 60), (3, 1), (4, 500), (5, 10)]
    assert list(slices(due, 3, most_rows=100)) == [[1, 2], [3], [4], [5]]
    assert list(slices([], 3, most_rows=100)) == []


def test_a_backfill_waits_for_the_object_store_and_continues_where_it_was(
    store: Store, lenders: list[Lender], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "AGAIN_AFTER_S", 0)
    monkeypatch.setattr(maintenance_work, "SLICE_CUSTOMERS", 1)
    reenrich, tried = tables.reenrich, list[int]()

    def be_away_once(store: Store, work: Work) -> Counts:
        tried.extend(work.customers)
        if len(tried) == 2:
            raise Unreachable
        return reenrich(store, work)

    monkeypatch.setattr(tables, "reenrich", be_away_once)
    resources = {"store": store}
    assert materialize([tables.reenriched_transactions], partition_key=f"{BUCKET:02d}", resources=resources).success
    first, second, third = (lender.customer.number for lender in lenders)
    assert tried == [first, second, second, third]
    progress = read_backfill_progress(store)
    assert (progress.total, progress.done, progress.error) == (3, 3, None)
