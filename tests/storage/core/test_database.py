"""SQLite's single writer is shared among the threads of a process."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import pytest
from sqlalchemy import event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import TimeoutError as PoolTimeout

from storage.core import database
from storage.core.store import Store
from tests.storage.examples import a_client
from tests.storage.values import on_sqlite


@on_sqlite
def test_writers_of_a_process_take_turns_without_sleeping(store: Store, now: datetime) -> None:
    """SQLite's own busy timeout is zero, so only the process's lock can make writers wait."""

    @event.listens_for(store.db.engine, "checkout")
    def without_patience(connection: DBAPIConnection, _record: object, _fairy: object) -> None:
        connection.cursor().execute("PRAGMA busy_timeout = 0")

    with ThreadPoolExecutor(8) as threads:
        clients = list(threads.map(lambda _: a_client(store, now), range(200)))
    assert len(set(clients)) == 200


@on_sqlite
def test_writer_that_waits_too_long_fails(store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 0.1)
    writing, done = threading.Event(), threading.Event()

    def write() -> None:
        with store.db.writing():
            writing.set()
            done.wait(10)

    other = threading.Thread(target=write)
    other.start()
    assert writing.wait(10)
    with pytest.raises(PoolTimeout):
        a_client(store, now)
    done.set()
    other.join()
    a_client(store, now)
