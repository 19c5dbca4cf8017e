"""The refresh of reports: the three kinds are computed in one pass for all customers of a batch, then stored."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cache, partial
from typing import TypeVar

import polars as pl
from dagster import AssetExecutionContext, AssetKey, AssetSpec, MaterializeResult, ResourceParam, multi_asset

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

ComputedSlice = Mapping[Report, tuple[list[NewReport], list[int]]]  # the reports, and the customers whose report failed


@dataclass
class Refreshed:
    """How many reports of one kind a batch got, and which customers got none (their numbers)."""

    computed: int = 0
    failed: list[int] = field(default_factory=list)


def report_asset(report: Report) -> AssetKey:
    return AssetKey(f"{report.kind}_reports")


report_assets = [
    AssetSpec(
        report_asset(report),
        deps=[enriched_transactions],
        group_name=GROUP,
        kinds={"polars"},
        description=f"The {report.kind} report of every customer with a refresh job that day.",
        code_version=str(report.version),
    )
    for report in REPORTS.values()
]
report_bundles = AssetSpec(
    "report_bundles",
    deps=report_assets,
    group_name=GROUP,
    description="The three reports of every customer with a refresh job that day, once these jobs have ended.",
)


@multi_asset(specs=[*report_assets, report_bundles], partitions_def=days)
def reports_refresh(context: AssetExecutionContext, store: ResourceParam[Store]) -> Iterator[MaterializeResult]:
    """Compute the three reports of the day's customers from one reading of their transactions; then end the jobs."""
    with batch_of(context, store, Queue.REFRESH) as work:
        for report, refreshed in refresh(store, work).items():
            counts = {"customers": refreshed.computed, "customers failed": len(refreshed.failed)}
            yield MaterializeResult(asset_key=report_asset(report), metadata=counts)
        endings = end_refreshes(store, work)
    statuses = [ending.status for ending in endings]
    counts = {str(status): statuses.count(status) for status in set(statuses)}
    yield MaterializeResult(asset_key=report_bundles.key, metadata=counts)


def refresh(store: Store, work: Work) -> Mapping[Report, Refreshed]:
    """Compute and store the three reports of the batch's customers, slice by slice.

    After a failure the last good report remains.
    """
    now = datetime.now(UTC)
    as_of = now.astimezone(store.settings.zone).date()
    with store.db.reading() as r:
        pinned = _pinned_versions(r, work)
        locations = transactions.pinned_locations(r, pinned)
    good, damaged = transactions.separate_damaged(store.lake, locations)
    refreshed = {report: Refreshed() for report in REPORTS.values()}

    def save(computed: ComputedSlice) -> None:
        with store.db.writing() as w:
            for report, (new, failed) in computed.items():
                reports.save(w, work.token, report.kind, report.version, new, as_of, now)
                reports.save_failures(w, work.token, report.kind, failed)
                refreshed[report].computed += len(new)
                refreshed[report].failed += failed

    save({report: ([], list(damaged)) for report in REPORTS.values()})
    for computed in compute_by_slice(store.lake, good, partial(_compute, store, pinned, now, as_of)):
        save(computed)
    return refreshed


def compute_by_slice(lake: Lake, locations: Sequence[Location], compute: Callable[[pl.DataFrame], T]) -> Iterator[T]:
    """Yield the result of `compute` for one slice of the customers' transactions (facts.COLUMNS) after another.

    A slice holds whole customers, and about SLICE_ROWS rows to limit memory. Two are computed in parallel, because one
    alone, whose many frames are small, uses little more than one core.
    """
    with ThreadPoolExecutor(SLICES_AT_ONCE, "tidemark-slice") as pool:
        yield from pool.map(lambda slice_: compute(_read_transactions(lake, slice_)), _split_into_slices(locations))


def _split_into_slices(locations: Sequence[Location]) -> Iterator[list[Location]]:
    slice_: list[Location] = []
    for location in sorted(locations, key=lambda location: location.customer_number):
        if slice_ and sum(each.row_count for each in slice_) + location.row_count > SLICE_ROWS:
            yield slice_
            slice_ = []
        slice_.append(location)
    if slice_:
        yield slice_


def _read_transactions(lake: Lake, locations: Sequence[Location]) -> pl.DataFrame:
    return transactions.scan(lake, locations).select(COLUMNS).collect()


def _pinned_versions(r: Reading, work: Work) -> dict[int, int]:
    """Return the data version that each customer's reports cover: the one at the claim, so that all three agree."""
    if work.jobs:
        return {job.customer_number: job.data_version or 0 for job in work.jobs}
    return versions(r, work.customers)


def _compute(store: Store, pinned: Mapping[int, int], now: datetime, as_of: date, rows: pl.DataFrame) -> ComputedSlice:
    """Compute the reports of a slice's customers, of which `rows` has all transactions (facts.COLUMNS)."""
    numbers = rows["customer_number"].unique().to_list()

    @cache  # the three kinds of report share what they need
    def facts_of(customers: tuple[int, ...]) -> Facts:
        with store.db.reading() as r:
            known = context.read(r, {number: pinned[number] for number in customers}, now, as_of, store.settings.zone)
        return Facts(rows.filter(pl.col("customer_number").is_in(customers)), as_of, known)

    def reports_of(report: Report, customers: Sequence[int]) -> list[NewReport]:
        facts = facts_of(tuple(customers))
        through = dict(facts.history.select("customer_number", "data_through").iter_rows())
        return [
            NewReport(number, pinned[number], data, through.get(number))
            for number, data in report.compute(facts).iter_rows()
        ]

    computed: dict[Report, tuple[list[NewReport], list[int]]] = {}
    for report in REPORTS.values():
        failed: list[int] = []
        computed[report] = list(isolate_failures(partial(reports_of, report), numbers, failed)), failed
    return computed


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
