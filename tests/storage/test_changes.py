from datetime import datetime
from threading import Timer

from storage.changes import Changes
from storage.store import Store
from tests.storage.examples import a_client


def test_a_commit_of_another_connection_is_noticed(store: Store, now: datetime) -> None:
    with Changes(store.db) as changes:
        assert not changes.wait(timeout_s=0.05)
        other = Timer(0.1, a_client, (store, now))
        other.start()
        assert changes.wait(timeout_s=5)
        other.join()  # it may still have its connection


def test_a_change_is_told_once(store: Store, now: datetime) -> None:
    with Changes(store.db) as changes:
        a_client(store, now)
        assert changes.wait(timeout_s=5)
        assert not changes.wait(timeout_s=0.05)
