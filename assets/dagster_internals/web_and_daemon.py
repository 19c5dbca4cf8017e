"""Dagster's web server and daemon in one process, which takes half the memory of two.

They share one instance and one view of the code location. When a daemon's thread dies, the process ends, and its parent
starts it again.
"""

import argparse
import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import dagster
import uvicorn
from dagster import DagsterInstance
from dagster._core.workspace.context import WorkspaceProcessContext, WorkspaceRequestContext
from dagster._core.workspace.load_target import GrpcServerTarget
from dagster._daemon.controller import DagsterDaemonController, create_daemons_from_instance
from dagster._grpc.client import DagsterGrpcClient
from dagster_postgres.utils import DagsterPostgresException
from dagster_webserver.app import create_app_from_workspace_process_context
from sqlalchemy.exc import SQLAlchemyError

from assets.access.gate import Gate, allowed_hosts, role_of
from assets.access.gate_connections import Connection
from assets.access.gate_tokens import Role, tokens
from assets.core.processes import end_with_parent
from assets.core.runs import CODE_LOCATION
from storage.core import logs
from storage.core.settings import Settings

log = logging.getLogger("dagster.daemon")

CODE_SERVER_WITHIN_S = 120.0
SERVER: dict[str, Any] = {
    "http": Connection,
    "ws_max_size": 64 * 1024,  # bytes of a message: parsing a subscription blocks all other requests
    "log_config": None,
    "log_level": "warning",
    "timeout_graceful_shutdown": 2,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m assets.dagster_internals.web_and_daemon", description=__doc__)
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--code-server", required=True, help="the code server's Unix socket")
    options = parser.parse_args()
    end_with_parent()
    settings = Settings()
    logs.to_stderr("dagster", settings)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # an orderly end, without a warning from Dagster
    wait_for_code_server(options.code_server)
    with (
        suppress(KeyboardInterrupt),
        DagsterInstance.get() as instance,
        _workspace(instance, options.code_server) as workspace,
        daemons(instance, workspace),
    ):
        serve(gate_application(workspace, options.host, settings), options.host, options.port)


def wait_for_code_server(socket: str) -> None:
    """Wait until the code server answers, at most two minutes: then the web server shows what is wrong."""
    client = DagsterGrpcClient(socket=socket)
    deadline = time.monotonic() + CODE_SERVER_WITHIN_S
    while time.monotonic() < deadline:
        try:
            client.ping("")
        except dagster.DagsterError:
            time.sleep(0.1)
        else:
            return


class Workspace(WorkspaceProcessContext):
    """Dagster's workspace, except that its pages show readers no buttons whose requests the gate would refuse."""

    def create_request_context(self, source: object | None = None) -> WorkspaceRequestContext:
        context = super().create_request_context(source)
        context._read_only = role_of(source) is Role.READER
        return context


def _workspace(instance: DagsterInstance, socket: str) -> Workspace:
    target = GrpcServerTarget(host="localhost", port=None, socket=socket, location_name=CODE_LOCATION)
    return Workspace(instance, target, version=dagster.__version__)


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
    app = create_app_from_workspace_process_context(workspace)
    return Gate(app, tokens(settings), allowed_hosts(host, settings.dagster_hosts))


def serve(app: Gate, host: str, port: int) -> None:
    uvicorn.run(app, host=host, port=port, **SERVER)


if __name__ == "__main__":
    main()
