"""A few seeded kills with `make test-service`; the rest of the harness runs with `make test-slow`."""

import random
from typing import Final

import pytest

from tests.faults.faults import KillAtWrite
from tests.faults.scenarios import submits
from tests.faults.survival import SEEDS, survives
from tests.faults.world import World

pytestmark = [pytest.mark.service, pytest.mark.timeout(300)]
WRITES: Final = {"api": 12, "enrichment": 60}  # that each part makes in this scenario, at least
KILLS: Final = [("api", SEEDS[0]), ("enrichment", SEEDS[1]), ("api", SEEDS[2])]


@pytest.mark.parametrize(("part", "seed"), KILLS)
def test_killed_at_a_write(world: World, part: str, seed: int) -> None:
    nth = random.Random(seed).randint(1, WRITES[part])
    assert survives(world, submits, KillAtWrite(world, part, nth), seed)
