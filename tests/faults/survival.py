"""One experiment: a client lives through a scenario while something breaks; afterwards every invariant is checked."""

from collections import Counter
from typing import Final

from tests.faults.faults import Fault
from tests.faults.invariants import Aftermath, violations
from tests.faults.scenarios import Scenario
from tests.faults.world import World

SEEDS: Final = range(3)  # of every experiment that is drawn rather than counted through
INJECTED: Final[Counter[str]] = Counter()  # faults by kind, over the whole test run
SURVIVED: Final[Counter[str]] = Counter()


def survives(world: World, scenario: Scenario, fault: Fault, seed: int) -> bool:
    """Whether the fault was injected. Fails, naming scenario, fault and seed, when an invariant is broken."""
    lender = world.lender(seed)
    with fault:
        scenario(lender)
        world.drain()
    if fault.injected:
        INJECTED[fault.kind] += 1
    world.wait_until_back()
    world.drain()
    found = violations(Aftermath(world, lender))
    experiment = f"{scenario.__name__}, {fault}, seed {seed}, ledger {lender.ledger.path}"
    if not fault.jobs_may_fail:
        found += [f"a job failed that should not have: {job}" for job in lender.failed_jobs]
    assert not found, "\n  ".join([experiment, *found])
    if fault.injected:
        SURVIVED[fault.kind] += 1
    return fault.injected
