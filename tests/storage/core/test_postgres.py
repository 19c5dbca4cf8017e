"""If PostgreSQL is down, silent, locked or restarted, calls fail in limited time, and work again afterwards."""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import func, make_url, select, text
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from storage.access import keys
from storage.core import postgres
from storage.core.changes import Changes
from storage.core.database import Writing
from storage.core.models import clients
from storage.core.settings import Settings
from storage.core.store import Store
from tests.network import Network, network
from tests.storage.examples import a_client

SERVER = ("127.0.0.1", 5432)


@pytest.fixture
def line() -> Iterator[Network]:
    """Yield the network between the store and its server."""
    with network(SERVER) as between:
        yield between


@pytest.fixture
def store(
    line: Network, postgres_database: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Store]:
    """Yield a store with much shorter timeouts than in production."""
    monkeypatch.setattr(postgres.Connection, "silence_s", 0.4)
    monkeypatch.setattr(postgres, "ALIVE_WITHIN_S", 0.2)
    monkeypatch.setattr(postgres, "CONNECT_WITHIN_S", 2)  # the shortest that psycopg accepts
    monkeypatch.setattr(postgres, "POOL_WITHIN_S", 0.2)
    monkeypatch.setattr(postgres, "LOCK_WITHIN_MS", 200)
    monkeypatch.setattr(postgres, "STATEMENT_WITHIN_MS", 300)
    url = f"postgresql://127.0.0.1:{line.port}/{postgres_database()}"
    opened = Store.open(Settings(home=tmp_path / "home", database_url=url))
    yield opened
    opened.close()


def count(store: Store) -> int:
    with store.db.reading() as r:
        return r.execute(select(func.count()).select_from(clients)).scalar_one()


def two_clients(store: Store, now: datetime, between: Callable[[Writing], None]) -> None:
    """Create two clients in one transaction, and call `between` in between."""
    with store.db.writing() as w:
        keys.create_client(w, "Harbour Lending", decision_policies=True, now=now)
        between(w)
        keys.create_client(w, "Harbour Lending", decision_policies=True, now=now)


def test_waits_of_a_request_add_up_to_less_than_ten_seconds() -> None:
    a_connection = postgres.POOL_WITHIN_S + postgres.ALIVE_WITHIN_S + postgres.CONNECT_WITHIN_S
    assert a_connection < 10
    assert postgres.LOCK_WITHIN_MS < postgres.STATEMENT_WITHIN_MS < postgres.SILENCE_S * 1_000 < 10_000


def test_store_opens_while_its_server_is_down_and_works_once_it_is_up(
    line: Network, store: Store, now: datetime
) -> None:
    line.cut()
    with pytest.raises(OperationalError):
        count(store)
    line.mend()
    a_client(store, now)
    assert count(store) == 1


def test_cut_connections_are_replaced(line: Network, store: Store, now: datetime) -> None:
    a_client(store, now)
    line.cut()
    line.mend()
    assert count(store) == 1


def test_a_statement_that_is_never_answered_fails_and_leaves_nothing(
    line: Network, store: Store, now: datetime
) -> None:
    with pytest.raises(OperationalError, match="silent"):
        two_clients(store, now, between=lambda _: line.stall())
    line.mend()
    assert count(store) == 0


def test_silent_network_does_not_exhaust_the_pool(line: Network, store: Store) -> None:
    everybody = postgres.POOL_SIZE + postgres.POOL_OVERFLOW + 4
    together = threading.Barrier(everybody)
    with ThreadPoolExecutor(everybody) as threads:

        def ask(_: int) -> str:
            together.wait()
            try:
                return str(count(store))
            except SQLAlchemyError as error:
                return type(error).__name__

        count(store)
        line.stall()
        assert set(threads.map(ask, range(everybody))) <= {"OperationalError", "TimeoutError"}
        line.mend()
        assert set(threads.map(ask, range(everybody))) <= {"0", "TimeoutError"}
    assert store.db.engine.pool.checkedout() == 0  # pyrefly: ignore[missing-attribute]  # this kind of pool has it


def test_wait_for_a_lock_of_another_session_is_limited(store: Store, now: datetime) -> None:
    a_client(store, now)
    with admin(store) as other, other.transaction():
        other.execute("LOCK TABLE clients IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(OperationalError, match="lock timeout"):
            count(store)
    assert count(store) == 1


def test_statement_that_takes_too_long_is_aborted(store: Store) -> None:
    with pytest.raises(OperationalError, match="statement timeout"), store.db.reading() as r:
        r.execute(text("SELECT pg_sleep(60)"))


def test_a_terminated_backend_loses_its_transaction_and_nothing_else(store: Store, now: datetime) -> None:
    def terminate(w: Writing) -> None:
        with admin(store) as other:
            other.execute("SELECT pg_terminate_backend(%s)", [w.execute(text("SELECT pg_backend_pid()")).scalar()])

    with pytest.raises(OperationalError):
        two_clients(store, now, between=terminate)
    a_client(store, now)
    assert count(store) == 1


def test_waiting_for_changes_fails_if_the_server_is_silent(
    line: Network, store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage.core.changes.CHECK_AFTER_S", 0.1)
    with Changes(store.db) as changes:
        assert not changes.wait(0.2)
        a_client(store, now)
        assert changes.wait(5)
        line.stall()
        assert not changes.wait(0.2)
        with pytest.raises(psycopg.OperationalError):
            changes.wait(0.2)
    line.mend()
    with Changes(store.db) as changes:
        a_client(store, now)
        assert changes.wait(5)


@pytest.mark.service  # starts other processes
def test_processes_that_open_a_new_database_at_once_create_its_tables_once(store: Store, tmp_path: Path) -> None:
    with admin(store) as other:
        other.execute("DROP SCHEMA public CASCADE")
        other.execute("CREATE SCHEMA public")
    code = "from storage.core.settings import Settings; from storage.core.store import Store\n"
    code += "Store.open(Settings()).db.migrate()"
    environment = {"TIDEMARK_HOME": str(tmp_path / "home"), "TIDEMARK_DATABASE_URL": store.settings.database}
    opening = [subprocess.Popen([sys.executable, "-c", code], env=environment) for _ in range(3)]
    assert [process.wait(60) for process in opening] == [0, 0, 0]
    assert count(store) == 0


def admin(store: Store) -> "psycopg.Connection[tuple[object, ...]]":
    """Return another session, with the server's default timeouts."""
    database = make_url(store.settings.database).database
    return psycopg.connect(f"postgresql://127.0.0.1:5432/{database}", autocommit=True)
