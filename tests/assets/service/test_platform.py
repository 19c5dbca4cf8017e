"""One home's Dagster works on a database at a time; the others stand by and take its lease."""

import subprocess
import sys
import threading
from contextlib import nullcontext
from uuid import uuid4

import pytest
from sqlalchemy.exc import OperationalError

from assets.service import platform
from assets.service.parts import LOOPBACK, Address, NeverStartedError, Part, free_port
from assets.service.platform import PlatformLease
from storage.core import leases
from storage.core.database import Database
from storage.core.store import Store


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Renew the lease at every check, and check again without a pause."""
    monkeypatch.setattr("assets.service.platform.POLL_AGAIN_S", 0.01)
    monkeypatch.setattr(leases, "RENEW_EVERY_S", 0.0)


@pytest.mark.usefixtures("no_pauses")
def test_a_waiting_process_takes_the_lease_when_it_is_given_up(store: Store) -> None:
    one, other = PlatformLease(store, uuid4()), PlatformLease(store, uuid4())
    stop = threading.Event()
    assert one.wait(stop)
    waiting = threading.Thread(target=other.wait, args=(stop,))
    waiting.start()
    assert one.is_held()
    one.give_up()
    waiting.join(20)
    assert not waiting.is_alive()
    assert other.is_held()
    assert not one.is_held()


@pytest.mark.usefixtures("no_pauses")
def test_a_waiting_process_can_be_stopped(store: Store) -> None:
    stop = threading.Event()
    assert PlatformLease(store, uuid4()).wait(stop)
    threading.Timer(0.1, stop.set).start()
    assert not PlatformLease(store, uuid4()).wait(stop)


@pytest.mark.usefixtures("no_pauses")
def test_an_unavailable_database_does_not_end_the_lease(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    lease = PlatformLease(store, uuid4())
    assert lease.wait(threading.Event())

    def fail(_: Database) -> None:
        raise OperationalError("BEGIN", {}, Exception("away"))

    monkeypatch.setattr(Database, "writing", fail)
    assert lease.is_held()
    lease.give_up()


def test_a_dagster_that_never_starts_gives_up_the_lease(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Part("broken one", "tests.assets.there_is_no_such_module", environment={})
    monkeypatch.setattr(platform, "_dagster", lambda *_: nullcontext(broken))
    with pytest.raises(NeverStartedError, match="broken one"):
        platform.run(store.settings, Address(LOOPBACK, free_port()), threading.Event())
    assert PlatformLease(store, uuid4()).is_held()


def test_processes_that_only_direct_others_import_neither_polars_nor_dagster() -> None:
    """They would lose 40 MB and half a second at each start."""
    code = "import sys, assets.service.up, assets.service.platform, assets.service.worker; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "sqlalchemy" in loaded
    assert not {"polars", "numpy", "dagster", "pipelines.enrichment"} & set(loaded)
