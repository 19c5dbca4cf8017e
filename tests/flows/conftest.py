"""One whole Tidemark for all flows that don't kill it, and a receiver that it may reach.

`make test-service` runs everything on SQLite, and the main job on PostgreSQL, too. `make test-slow` runs the longest
tests, and everything on PostgreSQL.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from api.webhooks.listen import Receiver
from tests.conftest import DATABASES, SQLITE_FIRST, new_database
from tests.flows.service import Client, Service
from tests.object_store import emulate_bucket

on_each_database = pytest.mark.parametrize("service", DATABASES, indirect=True, scope="session")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests here as needing a whole service, except those that are only for `make test-slow`."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent) and not item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.service)


@pytest.fixture(scope="session", autouse=True)
def lake() -> Iterator[None]:
    """With STORE=s3, let all services share a bucket of an unreliable emulator, which refuses to list it."""
    if os.environ.get("STORE") != "s3":
        yield
        return
    with emulate_bucket(is_unreliable=True) as emulator, pytest.MonkeyPatch.context() as patch:
        emulator.refused = ("list-type=", "versions=")
        for name, value in emulator.settings("flows").items():
            patch.setenv(f"TIDEMARK_{name.upper()}", str(value))
        yield


@pytest.fixture(scope="session")
def receiver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    with Receiver(home=tmp_path_factory.mktemp("receiver")) as listening:
        yield listening


@pytest.fixture(scope="session", params=SQLITE_FIRST)
def service(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, receiver: Receiver
) -> Iterator[Service]:
    with start_service(tmp_path_factory.mktemp("service"), new_database(request, request.param), receiver) as running:
        yield running


@contextmanager
def start_service(home: Path, database_url: str, receiver: Receiver) -> Iterator[Service]:
    """Start a service with short leases, so that dead processes are noticed within seconds."""
    running = Service(
        home,
        TIDEMARK_DATABASE_URL=database_url,
        TIDEMARK_BATCH_LEASE_S="4",
        TIDEMARK_WEBHOOK_ALLOW_CIDRS="127.0.0.0/8",
        TIDEMARK_WEBHOOK_CA_BUNDLE=str(receiver.ca_path),
    )
    try:
        running.start()
        yield running
    finally:
        running.stop()


@pytest.fixture
def client(service: Service) -> Client:
    return service.client()
