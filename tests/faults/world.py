"""The subject of the invariants: a running service, its store seen from outside, its clients and a receiver."""

import hashlib
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import psutil
from pydantic import SecretStr
from sqlalchemy import select, text
from sqlalchemy.exc import OperationalError

from api.service.commands.addresses import is_ready
from api.webhooks.listen import Receiver
from storage.access import keys
from storage.core.database import Reading
from storage.core.models import LIVE, DeliveryStatus, deliveries, jobs
from storage.core.settings import Settings
from storage.core.store import Store
from tests.faults.ledger import Ledger
from tests.faults.lender import Lender
from tests.flows.service import Service, command_of

SABOTEUR = Path(__file__).parent / "saboteur"
DRAINED_WITHIN_S = 90.0
RUNS_END_WITHIN_S = 300.0  # for Dagster's runs after all work has ended: longer than a run may wait for its worker
RUNS_UNDER_WAY = "SELECT run_id FROM {}runs WHERE status IN ('QUEUED', 'STARTING', 'STARTED', 'CANCELING')"
BACK_WITHIN_S = 60.0

# A piece of the command line by which each process of the service is recognised; each queue that is always warm has
# a process of its own.
PARTS: Mapping[str, str] = {
    "api": "api.cli api",
    "worker": "assets.service.worker",
    "enrichment": "assets.dagster_internals.warm enrichment",
    "refresh": "assets.dagster_internals.warm refresh",
    "platform": "assets.service.platform",
    "web": "assets.dagster_internals.web_and_daemon",
}
OF_THE_LEADER = ("web",)  # runs beside one platform of those that share a database

_ledgers = count(1)


class World:
    """A service in a new home, with leases short enough that dead processes are noticed within seconds.

    Args:
        folder: an empty one, for the ledgers and, by default, the home.
        receiver: gets the webhooks.
        home: the service's home, if not in `folder`.
        database: its URL for the tests, if the service's own URL leads through another network.
        settings: further environment variables of the service.
    """

    def __init__(
        self, folder: Path, receiver: Receiver, home: Path | None = None, database: str = "", **settings: str
    ) -> None:
        self.folder = folder
        self.home = home or folder / "home"
        self.orders = folder / "orders"
        self.orders.mkdir(parents=True)
        self.receiver = receiver
        self.lenders: list[Lender] = []
        self.others: list[World] = []  # whose services share this one's database
        self._stranger: Lender | None = None
        self.runs_seen: dict[str, float] = {}  # in progress since when, by a clock that no test sets
        self.service = Service(self.home, **self._environment(settings))
        self.settings = Settings(
            home=self.home,
            database_url=database or settings.get("TIDEMARK_DATABASE_URL", ""),
            lake_url=settings.get("TIDEMARK_LAKE_URL", ""),
            master_key=SecretStr(settings.get("TIDEMARK_MASTER_KEY", "")),
        )
        self.store = Store.open(self.settings)

    def _environment(self, settings: Mapping[str, str]) -> dict[str, str]:
        return {
            "PYTHONPATH": os.pathsep.join([str(SABOTEUR), os.environ.get("PYTHONPATH", "")]),
            "SABOTEUR_ORDERS": str(self.orders),
            "TIDEMARK_BATCH_LEASE_S": "4",
            "TIDEMARK_WEBHOOK_ALLOW_CIDRS": "127.0.0.0/8",
            "TIDEMARK_WEBHOOK_CA_BUNDLE": str(self.receiver.ca_path),
            **settings,
        }

    def lender(self, seed: int, base_url: str | None = None) -> Lender:
        """Create a client of this service with its own ledger."""
        with self.store.db.writing() as w:
            client = keys.create_client(w, "lender", decision_policies=True, now=datetime.now(UTC))
            _, key = keys.create_key(
                w, client.client_id, keys.SCOPES, None, self.settings.key_prefix, datetime.now(UTC)
            )
        ledger = Ledger(self.folder / f"ledger-{next(_ledgers)}.jsonl")
        lender = Lender(base_url or self.service.base_url, key, ledger, self.receiver, seed)
        self.lenders.append(lender)
        return lender

    @property
    def stranger(self) -> Lender:
        """A client without any data, for which all data of others must be unknown. It is created when first used."""
        if self._stranger is None:
            self._stranger = self.lender(seed=0)
        return self._stranger

    def processes(self, part: str) -> list[psutil.Process]:
        """Return the running processes of a part (see PARTS)."""
        started = self.service.processes(PARTS[part].split()[0])
        return [process for process in started if PARTS[part] in " ".join(command_of(process))]

    def process(self, part: str) -> psutil.Process:
        """Return a part's process; wait for it if it is being restarted, here or where the platform leads now."""
        worlds = [self, *self.others] if part in OF_THE_LEADER else [self]
        until = time.monotonic() + BACK_WITHIN_S
        while not (found := [process for world in worlds for process in world.processes(part)]):
            assert time.monotonic() < until, f"{part} did not come back"
            time.sleep(0.1)
        return found[0]

    def wait_until_back(self) -> None:
        """Wait until every part runs again and jobs are processed."""
        until = time.monotonic() + BACK_WITHIN_S
        for part in PARTS:
            self.process(part)
        while not is_ready(self.service.base_url):
            assert time.monotonic() < until, "the service did not become ready again"
            time.sleep(0.1)

    def drain(self) -> None:
        """Wait until no work is in progress. If some stays in progress, an invariant will report it."""
        until = time.monotonic() + DRAINED_WITHIN_S
        while self._under_way() and time.monotonic() < until:
            time.sleep(0.05)

    def runs_under_way(self) -> Mapping[str, float]:
        """Return Dagster's unended runs, and for how many seconds each has been observed."""
        if self.store.db.is_sqlite:
            with closing(sqlite3.connect(self.settings.dagster_home / "dagster.db")) as connection:
                found = {run_id for (run_id,) in connection.execute(RUNS_UNDER_WAY.format(""))}
        else:
            with self.store.db.reading() as r:
                found = set(r.execute(text(RUNS_UNDER_WAY.format("dagster."))).scalars())
        now = time.monotonic()
        self.runs_seen = {run_id: self.runs_seen.get(run_id, now) for run_id in found}
        return {run_id: now - since for run_id, since in self.runs_seen.items()}

    def wait_for_runs(self) -> None:
        """Wait until every run of Dagster has ended."""
        while unended := self.runs_under_way():
            assert max(unended.values()) < RUNS_END_WITHIN_S, f"runs stay under way: {unended}"
            time.sleep(0.5)

    def _under_way(self) -> bool:
        try:
            with self.store.db.reading() as r:
                return bool(live_jobs(r) or open_deliveries(r))
        except OperationalError:
            return True  # the database itself is unavailable now

    def close(self) -> None:
        self.service.stop()
        for lender in self.lenders:
            lender.http.close()
            lender.ledger.close()
        self.store.close()


@contextmanager
def running(
    folder: Path, receiver: Receiver, home: Path | None = None, database: str = "", **settings: str
) -> Iterator[World]:
    """Run a world whose service is ready."""
    world = World(folder, receiver, home, database, **settings)
    try:
        world.service.start()
        yield world
    finally:
        world.close()


def live_jobs(r: Reading) -> list[Any]:
    return list(r.execute(select(jobs.c.job_id).where(jobs.c.status.in_(LIVE))).scalars())


def open_deliveries(r: Reading) -> list[Any]:
    underway = deliveries.c.status.in_((DeliveryStatus.DUE, DeliveryStatus.SENDING))
    return list(r.execute(select(deliveries.c.delivery_id).where(underway)).scalars())


def sha256(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
