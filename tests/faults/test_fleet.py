"""Workers on two machines: whatever is killed or cut off, no job is lost, no row is counted twice, and work goes on."""

import os
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from statistics import median

import pytest

from tests.conftest import new_database
from tests.faults.fleet import PARTS, RABBITMQ, Broker, Fleet, measure_recovery_s, running
from tests.network import Network
from tests.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3_600)]

KILLS = 50  # of each part
RESTARTED_WITHIN_S = 10.0
MAX_DELAY_S = 60.0  # of a round of jobs, even while other work keeps the machine busy
AWAY_S = 30.0  # half a minute without the link
HARMS: Mapping[str, Callable[[Network], None]] = {
    "cut": Network.cut,
    "stalled": Network.stall,
    "half closed": Network.half_close,
    "slow": Network.slow,
}


@pytest.fixture(scope="module")
def fleet(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    if not RABBITMQ.exists() and not os.environ.get("CI"):
        pytest.skip("install Debian's rabbitmq-server to run this")
    with running(tmp_path_factory.mktemp("fleet"), new_database(request, "postgresql")) as fleet:
        yield fleet


@pytest.fixture
def undisturbed_s(fleet: Fleet) -> float:
    """How long the slowest of three rounds without harm takes."""
    return max(measure_recovery_s(fleet, random.Random(nth), lambda: None) for nth in range(3))


@pytest.mark.parametrize("part", PARTS)
def test_killed_at_random(fleet: Fleet, undisturbed_s: float, part: str, capsys: pytest.CaptureFixture[str]) -> None:
    drawn, restarted, later = random.Random(part), list[float](), list[float]()
    for _ in range(KILLS):
        until(lambda: fleet.processes(part))
        later.append(measure_recovery_s(fleet, drawn, partial(fleet.kill, part)) - undisturbed_s)
        restarted.append(fleet.measure_restart_s(part))
    _report(capsys, f"{part}, {KILLS} kills", restarted_after=restarted, jobs_later_by=later)
    assert max(restarted) <= RESTARTED_WITHIN_S
    assert max(later) <= MAX_DELAY_S


def test_the_database_ends_all_connections_at_random(
    fleet: Fleet, undisturbed_s: float, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn = random.Random("database")
    later = [measure_recovery_s(fleet, drawn, fleet.end_connections) - undisturbed_s for _ in range(KILLS)]
    _report(capsys, f"database, {KILLS} times without connections", jobs_later_by=later)
    assert max(later) <= MAX_DELAY_S


def _report(capsys: pytest.CaptureFixture[str], what: str, **took_s: Sequence[float]) -> None:
    """Print the figures of docs/explanation/scale.md."""
    figures = (
        f"{name.replace('_', ' ')} a median of {median(each):.1f} s, at most {max(each):.1f} s"
        for name, each in took_s.items()
    )
    with capsys.disabled():
        print(f"\n{what}: {'; '.join(figures)}")  # noqa: T201


@pytest.mark.parametrize("name", ["database", "broker", "store"])
@pytest.mark.parametrize("machine", ["one", "two"])
def test_a_link_is_away_for_half_a_minute(fleet: Fleet, machine: str, name: str, subtests: pytest.Subtests) -> None:
    link = fleet.links[machine, name]
    for harm, do_harm in HARMS.items():
        with subtests.test(harm):
            measure_recovery_s(fleet, random.Random(harm), partial(harm_for_a_while, fleet, partial(do_harm, link)))


def harm_for_a_while(fleet: Fleet, do_harm: Callable[[], None]) -> None:
    do_harm()
    time.sleep(AWAY_S)
    fleet.heal()


def test_the_broker_is_killed_and_restarted(fleet: Fleet) -> None:
    for nth in range(5):
        measure_recovery_s(fleet, random.Random(nth), partial(restart, fleet.broker))


def restart(broker: Broker) -> None:
    broker.kill()
    broker.start()


def test_the_object_store_fails(fleet: Fleet) -> None:
    for nth in range(5):
        measure_recovery_s(fleet, random.Random(nth), lambda: fleet.emulator.faults.extend([500, 503] * 20))
