"""Brokers on this machine. Each test has names of its own there, which are deleted when it ends."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from kombu import Connection, Exchange

from storage.core.brokers import queue_name
from storage.core.models import Queue
from storage.core.settings import Settings

RABBITMQ = "amqp://guest:guest@127.0.0.1:5672//"
REDIS = "redis://127.0.0.1:6379/12"


@contextmanager
def broker(url: str) -> Iterator[dict[str, str]]:
    """Yield the settings of a broker that no other test uses. Without the broker, skip the test, or fail in CI."""
    settings = {"broker_url": url, "broker_prefix": f"test-{uuid4().hex[:12]}"}
    with Connection(url, connect_timeout=3) as connection:
        try:
            connection.connect()
        except OSError:
            if os.environ.get("CI"):
                raise
            pytest.skip(f"start {urlsplit(url).scheme} on {urlsplit(url).netloc} to run this")
        try:
            yield settings
        finally:
            _delete(connection, Settings(**settings))


def waiting(settings: Settings, queue: Queue) -> int:
    """Return how many messages wait in a queue. Those that a worker has count only when they are given back."""
    with Connection(settings.broker_url) as connection:
        return int(connection.default_channel.queue_declare(queue_name(settings, queue), passive=True).message_count)


def _delete(connection: Connection, settings: Settings) -> None:
    channel: Any = connection.default_channel
    for queue in Queue:
        channel.queue_delete(queue_name(settings, queue))
    if urlsplit(settings.broker_url).scheme == "amqp":
        Exchange(settings.broker_prefix, channel=channel).delete()
        return
    names = channel.client.keys(f"*{settings.broker_prefix}*")
    channel.client.delete(*names)
