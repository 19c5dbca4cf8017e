"""Schedules in the service's time zone, nightly or weekly: for reports, rulesets, and the lake's maintenance.

Each schedule starts a job in the portfolio's queue: one run for each bucket with work to do, or one in all. They are on
unless `TIDEMARK_SCHEDULES=off`; either way each can be switched in Dagster's pages. No schedule starts between two and
three in the morning, because daylight saving skips or repeats that hour.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from dagster import (
    DagsterInstance,
    DagsterRunStatus,
    DefaultScheduleStatus,
    DefaultSensorStatus,
    Failure,
    OpExecutionContext,
    ResourceParam,
    RunRequest,
    RunsFilter,
    ScheduleDefinition,
    SensorEvaluationContext,
    SkipReason,
    define_asset_job,
    job,
    op,
    schedule,
    sensor,
)

from assets.core.runs import MONITORED, ON_REQUEST_TAG, PARTITION_TAG, QUEUE_TAG
from assets.core.waiting import waits_for_storage
from assets.dispatch.sensors import EVERY_S
from assets.portfolio.monitoring import is_watched, monitored_customers
from assets.portfolio.tables import (
    compacted_transactions,
    is_due,
    metrics_portfolio,
    peer_percentiles,
    portfolio_tables,
    reenriched_transactions,
    refreshed_reports,
)
from assets.sandbox.feed import sandbox_feed
from storage.core.models import Queue
from storage.core.settings import Environment, Settings
from storage.core.store import Store
from storage.monitoring import evaluation_requests
from storage.operations import integrity, retention
from storage.portfolio import maintenance

IN_PORTFOLIO_QUEUE = {QUEUE_TAG: Queue.PORTFOLIO.value}
FINISHED = [DagsterRunStatus.SUCCESS, DagsterRunStatus.FAILURE, DagsterRunStatus.CANCELED]
RUNS_AT_ONCE = 100
GIVEN_UP_AFTER = timedelta(hours=1)  # then a requested ruleset evaluation gets another run; our judgement
# Our judgement. No other run of the portfolio starts during a check; the next check continues where this one stopped.
LONGEST_CHECK_S = 3_000

refresh_portfolio = define_asset_job(
    "refresh_portfolio",
    [refreshed_reports, *portfolio_tables, metrics_portfolio],
    tags=IN_PORTFOLIO_QUEUE,
    description="Refresh a bucket's stale and old reports, and write its tables of reports and metrics.",
)
backfill = define_asset_job(
    "backfill",
    [reenriched_transactions],
    tags=IN_PORTFOLIO_QUEUE,
    description="Enrich a bucket's customers again under the current version of the enrichment.",
)
compact_portfolio = define_asset_job(
    "compact_portfolio",
    [compacted_transactions],
    tags=IN_PORTFOLIO_QUEUE,
    description="Rewrite a bucket's transactions into few, well-filled files.",
)
evaluate_rulesets = define_asset_job(
    "evaluate_rulesets",
    [monitored_customers],
    tags=IN_PORTFOLIO_QUEUE,
    description="Apply the clients' monitoring rulesets to a bucket's customers.",
)
measure_peers = define_asset_job(
    "measure_peers",
    [peer_percentiles],
    tags=IN_PORTFOLIO_QUEUE,
    description="Measure the distribution of each metric over each client's customers.",
)


@op
@waits_for_storage()
def sweep_lake(context: OpExecutionContext, store: ResourceParam[Store]) -> None:
    """Remove what is older than the retention time: replaced versions, unreferenced files, Dagster's old runs."""
    swept = retention.sweep(store, lambda: datetime.now(UTC))
    runs = forget_runs(context.instance, datetime.now(UTC) - store.settings.retention)
    context.add_output_metadata({**vars(swept), "runs of Dagster": runs})


@job(tags=IN_PORTFOLIO_QUEUE)
def retention_sweep() -> None:
    """Remove what is older than the retention time."""
    sweep_lake()


def forget_runs(instance: DagsterInstance, before: datetime) -> int:
    """Delete Dagster's records of finished runs that were created before a time; return their number."""
    forgotten = 0
    old = RunsFilter(statuses=FINISHED, created_before=before)
    while records := instance.get_run_records(old, limit=RUNS_AT_ONCE):
        for record in records:
            instance.delete_run(record.dagster_run.run_id)
        forgotten += len(records)
    return forgotten


@op
@waits_for_storage()
def check_files(context: OpExecutionContext, store: ResourceParam[Store]) -> None:
    """Read every file that the database refers to, and compare its SHA-256 with the recorded one."""
    checked = integrity.check(
        store,
        lambda: datetime.now(UTC),
        bytes_per_s=store.settings.integrity_bytes_per_s,
        stop_after_s=LONGEST_CHECK_S,
    )
    metadata = {
        "files": checked.files,
        "bytes": checked.bytes,
        "damaged files": len(checked.damages),
        "all files seen": checked.complete,
    }
    if checked.damages:
        raise Failure("Files are damaged: `tidemark doctor` lists them and says what to do.", metadata=metadata)
    context.add_output_metadata(metadata)


@job(tags=IN_PORTFOLIO_QUEUE)
def integrity_check() -> None:
    """Find files that are missing or damaged."""
    check_files()


def weekly_backfill(store: ResourceParam[Store]) -> list[RunRequest] | SkipReason:
    """Request a run for each bucket with customers that were last enriched by an older version of the enrichment."""
    with store.db.reading() as r:
        due = maintenance.find_buckets_due(r, is_due())
    return _runs(due) or SkipReason("Every customer has the current version of the enrichment.")


def nightly_refresh(store: ResourceParam[Store]) -> list[RunRequest] | SkipReason:
    """Request a run for each bucket with transactions: its tables are rewritten even if no report was stale."""
    return _request_all_with_transactions(store)


def nightly_compaction(store: ResourceParam[Store]) -> list[RunRequest] | SkipReason:
    """Request a run for each bucket with transactions."""
    return _request_all_with_transactions(store)


def _request_all_with_transactions(store: Store) -> list[RunRequest] | SkipReason:
    with store.db.reading() as r:
        due = maintenance.find_buckets_due(r, maintenance.has_transactions())
    return _runs(due) or SkipReason("There are no transactions yet.")


def nightly_ruleset_evaluation(store: ResourceParam[Store]) -> list[RunRequest] | SkipReason:
    """Request a run for each bucket with customers that a ruleset watches."""
    with store.db.reading() as r:
        due = maintenance.find_buckets_due(r, is_watched())
    return _runs(due) or SkipReason("No ruleset watches any customer.")


@sensor(
    job=backfill,
    minimum_interval_seconds=EVERY_S,
    default_status=DefaultSensorStatus.RUNNING,
    description="Starts the runs that `tidemark backfill` requested.",
)
def requested_backfills_sensor(store: ResourceParam[Store]) -> list[RunRequest] | SkipReason:
    """Request each run at every tick until it has begun. Because of the run key, Dagster starts it only once."""
    with store.db.reading() as r:
        waiting = maintenance.find_waiting(r, maintenance.Task.BACKFILL)
    return [
        RunRequest(run_key=f"backfill {each.bucket:02d} {each.requested_at}", partition_key=f"{each.bucket:02d}")
        for each in waiting
    ] or SkipReason("There are no requests.")


@sensor(
    job=evaluate_rulesets,
    minimum_interval_seconds=EVERY_S,
    default_status=DefaultSensorStatus.RUNNING,
    description="Starts the ruleset evaluations that are needed because a ruleset or an attribute changed. Each bucket "
    "has one run at a time.",
)
def requested_ruleset_evaluations_sensor(
    context: SensorEvaluationContext, store: ResourceParam[Store]
) -> list[RunRequest] | SkipReason:
    """Request a run for each bucket at every tick until its requests are answered.

    Because of the run key, Dagster starts only one run. The key changes if there are newer requests, and after
    GIVEN_UP_AFTER, because the run may have failed or been lost.
    """
    with store.db.reading() as r:
        waiting = evaluation_requests.find_waiting(r)
    under_way = _evaluations_under_way(context.instance) if waiting else frozenset()
    runs = [_evaluation_run(each, datetime.now(UTC)) for each in waiting if f"{each.bucket:02d}" not in under_way]
    return runs or SkipReason("There are no requests without a run.")


def _evaluations_under_way(instance: DagsterInstance) -> frozenset[str]:
    """Return the partitions with a ruleset evaluation that is waiting or running.

    Requests that come too late for it get another run afterwards.
    """
    unfinished = [status for status in DagsterRunStatus if status not in FINISHED]
    runs = instance.get_runs(RunsFilter(job_name=evaluate_rulesets.name, statuses=unfinished))
    return frozenset(run.tags[PARTITION_TAG] for run in runs if PARTITION_TAG in run.tags)


def _evaluation_run(waiting: evaluation_requests.WaitingRequests, now: datetime) -> RunRequest:
    attempt = (now - waiting.since) // GIVEN_UP_AFTER
    key = f"{MONITORED} {waiting.bucket:02d} {waiting.newest} {attempt}"
    return RunRequest(run_key=key, partition_key=f"{waiting.bucket:02d}", tags={ON_REQUEST_TAG: "ruleset_evaluation"})


def _runs(buckets: Iterable[int]) -> list[RunRequest]:
    return [RunRequest(partition_key=f"{bucket:02d}") for bucket in buckets]


# Schedules with a run for each bucket that is due: the function that requests the runs, cron, the job, the description.
BY_BUCKET = (
    (
        weekly_backfill,
        "30 0 * * 0",
        backfill,
        "Sundays: enrich again all customers that were last enriched by an older version of the enrichment.",
    ),
    (
        nightly_ruleset_evaluation,
        "15 0 * * *",
        evaluate_rulesets,
        "Every night: evaluate all customers that a ruleset watches, because conditions change with time.",
    ),
    (
        nightly_refresh,
        "30 1 * * *",
        refresh_portfolio,
        "Every night: refresh stale and old reports, and write the tables of reports and metrics.",
    ),
    (
        nightly_compaction,
        "0 4 * * *",
        compact_portfolio,
        "Every night: rewrite scattered transactions into few, well-filled files, if that saves enough.",
    ),
)
# Schedules with one run: the name, cron, the job, the description.
WHOLE = (
    (
        "nightly_peers",
        "30 3 * * *",
        measure_peers,
        "Every night: measure the distribution of each metric over each client's customers, for the risk report.",
    ),
    (
        "nightly_retention",
        "0 5 * * *",
        retention_sweep,
        "Every night: remove what is older than the retention time.",
    ),
    (
        "weekly_integrity",
        "0 6 * * 6",
        integrity_check,
        "Saturdays: find files that are missing or damaged.",
    ),
)
asset_jobs = [refresh_portfolio, evaluate_rulesets, measure_peers, backfill, compact_portfolio]
lake_jobs = [retention_sweep, integrity_check]
sandbox_jobs = [sandbox_feed]

SANDBOX_ONLY = (
    (
        "nightly_feed",
        "5 0 * * *",
        sandbox_feed,
        "Every night: submit the past day's transactions of the customers that the sandbox made.",
    ),
)


def schedules_for(settings: Settings) -> list[ScheduleDefinition]:
    """Define every schedule in the service's time zone, on unless the settings switch schedules off."""
    whole = WHOLE + SANDBOX_ONLY if settings.environment is Environment.SANDBOX else WHOLE
    status = DefaultScheduleStatus.RUNNING if settings.schedules else DefaultScheduleStatus.STOPPED
    return [
        schedule(
            cron_schedule=cron,
            job=scheduled_job,
            execution_timezone=settings.timezone,
            default_status=status,
            description=description,
        )(buckets_due)
        for buckets_due, cron, scheduled_job, description in BY_BUCKET
    ] + [
        ScheduleDefinition(
            name=name,
            cron_schedule=cron,
            job=scheduled_job,
            execution_timezone=settings.timezone,
            default_status=status,
            description=description,
        )
        for name, cron, scheduled_job, description in whole
    ]
