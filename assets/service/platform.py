"""Dagster as one command (`python -m assets.service.platform`, or `tidemark dagster`): code location, web server,
daemon and the dispatcher beside them.

This process, the head, imports no Dagster: it dispatches, and starts a part again that died. The parts end with it.
One head works on a database at a time; those of other homes stand by.
"""

import argparse
import logging
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from uuid import UUID

from sqlalchemy.exc import SQLAlchemyError

from assets.access.gate_tokens import Role, token
from assets.core.graphql import DagsterGraphQL
from assets.core.processes import AlreadyRunningError, socket_path, stop_requested, the_only_one
from assets.core.runs import DEFINITIONS_MODULE, JOB_OF
from assets.dagster_internals import dagster_home
from assets.dispatch.dispatcher import Leadership, dispatch
from assets.service.automation import AutomationWatch
from assets.service.parts import DAGSTER_PORT, LOOPBACK, POLL_EVERY_S, Address, Part, free_port
from storage.core import leases, logs
from storage.core.heartbeat import watched_loop
from storage.core.settings import Settings, SettingsError
from storage.core.store import Store

CODE_SOCKET = "code.sock"
FINISH_PARTS_WITHIN_S = 5.0
POLL_AGAIN_S = 1.0  # while another home has the place

log = logging.getLogger(__name__)


def run(settings: Settings, address: Address, stop: threading.Event, module: str = DEFINITIONS_MODULE) -> None:
    """Keep Dagster and the dispatcher running until told to stop.

    Raises:
        AlreadyRunningError: they run in this home already.
    """
    environment = dagster_home.prepare(settings)
    with the_only_one(settings.dagster_home / "platform.lock") as holder:
        store = Store.open(settings)
        place = Place(store, holder)
        while place.wait(stop):
            parts = _parts(settings, address, module, environment)
            with dispatching(store, holder, address.from_here), watched_loop("parts") as come_around:
                while not stop.wait(POLL_EVERY_S) and place.is_held():
                    come_around()
                    for part in parts:
                        part.look_after()
            for part in parts:
                part.end(FINISH_PARTS_WITHIN_S)
        place.leave()
        store.close()


class Place:
    """The one place for a Dagster on a database: two that share its records would take each other's runs for lost."""

    def __init__(self, store: Store, holder: UUID) -> None:
        self._store = store
        self._holder = holder
        self._renew_at = 0.0

    def wait(self, stop: threading.Event) -> bool:
        """True as soon as the place is ours; False when told to stop first."""
        said = False
        while not stop.is_set():
            if self._hold() is True:
                return True
            if not said:
                log.info("standing by: another home's Dagster works on this database, or the database is away")
            said = True
            stop.wait(POLL_AGAIN_S)
        return False

    def is_held(self) -> bool:
        """Prolong it now and then. False when another has it; a database that is away gives it to nobody."""
        if time.monotonic() < self._renew_at:
            return True
        return self._hold() is not False

    def leave(self) -> None:
        with suppress(SQLAlchemyError), self._store.db.writing() as w:  # one that can't be given up runs out
            leases.let_go(w, leases.PLATFORM, self._holder)

    def _hold(self) -> bool | None:
        """None when the database is away."""
        self._renew_at = time.monotonic() + leases.RENEW_EVERY_S
        try:
            with self._store.db.writing() as w:
                return leases.hold(w, leases.PLATFORM, self._holder, leases.LEASE_S, datetime.now(UTC))
        except SQLAlchemyError as error:
            log.warning("the platform's lease could not be renewed: %s", type(error).__name__)
            return None


def _parts(settings: Settings, address: Address, module: str, environment: Mapping[str, str]) -> list[Part]:
    """The web server first: it is the slower to import, and it waits for the code server by itself."""
    code_socket = str(socket_path(settings.dagster_home, CODE_SOCKET))
    where = ("--host", address.host, "--port", str(address.port), "--code-server", code_socket)
    return [
        Part("web server and daemon", "assets.dagster_internals.web_and_daemon", *where, environment=environment),
        Part("code server", "assets.dagster_internals.code_server", code_socket, module, environment=environment),
    ]


@contextmanager
def dispatching(store: Store, holder: UUID, dagster: str) -> Iterator[None]:
    """Dispatch in threads, one a queue so that none waits for another, for as long as the context lasts."""
    stop = threading.Event()
    operator = token(store.settings, Role.OPERATOR)
    watch = AutomationWatch(store, DagsterGraphQL(dagster, operator))
    leadership = Leadership(store, holder, able=watch.check)
    threads = [threading.Thread(target=leadership.keep, args=(stop,), name="leadership")]
    for queue in JOB_OF:
        serving = (store, queue, DagsterGraphQL(dagster, operator).launch, leadership.leading, stop)
        threads.append(threading.Thread(target=dispatch, args=serving, name=f"dispatch {queue}"))
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m assets.service.platform", description=__doc__)
    parser.add_argument("--host", default=LOOPBACK, help="address of Dagster's pages")
    parser.add_argument("--dagster-port", type=int, default=DAGSTER_PORT)
    parser.add_argument("--no-ui", action="store_true", help="listen on a random loopback port only")
    parser.add_argument("--tethered", action="store_true", help="end when the standard input ends")
    parser.add_argument("--module", default=DEFINITIONS_MODULE, help="the code location")
    options = parser.parse_args()
    address = Address(LOOPBACK, free_port()) if options.no_ui else Address(options.host, options.dagster_port)
    try:
        settings = Settings()
        logs.to_stderr("dagster", settings)
        run(settings, address, stop_requested(options.tethered), options.module)
    except (AlreadyRunningError, SettingsError) as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    main()
