"""API, worker and Dagster of one machine in one process tree (`python -m assets.service.up`, or `tidemark up`).

This process, the root, starts the parts, restarts those that died, and ends all of them when it is stopped. It
prints their addresses as soon as `GET /health/ready` responds with 200.
"""

import argparse
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import requests

from assets.access.gate_tokens import Role, token, token_file
from assets.core.processes import stop_requested
from assets.service.api_processes import API_PORT, PortTakenError, api_parts, open_listeners
from assets.service.parts import (
    DAGSTER_PORT,
    LOOPBACK,
    POLL_EVERY_S,
    Address,
    NeverStartedError,
    Part,
    free_port,
    keep_running,
)
from storage.core import logs
from storage.core.settings import Settings
from storage.operations import sqlite_check

RESPOND_WITHIN_S = 2.0  # each time that the API is asked whether it is ready
HEAD_START_S = 10.0  # after which the other parts start, even if the API doesn't respond yet; our judgement
CHECK_WITHIN_S = 60.0  # for the check of a database that was not closed; a larger one is left to the doctor

log = logging.getLogger(__name__)


def run(api: Address, dagster: Address, *, processes: int, published: bool, when_ready: str | None) -> None:
    """Keep the parts running until a signal. Once they are ready, print their addresses.

    Args:
        published: whether Dagster's web UI is served at `dagster`; otherwise it listens at a random loopback port.
        when_ready: name of a module that is then run in a process of its own, such as one that adds demo data.

    Raises:
        PortTakenError: the API's address can't be listened on.
        NeverStartedError: a part exited with an error before its first heartbeat.
    """
    stop = stop_requested(with_parent=False)
    database = sqlite_check.database_file(Settings())
    unclean_database = database if database is not None and sqlite_check.was_left_open(database) else None
    if unclean_database is not None:
        check_log(unclean_database)
    listeners = open_listeners(api, processes)
    api = Address(api.host, listeners[0].getsockname()[1])
    api_responds = threading.Event()
    parts = [*api_parts(listeners), *_parts_after(api_responds, dagster, published=published)]
    threading.Thread(target=_give_head_start, args=(api, api_responds, stop), daemon=True).start()
    threading.Thread(
        target=_act_when_ready, args=(api, dagster, published, when_ready, unclean_database, stop), daemon=True
    ).start()
    keep_running(parts, stop)


def _parts_after(api_responds: threading.Event, dagster: Address, *, published: bool) -> Sequence[Part]:
    web = ("--host", dagster.host, "--dagster-port", str(dagster.port), "--end-with-parent")
    no_ui = () if published else ("--no-ui",)
    return [
        Part("Dagster platform", "assets.service.platform", *web, *no_ui, environment={}, after=api_responds),
        Part("worker", "assets.service.worker", "--end-with-parent", environment={}, after=api_responds),
    ]


def _give_head_start(api: Address, api_responds: threading.Event, stop: threading.Event) -> None:
    """Set `api_responds` once the API responds, or after HEAD_START_S.

    On two cores the API would start three times as slowly beside all other processes.
    """
    deadline = time.monotonic() + HEAD_START_S
    while not _responds(api, "/health/live") and time.monotonic() < deadline and not stop.wait(POLL_EVERY_S):
        pass
    api_responds.set()


def _act_when_ready(
    api: Address,
    dagster: Address,
    published: bool,
    when_ready: str | None,
    unclean_database: Path | None,
    stop: threading.Event,
) -> None:
    """Once the service is ready, print its addresses, check a database that was not closed, and run `when_ready`."""
    while not _responds(api, "/health/ready"):
        if stop.wait(POLL_EVERY_S):
            return
    _print(f"API                 {api.local_url}/v1")
    if Settings().shows_docs:
        _print(f"API documentation   {api.local_url}/docs")
    if published:
        _print(f"Dagster             {dagster.local_url}")
        _print(f"  operator's token  {shown_token(Settings(), sys.stdout.isatty())}")
    _print("Ready. Ctrl-C stops everything.")
    if unclean_database is not None:
        threading.Thread(target=check_database, args=(unclean_database,), daemon=True).start()
    if when_ready:
        environment = os.environ | {"TIDEMARK_BASE_URL": api.local_url}
        subprocess.run([sys.executable, "-m", when_ready], env=environment, check=False)


def shown_token(settings: Settings, on_terminal: bool) -> str:
    """Return the operator's token for a terminal; otherwise the place of its file, because the output becomes a log."""
    return token(settings, Role.OPERATOR) if on_terminal else f"in {token_file(settings, Role.OPERATOR)}"


def check_log(database: Path) -> None:
    """Check the log of a database that was not closed, and copy a damaged one before SQLite overwrites it."""
    if (lost := sqlite_check.count_lost_commits(database)) == 0:
        return
    copy = sqlite_check.keep_log(database)
    log.error(
        "the database's log is damaged, and at least %d commits after the damage are lost: submissions that were "
        "accepted may be missing. A copy of the log is at %s. Restore the database from a backup, or let clients "
        "send their submissions again",
        lost,
        copy,
    )


def check_database(database: Path) -> None:
    """Check a database that was not closed after its last use. This runs once requests are answered."""
    checked = sqlite_check.quick_check(database, CHECK_WITHIN_S)
    if checked.damage is not None:
        log.error("the database is damaged: %s. Restore it from a backup: docs/how-to/operations.md", checked.damage)
    elif checked.complete:
        log.info("Tidemark was not stopped cleanly; the check of its database found nothing wrong")
    else:
        log.warning(
            "Tidemark was not stopped cleanly, and its database is too large to check here: run `tidemark doctor`"
        )


def _responds(api: Address, path: str) -> bool:
    with requests.Session() as http:
        http.trust_env = False
        try:
            return http.get(f"{api.local_url}{path}", timeout=RESPOND_WITHIN_S).ok
        except requests.RequestException:
            return False


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m assets.service.up", description=__doc__)
    parser.add_argument("--host", default=LOOPBACK, help="the address of the API")
    parser.add_argument("--port", type=int, default=API_PORT)
    parser.add_argument("--api-processes", type=int, default=1)
    parser.add_argument("--dagster-port", type=int, default=DAGSTER_PORT)
    parser.add_argument("--no-dagster-ui", action="store_true")
    parser.add_argument("--when-ready", help="name of a module to run once everything is ready")
    options = parser.parse_args()
    logs.log_to_stderr("tidemark", Settings())
    dagster = Address(LOOPBACK, options.dagster_port or free_port())
    api = Address(options.host, options.port)
    published = not options.no_dagster_ui
    try:
        run(api, dagster, processes=options.api_processes, published=published, when_ready=options.when_ready)
    except PortTakenError as error:
        raise SystemExit(f"tidemark: {error}") from error
    except NeverStartedError as error:
        raise SystemExit(1) from error  # the part has reported the reason


if __name__ == "__main__":
    main()
