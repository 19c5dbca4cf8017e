"""PostgreSQL that is down, silent or locked: 503 with Retry-After, and recovery when it is back."""

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
import requests
from sqlalchemy import make_url

from storage.core import postgres
from storage.core.settings import Settings
from storage.core.store import Store
from tests.api.conftest import ABN, Client, new_client, serving
from tests.network import Network, network

POSTGRES = ("127.0.0.1", 5432)


@pytest.fixture
def connection() -> Iterator[Network]:
    with network(POSTGRES) as between:
        yield between


@pytest.fixture
def store(
    connection: Network, postgres_database: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Store]:
    """A store with much shorter timeouts than in production; see `tests/storage/core/test_postgres.py`."""
    for name, value in {"ALIVE_WITHIN_S": 0.2, "POOL_WITHIN_S": 0.5, "LOCK_WITHIN_MS": 300}.items():
        monkeypatch.setattr(postgres, name, value)
    monkeypatch.setattr(postgres.Connection, "silence_s", 0.5)
    url = f"postgresql://127.0.0.1:{connection.port}/{postgres_database()}"
    opened = Store.open(Settings(home=tmp_path / "home", database_url=url))
    yield opened
    opened.close()


@pytest.fixture
def base_url(store: Store) -> Iterator[str]:
    with serving(store) as url:
        yield url


@pytest.fixture
def client(store: Store, base_url: str) -> Client:
    """A client whose key was issued before the database went down."""
    return new_client(store, base_url)


def assert_unavailable(answer: requests.Response) -> None:
    assert (answer.status_code, answer.json()["code"]) == (503, "Service.Unavailable")
    assert int(answer.headers["Retry-After"]) > 0


def test_an_api_started_while_the_database_is_down_reports_it_and_works_afterwards(
    connection: Network, store: Store
) -> None:
    connection.cut()
    with serving(store) as url:
        assert requests.get(f"{url}/health/live", timeout=20).status_code == 200
        assert requests.get(f"{url}/health/ready", timeout=20).status_code == 503
        assert_unavailable(requests.get(f"{url}/v1/customers", headers={"x-api-key": "tm_sandbox_x"}, timeout=20))
        connection.mend()
        assert new_client(store, url).get("/v1/customers").status_code == 200


WAITS = pytest.mark.service  # for timeouts


@pytest.mark.parametrize("trouble", [Network.cut, pytest.param(Network.stall, marks=WAITS)])
def test_a_database_that_goes_away_and_comes_back(
    connection: Network, client: Client, trouble: Callable[[Network], None]
) -> None:
    customer = client.new_customer()
    trouble(connection)
    assert_unavailable(client.get(f"/v1/customer/{customer}"))
    assert_unavailable(client.post("/v1/customer", {"abn": ABN}))
    assert client.get("/health/ready").status_code == 503
    connection.mend()
    assert client.get(f"/v1/customer/{customer}").status_code == 200
    assert len(client.get("/v1/customers").json()["data"]["customers"]) == 1


def test_a_table_locked_for_too_long_makes_the_service_unavailable(store: Store, client: Client) -> None:
    database = make_url(store.settings.database).database
    with psycopg.connect(f"postgresql://127.0.0.1:5432/{database}") as other:
        other.execute("LOCK TABLE customers IN ACCESS EXCLUSIVE MODE")
        assert_unavailable(client.get("/v1/customers"))
    assert client.post("/v1/customer", {"abn": ABN}).status_code == 201


def test_a_request_after_the_backends_were_terminated_succeeds(store: Store, client: Client) -> None:
    client.new_customer()
    with psycopg.connect("postgresql://127.0.0.1:5432/test", autocommit=True) as admin:
        database = make_url(store.settings.database).database
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [database])
    assert len(client.get("/v1/customers").json()["data"]["customers"]) == 1
