"""A sweep is killed at every write and before every file that it removes: rows are deleted before their files."""

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any
from uuid import uuid4

import pytest

from storage.operations.retention import count_orphans
from tests.faults.commands import run
from tests.faults.faults import KillAtCall, KillAtWrite, faked_clock, set_clock
from tests.faults.invariants import Aftermath, violations
from tests.faults.lender import Lender
from tests.faults.scenarios import retracts
from tests.faults.survival import survives
from tests.faults.world import World

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
WRITES = 21  # of a sweep after the scenario, and at least one more, at which nothing is left to kill
FILES = 5  # that it removes

_hours = count(31 * 24)  # until the next sweep, by the faked clock


@pytest.mark.parametrize("nth", range(1, WRITES + 1))
def test_killed_at_every_write(world: World, nth: int) -> None:
    def is_swept(lender: Lender) -> None:
        retract_and_sweep(world, lender)

    injected = survives(world, is_swept, KillAtWrite(world, "api.cli sweep", nth), seed=nth)
    assert injected or nth > WRITES // 2, "a sweep has fewer writes than expected: was nothing killed?"
    assert not (injected and nth == WRITES), "a sweep has more writes than are tried here"


@pytest.mark.parametrize("nth", range(1, FILES + 2))
def test_killed_before_every_file_that_it_removes(world: World, nth: int) -> None:
    kill = KillAtCall(world.folder, "unlink,unlinkat", nth)

    def is_swept(lender: Lender) -> None:
        retract_and_sweep(world, lender, *kill.strace)

    injected = survives(world, is_swept, kill, seed=nth)
    assert injected == (nth <= FILES), "a sweep removes more or fewer files than are tried here"


def retract_and_sweep(world: World, lender: Lender, *behind: str) -> None:
    """Leave replaced versions, idempotency keys, and a file whose writer died before it was named; then sweep.

    What a killed sweep leaves is checked before the next sweep, which would put everything right.
    """
    lender.sends_keys = True
    retracts(lender)
    world.drain()
    world.store.lake.put(f"transactions/{uuid4()}.parquet", b"nobody's")
    sweep(world, *behind)
    assert violations(Aftermath(world, lender)) == []
    sweep(world)
    assert count_orphans(world.store, datetime.now(UTC) + timedelta(days=2)) == (0, 0)
    assert not any(sweep(world).values())


def sweep(world: World, *behind: str) -> Any:
    """Run `tidemark sweep` a month from now, each time an hour later: a killed sweep keeps its lease for a while.

    It must be confirmed, because no earlier sweep explains what has expired within that month.
    """
    environment = faked_clock(world.folder)
    set_clock(world.folder, f"+{next(_hours)}h")
    return run(world, "sweep", "--confirm", behind=behind, **environment, NO_FAKE_STAT="1")  # files keep their real age
