"""Assets of the portfolio, partitioned into 64 buckets of customers: made nightly, weekly, or by hand for some buckets.

They are not urgent. They are made in the portfolio's own queue, by a process that exists only while it works.
"""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from functools import partial
from itertools import chain
from typing import Any

import polars as pl
from dagster import (
    AllPartitionMapping,
    AssetCheckResult,
    AssetCheckSeverity,
    AssetCheckSpec,
    AssetDep,
    AssetExecutionContext,
    AssetsDefinition,
    FreshnessPolicy,
    MaterializeResult,
    ResourceParam,
    StaticPartitionsDefinition,
    TableColumn,
    TableSchema,
    asset,
)
from sqlalchemy import ColumnElement

from assets.core import checks, plots
from assets.core.batches import Work, isolate_failures
from assets.core.runs import COMPACTED, REENRICHED, REFRESHED, REPORT_TABLE_OF
from assets.core.waiting import waits_for_storage
from assets.enrichment.transactions import enriched_transactions, recompute
from assets.portfolio.maintenance import Counts, carry_out
from assets.reports.reports import compute_by_slice, refresh, report_assets
from pipelines import metrics
from pipelines.enrichment.enrichment import ENRICHMENT_VERSION
from pipelines.figures.facts import Facts
from pipelines.reports import REPORTS, Report
from storage.core.buckets import ALL
from storage.core.settings import Settings
from storage.core.store import Store
from storage.decisions import context
from storage.enrichment import compaction, transactions
from storage.jobs import batches
from storage.portfolio import maintenance, peers, tables
from storage.portfolio.maintenance import Task

GROUP = "portfolio"


def describe_columns(described: tables.Columns) -> TableSchema:
    """Return the columns with their types and meanings, as Dagster's pages show them."""
    return TableSchema(
        [TableColumn(name, str(kind.base_type()), meaning) for name, (kind, meaning) in described.items()]
    )


buckets = StaticPartitionsDefinition([f"{bucket:02d}" for bucket in ALL])


# Of assets that are made every night: warn after one missed night, fail after two.
NIGHTLY = FreshnessPolicy.time_window(warn_window=timedelta(hours=30), fail_window=timedelta(hours=54))


def is_due() -> ColumnElement[bool]:
    """Select the customers that a backfill enriches again."""
    return maintenance.is_outdated(ENRICHMENT_VERSION)


def is_stale(settings: Settings, now: datetime) -> ColumnElement[bool]:
    """Select the customers whose reports are refreshed at night."""
    not_before = now.astimezone(settings.zone).date() - timedelta(days=settings.report_max_age_days)
    return maintenance.has_stale_report({kind: report.version for kind, report in REPORTS.items()}, not_before)


@asset(
    name=REENRICHED,
    partitions_def=buckets,
    group_name=GROUP,
    kinds={"polars", "parquet"},
    deps=[AssetDep(enriched_transactions.key, partition_mapping=AllPartitionMapping())],
    code_version=str(ENRICHMENT_VERSION),
)
@waits_for_storage()
def reenriched_transactions(context: AssetExecutionContext, store: ResourceParam[Store]) -> MaterializeResult:
    """Enrich the bucket's customers again with the current version of the enrichment.

    Customers that have it are skipped, so a run that was killed continues where it stopped. A customer's data version
    changes only if its rows do. Customers whose transactions an unfinished job changes are skipped: the job enriches
    them anyway.
    """
    counts = carry_out(store, Task.BACKFILL, int(context.partition_key), is_due(), partial(reenrich, store))
    return MaterializeResult(metadata={**_counts(counts), "enrichment version": ENRICHMENT_VERSION})


def reenrich(store: Store, work: Work) -> Counts:
    """Enrich a batch of customers again. Those that a submission changed meanwhile are left to it."""
    computed, committed = recompute(store, work)
    superseded = len(committed.superseded)
    return Counts(len(work.customers) - superseded, len(committed.replaced), len(computed.failed), superseded)


@asset(
    name=COMPACTED,
    partitions_def=buckets,
    group_name=GROUP,
    kinds={"polars", "parquet"},
    deps=[reenriched_transactions, AssetDep(enriched_transactions.key, partition_mapping=AllPartitionMapping())],
    check_specs=[AssetCheckSpec("readable", asset=COMPACTED, description="Every file to be rewritten is undamaged.")],
    freshness_policy=NIGHTLY,
)
@waits_for_storage()
def compacted_transactions(context: AssetExecutionContext, store: ResourceParam[Store]) -> MaterializeResult:
    """Rewrite the bucket's live transactions into few, well-filled files, sorted by customer, where it pays."""
    done = compaction.compact(store, int(context.partition_key), lambda: datetime.now(UTC))
    with store.db.reading() as r:
        locations = transactions.current_locations_in_bucket(r, done.bucket)
    readable = AssetCheckResult(
        check_name="readable",
        passed=done.unreadable == 0,
        severity=AssetCheckSeverity.ERROR,
        metadata={"customers in damaged files": done.unreadable},
    )
    metadata = {
        "dagster/row_count": sum(location.row_count for location in locations),
        "customers": len(locations),
        "files": len({location.path for location in locations}),
        "customers moved": done.moved,
        "customers skipped": done.skipped,
        "files written": done.files,
        "bytes read": done.bytes_read,
        "bytes written": done.bytes_written,
    }
    return MaterializeResult(metadata=metadata, check_results=[readable])


@asset(
    name=REFRESHED,
    partitions_def=buckets,
    group_name=GROUP,
    kinds={"polars"},
    deps=[
        reenriched_transactions,
        *(AssetDep(each.key, partition_mapping=AllPartitionMapping()) for each in report_assets),
    ],
)
@waits_for_storage()
def refreshed_reports(context: AssetExecutionContext, store: ResourceParam[Store]) -> MaterializeResult:
    """Refresh the bucket's reports that are stale, failed, of an older version, or old. A killed run can be resumed.

    Customers without a report get none here: the client requests the first one.
    """
    condition = is_stale(store.settings, datetime.now(UTC))
    counts = carry_out(store, Task.REFRESH, int(context.partition_key), condition, partial(refresh_all, store))
    return MaterializeResult(metadata=_counts(counts))


def refresh_all(store: Store, work: Work) -> Counts:
    """Refresh all reports of a batch of customers."""
    failed = {number for refreshed in refresh(store, work).values() for number in refreshed.failed}
    with store.db.writing() as w:
        batches.commit(w, work.token)
    return Counts(len(work.customers), len(work.customers) - len(failed), len(failed))


def _counts(counts: Counts) -> dict[str, int]:
    return {
        "customers": counts.customers,
        "customers changed": counts.changed,
        "customers failed": counts.failed,
        "customers left to a submission": counts.skipped,
    }


def _portfolio_table(report: Report) -> AssetsDefinition:
    """Define the asset of one kind's table."""
    name = REPORT_TABLE_OF[report.kind]

    @asset(
        name=name,
        description=f"The current {report.kind} report of every customer in the bucket that has one, as Parquet.",
        partitions_def=buckets,
        group_name=GROUP,
        kinds={"parquet"},
        deps=[refreshed_reports],
        code_version=str(report.version),
        metadata={"dagster/column_schema": describe_columns(tables.REPORT_COLUMNS[report.kind])},
        check_specs=checks.specs(name, checks.OF_PORTFOLIO_TABLES),
        freshness_policy=NIGHTLY,
    )
    @waits_for_storage()
    def table(context: AssetExecutionContext, store: ResourceParam[Store]) -> MaterializeResult:
        bucket = int(context.partition_key)
        with store.db.reading() as r:
            rows = tables.read_reports(r, report.kind, bucket)
        stored = tables.put(store, name, bucket, rows, datetime.now(UTC))
        metadata = {
            "dagster/row_count": rows.height,
            "customers": rows.height,
            "bytes": stored.size,
            "path in the lake": stored.path,
            **_by_day(rows),
        }
        return MaterializeResult(metadata=metadata, check_results=checks.results(rows, checks.OF_PORTFOLIO_TABLES))

    return table


@asset(
    name=tables.METRICS,
    partitions_def=buckets,
    group_name=GROUP,
    kinds={"polars", "parquet"},
    deps=[reenriched_transactions, AssetDep(enriched_transactions.key, partition_mapping=AllPartitionMapping())],
    code_version=str(metrics.VERSION),
    metadata={"dagster/column_schema": describe_columns(tables.METRIC_COLUMNS)},
    check_specs=checks.specs(tables.METRICS, checks.OF_METRICS),
    freshness_policy=NIGHTLY,
)
@waits_for_storage()
def metrics_portfolio(context: AssetExecutionContext, store: ResourceParam[Store]) -> MaterializeResult:
    """Compute every metric of the bucket's customers as of today, or why it is unavailable, as Parquet."""
    bucket, now = int(context.partition_key), datetime.now(UTC)
    as_of = now.astimezone(store.settings.zone).date()
    with store.db.reading() as r:
        locations = transactions.current_locations_in_bucket(r, bucket)
    good, damaged = transactions.separate_damaged(store.lake, locations)
    versions = {location.customer_number: location.data_version for location in good}
    failed: list[int] = []
    read = compute_by_slice(store.lake, good, partial(_readings, store, as_of, failed))
    readings = pl.concat([pl.DataFrame(schema=metrics.READINGS), *chain.from_iterable(read)])
    with store.db.reading() as r:
        rows = tables.combine_metrics(r, readings, versions, as_of)
    stored = tables.put(store, tables.METRICS, bucket, rows, now)
    metadata: dict[str, Any] = {
        "dagster/row_count": rows.height,
        "customers": len(versions) - len(failed),
        "customers failed": len(failed),
        "customers in damaged files": len(damaged),
        "bytes": stored.size,
        "path in the lake": stored.path,
    }
    return MaterializeResult(metadata=metadata, check_results=checks.results(rows, checks.OF_METRICS))


def _readings(store: Store, as_of: date, failed: list[int], rows: pl.DataFrame) -> Sequence[pl.DataFrame]:
    """Compute every metric of the rows' customers (READINGS). Customers for whom that fails are left out."""

    def compute(numbers: Sequence[int]) -> list[pl.DataFrame]:
        with store.db.reading() as r:
            known = context.read_for_metrics(r, numbers, store.settings.zone)
        return [metrics.readings(Facts(rows.filter(pl.col("customer_number").is_in(list(numbers))), as_of, known))]

    return isolate_failures(compute, rows["customer_number"].unique().sort().to_list(), failed)


@asset(group_name=GROUP, kinds={"polars"}, deps=[metrics_portfolio], freshness_policy=NIGHTLY)
@waits_for_storage()
def peer_percentiles(store: ResourceParam[Store]) -> MaterializeResult:
    """Measure the distribution of each metric over each client's customers, for comparisons in the risk report."""
    now = datetime.now(UTC)
    with store.db.reading() as r:
        current = [table for table in tables.find_current_tables(r) if table.name == tables.METRICS]
    spread = peers.compute_percentiles(store.lake, current)
    with store.db.writing() as w:
        peers.put(w, spread, now.astimezone(store.settings.zone).date())
    return MaterializeResult(metadata={"clients": spread["client_id"].n_unique(), "dagster/row_count": spread.height})


def _by_day(rows: pl.DataFrame) -> dict[str, Any]:
    counts = rows.group_by(pl.col("as_of").cast(pl.String)).len("reports").sort("as_of", descending=True)
    return plots.bars("computed on", counts, "as_of", "reports")


portfolio_tables = [_portfolio_table(report) for report in REPORTS.values()]
portfolio_assets = [
    reenriched_transactions,
    compacted_transactions,
    refreshed_reports,
    *portfolio_tables,
    metrics_portfolio,
    peer_percentiles,
]
