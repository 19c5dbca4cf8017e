"""Dagster's home folder, and the settings that make Dagster fast.

Runs of batches go straight to the launcher. Runs of the portfolio wait in a queue, execute a few at a time and are
retried if their process is lost. The loss of a run's worker is noticed within seconds. Ticks run in threads, so that a
slow one doesn't delay the others. Standard output is not captured: runs report in metadata what they did.
"""

from collections.abc import Mapping
from typing import Any

import yaml
from sqlalchemy import make_url

from storage.core import durable, homes, leases
from storage.core.settings import Settings

NOTICE_LOST_RUNS_EVERY_S = 2
START_TIMEOUT_S = 180
CANCEL_TIMEOUT_S = 30
MAX_RUNTIME_S = 3_600  # of runs outside the portfolio: our judgement; for the others see `coordinator.TAGS`
DEQUEUE_EVERY_S = 1
RETRY_LAUNCH_AFTER_S = 30  # when no worker took a run from the queue
UNLIMITED = 10**9
EVENTS_AT_ONCE = 1_000  # how many events a step with many partitions writes in one statement
DATABASE_VARIABLE = "TIDEMARK_DATABASE_URL"
KEEP_TICKS_DAYS = {"skipped": 1, "success": 7, "failure": 30}


def prepare(settings: Settings) -> Mapping[str, str]:
    """Write `dagster.yaml` into the home, and return the environment variables that Dagster's processes need."""
    home = settings.prepare().dagster_home
    durable.make_folder(home)
    content = yaml.safe_dump(instance_settings(settings), sort_keys=False)
    durable.replace(home / "dagster.yaml", content.encode())  # atomically: another part of Tidemark may be reading it
    return {
        "DAGSTER_HOME": str(home),
        "DAGSTER_DISABLE_TELEMETRY": "1",
        "DAGSTER_EVENT_BATCH_SIZE": str(EVENTS_AT_ONCE),
        DATABASE_VARIABLE: settings.database,
    }


def worker_role(settings: Settings) -> str:
    """Return the family of the leases of all workers to which this home's launcher sends runs.

    With a broker it is the fleet's, otherwise this home's own.
    """
    if settings.broker_url:
        return leases.FLEET
    return f"{leases.WORKER}/{homes.identity(settings)}"


def instance_settings(settings: Settings) -> dict[str, Any]:
    """Return the content of `dagster.yaml`. It holds no password: Dagster's processes get that in their environment."""
    home = settings.dagster_home
    return {
        "storage": {"custom": {"module": "assets.dagster_internals.dagster_storage", **_storage(settings)}},
        "run_coordinator": {
            "module": "assets.dagster_internals.coordinator",
            "class": "PortfolioQueue",
            "config": {
                "max_concurrent_runs": -1,  # `coordinator` limits those of the portfolio
                "dequeue_interval_seconds": DEQUEUE_EVERY_S,
                # The launcher reports "no worker took the run" as a failure of user code. With unlimited retries, the
                # run stays in the queue.
                "max_user_code_failure_retries": UNLIMITED,
                "user_code_failure_retry_delay": RETRY_LAUNCH_AFTER_S,
            },
        },
        # By default none; `coordinator.TAGS` allows more for runs of the portfolio.
        "run_retries": {"enabled": True, "max_retries": 0, "retry_on_asset_or_op_failure": False},
        "freshness": {"enabled": True},
        "run_launcher": {
            "module": "assets.dagster_internals.launcher",
            "class": "WarmWorkerLauncher",
            "config": {"home": str(home)},
        },
        "compute_logs": {
            "module": "dagster._core.storage.noop_compute_log_manager",
            "class": "NoOpComputeLogManager",
        },
        "run_monitoring": {
            "enabled": True,
            "poll_interval_seconds": NOTICE_LOST_RUNS_EVERY_S,
            "start_timeout_seconds": START_TIMEOUT_S,
            "cancel_timeout_seconds": CANCEL_TIMEOUT_S,
            "max_runtime_seconds": MAX_RUNTIME_S,
            "max_resume_run_attempts": 0,
        },
        "python_logs": {"python_log_level": "CRITICAL"},  # for printing only; events of every level are recorded
        "sensors": {"use_threads": True, "num_workers": 4},
        "schedules": {"use_threads": True, "num_workers": 2},
        "retention": {"sensor": {"purge_after_days": KEEP_TICKS_DAYS}},
        "telemetry": {"enabled": False},
        "nux": {"enabled": False},
    }


def _storage(settings: Settings) -> dict[str, Any]:
    if make_url(settings.database).get_backend_name() == "sqlite":
        return {"class": "PooledSqliteStorage", "config": {"base_dir": str(settings.dagster_home)}}
    return {"class": "PooledPostgresStorage", "config": {"url": {"env": DATABASE_VARIABLE}}}
