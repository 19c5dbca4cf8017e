"""Clocks that jump, back by hours and ahead by a year: no lease is stuck, no duration negative, nothing lost."""

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

JUMPS = ("-2h", "+0", "+400d")  # each from the one before


@pytest.fixture(scope="module")
def timeless(tmp_path_factory: pytest.TempPathFactory, receiver: Receiver) -> Iterator[World]:
    """A service whose clock the tests set."""
    folder = tmp_path_factory.mktemp("timeless")
    with running(folder / "tidemark", receiver, None, "", **faked_clock(folder)) as world:
        yield world


@pytest.mark.parametrize("to", JUMPS)
def test_the_clock_jumps(timeless: World, to: str) -> None:
    assert survives(timeless, submits_and_refreshes, ClockJump(timeless, to), seed=1)
    with timeless.store.db.reading() as r:
        assert r.execute(select(func.min(attempts.c.duration_ms))).scalar_one() >= 0


@pytest.mark.parametrize("part", ["worker", "enrichment", "platform", "api"])
def test_a_part_dies_and_the_clock_is_set_back_before_it_is_missed(timeless: World, part: str) -> None:
    """What it held was leased until two hours from now."""
    set_clock(timeless.folder.parent, "+0")
    lender = timeless.lender(seed=2)
    customer = lender.customer()
    with KillAtWrite(timeless, part, nth=2) as kill:
        job = lender.submit(customer, lender.rows(20))
        set_clock(timeless.folder.parent, "-2h")
        lender.finished(job)
    assert kill.injected or part in ("api", "platform"), "those may have fewer writes here"
    assert survives(timeless, submits, ClockJump(timeless, "-2h"), seed=3)


def test_everything_dies_and_starts_again_with_the_clock_set_back(timeless: World) -> None:
    set_clock(timeless.folder.parent, "+0")
    lender = timeless.lender(seed=4)
    job = lender.submit(lender.customer(), lender.rows(20))
    timeless.service.kill_everything()
    set_clock(timeless.folder.parent, "-2h")
    timeless.service.start()
    lender.finished(job)
    assert survives(timeless, submits, ClockJump(timeless, "-2h"), seed=5)
