"""Compactions during a scenario, one killed at its n-th write: each customer's rows move completely or not at all."""

from typing import Final

import pytest

from storage.core import buckets
from tests.faults.commands import run
from tests.faults.faults import KillAtWrite
from tests.faults.lender import Lender
from tests.faults.scenarios import submits_again_for_many
from tests.faults.survival import survives
from tests.faults.world import World
from tests.waiting import again_and_again

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
OF_A_FILE = 6  # writes of a compaction for one file; as many again for each further file
WRITES = 18
EACH_BUCKET_TWICE: Final = [option for bucket in buckets.ALL for option in ("--bucket", str(bucket)) * 2]


@pytest.mark.parametrize("nth", range(1, WRITES + 1))
def test_killed_at_every_write(world: World, nth: int) -> None:
    def is_compacted_meanwhile(lender: Lender) -> None:
        with again_and_again(lambda: run(world, "compact")):
            submits_again_for_many(lender)
        while (done := run(world, "compact", *EACH_BUCKET_TWICE)) is None:  # killed
            pass
        assert not any(second["moved"] for second in done[1::2])

    injected = survives(world, is_compacted_meanwhile, KillAtWrite(world, "api.cli compact", nth), seed=nth)
    assert injected or nth > OF_A_FILE, "nothing was compacted"
