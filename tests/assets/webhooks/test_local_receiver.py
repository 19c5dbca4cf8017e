"""`tidemark listen --subscribe`: the service reaches a receiver on this machine, without a setting or a restart."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from urllib.parse import urlsplit
from uuid import UUID

import pytest

from api.webhooks import subscribing
from api.webhooks.listen import Receiver
from api.webhooks.subscribing import is_reached, temporary_subscriptions
from assets.webhooks import delivery
from pipelines.webhooks.events import EventType
from storage.core import audit
from storage.core.settings import Environment
from storage.core.store import Store
from storage.webhooks import delivery_log, local_receiver, subscriptions
from storage.webhooks.local_receiver import LocalReceiver
from tests.storage.examples import a_client
from tests.storage.values import on_sqlite
from tests.waiting import until

TYPES = [EventType.JOB_COMPLETED, EventType.RULE_TRIGGERED]


@pytest.fixture
def client_id(store: Store) -> UUID:
    return a_client(store, datetime.now(UTC))


@contextmanager
def delivering(store: Store) -> Iterator[None]:
    stop = threading.Event()
    thread = threading.Thread(target=delivery.run, args=(store, stop))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_a_running_service_reaches_a_receiver_that_subscribes(store: Store, client_id: UUID) -> None:
    home = store.settings.home
    with delivering(store), Receiver(home) as receiver:
        with temporary_subscriptions(store, receiver, client_id, TYPES) as made:
            assert [each.event_type for each in made] == TYPES
            assert is_reached(store, receiver, made[0])
        assert local_receiver.find(store.settings) is None
    with store.db.reading() as r:
        assert subscriptions.find(r, client_id).items == []
        done = [entry.action for entry in audit.find(r, client_id)]
    assert sorted(done) == ["Subscription.Created"] * 2 + ["Subscription.Deleted"] * 2


def test_only_its_own_port_is_reached_and_only_in_a_sandbox(
    store: Store, client_id: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscribing, "REACHED_WITHIN_S", 0.1)
    with (
        delivering(store),
        Receiver(store.settings.home) as receiver,
        temporary_subscriptions(store, receiver, client_id, TYPES[:1]) as [made],
    ):
        local_receiver.announce(store.settings.home, LocalReceiver(receiver.port + 1, [made.subscription_id]))
        assert not is_reached(store, receiver, made)
        until(lambda: _last_error(store) == "refused")
    settings = store.settings.model_copy(update={"environment": Environment.PRODUCTION})
    local_receiver.announce(store.settings.home, LocalReceiver(receiver.port, []))
    assert local_receiver.find(store.settings) is not None
    assert local_receiver.find(settings) is None


def _last_error(store: Store) -> str | None:
    with store.db.reading() as r:
        [found] = delivery_log.find_latest(r, 1)
    return found.attempts[-1].error if found.attempts else None


def test_what_a_killed_receiver_left_is_deleted(store: Store, client_id: UUID) -> None:
    with Receiver(store.settings.home) as receiver:
        killed = temporary_subscriptions(store, receiver, client_id, TYPES[:1])
        killed.__enter__()  # but never exited
        with temporary_subscriptions(store, receiver, client_id, TYPES[:1]) as [made], store.db.reading() as r:
            assert [each.subscription_id for each in subscriptions.find(r, client_id).items] == [made.subscription_id]


@on_sqlite
def test_a_damaged_announcement_is_ignored(store: Store) -> None:
    local_receiver.announce(store.settings.home, LocalReceiver(8443, []))
    (store.settings.home / "listen" / "receiver.json").write_text("{")
    assert local_receiver.find(store.settings) is None


@pytest.mark.service  # it starts a process
@on_sqlite
def test_an_interrupt_removes_the_subscriptions(store: Store, client_id: UUID) -> None:
    home = store.settings.home
    command = [sys.executable, "-m", "api.cli", "--home", str(home), "listen", "--port", "0", "--subscribe", "--json"]
    with (
        delivering(store),
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process,
    ):
        assert process.stdout is not None
        assert process.stderr is not None
        begun, subscribed, test = (json.loads(process.stdout.readline()) for _ in range(3))
        assert urlsplit(begun["listening"]).hostname == "127.0.0.1"
        assert len(subscribed["subscriptionIds"]) == len(EventType)
        assert (test["verified"], test["event"]["test"]) == (True, True)
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0
        assert process.stderr.read() == ""
    with store.db.reading() as r:
        assert subscriptions.find(r, client_id).items == []
