"""Dagster as one command (`python -m assets.service.platform`, or `tidemark dagster`): code location, web server,
daemon and dispatcher.

This process, the head, doesn't import Dagster: it dispatches, and restarts Dagster's process when that has died.
Dagster ends with it. Only one head works on a database at a time; those of other homes stand by.
"""

import argparse
import logging
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from uuid import UUID

from sqlalchemy.exc import SQLAlchemyError

from assets.access.gate_tokens import Role, token
from assets.core.graphql import DagsterGraphQL
from assets.core.processes import AlreadyRunningError, hold_lock, stop_requested
from assets.core.runs import DEFINITIONS_MODULE, JOB_OF
from assets.dagster_internals import dagster_home
from assets.dispatch.dispatcher import Leadership, dispatch
from assets.service.automation import AutomationWatch
from assets.service.parts import DAGSTER_PORT, LOOPBACK, POLL_EVERY_S, Address, NeverStartedError, Part, free_port
from storage.core import leases, logs
from storage.core.heartbeat import watched_loop
from storage.core.settings import Settings, SettingsError
from storage.core.store import Store

FINISH_WITHIN_S = 5.0
POLL_AGAIN_S = 1.0  # while another home's Dagster works on the database

log = logging.getLogger(__name__)


def run(settings: Settings, address: Address, stop: threading.Event, module: str = DEFINITIONS_MODULE) -> None:
    """Keep Dagster and the dispatcher running until `stop` is set.

    Raises:
        AlreadyRunningError: another process runs them in this home.
        NeverStartedError: a part exited with an error before its first heartbeat.
    """
    environment = dagster_home.prepare(settings)
    with hold_lock(settings.dagster_home / "platform.lock") as holder, closing(Store.open(settings)) as store:
        lease = PlatformLease(store, holder)
        try:
            while lease.wait(stop):
                with (
                    _dagster(address, module, environment) as part,
                    dispatching(store, holder, address.local_url),
                    watched_loop("parts") as report_round,
                ):
                    while not stop.wait(POLL_EVERY_S) and lease.is_held():
                        report_round()
                        part.check()
        finally:
            lease.give_up()


@contextmanager
def _dagster(address: Address, module: str, environment: Mapping[str, str]) -> Iterator[Part]:
    """Start Dagster's process, and end it at the end of the block, however that ends."""
    options = ("--host", address.host, "--port", str(address.port), "--module", module)
    part = Part("Dagster", "assets.dagster_internals.web_and_daemon", *options, environment=environment)
    try:
        yield part
    finally:
        part.end(FINISH_WITHIN_S)


class PlatformLease:
    """The right to run Dagster on a database. If two Dagsters shared its tables, each would report the other's runs as
    lost.
    """

    def __init__(self, store: Store, holder: UUID) -> None:
        self._store = store
        self._holder = holder
        self._renew_at = 0.0

    def wait(self, stop: threading.Event) -> bool:
        """Wait for the lease. Return True once it is held; False if `stop` is set first."""
        logged = False
        while not stop.is_set():
            if self._hold() is True:
                return True
            if not logged:
                log.info("standing by: another home's Dagster works on this database, or the database is unavailable")
            logged = True
            stop.wait(POLL_AGAIN_S)
        return False

    def is_held(self) -> bool:
        """Renew the lease when it is time. Return False if another process holds it.

        While the database is unavailable, no other process can take the lease, so it counts as held.
        """
        if time.monotonic() < self._renew_at:
            return True
        return self._hold() is not False

    def give_up(self) -> None:
        with suppress(SQLAlchemyError), self._store.db.writing() as w:  # a lease that can't be given up expires
            leases.release(w, leases.PLATFORM, self._holder)

    def _hold(self) -> bool | None:
        """Take or renew the lease. Return whether it is held; None if the database is unavailable."""
        self._renew_at = time.monotonic() + leases.RENEW_EVERY_S
        try:
            now = leases.clock(self._store.db)
            with self._store.db.writing() as w:
                return leases.hold(w, leases.PLATFORM, self._holder, leases.LEASE_S, now)
        except SQLAlchemyError as error:
            log.warning("the platform's lease could not be renewed: %s", type(error).__name__)
            return None


@contextmanager
def dispatching(store: Store, holder: UUID, dagster_url: str) -> Iterator[None]:
    """Dispatch until the end of the block, in one thread per queue so that no queue waits for another."""
    stop = threading.Event()
    operator = token(store.settings, Role.OPERATOR)
    watch = AutomationWatch(store, DagsterGraphQL(dagster_url, operator))
    leadership = Leadership(store, holder, can_lead=watch.check)
    threads = [threading.Thread(target=leadership.keep, args=(stop,), name="leadership")]
    for queue in JOB_OF:
        arguments = (store, queue, DagsterGraphQL(dagster_url, operator).launch, leadership.leads, stop)
        threads.append(threading.Thread(target=dispatch, args=arguments, name=f"dispatch {queue}"))
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
    parser.add_argument("--host", default=LOOPBACK, help="the address of Dagster's pages")
    parser.add_argument("--dagster-port", type=int, default=DAGSTER_PORT)
    parser.add_argument("--no-ui", action="store_true", help="listen on a random loopback port only")
    parser.add_argument("--end-with-parent", action="store_true", help="end when the standard input ends")
    parser.add_argument("--module", default=DEFINITIONS_MODULE, help="the code location")
    options = parser.parse_args()
    address = Address(LOOPBACK, free_port()) if options.no_ui else Address(options.host, options.dagster_port)
    try:
        settings = Settings()
        logs.log_to_stderr("dagster", settings)
        run(settings, address, stop_requested(options.end_with_parent), options.module)
    except (AlreadyRunningError, NeverStartedError, SettingsError) as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    main()
