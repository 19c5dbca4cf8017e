"""Every part of the service ended by SIGKILL at every write of a story: nothing promised is lost, nothing done twice.

Counted in two ways: the moments that the service's own code knows (a file is synced or gets its name, a transaction
commits), and the system calls underneath.
"""

from collections.abc import Iterator, Mapping
from itertools import chain, zip_longest
from typing import Final, NamedTuple

import pytest

from tests.faults.faults import Fault, KillAtWrite, SystemCalls
from tests.faults.scenarios import Scenario, submits, submits_and_refreshes
from tests.faults.survival import survives
from tests.faults.world import World

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

MOMENT: Final = "moment"

# How many writes each part does in a story, and one more, at which there is nothing left to kill.
WRITES: Final[Mapping[str, Mapping[str, int]]] = {
    "api": {
        MOMENT: 30,
        "write": 40,
        "pwrite64": 80,
        "fsync": 6,
        "fdatasync": 6,
        "link": 3,
        "unlink": 3,
        "mkdir": 3,
    },
    "worker": {MOMENT: 30, "fdatasync": 8},
    "platform": {MOMENT: 12},
    "enrichment": {MOMENT: 64, "fdatasync": 10, "fsync": 5, "link": 3, "unlink": 3},
    "refresh": {MOMENT: 72},
    "web": {MOMENT: 32},
}
STEADY: Final = ("api", "enrichment", "refresh")
LONG_STORIES: Final = [("api", MOMENT), ("worker", MOMENT), ("platform", MOMENT), ("refresh", MOMENT)]


class Kill(NamedTuple):
    part: str
    at: str  # a moment, or a system call
    nth: int

    def __str__(self) -> str:
        return "-".join(map(str, self))

    @property
    def story(self) -> Scenario:
        """The short one, where it has all that the part does."""
        return submits_and_refreshes if (self.part, self.at) in LONG_STORIES else submits

    @property
    def is_beyond(self) -> bool:
        """Whether the story should be over by then (other parts write by the clock, too)."""
        return self.part in STEADY and self.at == MOMENT and self.nth == WRITES[self.part][MOMENT]

    def fault(self, world: World) -> Fault:
        if self.at == MOMENT:
            return KillAtWrite(world, self.part, self.nth)
        return SystemCalls(world, self.part, self.at, f"signal=KILL:when={self.nth}")


def kills_of(part: str) -> Iterator[Kill]:
    return (Kill(part, at, nth) for at, most in WRITES[part].items() for nth in range(1, most + 1))


def all_kills() -> list[Kill]:
    """One part after the other in turn: one that died a moment ago is started again only after a pause."""
    rounds = zip_longest(*map(kills_of, WRITES))
    return [kill for kill in chain.from_iterable(rounds) if kill is not None]


@pytest.mark.parametrize("kill", all_kills(), ids=str)
def test_killed_at_every_write(world: World, kill: Kill) -> None:
    injected = survives(world, kill.story, kill.fault(world), seed=kill.nth)
    assert not (injected and kill.is_beyond), "the story has more writes than are counted through here"
