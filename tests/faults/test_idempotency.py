"""The API ended by SIGKILL at every write of a story told under idempotency keys: what was asked for is done once.

A request that dies keeps its key for half a minute, which the lender waits for.
"""

import pytest

from tests.faults.faults import KillAtWrite
from tests.faults.scenarios import submits_with_keys
from tests.faults.survival import survives
from tests.faults.world import World

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
WRITES = 17  # that the API does in the story


@pytest.mark.parametrize("nth", range(1, WRITES + 2))
def test_killed_at_every_write(world: World, nth: int) -> None:
    injected = survives(world, submits_with_keys, KillAtWrite(world, "api", nth), seed=nth)
    assert injected == (nth <= WRITES), "the story has more or fewer writes than are counted through here"
