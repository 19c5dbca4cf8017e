"""If one customer's data can't be computed, only its own results are missing, and this is reported."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import polars as pl
import pytest
from dagster import build_asset_context
from sqlalchemy import update
from sqlalchemy.exc import OperationalError

from assets.core.batches import isolate_failures
from assets.portfolio.tables import metrics_portfolio
from assets.reports import reports as refreshing
from pipelines import metrics
from pipelines.figures.facts import Facts
from pipelines.reports import REPORTS
from pipelines.vocabulary.report_status import ReportStatus
from storage.core import models
from storage.core.models import JobStatus
from storage.core.store import Store
from storage.decisions import context
from storage.portfolio import tables
from storage.reports import reports
from tests.assets.conftest import FillStore
from tests.assets.lender import BUCKET, Lender, run_refreshes, three_in_a_bucket


@pytest.fixture
def lenders(fill_store: FillStore) -> list[Lender]:
    return fill_store(three_in_a_bucket)


def fail_for(lender: Lender, works: Callable[[Facts], pl.DataFrame]) -> Callable[[Facts], pl.DataFrame]:
    """Return a function that does as `works`, but fails for every frame with the customer in it."""
    number = lender.customer.number

    def fails(facts: Facts) -> pl.DataFrame:
        if number in facts.rows["customer_number"]:
            raise pl.exceptions.ComputeError("type Int128 is incompatible with expected type Int64")
        return works(facts)

    return fails


def metrics_table(store: Store) -> pl.DataFrame:
    with store.db.reading() as r:
        [table] = [each for each in tables.find_current_tables(r) if each.name == tables.METRICS]
    return pl.read_parquet(store.lake.verified_path(table.path, table.sha256))


def test_the_nightly_metrics_of_a_bucket_include_all_other_customers(
    store: Store, lenders: list[Lender], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, broken, last = lenders
    monkeypatch.setattr(metrics, "readings", fail_for(broken, metrics.readings))
    made: Any = metrics_portfolio(build_asset_context(partition_key=f"{BUCKET:02d}"), store)
    assert set(metrics_table(store)["customer_number"]) == {first.customer.number, last.customer.number}
    assert (made.metadata["customers"], made.metadata["customers failed"]) == (2, 1)


@pytest.mark.usefixtures("lenders")
def test_a_bucket_in_which_every_customer_fails_has_an_empty_table(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: Facts) -> pl.DataFrame:
        raise pl.exceptions.ComputeError("no customer can be computed")

    monkeypatch.setattr(metrics, "readings", fails)
    metrics_portfolio(build_asset_context(partition_key=f"{BUCKET:02d}"), store)
    assert metrics_table(store).is_empty()


def test_a_refresh_names_the_report_that_failed(lenders: list[Lender], monkeypatch: pytest.MonkeyPatch) -> None:
    failing, other, _ = lenders
    risk = replace(REPORTS["risk"], compute=fail_for(failing, REPORTS["risk"].compute))
    monkeypatch.setattr(refreshing, "REPORTS", {**REPORTS, "risk": risk})
    jobs = [failing.ask_for_reports(), other.ask_for_reports()]
    run_refreshes(failing)
    ended = [failing.now(jobs[0]), other.now(jobs[1])]
    assert [job.status for job in ended] == [JobStatus.COMPLETED_WITH_ERRORS, JobStatus.COMPLETED]
    assert [job.error for job in ended] == [
        {"code": "Report.SomeFailed", "message": "These reports could not be computed: risk."},
        None,
    ]
    with failing.store.db.reading() as r:
        bundle = reports.read_bundle(r, failing.customer)
    assert {kind: (view.status, view.failed, view.error and view.error["code"]) for kind, view in bundle.items()} == {
        "completeness": (ReportStatus.READY, False, None),
        "risk": (ReportStatus.PENDING, True, "Report.Failed"),
        "aggregate": (ReportStatus.READY, False, None),
    }


def test_unreadable_context_of_one_customer_fails_only_its_own_report(
    lenders: list[Lender], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, read = lenders[1], context.read

    def unreadable(r: Any, versions: Any, *rest: Any) -> Any:
        if broken.customer.number in versions:
            raise ValueError("an unforeseen attribute")
        return read(r, versions, *rest)

    monkeypatch.setattr(context, "read", unreadable)
    asked = [lender.ask_for_reports() for lender in lenders]
    run_refreshes(lenders[0])
    ended = [lender.now(job).status for lender, job in zip(lenders, asked, strict=True)]
    assert ended == [JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.COMPLETED]


def test_a_headline_that_is_not_a_number_is_null_in_the_buckets_table(store: Store, lenders: list[Lender]) -> None:
    for lender in lenders:
        lender.ask_for_reports()
    run_refreshes(lenders[0])
    with store.db.writing() as w:
        odd = (models.reports.c.customer_number == lenders[1].customer.number, models.reports.c.kind == "risk")
        w.execute(update(models.reports).where(*odd).values(data='{"value": "1e400"}'))
    with store.db.reading() as r:
        found = tables.read_reports(r, "risk", BUCKET)
    assert [value is None for value in found["value"]] == [False, True, False]


def test_an_unavailable_database_fails_no_customer() -> None:
    failed: list[int] = []

    def away(_: Sequence[int]) -> list[int]:
        raise OperationalError("SELECT 1", {}, Exception("the server closed the connection"))

    with pytest.raises(OperationalError):
        isolate_failures(away, [1, 2], failed)
    assert failed == []
