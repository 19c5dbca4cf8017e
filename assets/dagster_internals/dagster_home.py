"""The folder that Dagster keeps its records in, and the settings that make it fast here.

Batches' runs go straight to the launcher; runs of the portfolio wait in a queue, one executes at a time, and one that
its process lost is tried again. A run that its worker lost is noticed within seconds; ticks run in
threads so that a slow one doesn't hold up the others; standard output is not captured, for runs say what they did in
metadata.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from uuid import uuid4

import yaml
from sqlalchemy import make_url

from assets.core.runs import QUEUE_TAG
from storage.core import durable, leases
from storage.core.models import Queue
from storage.core.settings import Settings

NOTICE_LOST_RUNS_EVERY_S = 2
START_TIMEOUT_S = 180
CANCEL_TIMEOUT_S = 30
LONGEST_RUN_S = 3_600
DEQUEUE_EVERY_S = 1
WORKER_AWAY_S = 30  # until the portfolio's queue tries again
FOR_EVER = 10**9
EVENTS_AT_ONCE = 1_000  # of a step with many partitions
IDENTITY_CHARACTERS = 16
DATABASE_VARIABLE = "TIDEMARK_DATABASE_URL"
KEEP_TICKS_DAYS = {"skipped": 1, "success": 7, "failure": 30}


def prepare(settings: Settings) -> Mapping[str, str]:
    """Write `dagster.yaml` into the home; what Dagster's processes need in their environment."""
    home = settings.prepared().dagster_home
    durable.make_folder(home)
    content = yaml.safe_dump(instance_settings(settings), sort_keys=False)
    durable.replace(home / "dagster.yaml", content.encode())  # another part of Tidemark may read it right now
    return {
        "DAGSTER_HOME": str(home),
        "DAGSTER_DISABLE_TELEMETRY": "1",
        "DAGSTER_EVENT_BATCH_SIZE": str(EVENTS_AT_ONCE),
        DATABASE_VARIABLE: settings.database,
    }


def workers(settings: Settings) -> str:
    """The role (a family of leases) of this home's workers, the only ones that its launcher reaches."""
    identity = settings.dagster_home / "identity"
    if not identity.exists():
        durable.make_folder(settings.dagster_home)
        with suppress(FileExistsError):  # another process was first
            durable.create(identity, uuid4().hex[:IDENTITY_CHARACTERS].encode())
    return f"{leases.WORKER}/{identity.read_text()}"


def instance_settings(settings: Settings) -> dict[str, Any]:
    """The content of `dagster.yaml`. It holds no password: Dagster's processes find that in their environment."""
    home = settings.dagster_home
    return {
        "storage": {"custom": {"module": "assets.dagster_internals.dagster_storage", **_storage(settings)}},
        "run_coordinator": {
            "module": "assets.dagster_internals.coordinator",
            "class": "PortfolioQueue",
            "config": {
                "max_concurrent_runs": -1,
                "tag_concurrency_limits": [{"key": QUEUE_TAG, "value": Queue.PORTFOLIO.value, "limit": 1}],
                "dequeue_interval_seconds": DEQUEUE_EVERY_S,
                "max_user_code_failure_retries": FOR_EVER,
                "user_code_failure_retry_delay": WORKER_AWAY_S,
            },
        },
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
            "max_runtime_seconds": LONGEST_RUN_S,
            "max_resume_run_attempts": 0,
        },
        "python_logs": {"python_log_level": "CRITICAL"},  # what is printed; events are recorded whatever their level
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
