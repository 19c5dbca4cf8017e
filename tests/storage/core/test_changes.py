"""A process that waits for changes learns of commits by other connections, and of several at once."""

from datetime import datetime
from threading import Timer

import pytest

from storage.core import changes as storage_changes
from storage.core.changes import Changes
from storage.core.store import Store
from tests.storage.examples import a_client


def test_commit_of_another_connection_is_noticed(store: Store, now: datetime) -> None:
    with Changes(store.db) as changes:
        assert not changes.wait(timeout_s=0.05)
        other = Timer(0.1, a_client, (store, now))
        other.start()
        assert changes.wait(timeout_s=5)
        other.join()  # it may still have its connection


def test_change_is_reported_once(store: Store, now: datetime) -> None:
    with Changes(store.db) as changes:
        a_client(store, now)
        assert changes.wait(timeout_s=5)
        assert not changes.wait(timeout_s=0.05)


def test_several_changes_are_reported_at_once(store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage_changes, "CHECK_AFTER_S", 0.0)  # checking the connection reads notifications, too
    with Changes(store.db) as changes:
        for _ in range(3):
            a_client(store, now)
        assert changes.wait(timeout_s=5)
        assert not changes.wait(timeout_s=0.05)


def test_changes_in_quick_succession_are_reported_together(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage_changes, "POLL_EVERY_S", 1.0)
    with Changes(store.db) as changes:
        a_client(store, now)
        assert changes.wait(timeout_s=5)
        soon = [Timer(seconds, a_client, (store, now)) for seconds in (0.1, 0.3)]
        for each in soon:
            each.start()
        assert changes.wait(timeout_s=5)
        assert not changes.wait(timeout_s=0.5)
        for each in soon:
            each.join()
