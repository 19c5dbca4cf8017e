"""A whole Tidemark for tests: real processes in an empty home, used over HTTP as any client uses it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import requests

from api.core.commands.console import now
from api.service.commands.addresses import choose_port, wait_until_ready
from assets.access.gate_tokens import Role, token
from storage.access import keys
from storage.core.settings import Settings
from storage.core.store import Store
from tests.waiting import until

READY_WITHIN_S = 90
LAUNCH = """
mutation Launch($execution: ExecutionParams!) {
  launchRun(executionParams: $execution) { __typename ... on LaunchRunSuccess { run { runId } } }
}
"""
RUN = """
query Run($id: ID!) { runOrError(runId: $id) { ... on Run { status tags { key value } } } }
"""
REPOSITORY = {"repositoryLocationName": "tidemark", "repositoryName": "__repository__"}


class Service:
    """A `tidemark up` that can be killed partly or completely and started again in the same home."""

    def __init__(self, home: Path, **environment: str) -> None:
        self.home = home
        self.port, self.dagster_port = choose_port(0), choose_port(0)
        self.base_url = f"http://127.0.0.1:{self.port}"
        self.environment = os.environ | {"TIDEMARK_HOME": str(home)} | environment
        self._process: subprocess.Popen[bytes] | None = None
        home.mkdir(parents=True, exist_ok=True)

    @property
    def log(self) -> Path:
        """The log of all its processes."""
        return self.home / "up.log"

    def start(self) -> None:
        self.begin()
        self.wait_until_ready()

    def begin(self) -> None:
        """Start without waiting until it is ready."""
        ports = ["--port", str(self.port), "--dagster-port", str(self.dagster_port)]
        command = [sys.executable, "-m", "api.cli", "up", *ports]
        with self.log.open("ab") as sink:
            self._process = subprocess.Popen(command, env=self.environment, stdout=sink, stderr=subprocess.STDOUT)

    def wait_until_ready(self) -> None:
        assert self._process is not None
        wait_until_ready(self.base_url, self._process, READY_WITHIN_S)

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(timeout=60)

    def kill_everything(self) -> None:
        """Send SIGKILL to all processes at once, like a power cut."""
        assert self._process is not None
        family = [psutil.Process(self._process.pid), *psutil.Process(self._process.pid).children(recursive=True)]
        for process in family:
            process.suspend()
        for process in family:
            process.kill()
        self._process.wait(timeout=30)
        psutil.wait_procs(family, timeout=30)

    def processes(self, module: str) -> list[psutil.Process]:
        """Return the running processes that were started as `python -m module …`."""
        assert self._process is not None
        family = psutil.Process(self._process.pid).children(recursive=True)
        return [process for process in family if module in command_of(process)]

    @contextmanager
    def another(self, part: str, *options: str, **environment: str) -> Iterator[psutil.Process]:
        """Run another process of a part (`tidemark worker`, `tidemark api`) of this service."""
        command = [sys.executable, "-m", "api.cli", part, *options]
        with self.log.open("ab") as sink:
            environment = self.environment | environment
            started = subprocess.Popen(command, env=environment, stdout=sink, stderr=subprocess.STDOUT)
        try:
            yield psutil.Process(started.pid)
        finally:
            started.terminate()
            started.wait(timeout=60)

    def store(self) -> Store:
        """Open the store that its processes share."""
        url = self.environment.get("TIDEMARK_DATABASE_URL", "")
        return Store.open(Settings(home=self.home, database_url=url))

    @property
    def dagster_url(self) -> str:
        return f"http://127.0.0.1:{self.dagster_port}"

    def token(self, role: Role) -> str:
        """Return the token of a role for Dagster's pages."""
        return token(Settings(home=self.home), role)

    @property
    def operator(self) -> dict[str, str]:
        """The headers of an operator for Dagster's pages."""
        return {"Authorization": f"Bearer {self.token(Role.OPERATOR)}"}

    def materialise(self, bucket: int, *assets: str) -> dict[str, str]:
        """Materialise assets of a bucket in one run, as Dagster's pages do. Return the run's tags."""
        run_id = self.launch(bucket, *assets)
        until(lambda: self.has_succeeded(run_id))
        return {tag["key"]: tag["value"] for tag in self._ask(RUN, id=run_id)["runOrError"]["tags"]}

    def launch(self, bucket: int, *assets: str) -> str:
        """Begin a run that materialises assets of a bucket, as Dagster's pages do. Return its id."""
        selector = {**REPOSITORY, "jobName": "__ASSET_JOB", "assetSelection": [{"path": [name]} for name in assets]}
        tags = [{"key": "dagster/partition", "value": f"{bucket:02d}"}]
        execution = {"selector": selector, "runConfigData": {}, "mode": "default", "executionMetadata": {"tags": tags}}
        run_id: str = self._ask(LAUNCH, execution=execution)["launchRun"]["run"]["runId"]
        return run_id

    def has_succeeded(self, run_id: str) -> bool:
        status = self._ask(RUN, id=run_id)["runOrError"]["status"]
        assert status not in ("FAILURE", "CANCELED")
        return bool(status == "SUCCESS")

    def _ask(self, query: str, **variables: Any) -> Any:
        url, body = f"{self.dagster_url}/graphql", {"query": query, "variables": variables}
        answer = requests.post(url, json=body, headers=self.operator, timeout=30).json()
        assert not answer.get("errors"), answer
        return answer["data"]

    def run(self, module: str, *arguments: str) -> str:
        """Run `python -m module …` with this service's settings, and return its output."""
        return self._run(module, *arguments, check=True)

    def output_of(self, module: str, *arguments: str) -> str:
        """Run a command that may fail, and return its output."""
        return self._run(module, *arguments, check=False)

    def _run(self, module: str, *arguments: str, check: bool) -> str:
        environment = self.environment | {"TIDEMARK_BASE_URL": self.base_url}
        command = [sys.executable, "-m", module, *arguments]
        return subprocess.run(command, env=environment, check=check, capture_output=True, text=True, timeout=120).stdout

    def manifest(self) -> list[dict[str, Any]]:
        """Return the lake's manifest. For files in a bucket it has local copies: DuckDB would download an extension."""
        entries: list[dict[str, Any]] = json.loads(self.run("api.cli", "lake", "manifest", "--json"))
        store = self.store()
        if store.settings.has_bucket:
            for entry in entries:
                path = entry["path"].removeprefix(store.lake.url_of(""))
                entry["path"] = str(store.lake.verified_path(path, bytes.fromhex(entry["sha256"])))
        store.close()
        return entries

    def client(self, *scopes: str) -> "Client":
        """Create a client with a key for `scopes`, by default for all."""
        store = self.store()
        with store.db.writing() as w:
            client = keys.create_client(w, "flow test", decision_policies=True, now=now())
            _, text = keys.create_key(
                w, client.client_id, scopes or keys.SCOPES, None, store.settings.key_prefix, now()
            )
        store.close()
        return Client(self.base_url, text)


def command_of(process: psutil.Process) -> list[str]:
    """Return a process's command line; empty if the process has just ended."""
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


class Client:
    """A lender's backend."""

    def __init__(self, base_url: str, key: str) -> None:
        self.base_url = base_url
        self.http = requests.Session()
        self.http.trust_env = False
        self.http.headers["x-api-key"] = key

    def call(self, method: str, path: str, body: object = None, **query: Any) -> requests.Response:
        return self.http.request(method, f"{self.base_url}{path}", json=body, params=query, timeout=60)

    def data(self, method: str, path: str, body: object = None, **query: Any) -> Any:
        answer = self.call(method, path, body, **query)
        assert answer.ok, answer.text
        return answer.json()["data"]

    def customer(self) -> str:
        customer_id: str = self.data("POST", "/v1/customer", {"abn": "51824753556"})["customerId"]
        return customer_id

    def submit(self, customer_id: str, rows: list[dict[str, Any]], **account: Any) -> str:
        body = {"bsb": "062000", "accountNumber": "12345678", **account, "transactions": rows}
        job_id: str = self.data("POST", f"/v1/customer/{customer_id}/transactions", body)["jobId"]
        return job_id

    def refresh(self, customer_id: str) -> str:
        job_id: str = self.data("POST", f"/v1/customer/{customer_id}/reports/refresh")["jobId"]
        return job_id

    def wait_for_job(self, job_id: str) -> dict[str, Any]:
        """Wait until the job has ended, and return it."""
        for _ in range(60):
            job: dict[str, Any] = self.data("GET", f"/v1/jobs/{job_id}/status", wait=2)
            if job["status"] not in ("Queued", "Running"):
                return job
        raise AssertionError(f"job {job_id} has not ended: {job}")

    def transactions(self, customer_id: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.data("GET", f"/v1/customer/{customer_id}/transactions")["transactions"]
        return rows
