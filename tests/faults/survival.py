"""One experiment: a client runs a scenario while something breaks; afterwards all invariants are checked.

Invariants that hold at every moment are also checked while the scenario runs.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from sqlalchemy.exc import OperationalError

from tests.faults.counts import INJECTED, SURVIVED, TRIED
from tests.faults.faults import Fault
from tests.faults.invariants import Aftermath, violations, violations_now
from tests.faults.scenarios import Scenario
from tests.faults.world import World
from tests.waiting import again_and_again

SEEDS: Final = range(3)  # of every experiment that is random rather than exhaustive
POLL_EVERY_S = 0.2


def survives(world: World, scenario: Scenario, fault: Fault, seed: int) -> bool:
    """Run an experiment. Return whether the fault was injected; fail with scenario, fault and seed on a violation."""
    lender = world.lender(seed)
    TRIED[fault.kind] += 1
    with watch_for_violations(Aftermath(world, lender)) as seen, fault:
        scenario(lender)
        world.drain()
    if fault.injected:
        INJECTED[fault.kind] += 1
    world.wait_until_back()
    world.drain()
    found = [*seen, *violations(Aftermath(world, lender))]
    experiment = f"{scenario.__name__}, {fault}, seed {seed}, ledger {lender.ledger.path}"
    if not fault.jobs_may_fail:
        found += [f"a job failed that should not have: {job}" for job in lender.failed_jobs]
    assert not found, "\n  ".join([experiment, *found])
    if fault.injected:
        SURVIVED[fault.kind] += 1
    return fault.injected


@contextmanager
def watch_for_violations(aftermath: Aftermath) -> Iterator[set[str]]:
    """Collect violations while the block runs. While the database is unavailable, nothing is checked."""
    seen = set[str]()

    def check() -> None:
        with suppress(OperationalError):
            seen.update(violations_now(aftermath))

    with again_and_again(check, POLL_EVERY_S):
        yield seen
