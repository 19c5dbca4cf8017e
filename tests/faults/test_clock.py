"""Clocks that jump back by hours and ahead by a year: leases expire, durations are not negative, nothing is lost."""

from collections.abc import Iterator

import pytest
from sqlalchemy import func, select

from api.webhooks.listen import Receiver
from storage.core.models import attempts
from tests.faults.faults import ClockJump, KillAtWrite, faked_clock, set_clock
from tests.faults.scenarios import submits, submits_and_refreshes
from tests.faults.survival import survives
from tests.faults.world import World, running

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

JUMPS = ("-2h", "+0", "+400d")  # offsets from the real time, set one after the other


@pytest.fixture(scope="module")
def clock_world(tmp_path_factory: pytest.TempPathFactory, receiver: Receiver) -> Iterator[World]:
    """Return a service whose clock the tests set."""
    folder = tmp_path_factory.mktemp("clock_world")
    with running(folder / "tidemark", receiver, None, "", **faked_clock(folder)) as world:
        yield world


@pytest.mark.parametrize("to", JUMPS)
def test_the_clock_jumps(clock_world: World, to: str) -> None:
    assert survives(clock_world, submits_and_refreshes, ClockJump(clock_world, to), seed=1)
    with clock_world.store.db.reading() as r:
        assert r.execute(select(func.min(attempts.c.duration_ms))).scalar_one() >= 0


@pytest.mark.parametrize("part", ["worker", "enrichment", "platform", "api"])
def test_a_part_dies_and_the_clock_is_set_back_before_its_lease_expires(clock_world: World, part: str) -> None:
    """The leases of the dead part end two hours from now."""
    set_clock(clock_world.folder.parent, "+0")
    lender = clock_world.lender(seed=2)
    customer = lender.customer()
    with KillAtWrite(clock_world, part, nth=2) as kill:
        job = lender.submit(customer, lender.rows(20))
        set_clock(clock_world.folder.parent, "-2h")
        lender.wait_for_job(job)
    assert kill.injected or part in ("api", "platform"), "those may have fewer writes here"
    assert survives(clock_world, submits, ClockJump(clock_world, "-2h"), seed=3)


def test_everything_dies_and_starts_again_with_the_clock_set_back(clock_world: World) -> None:
    set_clock(clock_world.folder.parent, "+0")
    lender = clock_world.lender(seed=4)
    job = lender.submit(lender.customer(), lender.rows(20))
    clock_world.service.kill_everything()
    set_clock(clock_world.folder.parent, "-2h")
    clock_world.service.start()
    lender.wait_for_job(job)
    assert survives(clock_world, submits, ClockJump(clock_world, "-2h"), seed=5)
