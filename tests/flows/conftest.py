"""One whole Tidemark for all flows, and a receiver that it may reach.

`make test` has the main story on each database, and everything on PostgreSQL; `make test-slow` has all the rest.
"""

from collections.abc import Iterator

import pytest

from api.listen import Receiver
from tests.conftest import DATABASES, POSTGRES_FIRST, new_database
from tests.flows.service import Client, Service

on_each_database = pytest.mark.parametrize("service", DATABASES, indirect=True, scope="session")


@pytest.fixture(scope="session")
def receiver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    with Receiver(home=tmp_path_factory.mktemp("receiver")) as listening:
        yield listening


@pytest.fixture(scope="session", params=POSTGRES_FIRST)
def service(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, receiver: Receiver
) -> Iterator[Service]:
    """Its leases are short, so that the dead are noticed within seconds."""
    running = Service(
        tmp_path_factory.mktemp("service"),
        TIDEMARK_DATABASE_URL=new_database(request, request.param),
        TIDEMARK_BATCH_LEASE_S="4",
        TIDEMARK_WEBHOOK_ALLOW_CIDRS="127.0.0.0/8",
        TIDEMARK_WEBHOOK_CA_BUNDLE=str(receiver.ca_path),
    )
    running.start()
    yield running
    running.stop()


@pytest.fixture
def client(service: Service) -> Client:
    return service.client()
