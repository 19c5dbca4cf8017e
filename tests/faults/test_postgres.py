"""PostgreSQL becomes unavailable in every way: the service answers in time, and needs no restart."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
import requests

from api.webhooks.listen import Receiver
from tests.faults.faults import Fault, KillAtWrite
from tests.faults.postgres import LockedTable, Restart, Server, TerminatedBackends, database_answers, server
from tests.faults.scenarios import submits, submits_and_refreshes, submits_with_keys
from tests.faults.survival import SEEDS, survives
from tests.faults.world import World, running
from tests.network import Network, network

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ANSWER_WITHIN_S = 10.0
A_WHILE_S, LONGER_S, A_MINUTE_S = 4.0, 25.0, 60.0
WRITES_UNDER_KEYS = 40  # of the API in the scenario, approximately
WRITES = {
    "api": 30,
    "enrichment": 18,
}  # of each part in the short scenario, approximately; without Dagster's
KILLS = [(part, nth) for part, most in WRITES.items() for nth in range(1, most + 1)]


@pytest.fixture(scope="module")
def database() -> Iterator[Server]:
    with server() as started:
        yield started


@pytest.fixture(scope="module")
def line(database: Server) -> Iterator[Network]:
    """Return the network between the service and the database."""
    with network(("127.0.0.1", database.port)) as made:
        yield made


@pytest.fixture(scope="module")
def world(
    tmp_path_factory: pytest.TempPathFactory, receiver: Receiver, database: Server, line: Network
) -> Iterator[World]:
    folder, through = tmp_path_factory.mktemp("world") / "tidemark", database.url_through(line.port)
    with running(folder, receiver, None, database.url, TIDEMARK_DATABASE_URL=through) as ready:
        yield ready


@dataclass
class Stalled(Fault):
    """A network that accepts everything and delivers nothing."""

    kind = "database silent"
    line: Network = field(repr=False)

    def breaks(self) -> None:
        self.line.stall()

    def was_observed(self) -> bool:
        return not database_answers(self.line.port)

    def heals(self) -> None:
        self.line.mend()


@dataclass
class Cut(Fault):
    """A network that resets all connections and accepts no new one."""

    kind = "database unreachable"
    line: Network = field(repr=False)

    def breaks(self) -> None:
        self.line.cut()

    def was_observed(self) -> bool:
        return not database_answers(self.line.port)

    def heals(self) -> None:
        self.line.mend()


@pytest.mark.parametrize(
    ("way", "lasting_s"), [(Stalled, A_WHILE_S), (Stalled, A_MINUTE_S), (Cut, A_WHILE_S), (Cut, LONGER_S)]
)
def test_the_network_fails_for_a_while(world: World, line: Network, way: type[Stalled | Cut], lasting_s: float) -> None:
    assert survives(world, submits_and_refreshes, way(line, lasting_s=lasting_s), seed=1)


@pytest.mark.parametrize("way", [Stalled, Cut])
def test_without_its_database_the_service_answers_in_time(
    world: World, line: Network, way: type[Stalled | Cut]
) -> None:
    lender = world.lender(seed=2)
    for path in ("/health/ready", "/v1/customers"):
        with way(line):
            answer = lender.http.get(f"{lender.base_url}{path}", timeout=ANSWER_WITHIN_S)
        assert answer.status_code == 503
        assert "Retry-After" in answer.headers
    assert requests.get(f"{lender.base_url}/health/live", timeout=ANSWER_WITHIN_S).ok
    world.wait_until_back()


@pytest.mark.parametrize("how", ["fast", "immediate"])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_server_is_restarted(world: World, database: Server, how: str, seed: int) -> None:
    assert survives(world, submits_and_refreshes, Restart(database, how, lasting_s=A_WHILE_S), seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_sessions_are_terminated_again_and_again(world: World, database: Server, seed: int) -> None:
    assert survives(world, submits_and_refreshes, TerminatedBackends(database, lasting_s=A_WHILE_S), seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_sessions_are_terminated_under_idempotency_keys(world: World, database: Server, seed: int) -> None:
    assert survives(world, submits_with_keys, TerminatedBackends(database, lasting_s=A_WHILE_S), seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_killed_under_idempotency_keys(world: World, seed: int) -> None:
    nth = random.Random(seed).randint(1, WRITES_UNDER_KEYS)
    assert survives(world, submits_with_keys, KillAtWrite(world, "api", nth), seed)


@pytest.mark.parametrize(("table", "lasting_s"), [("jobs", A_MINUTE_S), ("customers", LONGER_S), ("batches", LONGER_S)])
def test_another_session_holds_a_lock(world: World, database: Server, table: str, lasting_s: float) -> None:
    assert survives(world, submits, LockedTable(database, table, lasting_s=lasting_s), seed=1)


@pytest.mark.parametrize(("part", "nth"), KILLS)
def test_killed_at_a_write(world: World, part: str, nth: int) -> None:
    injected = survives(world, submits, KillAtWrite(world, part, nth), seed=nth)
    assert injected or nth > WRITES[part] // 3, "the scenario has fewer writes than expected: was nothing killed?"
