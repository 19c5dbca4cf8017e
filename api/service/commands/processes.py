"""Commands that start Tidemark: everything in one process tree, or one part of it.

The worker and Dagster are started by module name: importing Dagster would cost the API a second and 65 MB.
"""

import os
import signal
import socket
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from api.core.commands.console import err
from storage.core import heartbeat
from storage.core.settings import Settings

if TYPE_CHECKING:
    from storage.core.store import Store

Host = Annotated[str, typer.Option(help="Address to listen on.")]
Port = Annotated[int, typer.Option(help="Port to listen on; 0 for any free one.")]
DagsterPort = Annotated[int, typer.Option(help="Port of Dagster's pages; 0 for any free one.")]
NoDagsterUi = Annotated[bool, typer.Option("--no-dagster-ui", help="Do not serve Dagster's pages.")]
Processes = Annotated[int, typer.Option(min=1, max=64, help="Number of API processes on the port.")]
EndWithParent = Annotated[
    bool, typer.Option("--end-with-parent", hidden=True, help="Exit when standard input is closed.")
]


STANDARD_INPUT = 0


def up(
    home: Annotated[Path | None, typer.Option(help="Folder of the service's data.")] = None,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    api_processes: Processes = 1,
    dagster_port: DagsterPort = 3000,
    no_dagster_ui: NoDagsterUi = False,
    seed_demo: Annotated[bool, typer.Option("--seed-demo", help="Add synthetic businesses.")] = False,
) -> None:
    """Start everything in one process tree: API, worker, Dagster. Ctrl-C stops it.

    Example: tidemark up --home /var/lib/tidemark --port 8000
    """
    if home is not None:
        os.environ["TIDEMARK_HOME"] = str(home)
    options = ["--host", host, "--port", str(port), "--dagster-port", str(dagster_port)]
    options += ["--api-processes", str(api_processes)]
    options += ["--no-dagster-ui"] if no_dagster_ui else []
    options += ["--when-ready", "api.service.commands.seed"] if seed_demo else []
    _become("assets.service.up", *options)


def api(
    host: Host = "127.0.0.1",
    port: Port = 8000,
    processes: Processes = 1,
    listener: Annotated[
        int | None, typer.Option("--socket", hidden=True, help="An inherited listening socket.")
    ] = None,
    end_with_parent: EndWithParent = False,
) -> None:
    """Start the API alone.

    Example: tidemark api --host 0.0.0.0 --port 8000 --processes 2
    """
    if listener is None:
        _become("assets.service.api_processes", "--host", host, "--port", str(port), "--processes", str(processes))
    if end_with_parent:
        threading.Thread(target=_end_with_standard_input, daemon=True).start()
    store = _open_store()
    if end_with_parent:
        # Not before, or a process that can't open its store would be restarted.
        heartbeat.send_heartbeats(STANDARD_INPUT)
    from api.service import app  # noqa: PLC0415

    app.serve(store, socket.socket(fileno=listener))
    store.close()


def worker() -> None:
    """Start a worker, which executes runs and delivers webhooks.

    With a broker (TIDEMARK_BROKER_URL), it may run on any machine.

    Example: tidemark worker
    """
    _become("assets.service.worker")


def dagster(host: Host = "127.0.0.1", dagster_port: DagsterPort = 3000, no_dagster_ui: NoDagsterUi = False) -> None:
    """Start Dagster and the dispatcher.

    To sign in to its pages, use a token from the home: operator.token allows
    everything, reader.token only viewing.

    Example: tidemark dagster --dagster-port 3000
    """
    hidden = ["--no-ui"] if no_dagster_ui else []
    _become("assets.service.platform", "--host", host, "--dagster-port", str(dagster_port), *hidden)


def _open_store() -> "Store":
    """Open the store, and bring the tables up to date. The API does this before the other processes start, so a problem
    of the settings or the database is reported once.

    A database that is down is no such problem: the service waits for it.
    """
    from sqlalchemy.exc import OperationalError  # noqa: PLC0415  # the process that only starts others needs no store

    from storage.core.store import Store  # noqa: PLC0415

    store = Store.open(Settings())
    try:
        store.db.migrate()
    except OperationalError as error:
        err.print(f"tidemark: starting, and waiting for the database: {error.orig}", markup=False, highlight=False)
    return store


def _become(module: str, *arguments: str) -> NoReturn:
    """Replace this process with `python -m module`, so that signals and the exit status are passed on.

    The settings are checked first, so that a mistake is reported in one line.
    """
    Settings()
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", module, *arguments])


def _end_with_standard_input() -> None:
    while os.read(STANDARD_INPUT, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
