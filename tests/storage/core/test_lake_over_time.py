"""Commits, compactions and sweeps in any order, compared with a plain model of each customer's value."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from pipelines.vocabulary.errors import Unavailable
from storage.core.models import locations
from storage.core.store import Store
from storage.enrichment import compaction
from storage.enrichment.compaction import compact
from storage.enrichment.transactions import Location
from storage.operations import integrity, retention
from tests.conftest import examples
from tests.storage import values
from tests.storage.values import BUCKET, content, customers_of_a_bucket, interrupt_after_write, place_of

CUSTOMERS = 4

some_customers = st.sets(st.integers(0, CUSTOMERS - 1), min_size=1)
Step = Callable[["World"], None]


@dataclass
class World:
    """The expected content of the store, as dictionaries."""

    store: Store
    now: datetime
    numbers: Sequence[int]
    expected: dict[int, list[str]] = field(default_factory=dict)
    versions: dict[int, int] = field(default_factory=dict)
    begun: list[tuple[dict[int, int], int]] = field(default_factory=list)  # versions read, rows to write
    looked_up: list[tuple[datetime, Location, list[str]]] = field(default_factory=list)

    def commit(self, read: dict[int, int], rows: int) -> None:
        committed = values.commit(self.store, dict.fromkeys(read, rows), self.now, read)
        winners = {number for number, version in read.items() if self.versions.get(number, 0) == version}
        assert committed.replaced == winners
        for number in winners:
            self.versions[number] = read[number] + 1
            self.expected[number] = content(number, self.versions[number], rows)

    def pick(self, which: set[int]) -> dict[int, int]:
        return {self.numbers[i]: self.versions.get(self.numbers[i], 0) for i in which}


def batch(which: set[int], rows: int) -> Step:
    return lambda world: world.commit(world.pick(which), rows)


def batch_begins(which: set[int], rows: int) -> Step:
    return lambda world: world.begun.append((world.pick(which), rows))


def batch_ends() -> Step:
    return lambda world: world.commit(*world.begun.pop()) if world.begun else None


def compaction_during(inner: Step) -> Step:
    """Return a compaction with an inner step after its file is written and before it is committed."""

    def step(world: World) -> None:
        read = dict(world.versions)
        with suppress(Unavailable):  # by the model's clock the file may be old enough for a sweep to take it
            done = compact(interrupt_after_write(world.store, lambda: inner(world)), BUCKET, lambda: world.now)
            got_new_values = [number for number in world.versions if world.versions[number] != read.get(number)]
            assert done.skipped <= len(got_new_values), "only customers with a new value are skipped"

    return step


def sweep() -> Step:
    def step(world: World) -> None:
        retention.sweep(world.store, lambda: world.now, confirmed=True)

    return step


def time_passes(hours: int) -> Step:
    def step(world: World) -> None:
        world.now += timedelta(hours=hours)

    return step


def look_up(i: int) -> Step:
    def step(world: World) -> None:
        number = world.numbers[i]
        if number in world.expected:
            world.looked_up.append((world.now, place_of(world.store, number), world.expected[number]))

    return step


simple = st.one_of(
    st.builds(batch, some_customers, st.integers(0, 3)),
    st.builds(batch_begins, some_customers, st.integers(0, 3)),
    st.builds(batch_ends),
    st.builds(sweep),
    st.builds(time_passes, st.sampled_from((1, 30 * 24, 31 * 24))),
    st.builds(look_up, st.integers(0, CUSTOMERS - 1)),
)
steps = st.one_of(simple, st.builds(compaction_during, simple))


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every compaction pay, and write files of two customers."""
    monkeypatch.setattr(compaction, "LOOSE_FILES", 1)
    monkeypatch.setattr(compaction, "FILE_CUSTOMERS", 2)


@settings(examples(1), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(program=st.lists(steps, min_size=4, max_size=16))
@pytest.mark.usefixtures("eager")
def test_every_customer_always_has_exactly_its_value(store: Store, now: datetime, program: list[Step]) -> None:
    world = World(store, now, customers_of_a_bucket(store, CUSTOMERS, now))
    for step in program:
        step(world)
        for number, rows in world.expected.items():
            assert values.read_place(store, place_of(store, number)) == rows
        for since, place, rows in world.looked_up:
            if world.now - since <= store.settings.retention:
                assert values.read_place(store, place) == rows
    compact(store, BUCKET, lambda: world.now)
    assert integrity.check(store, lambda: world.now).damages == []
    retention.sweep(store, lambda: world.now + 2 * store.settings.retention, confirmed=True)
    assert integrity.check(store, lambda: world.now).damages == []
    assert stored_versions(world) == sorted(world.expected), "of each customer the current one"
    for number, rows in world.expected.items():
        assert values.read_place(store, place_of(store, number)) == rows


def stored_versions(world: World) -> list[int]:
    with world.store.db.reading() as r:
        query = select(locations.c.customer_number).where(locations.c.customer_number.in_(world.numbers))
        return sorted(r.execute(query).scalars())
