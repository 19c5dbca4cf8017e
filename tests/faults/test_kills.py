"""Every part of the service is killed at every write of a scenario: nothing promised is lost, nothing is done twice.

Writes are counted in two ways: as moments of the service's own code (a file is synced or gets its name, a transaction
commits), and as system calls.
"""

from collections.abc import Iterator, Mapping
from itertools import chain, zip_longest
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from api.webhooks.listen import Receiver
from tests.faults.faults import Fault, KillAtWrite, SystemCalls
from tests.faults.scenarios import Scenario, submits, submits_and_refreshes
from tests.faults.survival import survives
from tests.faults.world import RUNS_END_WITHIN_S, World, running

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

MOMENT: Final = "moment"

# How many writes each part does in a scenario, plus one, at which there is nothing left to kill.
WRITES: Final[Mapping[str, Mapping[str, int]]] = {
    "api": {
        MOMENT: 30,
        "write": 40,
        "pwrite64": 80,
        "fsync": 6,
        "fdatasync": 6,
        "link": 3,
        "unlink": 3,
    },
    "worker": {MOMENT: 30, "fdatasync": 8},
    "platform": {MOMENT: 12},
    "enrichment": {MOMENT: 72, "fdatasync": 10, "fsync": 5, "link": 3, "unlink": 3},
    "refresh": {MOMENT: 72},
    "web": {MOMENT: 32},
}
BY_THE_CLOCK: Final = ("worker", "platform", "web")  # the number of their writes depends on the scenario's duration
FIRST_BY_THE_CLOCK, FIRST_CALLS = 3, 1  # how many certainly happen; calls are counted by thread
STEADY: Final = ("api", "enrichment", "refresh")
LONG_SCENARIOS: Final = [("api", MOMENT), ("worker", MOMENT), ("platform", MOMENT), ("refresh", MOMENT)]


class Kill(NamedTuple):
    part: str
    at: str  # a moment, or a system call
    nth: int

    def __str__(self) -> str:
        return "-".join(map(str, self))

    @property
    def scenario(self) -> Scenario:
        """The short scenario, unless the part does more in the long one."""
        return submits_and_refreshes if (self.part, self.at) in LONG_SCENARIOS else submits

    @property
    def is_beyond(self) -> bool:
        """Whether the scenario should end before this write. (Some parts also write periodically.)"""
        return self.part in STEADY and self.at == MOMENT and self.nth == WRITES[self.part][MOMENT]

    @property
    def is_certain(self) -> bool:
        """Return whether the scenario certainly has this many writes, on any machine and in any thread."""
        if self.at != MOMENT:
            return self.nth <= FIRST_CALLS
        return self.nth <= (FIRST_BY_THE_CLOCK if self.part in BY_THE_CLOCK else WRITES[self.part][MOMENT] // 3)

    def fault(self, world: World) -> Fault:
        if self.at == MOMENT:
            return KillAtWrite(world, self.part, self.nth)
        return SystemCalls(world, self.part, self.at, f"signal=KILL:when={self.nth}")


def kills_of(part: str) -> Iterator[Kill]:
    return (Kill(part, at, nth) for at, most in WRITES[part].items() for nth in range(1, most + 1))


def all_kills() -> list[Kill]:
    """Return all kills with the parts in turn, because a part that has just died is restarted only after a pause."""
    rounds = zip_longest(*map(kills_of, WRITES))
    return [kill for kill in chain.from_iterable(rounds) if kill is not None]


@pytest.mark.parametrize("kill", all_kills(), ids=str)
def test_killed_at_every_write(world: World, kill: Kill) -> None:
    injected = survives(world, kill.scenario, kill.fault(world), seed=kill.nth)
    assert not (injected and kill.is_beyond), "the scenario has more writes than are tried here"
    assert injected or not kill.is_certain, "the scenario has fewer writes than expected: was nothing killed?"


def test_killed_before_creating_the_first_folder_of_a_day(tmp_path: Path, receiver: Receiver) -> None:
    with running(tmp_path / "new", receiver) as new:
        assert survives(new, submits, SystemCalls(new, "api", "mkdir,mkdirat", "signal=KILL:when=1"), seed=1)


@pytest.mark.timeout(RUNS_END_WITHIN_S + 60)
def test_after_all_kills_no_dagster_run_stays_in_progress(world: World) -> None:
    world.wait_for_runs()
