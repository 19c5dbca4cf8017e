"""The refresh of reports: each of the three kinds is computed in one pass for all customers of a batch, then stored."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

import polars as pl
from dagster import AssetExecutionContext, AssetsDefinition, MaterializeResult, ResourceParam, asset

from assets.core.batches import Work, batch_of, days, isolate_failures
from assets.enrichment.transactions import enriched_transactions
from pipelines.figures.facts import COLUMNS, Facts
from pipelines.reports import REPORTS, Report
from storage.core.database import Reading
from storage.core.lake import Lake
from storage.core.models import JobStatus, Queue
from storage.core.store import Store
from storage.customers.customers import versions
from storage.decisions import context
from storage.enrichment import transactions
from storage.enrichment.transactions import Location
from storage.jobs import batches
from storage.jobs.jobs import Ending, Job, finish
from storage.reports import reports
from storage.reports.reports import NewReport

GROUP = "reports"
SLICE_ROWS = 200_000  # transactions in memory per slice: our judgement
SLICES_AT_ONCE = 2

T = TypeVar("T")


@dataclass(frozen=True)
class Refreshed:
    """The reports of one kind for a batch's customers."""

    computed: Sequence[NewReport]
    failed: Sequence[int]  # customer numbers


def _report_asset(report: Report) -> AssetsDefinition:

    @asset(
        name=f"{report.kind}_reports",
        description=report.compute.__doc__,
        partitions_def=days,
        group_name=GROUP,
        kinds={"polars"},
        deps=[enriched_transactions],
        code_version=str(report.version),
    )
    def refreshed(context: AssetExecutionContext, store: ResourceParam[Store]) -> MaterializeResult:
        with batch_of(context, store, Queue.REFRESH) as work:
            result = refresh(store, work, report)
        return MaterializeResult(metadata={"customers": len(result.computed), "customers failed": len(result.failed)})

    return refreshed


def refresh(store: Store, work: Work, report: Report) -> Refreshed:
    """Compute and store one kind of report for the batch's customers. After a failure the last good report remains."""
    now = datetime.now(UTC)
    as_of = now.astimezone(store.settings.zone).date()
    with store.db.reading() as r:
        pinned = _pinned_versions(r, work)
        locations = transactions.pinned_locations(r, pinned)
    good, damaged = transactions.separate_damaged(store.lake, locations)
    failed, computed = list(damaged), list[NewReport]()

    def compute_slice(rows: pl.DataFrame) -> Sequence[NewReport]:
        numbers = rows["customer_number"].unique().to_list()
        return isolate_failures(partial(_compute, store, report, rows, pinned, now), numbers, failed)

    for reports_of_slice in each_slice(store.lake, good, compute_slice):
        computed += reports_of_slice
    with store.db.writing() as w:
        reports.save(w, work.token, report.kind, report.version, computed, as_of, now)
        reports.save_failures(w, work.token, report.kind, failed)
    return Refreshed(computed, failed)


def each_slice(lake: Lake, locations: Sequence[Location], compute: Callable[[pl.DataFrame], T]) -> Iterator[T]:
    """Yield the result of `compute` for one slice of the customers' transactions (facts.COLUMNS) after another.

    A slice holds whole customers, and about SLICE_ROWS rows to limit memory. Two are computed in parallel, because one
    alone, whose many frames are small, uses little more than one core.
    """
    with ThreadPoolExecutor(SLICES_AT_ONCE, "tidemark-slice") as pool:
        yield from pool.map(lambda slice_: compute(_read_transactions(lake, slice_)), _split(locations))


def _split(locations: Sequence[Location]) -> Iterator[list[Location]]:
    slice_: list[Location] = []
    for location in sorted(locations, key=lambda location: location.customer_number):
        if slice_ and sum(each.row_count for each in slice_) + location.row_count > SLICE_ROWS:
            yield slice_
            slice_ = []
        slice_.append(location)
    yield slice_


def _read_transactions(lake: Lake, locations: Sequence[Location]) -> pl.DataFrame:
    return transactions.scan(lake, locations).select(COLUMNS).collect()


def _pinned_versions(r: Reading, work: Work) -> dict[int, int]:
    """Return the data version that each customer's reports cover: the one at the claim, so that all three agree."""
    if work.jobs:
        return {job.customer_number: job.data_version or 0 for job in work.jobs}
    return versions(r, work.customers)


def _compute(
    store: Store,
    report: Report,
    rows: pl.DataFrame,
    pinned: Mapping[int, int],
    now: datetime,
    customers: Sequence[int],
) -> list[NewReport]:
    as_of = now.astimezone(store.settings.zone).date()
    with store.db.reading() as r:
        known = context.read(r, {number: pinned[number] for number in customers}, now, as_of, store.settings.zone)
    facts = Facts(rows.filter(pl.col("customer_number").is_in(list(customers))), as_of, known)
    through = dict(facts.history.select("customer_number", "data_through").iter_rows())
    return [
        NewReport(number, pinned[number], data, through.get(number))
        for number, data in report.compute(facts).iter_rows()
    ]


report_assets = [_report_asset(report) for report in REPORTS.values()]


@asset(partitions_def=days, group_name=GROUP, deps=report_assets)
def report_bundles(context: AssetExecutionContext, store: ResourceParam[Store]) -> MaterializeResult:
    """End the day's refresh jobs: with the three reports stored, the customers' bundles are complete."""
    with batch_of(context, store, Queue.REFRESH) as work:
        endings = end_refreshes(store, work)
    statuses = [ending.status for ending in endings]
    return MaterializeResult(metadata={str(status): statuses.count(status) for status in set(statuses)})


def end_refreshes(store: Store, work: Work) -> list[Ending]:
    with store.db.writing() as w:
        failures = reports.find_failures(w, [job.customer_number for job in work.jobs])
        endings = [_ending(job, failures.get(job.customer_number, ())) for job in work.jobs]
        batches.commit(w, work.token)
        finish(w, endings, datetime.now(UTC))
    return endings


def _ending(job: Job, failed: Sequence[str]) -> Ending:
    """Return the end of a refresh job, given the kinds of report that could not be computed."""
    if len(failed) == len(REPORTS):
        error = {"code": "Report.AllFailed", "message": "None of the reports could be computed."}
        return Ending(job, JobStatus.FAILED, job.data_version, error=error)
    if failed:
        error = {"code": "Report.SomeFailed", "message": f"These reports could not be computed: {', '.join(failed)}."}
        return Ending(job, JobStatus.COMPLETED_WITH_ERRORS, job.data_version, error=error)
    return Ending(job, JobStatus.COMPLETED, job.data_version)
