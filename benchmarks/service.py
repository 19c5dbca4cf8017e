"""Run Tidemark to measure it: real processes in an empty home, on SQLite or a new PostgreSQL database."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psutil
import psycopg
import requests
from psycopg.sql import SQL, Identifier

from api.core.commands.console import now
from api.service.commands.addresses import choose_port, wait_until_ready
from storage.access import keys
from storage.core.settings import Settings
from storage.core.store import Store

DATABASES = ("SQLite", "PostgreSQL")
POSTGRES = "127.0.0.1:5432"
UNLIMITED = {"TIDEMARK_RATE_LIMIT": "100000000/1m"}  # to measure the service, not its limits


@dataclass(frozen=True)
class Home:
    """The home of a Tidemark, with one client's key."""

    settings: Settings
    client_id: UUID
    key: str

    @property
    def environment(self) -> dict[str, str]:
        return (
            os.environ
            | UNLIMITED
            | {
                "TIDEMARK_HOME": str(self.settings.home),
                "TIDEMARK_DATABASE_URL": self.settings.database_url,
            }
        )

    @contextmanager
    def store(self) -> Iterator[Store]:
        opened = Store.open(self.settings)
        try:
            yield opened
        finally:
            opened.close()

    def session(self) -> requests.Session:
        http = requests.Session()
        http.trust_env = False
        http.headers["x-api-key"] = self.key
        return http


@dataclass(frozen=True)
class Service:
    """A running Tidemark."""

    home: Home
    base_url: str
    process: subprocess.Popen[bytes]

    @property
    def processes(self) -> list[psutil.Process]:
        root = psutil.Process(self.process.pid)
        return [root, *root.children(recursive=True)]

    def cpu_s(self) -> float:
        """Return the CPU seconds of all its processes so far."""
        return sum(sum(process.cpu_times()[:2]) for process in self.processes)

    def pss(self) -> int:
        """Return the memory of all its processes in bytes, with shared pages counted once."""
        return sum(process.memory_full_info().pss for process in self.processes)

    def session(self) -> requests.Session:
        return self.home.session()

    def customer(self, http: requests.Session) -> str:
        return str(self._data(http.post(f"{self.base_url}/v1/customer", json={"abn": "51824753556"}))["customerId"])

    def submit(self, http: requests.Session, customer_id: str, body: dict[str, Any]) -> str:
        url = f"{self.base_url}/v1/customer/{customer_id}/transactions"
        return str(self._data(http.post(url, json=body, timeout=60))["jobId"])

    def refresh(self, http: requests.Session, customer_id: str) -> str:
        return str(self._data(http.post(f"{self.base_url}/v1/customer/{customer_id}/reports/refresh"))["jobId"])

    def wait_for_job(self, http: requests.Session, job_id: str) -> dict[str, Any]:
        """Wait for a job to end and return its status.

        Raises:
            RuntimeError: it did not end `Completed`.
        """
        for _ in range(40):
            job = self._data(http.get(f"{self.base_url}/v1/jobs/{job_id}/status?wait=30", timeout=60))
            if job["status"] not in ("Queued", "Running"):
                break
        if job["status"] != "Completed":
            raise RuntimeError(f"a benchmark job ended {job['status']}: {job}")
        return job

    @staticmethod
    def _data(response: requests.Response) -> dict[str, Any]:
        response.raise_for_status()
        data: dict[str, Any] = response.json()["data"]
        return data


@contextmanager
def new_home(folder: Path, database: str) -> Iterator[Home]:
    """Yield an empty home on one of DATABASES; a PostgreSQL database is dropped afterwards."""
    if database == "SQLite":
        yield _create_client(Settings(home=folder, database_url=""))
        return
    name = f"tidemark_bench_{uuid4().hex[:12]}"
    with psycopg.connect(f"postgresql://{POSTGRES}/test", autocommit=True) as admin:
        admin.execute(SQL("CREATE DATABASE {}").format(Identifier(name)))
        try:
            yield _create_client(Settings(home=folder, database_url=f"postgresql+psycopg://{POSTGRES}/{name}"))
        finally:
            admin.execute(SQL("DROP DATABASE {} WITH (FORCE)").format(Identifier(name)))


def _create_client(settings: Settings) -> Home:
    store = Store.open(settings)
    with store.db.writing() as w:
        client = keys.create_client(w, "benchmark", decision_policies=True, now=now())
        text = keys.create_key(w, client.client_id, keys.SCOPES, None, settings.key_prefix, now())[1]
    store.close()
    return Home(settings, client.client_id, text)


@contextmanager
def running(home: Home, api_processes: int = 1) -> Iterator[Service]:
    """Run `tidemark up` for the duration of a block, from when it is ready."""
    options = ("--api-processes", str(api_processes), "--dagster-port", str(choose_port(0)))
    with start(home, "up", *options) as service:
        wait_until_ready(service.base_url, service.process, within_s=120)
        yield service


@contextmanager
def start(home: Home, *command: str) -> Iterator[Service]:
    """Run a `tidemark` command that serves the API for the duration of a block."""
    port = choose_port(0)
    with (home.settings.home / "service.log").open("ab") as sink:
        process = subprocess.Popen(
            [sys.executable, "-m", "api.cli", *command, "--port", str(port)],
            env=home.environment,
            stdout=sink,
            stderr=subprocess.STDOUT,
        )
    try:
        yield Service(home, f"http://127.0.0.1:{port}", process)
    finally:
        process.terminate()
        process.wait(timeout=60)


def seconds_until(base_url: str, path: str, since: float, within_s: float = 120) -> float:
    """Wait until `path` responds with 200; return the seconds since `since` (monotonic)."""
    with requests.Session() as http:
        http.trust_env = False
        while time.monotonic() - since < within_s:
            try:
                if http.get(base_url + path, timeout=5).ok:
                    return time.monotonic() - since
            except (requests.ConnectionError, requests.Timeout):
                pass
            time.sleep(0.02)
    raise TimeoutError(f"{path} did not answer within {within_s} s")
