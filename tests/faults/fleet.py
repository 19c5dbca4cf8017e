"""A fleet for faults: two machines with homes of their own, and links to the database, the broker and the object store.

The machines share nothing else, and each link can be cut, stalled or half closed. The broker is a RabbitMQ of this
fleet alone, so that it can be killed.
"""

import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import psutil
import pytest
import requests
from sqlalchemy import text

from api.service.commands.addresses import choose_port
from pipelines.synthetic import plain_rows
from storage.core import leases
from storage.core.settings import Settings, key_text, new_key
from storage.core.store import Store
from tests.conftest import END_OTHERS
from tests.flows.service import Client, Service, command_of
from tests.network import Network, network
from tests.object_store import Emulator, emulate_bucket
from tests.waiting import until

RABBITMQ = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")  # of Debian; its command in the path needs another user
ROWS = plain_rows(30, seed=3, until=date(2026, 10, 31))
JOBS = 4  # of a round, each of a customer of its own
BROKER_STARTS_WITHIN_S = 90
ENDS_WITHIN_S = 240
WORKERS = 2
PARTS = {
    "API": ("one", "api.cli"),
    "dispatcher": ("one", "assets.service.platform"),
    "Dagster": ("one", "assets.dagster_internals.web_and_daemon"),
    "worker of machine one": ("one", "assets.service.worker"),
    "warm process of machine one": ("one", "assets.dagster_internals.warm"),
    "worker of machine two": ("two", "assets.service.worker"),
    "warm process of machine two": ("two", "assets.dagster_internals.warm"),
}


class Broker:
    """A RabbitMQ in a folder, which keeps its queues when it is killed."""

    def __init__(self, folder: Path) -> None:
        self.port = choose_port(0)
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir()
        (folder / "plugins").touch()

    def start(self) -> None:
        name = f"tidemark-{self.port}@localhost"
        settings = {
            "RABBITMQ_NODENAME": name,
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(choose_port(0)),
            "RABBITMQ_MNESIA_BASE": str(self._folder / "data"),
            "RABBITMQ_LOG_BASE": str(self._folder / "logs"),
            "RABBITMQ_CONFIG_FILE": str(self._folder / "settings"),  # there is none: not the machine's
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self._folder / "plugins"),
            "HOME": str(self._folder),
            "PATH": "/usr/bin:/bin",
        }
        output = self._folder / "output"
        with output.open("wb") as sink:
            self._process = subprocess.Popen(
                [RABBITMQ], cwd=self._folder, env=settings, stdout=sink, stderr=subprocess.STDOUT
            )
        until(lambda: b"Server startup complete" in output.read_bytes(), BROKER_STARTS_WITHIN_S)

    def kill(self) -> None:
        assert self._process is not None
        family = [psutil.Process(self._process.pid), *psutil.Process(self._process.pid).children(recursive=True)]
        for process in family:
            process.kill()
        self._process.wait(timeout=30)
        psutil.wait_procs(family, timeout=30)


class Fleet:
    """Machine one runs `tidemark up`: API, Dagster and a worker. Machine two runs a worker."""

    def __init__(self, folder: Path, database_url: str, broker: Broker, store: Emulator) -> None:
        self.broker, self.emulator = broker, store
        self._stack = ExitStack()
        targets = {
            "database": ("127.0.0.1", 5432),
            "broker": ("127.0.0.1", broker.port),
            "store": ("127.0.0.1", int(store.endpoint.rpartition(":")[2])),
        }
        self.links: Mapping[tuple[str, str], Network] = {
            (machine, name): self._stack.enter_context(network(target))
            for machine in ("one", "two")
            for name, target in targets.items()
        }
        shared = store.settings(uuid4().hex, timeout_s=2) | {"master_key": key_text(new_key()).decode()}
        self._shared = {f"TIDEMARK_{name.upper()}": str(value) for name, value in shared.items()}
        patched = self._stack.enter_context(pytest.MonkeyPatch.context())
        for name, value in self._shared.items():
            patched.setenv(name, value)  # also for the stores that the test itself opens
        self._database_url = database_url
        self._folder = folder
        self.service = Service(folder / "one", **self._environment("one"))
        self._second: psutil.Popen | None = None

    def start(self) -> None:
        self.service.start()
        self.start_second()
        opened = Store.open(Settings(home=self.service.home, database_url=self._database_url))
        self.store = self._stack.enter_context(closing(opened))
        self.client = self.service.client()
        until(lambda: self.count_workers() == WORKERS)

    def stop(self) -> None:
        self.second.terminate()
        self.second.wait(timeout=60)
        self.service.stop()
        self._stack.close()

    def start_second(self) -> None:
        """Start the worker of machine two, as its supervisor would."""
        command = [sys.executable, "-m", "api.cli", "worker"]
        environment = self.service.environment | self._environment("two") | {"TIDEMARK_HOME": str(self._folder / "two")}
        with self.service.log.open("ab") as sink:
            self._second = psutil.Popen(command, env=environment, stdout=sink, stderr=subprocess.STDOUT)

    @property
    def second(self) -> psutil.Popen:
        assert self._second is not None
        return self._second

    def processes(self, part: str) -> Sequence[psutil.Process]:
        """Return the running processes of a part, one of PARTS."""
        machine, module = PARTS[part]
        if machine == "one":
            found = self.service.processes(module)
        else:
            family = [self.second, *self.second.children(recursive=True)] if self.second.poll() is None else []
            found = [each for each in family if module in command_of(each)]
        return [each for each in found if "warm" not in part or "enrichment" in command_of(each)]

    def kill(self, part: str) -> None:
        """Kill the processes of a part."""
        killed = self.processes(part)
        self._killed_at = time.time()
        for process in killed:
            process.kill()
        psutil.wait_procs(killed, timeout=30)

    def measure_restart_s(self, part: str) -> float:
        """Return how long after the last kill a process of the part was started."""
        until(lambda: self.processes(part))
        return min(process.create_time() for process in self.processes(part)) - self._killed_at

    def end_connections(self) -> None:
        """End every connection to the database, as a server that crashes does. The server itself is not ours."""
        with self.store.db.writing() as w:
            w.execute(text(END_OTHERS))

    def count_workers(self) -> int:
        with self.store.db.reading() as r:
            return leases.count_holders(r, leases.FLEET, leases.clock(self.store.db))

    def heal(self) -> None:
        """Mend all links, and restart what nobody else restarts."""
        self.emulator.faults.clear()
        for link in self.links.values():
            link.mend()
        if self.second.poll() is not None:
            self.start_second()

    def _environment(self, machine: str) -> dict[str, str]:
        ports = {name: self.links[machine, name].port for name in ("database", "broker", "store")}
        return {
            **self._shared,
            "TIDEMARK_DATABASE_URL": f"postgresql+psycopg://127.0.0.1:{ports['database']}{urlsplit(self._database_url).path}",
            "TIDEMARK_BROKER_URL": f"amqp://guest:guest@127.0.0.1:{ports['broker']}//",
            "TIDEMARK_S3_ENDPOINT": f"http://127.0.0.1:{ports['store']}",
        }


@contextmanager
def running(folder: Path, database_url: str) -> Iterator[Fleet]:
    with emulate_bucket() as store:
        broker = Broker(folder / "broker")
        broker.start()
        fleet = Fleet(folder, database_url, broker, store)
        try:
            fleet.start()
            yield fleet
        finally:
            fleet.heal()
            fleet.stop()
            broker.kill()


def measure_recovery_s(fleet: Fleet, drawn: random.Random, harm: Callable[[], None]) -> float:
    """Submit a round of jobs, do harm among them, heal, and require that nothing was lost or counted twice.

    Returns: seconds from the harm until all jobs had ended.
    """
    client = fleet.client
    submitted = [_submit(client) for _ in range(JOBS - 1)]
    time.sleep(drawn.uniform(0, 1.5))
    harmed_at = time.monotonic()
    harm()
    submitted.append(_submit(client))
    fleet.heal()
    for customer, job in submitted:
        ended = _wait_for_end(client, job)
        assert (ended["status"], ended["enrichedCount"]) == ("Completed", len(ROWS)), ended
        ids = [
            row["transactionId"]
            for row in _call_until_answered(client, "GET", f"/v1/customer/{customer}/transactions")["transactions"]
        ]
        assert len(ids) == len(set(ids)) == len(ROWS)
    return time.monotonic() - harmed_at


def _submit(client: Client) -> tuple[str, str]:
    """Create a customer and submit its rows; return the ids of the customer and of the job."""
    customer = _call_until_answered(client, "POST", "/v1/customer", {"abn": "51824753556"})["customerId"]
    body = {"bsb": "062000", "accountNumber": "12345678", "transactions": ROWS}
    return customer, _call_until_answered(client, "POST", f"/v1/customer/{customer}/transactions", body)["jobId"]


def _wait_for_end(client: Client, job: str) -> dict[str, Any]:
    deadline = time.monotonic() + ENDS_WITHIN_S
    while time.monotonic() < deadline:
        state: dict[str, Any] = _call_until_answered(client, "GET", f"/v1/jobs/{job}/status")
        if state["status"] not in ("Queued", "Running"):
            return state
        time.sleep(0.1)
    raise AssertionError(f"job {job} has not ended: {state}")


def _call_until_answered(client: Client, method: str, path: str, body: object = None) -> Any:
    """Call until the service answers, with one idempotency key, as a client does."""
    headers = {"Idempotency-Key": uuid4().hex} if method == "POST" else {}
    deadline = time.monotonic() + ENDS_WITHIN_S
    while time.monotonic() < deadline:
        try:
            answer = client.http.request(method, client.base_url + path, json=body, headers=headers, timeout=60)
        except requests.ConnectionError:
            time.sleep(0.1)
            continue
        if answer.ok:
            return answer.json()["data"]
        assert answer.status_code in (409, 503), answer.text  # 409: the first call with this key is still at work
        time.sleep(0.2)
    raise AssertionError(f"{method} {path} was not answered")
