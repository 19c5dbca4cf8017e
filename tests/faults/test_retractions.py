"""The enrichment is killed at writes of a scenario with retractions: each is done completely and once or not at all."""

import pytest

from tests.faults.faults import KillAtWrite
from tests.faults.scenarios import retracts
from tests.faults.survival import survives
from tests.faults.world import World

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
WRITES = 120  # of the process in the scenario; every seventh is tried, which covers all kinds


@pytest.mark.parametrize("nth", range(1, WRITES, 7))
def test_killed_while_retracting(world: World, nth: int) -> None:
    injected = survives(world, retracts, KillAtWrite(world, "enrichment", nth), seed=nth)
    assert injected or nth > WRITES // 3, "the scenario has fewer writes than expected: was nothing killed?"
