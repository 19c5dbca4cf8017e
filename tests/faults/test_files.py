"""Damaged data files are noticed by their SHA-256 and reported, and never read as data."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final
from uuid import UUID

import pytest
from sqlalchemy import select

from storage.core.models import customers
from storage.enrichment.transactions import current_locations
from tests.faults.counts import INJECTED, SURVIVED
from tests.faults.invariants import Aftermath, violations
from tests.faults.lender import Lender
from tests.faults.world import World
from tests.flows.service import Client

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ROWS = 40
Damage = Callable[[Path, Path], None]  # damages a file, given another one


def flip_at(share: float) -> Damage:
    """Return a damage that flips one bit at this share of the file."""

    def flip(file: Path, _other: Path) -> None:
        content = bytearray(file.read_bytes())
        content[int(share * (len(content) - 1))] ^= 0x10
        file.write_bytes(content)

    return flip


def truncate(file: Path, _other: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def empty(file: Path, _other: Path) -> None:
    file.write_bytes(b"")


def remove_file(file: Path, _other: Path) -> None:
    file.unlink()


def swap(file: Path, other: Path) -> None:
    shutil.copy(other, file)


DAMAGES: Final[Mapping[str, Damage]] = {
    **{f"flipped-{tenth}": flip_at(tenth / 10) for tenth in range(0, 11, 2)},
    "truncated": truncate,
    "empty": empty,
    "missing": remove_file,
    "swapped": swap,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_segment_is_noticed_and_affects_no_other_customer(world: World, damage: str) -> None:
    lender = world.lender(seed=1)
    hit, spared = (customer_with_rows(lender) for _ in range(2))
    file, other = file_of(world, hit), file_of(world, spared)
    shutil.copy(file, retained := world.folder / "kept.parquet")
    DAMAGES[damage](file, other)
    INJECTED["damaged file"] += 1

    refused = Client.call(lender, "GET", f"/v1/customer/{hit}/transactions")
    assert refused.status_code == 500
    assert refused.json()["code"] in ("Lake.ChecksumMismatch", "Lake.FileUnreadable")
    assert file.name in refused.json()["detail"]
    assert len(lender.transactions(spared)) == ROWS

    jobs = {customer: lender.submit(customer, lender.rows(5), accountNumber="770010023") for customer in (hit, spared)}
    failed = Client.wait_for_job(lender, jobs[hit])
    assert (failed["status"], file.name in failed["error"]["message"]) == ("Failed", True)
    assert lender.wait_for_job(jobs[spared])["status"] == "Completed"

    shutil.copy(retained, file)
    lender.wait_for_job(jobs[hit])  # the lender submits again
    world.drain()
    found = violations(Aftermath(world, lender))
    assert not found, "\n  ".join([damage, *found])
    SURVIVED["damaged file"] += 1


def customer_with_rows(lender: Lender) -> str:
    customer = lender.customer()
    lender.wait_for_job(lender.submit(customer, lender.rows(ROWS)))
    return customer


def file_of(world: World, customer_id: str) -> Path:
    with world.store.db.reading() as r:
        number = r.execute(select(customers.c.number).where(customers.c.customer_id == UUID(customer_id))).scalar_one()
        [place] = current_locations(r, [number])
    return world.settings.lake / place.path
