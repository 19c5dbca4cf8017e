"""Concurrency: writers, refreshes, API processes, whole services on one database, runs of one batch."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count

import pytest
import requests
from sqlalchemy import select

from api.service.commands.addresses import choose_port, is_ready
from api.webhooks.listen import Receiver
from assets.access.gate_tokens import Role
from assets.core.graphql import DagsterGraphQL, RefusedError
from storage.core.models import Queue, batches
from storage.jobs.batches import Batch
from tests.faults.faults import Fault, Frozen, KillAtWrite, Repeated
from tests.faults.invariants import Aftermath, violations
from tests.faults.lender import Lender
from tests.faults.scenarios import submits_and_refreshes, submits_for_many, submits_good_and_bad
from tests.faults.survival import SEEDS, survives
from tests.faults.world import World, running
from tests.flows.service import Client

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

WRITERS, READERS, FOR_S = 16, 4, 60.0
REFRESHES = 20
LONGER_THAN_LEASES_S = 14.0


@pytest.fixture(scope="module")
def other_api(world: World) -> Iterator[str]:
    """Run a second API process on the same home, and return its address."""
    port = choose_port(0)
    with world.service.another("api", "--port", str(port)):
        address = f"http://127.0.0.1:{port}"
        while not is_ready(address):
            time.sleep(0.1)
        yield address


def test_one_of_many_concurrent_refreshes_over_two_processes_is_accepted(world: World, other_api: str) -> None:
    lender = world.lender(seed=1)
    customers = [lender.customer() for _ in range(2)]
    for customer in customers:
        lender.wait_for_job(lender.submit(customer, lender.rows(20)))
    for customer in customers:
        together = threading.Barrier(REFRESHES)

        def ask(number: int, customer: str = customer, together: threading.Barrier = together) -> requests.Response:
            client = Client((world.service.base_url, other_api)[number % 2], lender.key)
            with client.http:
                together.wait()
                return client.call("POST", f"/v1/customer/{customer}/reports/refresh")

        with ThreadPoolExecutor(REFRESHES) as threads:
            answers = list(threads.map(ask, range(REFRESHES)))
        assert Counter(answer.status_code for answer in answers) == {202: 1, 409: REFRESHES - 1}
        accepted = next(answer for answer in answers if answer.ok)
        lender.wait_for_job(accepted.json()["data"]["jobId"])


def test_writers_and_readers_over_two_processes_never_get_a_lock_error(world: World, other_api: str) -> None:
    until = time.monotonic() + FOR_S
    apis = (world.service.base_url, other_api)
    writers = [world.lender(seed, apis[seed % 2]) for seed in range(WRITERS)]

    def write(lender: Lender) -> None:
        customer, rows = lender.customer(), lender.rows(40)
        for start in count(0, 5):
            if time.monotonic() > until:
                return
            lender.submit(customer, rows[start % 30 :][:10])

    def read(number: int) -> None:
        while time.monotonic() < until:
            Client.call(writers[number], "GET", "/v1/jobs", page=1)
            Client.call(writers[number], "GET", "/v1/transactions", page=1)

    with ThreadPoolExecutor(WRITERS + READERS) as threads:
        for each in [*threads.map(write, writers), *threads.map(read, range(READERS))]:
            assert each is None
    world.drain()
    for lender in writers:
        refused = [entry for entry in lender.ledger.entries if entry.status not in (200, 201, 202)]
        assert refused == []
        found = violations(Aftermath(world, lender))
        assert not found, "\n  ".join(found)


@dataclass
class Relaunched(Repeated):
    """The newest batch is repeatedly given to another run, whether it is open, running or done."""

    kind = "duplicate run"
    world: World = field(repr=False)

    def inject_once(self) -> bool:
        with self.world.store.db.reading() as r:
            row = r.execute(select(batches).order_by(batches.c.token.desc()).limit(1)).first()
        if row is None or row.queue not in (Queue.ENRICHMENT, Queue.REFRESH):
            return False
        batch = Batch(row.token, row.batch_id, Queue(row.queue), row.partition_day, jobs=0, rows=0, customers=0)
        try:
            DagsterGraphQL(self.world.service.dagster_url, self.world.service.token(Role.OPERATOR)).launch(batch)
        except (RefusedError, requests.RequestException):
            return False
        return True


@pytest.mark.parametrize("seed", SEEDS)
def test_each_batch_is_run_several_times(world: World, seed: int) -> None:
    assert survives(world, submits_and_refreshes, Relaunched(world), seed)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory, receiver: Receiver) -> Iterator[tuple[World, World]]:
    """Return two whole services, each in its own home, on one database and one lake."""
    folder = tmp_path_factory.mktemp("two")
    with running(folder / "one", receiver) as one:
        shared = {
            "TIDEMARK_DATABASE_URL": one.settings.database,
            "TIDEMARK_LAKE_URL": str(one.settings.lake),
            "TIDEMARK_MASTER_KEY": (one.home / "master.key").read_text().strip(),
        }
        with running(folder / "two", receiver, None, "", **shared) as other:
            one.others.append(other)
            yield one, other


@pytest.mark.parametrize("which", [0, 1], ids=["first", "second"])
@pytest.mark.parametrize("part", ["platform", "worker", "enrichment"])
def test_a_part_of_one_of_two_services_freezes_and_resumes_late(
    two: tuple[World, World], part: str, which: int
) -> None:
    """The part acts as if it still led, or held its batch, although another has taken over."""
    fault: Fault = Frozen(two[which], part, lasting_s=LONGER_THAN_LEASES_S)
    assert survives(two[0], submits_for_many, fault, seed=which)


@pytest.mark.parametrize("which", [0, 1], ids=["first", "second"])
@pytest.mark.parametrize("part", ["platform", "worker"])
def test_a_part_of_one_of_two_services_dies(two: tuple[World, World], part: str, which: int) -> None:
    injected = survives(two[0], submits_good_and_bad, KillAtWrite(two[which], part, nth=2), seed=which)
    assert injected or part == "platform", "only the leading platform writes"
