"""Backups during a scenario, one killed at its n-th write: the folder holds a complete backup or none.

A backup is restored as docs/how-to/operations.md says; on PostgreSQL, with the commands of that page themselves.
"""

import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import polars as pl
import pytest
from sqlalchemy import delete, select

from api.core.commands.console import now
from api.webhooks.listen import Receiver
from pipelines.vocabulary.schemas import current
from storage.core import leases, models
from storage.core.database import Database
from storage.core.settings import Settings
from storage.core.store import Store
from storage.enrichment import transactions
from storage.operations.doctor import Severity, examine
from storage.operations.integrity import find_all_named
from tests.faults.commands import run
from tests.faults.faults import KillAtWrite
from tests.faults.ledger import Row
from tests.faults.lender import Lender
from tests.faults.postgres import DATABASE, PROGRAMS, USER, server
from tests.faults.scenarios import submits_with_keys
from tests.faults.survival import survives
from tests.faults.world import World, running, sha256
from tests.root import ROOT
from tests.waiting import again_and_again

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
FIRST = range(1, 60, 10)  # some of the writes of a backup into an empty folder
LATER = range(1, 30, 2)  # some of the writes of a backup that copies only new files
AT_LEAST = 10  # writes of a backup that finds nothing new
OPERATIONS: Final = ROOT / "docs" / "how-to" / "operations.md"


@pytest.fixture(scope="module")
def retained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("retained") / "backup"


@pytest.mark.parametrize("nth", FIRST)
def test_the_first_backup_is_killed(world: World, tmp_path: Path, nth: int) -> None:
    survives_while_backed_up(world, tmp_path / "backup", tmp_path, nth)


@pytest.mark.parametrize("nth", LATER)
def test_a_later_backup_is_killed(world: World, retained: Path, tmp_path: Path, nth: int) -> None:
    survives_while_backed_up(world, retained, tmp_path, nth)


def test_the_documented_commands_restore_a_postgresql_backup(receiver: Receiver, tmp_path: Path) -> None:
    folder, home = tmp_path / "backup", tmp_path / "restored"
    with server() as database:
        url = database.url
        with running(tmp_path / "world", receiver, None, url, TIDEMARK_DATABASE_URL=url) as world:
            lender = world.lender(seed=1)
            submits_with_keys(lender)
            world.drain()
            assert run(world, "backup", str(folder)) is not None
        database.execute(f"DROP DATABASE {DATABASE}", "postgres")
        make_home, _copy_sqlite, copy_lake, install_key, *_ = read_documented_commands("Into an empty home")
        install_key = install_key.replace("/path/to/kept", str(world.home))
        commands = [make_home, *read_documented_commands("PostgreSQL, the same with this"), copy_lake, install_key]
        environment = {"HOME_DIR": str(home), "BACKUP": str(folder), "PATH": f"{PROGRAMS}:{os.environ['PATH']}"}
        to_the_server = {"PGHOST": "127.0.0.1", "PGPORT": str(database.port), "PGUSER": USER}
        subprocess.run(["bash", "-euc", "\n".join(commands)], env=os.environ | environment | to_the_server, check=True)
        assert_holds(Settings(home=home, database_url=url), lender)


def read_documented_commands(under: str) -> list[str]:
    """Return the lines of the first block of commands that follows these words in docs/how-to/operations.md."""
    block = OPERATIONS.read_text().split(under)[1].split("```sh\n")[1].split("```")[0]
    return block.splitlines()


def survives_while_backed_up(world: World, folder: Path, tmp_path: Path, nth: int) -> None:
    def is_backed_up_meanwhile(lender: Lender) -> None:
        with again_and_again(lambda: back_up(world, folder, tmp_path)):
            submits_with_keys(lender)
        while back_up(world, folder, tmp_path) is None:  # killed
            pass
        assert_restorable(world, folder, tmp_path / "restored", lender)

    injected = survives(world, is_backed_up_meanwhile, KillAtWrite(world, "api.cli backup", nth), seed=nth)
    assert injected or nth > AT_LEAST


def back_up(world: World, folder: Path, tmp_path: Path) -> Any:
    done = run(world, "backup", str(folder))
    if done is None:
        with world.store.db.writing() as w:  # it died with its lease, which lasts for five more minutes
            w.execute(delete(models.leases).where(models.leases.c.name == leases.FILE_KEEPER))
    if (folder / "tidemark.db").exists():
        assert_whole(folder, tmp_path / "looked-at.db")
    return done


def assert_whole(folder: Path, copy: Path) -> None:
    """Assert that every file that the snapshot names is intact. Opening writes files beside it, so a copy is opened."""
    shutil.copy(folder / "tidemark.db", copy)
    db = Database(f"sqlite:///{copy}")
    with db.reading() as r:
        named = list(find_all_named(r))
    db.close()
    assert [path for path, digest in named if sha256(folder / "lake" / path) != digest] == []


def assert_restorable(world: World, folder: Path, home: Path, lender: Lender) -> None:
    """Restore the backup as docs/how-to/operations.md says, and check its content."""
    home.mkdir(mode=0o700)
    shutil.copy(folder / "tidemark.db", home)
    shutil.copytree(folder / "lake", home / "lake")
    shutil.copy(world.home / "master.key", home)
    assert_holds(Settings(home=home), lender)


def assert_holds(settings: Settings, lender: Lender) -> None:
    """Assert that no file is damaged and all rows of the client are there."""
    findings = examine(settings, now, deep=True)
    assert [found for found in findings if found.severity is Severity.ERROR] == []
    store = Store.open(settings)
    for customer_id, accounts in lender.ledger.rows.items():
        assert rows_of(store, customer_id) == sum(accounts.values(), Counter())
    store.close()


def rows_of(store: Store, customer_id: str) -> Counter[Row]:
    number = select(models.customers.c.number).where(models.customers.c.customer_id == UUID(customer_id))
    with store.db.reading() as r:
        places = transactions.current_locations(r, r.execute(number).scalars())
    rows = transactions.scan(store.lake, places).filter(current()).collect()
    return Counter(
        map(Row.of, rows.select(pl.col("date").dt.to_string(), "description", "amount", "balance").to_dicts())
    )
