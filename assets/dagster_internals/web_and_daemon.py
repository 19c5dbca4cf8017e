"""Dagster's web server, daemon and code location in one process, because three would take three times the memory.

They share one instance and one view of the code location. When a daemon's thread dies, the process ends, and its parent
starts it again.
"""

import argparse
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import dagster
import uvicorn
from dagster import DagsterInstance
from dagster._core.remote_origin import CodeLocationOrigin, InProcessCodeLocationOrigin
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._core.workspace.context import WorkspaceProcessContext, WorkspaceRequestContext
from dagster._core.workspace.load_target import InProcessWorkspaceLoadTarget
from dagster._core.workspace.workspace import CodeLocationEntry
from dagster._daemon.controller import DagsterDaemonController, create_daemons_from_instance
from dagster_postgres.utils import DagsterPostgresException
from dagster_webserver.webserver import DagsterWebserver
from graphql import GraphQLError, GraphQLResolveInfo
from sqlalchemy.exc import SQLAlchemyError

from assets.access.gate import Gate, allowed_hosts, role_of
from assets.access.gate_connections import SERVER
from assets.access.gate_tokens import Role, tokens
from assets.core.processes import end_with_parent
from assets.core.runs import CODE_LOCATION
from storage.core import logs
from storage.core.heartbeat import watched_loop
from storage.core.settings import Settings

log = logging.getLogger("dagster.daemon")

# Of a reader's query. So many take two seconds, and Dagster's largest pages need a tenth of them. Our judgement.
MAX_FIELDS = 100_000
QUERY_WITHIN_S = 20.0  # for a reader's query; then its remaining fields are refused. Our judgement


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m assets.dagster_internals.web_and_daemon", description=__doc__)
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--module", required=True, help="the code location")
    options = parser.parse_args()
    end_with_parent()
    settings = Settings()
    logs.log_to_stderr("dagster", settings)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # an orderly end, without a warning from Dagster
    with (
        suppress(KeyboardInterrupt),
        DagsterInstance.get() as instance,
        _workspace(instance, options.module) as workspace,
        daemons(instance, workspace),
    ):
        serve(gate_application(workspace, options.host, settings), options.host, options.port)


class Workspace(WorkspaceProcessContext):
    """Dagster's workspace, except that it loads the code location only once, and that its pages show readers no buttons
    whose requests the gate would refuse.
    """

    def _load_location(self, origin: CodeLocationOrigin, reload: bool) -> CodeLocationEntry:
        """Return the code location. Dagster's daemon asks for it again every minute, but it can't change.

        Raises:
            SystemExit: it can't be loaded. The parent starts this process again.
        """
        if loaded := self.get_current_workspace().code_location_entries.get(origin.location_name):
            return loaded
        entry = super()._load_location(origin, reload=False)
        if entry.load_error:
            raise SystemExit(f"Dagster's code location could not be loaded: {entry.load_error.to_string()}")
        return entry

    def create_request_context(self, source: object | None = None) -> WorkspaceRequestContext:
        context = super().create_request_context(source)
        context._read_only = role_of(source) is Role.READER
        context.query_cost = QueryCost()  # pyrefly: ignore[missing-attribute]  # for `limit_readers`
        return context


class QueryCost:
    """What a query has cost so far."""

    def __init__(self) -> None:
        self.fields = 0
        self.began_at = time.monotonic()

    @property
    def is_too_high(self) -> bool:
        return self.fields > MAX_FIELDS or time.monotonic() - self.began_at > QUERY_WITHIN_S


def limit_readers(
    resolve: Callable[..., object], root: object, info: GraphQLResolveInfo, **arguments: object
) -> object:
    """Resolve a field, unless a reader's query has already cost too much.

    Dagster's types refer to each other (a job's repository has jobs), so 200 bytes can ask for gigabytes. The cost of
    a query depends on the data, so it is counted while the query runs.

    Raises:
        GraphQLError: a reader's query has cost too much; this field and all later ones are refused.
    """
    context = info.context
    context.query_cost.fields += 1
    if context._read_only and context.query_cost.is_too_high:
        raise GraphQLError("This query costs more than a reader's query may.")
    return resolve(root, info, **arguments)


class WebServer(DagsterWebserver):
    """Dagster's web server, with limits on readers' queries."""

    def build_graphql_middleware(self) -> list[Callable[..., object]]:
        return [limit_readers]


def _workspace(instance: DagsterInstance, module: str) -> Workspace:
    origin = InProcessCodeLocationOrigin(LoadableTargetOrigin(module_name=module), location_name=CODE_LOCATION)
    return Workspace(instance, InProcessWorkspaceLoadTarget(origin), version=dagster.__version__)


@contextmanager
def daemons(instance: DagsterInstance, workspace: WorkspaceProcessContext) -> Iterator[None]:
    """Run all daemons that the instance needs in threads, until the end of the block."""
    with ExitStack() as stack:
        entered = [stack.enter_context(daemon) for daemon in create_daemons_from_instance(instance)]
        controller = stack.enter_context(DagsterDaemonController(workspace, entered))
        threading.Thread(target=_watch, args=(controller,), name="daemon watch", daemon=True).start()
        yield


def _watch(controller: DagsterDaemonController) -> None:
    """End the process when a daemon has ended. An unavailable database ends no daemon: they retry by themselves."""
    while True:
        try:
            controller.check_daemon_loop()
        except (SQLAlchemyError, DagsterPostgresException) as error:
            log.warning("the daemons' heartbeats could not be read: %s", type(error).__name__)
        except Exception:
            log.exception("a daemon ended; ending the process")
            os.kill(os.getpid(), signal.SIGTERM)
            return


def gate_application(workspace: WorkspaceProcessContext, host: str, settings: Settings) -> Gate:
    """Return the web server's application behind the gate."""
    app = WebServer(workspace).create_asgi_app()
    return Gate(app, tokens(settings), allowed_hosts(host, settings.dagster_hosts))


def serve(app: Gate, host: str, port: int) -> None:
    with watched_loop("event loop") as report_round:

        async def note_round() -> None:  # uvicorn awaits its callback
            report_round()

        uvicorn.Server(uvicorn.Config(app, host=host, port=port, callback_notify=note_round, **SERVER)).run()


if __name__ == "__main__":
    main()
