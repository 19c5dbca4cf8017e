"""The API is killed at every write of a scenario with idempotency keys: every request is executed once.

A request that dies keeps its key for half a minute, which the lender waits for.
"""

import pytest

from tests.faults.faults import KillAtWrite
from tests.faults.scenarios import submits_with_keys
from tests.faults.survival import survives
from tests.faults.world import World

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
WRITES = 20  # of the API in the scenario, and at least one more, at which nothing is left to kill


@pytest.mark.parametrize("nth", range(1, WRITES + 1))
def test_killed_at_every_write(world: World, nth: int) -> None:
    injected = survives(world, submits_with_keys, KillAtWrite(world, "api", nth), seed=nth)
    assert injected or nth > WRITES // 2, "the scenario has fewer writes than expected: was nothing killed?"
    assert not (injected and nth == WRITES), "the scenario has more writes than are tried here"
