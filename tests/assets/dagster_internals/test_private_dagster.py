"""The private parts of Dagster that Tidemark uses have not changed.

When this fails after an upgrade, first check the file that is named beside the part.
"""

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dagster import DagsterInstance
from dagster._core.code_pointer import ModuleCodePointer
from dagster._core.definitions.reconstruct import ReconstructableRepository
from dagster._core.launcher import RunLauncher, WorkerStatus
from dagster._core.remote_origin import InProcessCodeLocationOrigin
from dagster._core.run_coordinator import QueuedRunCoordinator
from dagster._core.storage.base_storage import DagsterStorage
from dagster._core.storage.event_log.polling_event_watcher import SqlPollingEventWatcher
from dagster._core.storage.event_log.sql_event_log import SqlEventLogStorage
from dagster._core.storage.event_log.sqlite.consolidated_sqlite_event_log import ConsolidatedSqliteEventLogStorage
from dagster._core.storage.noop_compute_log_manager import NoOpComputeLogManager
from dagster._core.storage.runs.sqlite.sqlite_run_storage import SqliteRunStorage
from dagster._core.storage.schedules.sqlite.sqlite_schedule_storage import SqliteScheduleStorage
from dagster._core.storage.sql import (
    check_alembic_revision,
    get_alembic_config,
    run_alembic_upgrade,
    stamp_alembic_rev,
)
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._core.workspace.autodiscovery import loadable_targets_from_python_module
from dagster._core.workspace.context import WorkspaceProcessContext, WorkspaceRequestContext
from dagster._core.workspace.load_target import InProcessWorkspaceLoadTarget
from dagster._daemon.controller import DagsterDaemonController, create_daemons_from_instance
from dagster._grpc.impl import core_execute_run
from dagster._utils.interrupts import capture_interrupts, pop_captured_interrupt
from dagster_postgres.event_log import PostgresEventLogStorage
from dagster_postgres.run_storage import PostgresRunStorage
from dagster_postgres.schedule_storage import PostgresScheduleStorage
from dagster_webserver.graphql import GraphQLServer
from dagster_webserver.webserver import DagsterWebserver

WEB_SERVER = ["self", "statement_timeout", "pool_recycle", "max_overflow"]
USED: list[tuple[str, Callable[..., Any], list[str]]] = [
    ("dagster_storage", SqliteRunStorage.__init__, ["self", "conn_string"]),
    ("dagster_storage", SqliteRunStorage.connect, ["self"]),
    ("dagster_storage", SqliteRunStorage.migrate, ["self"]),
    ("dagster_storage", SqliteRunStorage.optimize, ["self"]),
    ("dagster_storage", SqliteScheduleStorage.__init__, ["self", "conn_string"]),
    ("dagster_storage", SqliteScheduleStorage.connect, ["self"]),
    ("dagster_storage", ConsolidatedSqliteEventLogStorage.__init__, ["self", "base_dir"]),
    ("dagster_storage", ConsolidatedSqliteEventLogStorage._connect, ["self"]),
    ("dagster_storage", ConsolidatedSqliteEventLogStorage._init_db, ["self"]),
    ("dagster_storage", ConsolidatedSqliteEventLogStorage.get_db_path, ["self"]),
    ("dagster_storage", ConsolidatedSqliteEventLogStorage.has_table, ["self", "table_name"]),
    ("dagster_storage", ConsolidatedSqliteEventLogStorage.watch, ["self", "run_id", "cursor", "callback"]),
    ("dagster_storage", ConsolidatedSqliteEventLogStorage.end_watch, ["self", "run_id", "handler"]),
    ("dagster_storage", SqlPollingEventWatcher.watch_run, ["self", "run_id", "cursor", "callback"]),
    ("dagster_storage", DagsterStorage.register_instance, ["self", "instance"]),
    ("dagster_storage", PostgresRunStorage.__init__, ["self", "postgres_url", "should_autocreate_tables"]),
    ("dagster_storage", PostgresRunStorage.optimize_for_webserver, WEB_SERVER),
    ("dagster_storage", PostgresScheduleStorage.__init__, ["self", "postgres_url", "should_autocreate_tables"]),
    ("dagster_storage", PostgresScheduleStorage.optimize_for_webserver, WEB_SERVER),
    ("dagster_storage", PostgresEventLogStorage.__init__, ["self", "postgres_url", "should_autocreate_tables"]),
    ("dagster_storage", PostgresEventLogStorage.optimize_for_webserver, WEB_SERVER),
    ("dagster_storage", PostgresEventLogStorage.dispose, ["self"]),
    ("dagster_storage", SqlEventLogStorage.store_event, ["self", "event"]),
    ("dagster_storage", run_alembic_upgrade, ["alembic_config", "conn"]),
    ("dagster_storage", check_alembic_revision, ["alembic_config", "conn"]),
    ("dagster_storage", get_alembic_config, ["dunder_file"]),
    ("dagster_storage", stamp_alembic_rev, ["alembic_config", "conn"]),
    ("coordinator", QueuedRunCoordinator.submit_run, ["self", "context"]),
    ("coordinator", DagsterInstance.add_run_tags, ["self", "run_id", "new_tags"]),
    ("coordinator", DagsterInstance.launch_run, ["self", "run_id", "workspace"]),
    ("dagster_home", NoOpComputeLogManager.__init__, ["self"]),
    ("launcher", RunLauncher.launch_run, ["self", "context"]),
    ("launcher", RunLauncher.terminate, ["self", "run_id"]),
    ("launcher", RunLauncher.check_run_worker_health, ["self", "run"]),
    ("launcher", DagsterInstance.report_run_canceling, ["self", "run"]),
    ("launcher", DagsterInstance.report_run_canceled, ["self", "dagster_run", "message"]),
    ("warm", core_execute_run, ["recon_job", "dagster_run", "instance", "inject_env_vars"]),
    ("warm", ReconstructableRepository.get_reconstructable_job, ["self", "name"]),
    ("warm", loadable_targets_from_python_module, ["module_name", "working_directory"]),
    ("warm", capture_interrupts, []),
    ("warm", pop_captured_interrupt, []),
    ("web_and_daemon", create_daemons_from_instance, ["instance"]),
    ("web_and_daemon", DagsterDaemonController.__init__, ["self", "workspace_process_context", "daemons"]),
    ("web_and_daemon", DagsterDaemonController.check_daemon_loop, ["self"]),
    ("web_and_daemon", WorkspaceProcessContext.__init__, ["self", "instance", "workspace_load_target", "version"]),
    ("web_and_daemon", WorkspaceProcessContext.create_request_context, ["self", "source"]),
    ("web_and_daemon", WorkspaceProcessContext._load_location, ["self", "origin", "reload"]),
    ("web_and_daemon", DagsterWebserver.__init__, ["self", "process_context"]),
    ("web_and_daemon", DagsterWebserver.build_graphql_middleware, ["self"]),
    ("web_and_daemon", DagsterWebserver.create_asgi_app, ["self"]),
]


def test_private_parts_of_dagster_still_have_the_parameters_that_we_pass(subtests: pytest.Subtests) -> None:
    for file, part, parameters in USED:
        with subtests.test(f"{file}: {part.__qualname__}"):
            taken = inspect.signature(part).parameters
            assert list(taken)[: len(parameters)] == parameters, f"see assets/{file}.py"
            others = [one for name, one in taken.items() if name not in parameters and one.default is one.empty]
            assert [one for one in others if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)] == []


def test_private_types_can_be_constructed_as_we_do() -> None:
    assert ModuleCodePointer("some.module", "definitions").module == "some.module"
    origin = InProcessCodeLocationOrigin(LoadableTargetOrigin(module_name="some.module"), location_name="tidemark")
    assert InProcessWorkspaceLoadTarget(origin).create_origins() == [origin]


def test_a_request_context_has_a_read_only_flag() -> None:
    """The workspace sets it for readers."""
    assert "self._read_only = read_only" in inspect.getsource(WorkspaceRequestContext.__init__)
    assert "get_user_permissions(self._read_only)" in inspect.getsource(WorkspaceRequestContext)


def test_the_web_server_decides_by_the_headers_that_the_gate_checks() -> None:
    """The gate forwards GraphQL by GET only for the HTML page, and by POST only as JSON."""
    source = inspect.getsource(GraphQLServer.graphql_http_endpoint)
    assert 'if "text/html" in request.headers.get("Accept", "")' in source
    assert 'if "application/json" in content_type:\n' in source
    assert "data = await request.json()" in source


def test_a_query_runs_with_our_middleware() -> None:
    """The middleware limits the cost of a reader's query."""
    assert "middleware=self._graphql_middleware" in inspect.getsource(GraphQLServer.gen_graphql_response)


def test_a_run_that_its_worker_does_not_hold_counts_as_lost() -> None:
    """Monitoring fails a run whose health is neither of these two; the launcher relies on it."""
    from dagster._daemon.monitoring import run_monitoring  # noqa: PLC0415  # only this test reads its source

    source = inspect.getsource(run_monitoring.monitor_started_run)
    assert "not in [WorkerStatus.RUNNING, WorkerStatus.SUCCESS]" in source
    assert WorkerStatus.NOT_FOUND not in (WorkerStatus.RUNNING, WorkerStatus.SUCCESS)


def test_the_stock_postgresql_storages_use_the_engine_that_we_set() -> None:
    """They read this attribute for every connection."""
    for storage in (PostgresRunStorage.connect, PostgresScheduleStorage.connect, PostgresEventLogStorage._connect):
        assert "create_pg_connection(self._engine)" in inspect.getsource(storage)


def test_the_queue_requeues_a_run_that_no_worker_took() -> None:
    """It does so only for this class of error, which the launcher raises for runs of the portfolio."""
    from dagster._daemon.run_coordinator import queued_run_coordinator_daemon  # noqa: PLC0415  # only read here

    source = inspect.getsource(queued_run_coordinator_daemon.QueuedRunCoordinatorDaemon._dequeue_run)
    assert "e, (DagsterUserCodeUnreachableError, DagsterCodeLocationLoadError)" in source


def test_private_modules_are_used_in_one_folder() -> None:
    used_in = {
        file.parent.as_posix()
        for layer in ("api", "assets", "storage")
        for file in Path(layer).rglob("*.py")
        if re.search(r"^(?:from|import) dagster\w*(?:\.\w+)*\._", file.read_text(), re.MULTILINE)
    }
    assert used_in == {"assets/dagster_internals"}
