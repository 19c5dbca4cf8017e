"""The API ended by SIGKILL at every write of a story told under idempotency keys: what was asked for is done once.

A request that dies keeps its key for half a minute, which the lender waits for.
"""

import pytest

from tests.faults.faults import KillAtWrite
from tests.faults.scenarios import submits_with_keys
from tests.faults.survival import survives
from tests.faults.world import World

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
WRITES = 20  # that the API does in the story, and one more at least, at which there is nothing left to kill


@pytest.mark.parametrize("nth", range(1, WRITES + 1))
def test_killed_at_every_write(world: World, nth: int) -> None:
    injected = survives(world, submits_with_keys, KillAtWrite(world, "api", nth), seed=nth)
    assert injected or nth > WRITES // 2, "the story has fewer writes than it surely has: was nobody killed?"
    assert not (injected and nth == WRITES), "the story has more writes than are counted through here"
