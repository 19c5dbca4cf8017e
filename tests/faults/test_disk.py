"""Failing disks: full, read-only, failing to sync, with a limit on file size. Writes are refused, never half done."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from api.webhooks.listen import Receiver
from storage.core.settings import Settings
from storage.core.store import Store
from tests.faults.faults import FileSizeLimit, FullDisk, MemoryLimit, SystemCalls, remount, small_disk
from tests.faults.lender import Lender
from tests.faults.scenarios import Scenario, submits_and_refreshes, submits_for_many
from tests.faults.survival import survives
from tests.faults.world import World, running
from tests.flows.service import Client

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

MEGABYTES = 96
MAX_WRITES = 1_000  # more than fit into what a disk without free space has already given to the service
SYNCS = 8  # more than any thread of the API does in a scenario
SURELY = 1  # syncs that some thread of each part certainly does
FOR_S = 4.0
WRITES = "pwrite64,fsync,fdatasync,ftruncate,link,linkat,mkdir,mkdirat"


@pytest.fixture(scope="module")
def small_world(tmp_path_factory: pytest.TempPathFactory, receiver: Receiver) -> Iterator[World]:
    """Return a service on its own small disk."""
    folder = tmp_path_factory.mktemp("small")
    with (
        small_disk(folder / "disk", MEGABYTES) as disk,
        running(folder / "tidemark", receiver, home=disk / "home") as world,
    ):
        yield world


@pytest.mark.parametrize("call", ["fsync", "fdatasync"])
@pytest.mark.parametrize("nth", range(1, SYNCS + 1))
@pytest.mark.parametrize("part", ["api", "enrichment"])
def test_a_sync_fails_once(world: World, part: str, call: str, nth: int) -> None:
    fault = SystemCalls(world, part, call, f"error=EIO:when={nth}")
    assert survives(world, submits_and_refreshes, fault, seed=nth) or nth > SURELY, "did no sync fail?"


@pytest.mark.parametrize("part", ["api", "enrichment", "refresh", "worker"])
@pytest.mark.parametrize("calls", ["fsync,fdatasync", "pwrite64"])  # failing `write` would also break pipes
def test_no_space_for_a_while(world: World, part: str, calls: str) -> None:
    fault = SystemCalls(world, part, calls, "error=ENOSPC:when=1+", lasting_s=FOR_S)
    assert survives(world, submits_and_refreshes, fault, seed=len(part))


@pytest.mark.parametrize("scenario", [submits_and_refreshes, submits_for_many], ids=lambda scenario: scenario.__name__)
def test_the_disk_is_full_for_a_while(small_world: World, scenario: Scenario) -> None:
    assert survives(small_world, scenario, FullDisk(small_world.home.parent, lasting_s=FOR_S), seed=1)


def test_on_a_full_disk_writes_are_refused_and_reads_work(small_world: World) -> None:
    lender = small_world.lender(seed=9)
    with FullDisk(small_world.home.parent):
        assert_reads_and_refuses(lender)


def test_on_a_disk_that_became_read_only_writes_are_refused_and_reads_work(world: World) -> None:
    lender = world.lender(seed=9)
    with SystemCalls(world, "api", WRITES, "error=EROFS:when=1+"):
        assert_reads_and_refuses(lender)


@pytest.mark.parametrize("part", ["api", "enrichment", "refresh", "worker"])
def test_files_may_not_grow_for_a_while(world: World, part: str) -> None:
    assert survives(world, submits_and_refreshes, FileSizeLimit(world, part, 4_096, lasting_s=FOR_S), seed=2)


@pytest.mark.parametrize("part", ["enrichment", "refresh"])
def test_no_memory_for_a_while(world: World, part: str) -> None:
    assert survives(world, submits_and_refreshes, MemoryLimit(world, part, lasting_s=FOR_S), seed=3)


def test_a_home_that_is_read_only_is_refused_in_one_line(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", MEGABYTES) as disk:
        Store.open(Settings(home=disk / "home")).close()
        command = [sys.executable, "-m", "api.cli", "up", "--home", str(disk / "home"), "--port", "0"]
        remount(disk, "ro")
        refused = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        remount(disk, "rw")
    assert refused.returncode != 0
    assert len(refused.stderr.strip().splitlines()) == 1, refused.stderr
    assert "read-only" in refused.stderr.lower()


def assert_reads_and_refuses(lender: Lender) -> None:
    assert lender.call("GET", "/v1/customers").status_code == 200
    # SQLite's log may have room that is already allocated: until it is used up, a full disk refuses nothing.
    answers = (Client.call(lender, "POST", "/v1/customer", {"abn": "51824753556"}) for _ in range(MAX_WRITES))
    refused = next(answer for answer in answers if answer.status_code != 201)
    assert refused.status_code == 503
    assert "Retry-After" in refused.headers
