"""Dagster's daemons survive an unavailable database, and their process ends when one of them has died, or when the code
location can't be loaded. The cost of a reader's query is limited.
"""

import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from dagster import DagsterInstance
from dagster._daemon.controller import DagsterDaemonController
from dagster_postgres.utils import DagsterPostgresException
from graphql import build_schema, execute, parse
from graphql.execution import ExecutionResult
from sqlalchemy.exc import OperationalError

from assets.core.runs import CODE_LOCATION
from assets.dagster_internals import web_and_daemon
from assets.dagster_internals.web_and_daemon import QueryCost, limit_readers


def test_only_a_dead_daemon_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[Exception] = [
        OperationalError("SELECT", {}, Exception("away")),
        DagsterPostgresException("too many retries for DB connection"),
        RuntimeError("a thread died"),
    ]
    reported: list[tuple[int, int]] = []

    class Controller:
        def check_daemon_loop(self) -> None:
            raise events.pop(0)

    monkeypatch.setattr(os, "kill", lambda *call: reported.append(call))
    web_and_daemon._watch(cast("DagsterDaemonController", Controller()))
    assert not events
    assert reported == [(os.getpid(), signal.SIGTERM)]


def test_the_code_location_is_loaded_once_however_often_dagster_asks(tmp_path: Path) -> None:
    instance = DagsterInstance.local_temp(str(tmp_path))
    with instance, web_and_daemon._workspace(instance, "tests.assets.trivial_location") as workspace:
        first = workspace.get_current_workspace().code_location_entries
        for ask_again in (workspace.refresh_workspace, workspace.reload_workspace):
            ask_again()
            assert workspace.get_current_workspace().code_location_entries == first
        workspace.reload_code_location(CODE_LOCATION)
        assert workspace.get_current_workspace().code_location_entries == first
        assert first[CODE_LOCATION].code_location


@pytest.mark.filterwarnings("ignore:Error loading repository location")
def test_a_code_location_that_can_not_be_loaded_ends_the_process(tmp_path: Path) -> None:
    with DagsterInstance.local_temp(str(tmp_path)) as instance, pytest.raises(SystemExit, match="no_such_module"):
        web_and_daemon._workspace(instance, "tests.assets.no_such_module")


SCHEMA = build_schema("type Query { jobs: [Job!] } type Job { name: String repository: Query }")
JOBS = {"jobs": lambda _: [{"name": str(number), "repository": JOBS} for number in range(12)]}


def run_query(depth: int, *, reader: bool) -> tuple[ExecutionResult, QueryCost]:
    """Ask for all jobs of the repository of each job, and so on."""
    context = SimpleNamespace(_read_only=reader, query_cost=QueryCost())
    query = "{ jobs { name repository " * depth + "{ jobs { name } }" + "} }" * depth
    result = execute(SCHEMA, parse(query), JOBS, context, middleware=[limit_readers])
    assert isinstance(result, ExecutionResult)
    return result, context.query_cost


def test_a_readers_query_that_costs_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_and_daemon, "MAX_FIELDS", 1_000)
    assert run_query(1, reader=True)[0].errors is None
    deep, cost = run_query(5, reader=True)  # three million names
    assert {error.message for error in deep.errors or []} == {"This query costs more than a reader's query may."}
    assert cost.fields < 1_200
    assert run_query(3, reader=False)[0].errors is None


def test_the_time_of_a_readers_query_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_and_daemon, "QUERY_WITHIN_S", 0.0)
    assert run_query(1, reader=True)[0].errors
    assert run_query(1, reader=False)[0].errors is None
