"""Counts in windows of time, shared by processes through Redis, and by each process alone while Redis is away."""

import logging
import os
from collections.abc import Iterator
from uuid import uuid4

import pytest
import redis

from storage.core import shared_counters
from storage.core.counters import MAX_WINDOWS, Count, OwnCounters
from storage.core.shared_counters import RETRY_S, SharedCounters
from tests.network import Network, network
from tests.waiting import until

REDIS = ("127.0.0.1", 6379)


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_window_begins_with_the_first_count_and_restarts_when_it_ends(clock: Clock) -> None:
    counters = OwnCounters(clock)
    assert [counters.add("key", 60) for _ in range(2)] == [Count(1, 60), Count(2, 60)]
    clock.now_s += 59.5
    assert counters.add("key", 60) == Count(3, 1)
    clock.now_s += 0.5
    assert counters.add("key", 60) == Count(1, 60)


def test_names_are_counted_separately_and_reading_does_not_count(clock: Clock) -> None:
    counters = OwnCounters(clock)
    counters.add("one", 60)
    assert (counters.local_count("one", 60), counters.local_count("other", 30)) == (Count(1, 60), Count(0, 30))


def test_oldest_windows_are_dropped(clock: Clock) -> None:
    counters = OwnCounters(clock)
    for number in range(MAX_WINDOWS + 1):
        counters.add(str(number), 60)
    assert counters.local_count("0", 60).number == 0
    assert counters.local_count("1", 60).number == 1


@pytest.fixture
def prefix() -> str:
    return f"tidemark-test-{uuid4()}:"


@pytest.fixture
def server(prefix: str) -> Iterator[redis.Redis]:
    """Yield a direct connection to Redis, and remove the test's keys afterwards."""
    made = redis.Redis(*REDIS)
    try:
        made.ping()
    except redis.ConnectionError:
        if os.environ.get("CI"):
            raise
        pytest.skip("start Redis on 127.0.0.1:6379 to run this")
    yield made
    for name in made.scan_iter(f"{prefix}*"):
        made.delete(name)
    made.close()


@pytest.fixture
def line(server: redis.Redis) -> Iterator[Network]:
    """Yield a network to Redis that can be cut."""
    assert server.ping()
    with network(REDIS) as made:
        yield made


def connect(prefix: str, port: int, clock: Clock) -> SharedCounters:
    return SharedCounters(f"redis://127.0.0.1:{port}/0", prefix, clock)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for a Redis that is up, however busy the machine is."""
    monkeypatch.setattr(shared_counters, "TIMEOUT_S", 60)


@pytest.mark.usefixtures("patient")
def test_two_processes_count_together(server: redis.Redis, prefix: str, clock: Clock) -> None:
    one, other = (connect(prefix, REDIS[1], clock) for _ in range(2))
    assert [counters.add("key", 60).number for counters in (one, other, one)] == [1, 2, 3]
    assert one.local_count("key", 60).number == 3
    assert other.local_count("key", 60).number == 2  # what it saw last
    assert 0 < server.pttl(f"{prefix}key") <= 60_000
    one.close()
    other.close()


@pytest.mark.usefixtures("patient")
def test_count_without_expiry_gets_one(server: redis.Redis, prefix: str, clock: Clock) -> None:
    server.set(f"{prefix}key", 7)
    counters = connect(prefix, REDIS[1], clock)
    assert counters.add("key", 60) == Count(8, 60)
    assert server.pttl(f"{prefix}key") > 0
    counters.close()


def test_lost_redis_is_logged_once_and_processes_count_alone_until_it_returns(
    line: Network, prefix: str, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    counters = connect(prefix, line.port, clock)

    def counts_together_again() -> bool:
        """Try once more: on a busy machine Redis may take longer than TIMEOUT_S although the line is mended."""
        clock.now_s += RETRY_S
        counters.add("key", 60)
        return "Redis is available again" in caplog.text

    counters.add("key", 60)
    for fail in (line.cut, line.stall):
        caplog.clear()
        fail()
        before = counters.local_count("key", 60).number
        for number in range(3):
            assert counters.add("key", 60).number == before + 1 + number
            clock.now_s += RETRY_S
        assert [record.levelno for record in caplog.records] == [logging.WARNING]
        line.mend()
        until(counts_together_again)
    counters.close()


def test_processes_count_alone_if_redis_returns_errors(server: redis.Redis, prefix: str, clock: Clock) -> None:
    server.lpush(f"{prefix}key", "no number")
    counters = connect(prefix, REDIS[1], clock)
    assert counters.add("key", 60) == Count(1, 60)
    counters.close()
