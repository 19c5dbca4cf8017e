"""The HTTP door over a real store, behind a real server on a loopback socket."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from http.client import HTTPConnection
from pathlib import Path
from socket import create_server
from threading import Thread
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import pytest
import requests

from api.app import server
from api.schemas.policies import EXAMPLE_DOCUMENT
from api.schemas.statements import EXAMPLE_FILES
from assets import backtests, simulations
from storage import keys
from storage.settings import Quota, Settings
from storage.store import Store
from tests.api.worker import end_extractions, end_submissions, look_at
from tests.conftest import DATABASES, new_database

ABN = "51824753556"
HTTP = requests.Session()
ITEM = {"date": "2026-06-01", "description": "COFFEE", "amount": -4.5}


@dataclass
class Client:
    """A lender's backend: calls the service with its key."""

    base_url: str
    client_id: UUID
    key: str

    def call(self, method: str, path: str, **options: Any) -> requests.Response:
        headers = {"x-api-key": self.key} | dict(options.pop("headers", {}))
        return HTTP.request(method, self.base_url + path, headers=headers, timeout=20, **options)

    def get(self, path: str, **options: Any) -> requests.Response:
        return self.call("GET", path, **options)

    def post(self, path: str, json: object = None, **options: Any) -> requests.Response:
        return self.call("POST", path, json=json, **options)

    def delete(self, path: str, json: object = None, **options: Any) -> requests.Response:
        return self.call("DELETE", path, json=json, **options)

    def new_customer(self, **fields: object) -> str:
        made = self.post("/v1/customer", {"abn": ABN} | fields)
        assert made.status_code == 201, made.text
        return str(made.json()["data"]["customerId"])

    def submitted(self, customer_id: str, items: Sequence[object] = (ITEM,), **account: object) -> str:
        """The job of a submission."""
        body = {"transactions": list(items), "accountNumber": "12345678", "bsb": "062-000"} | account
        accepted = self.post(f"/v1/customer/{customer_id}/transactions", body)
        assert accepted.status_code == 202, accepted.text
        return str(accepted.json()["data"]["jobId"])


@contextmanager
def connected(base_url: str) -> Iterator[HTTPConnection]:
    """A connection to say things on that no HTTP library would say."""
    connection = HTTPConnection(urlsplit(base_url).netloc, timeout=10)
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def serving(store: Store) -> Iterator[str]:
    """The application behind uvicorn, in a thread; gives its address."""
    served, door = server(store), create_server(("127.0.0.1", 0))
    thread = Thread(target=served.run, args=([door],), daemon=True)
    thread.start()
    while not served.started:
        thread.join(0.01)
        assert thread.is_alive(), "the server did not start"
    yield f"http://127.0.0.1:{door.getsockname()[1]}"
    served.should_exit = True
    thread.join(10)
    assert not thread.is_alive(), "the server did not stop"


@pytest.fixture(scope="session", params=DATABASES)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """One Tidemark on each database for all tests of the door: each test brings clients of its own."""
    settings = Settings(
        home=tmp_path_factory.mktemp("home"),
        database_url=new_database(request, request.param),
        max_json_bytes=200_000,
        max_transactions=30,
        wrong_key_limit=Quota(1_000_000, 60),  # hundreds of tests send wrong keys
    )
    opened = Store.open(settings)
    yield opened
    opened.close()


@pytest.fixture
def own_store(tmp_path: Path) -> Iterator[Store]:
    """A Tidemark of this test alone."""
    opened = Store.open(Settings(home=tmp_path / "home"))
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def base_url(store: Store) -> Iterator[str]:
    with serving(store) as url, HTTP:
        yield url


def new_client(store: Store, base_url: str, scopes: Sequence[str] = keys.SCOPES) -> Client:
    now = datetime.now(UTC)
    with store.db.writing() as w:
        client = keys.create_client(w, "Lender", decision_policies=True, now=now)
        _, text = keys.create_key(w, client.client_id, scopes, None, store.settings.key_prefix, now)
    return Client(base_url, client.client_id, text)


@pytest.fixture
def client(store: Store, base_url: str) -> Client:
    """A client with every scope."""
    return new_client(store, base_url)


@pytest.fixture
def other_client(store: Store, base_url: str) -> Client:
    """Somebody else, with every scope."""
    return new_client(store, base_url)


def spending_ruleset(slug: str, customer_ids: Sequence[str]) -> dict[str, Any]:
    """A document with a rule that is true of whoever spent anything."""
    spent = {
        "slug": "spent_30d",
        "name": "Spent, last 30 days",
        "meaning": "What went out.",
        "unit": "AUD",
        "format": "currency",
        "direction": "neutral",
        "definition": {
            "source": "transactions",
            "where": {},
            "window": {"days": 30},
            "measure": "money_out",
            "aggregate": "sum",
        },
    }
    rule = {
        "code": "SPENT",
        "message": "Money went out.",
        "condition": {"moreThan": [{"metric": "spent_30d"}, "0"]},
        "recommendedActions": ["Ask what for."],
    }
    whom = {"customers": list(customer_ids)}
    return {"slug": slug, "name": "Spending", "appliesTo": whom, "metrics": [spent], "rules": [rule]}


def belongings(store: Store, client: Client) -> dict[str, str]:
    """One thing of each kind that the client owns, by the name of its id in a path."""
    customer_id = client.new_customer()
    hook = {"eventType": "job.completed", "webhookUrl": "https://lender.example/hook"}
    subscription = client.post("/v1/webhooks/subscriptions", hook).json()["data"]["webhookSubscriptionId"]
    job_id = client.submitted(customer_id)
    said = {"pattern": "coffee", "category": "meals"}
    correction = client.post(f"/v1/customer/{customer_id}/transactions/corrections", said).json()["data"]
    end_submissions(store)
    extraction = client.post(f"/v1/customer/{customer_id}/statements", EXAMPLE_FILES).json()["data"]["jobId"]
    end_extractions(store)
    end_submissions(store)
    [statement] = client.get(f"/v1/customer/{customer_id}/statements").json()["data"]["statements"]
    of_pdf = f"/v1/customer/{customer_id}/transactions?jobId={extraction}"
    [transaction] = client.get(of_pdf).json()["data"]["transactions"]
    deliveries = client.get(f"/v1/webhooks/subscriptions/{subscription}/deliveries").json()["data"]["deliveries"]
    policy = f"/v1/decision-policies/policy-{uuid4()}"
    for notes, then in (("", "/publish"), ("A draft.", None)):
        saved = client.call("PUT", policy, json=EXAMPLE_DOCUMENT | {"notes": notes})
        assert saved.status_code == 201, saved.text
        if then is not None:
            assert client.post(policy + then, {}).status_code == 200
    compared = client.post(f"{policy}/backtest", {"inputs": {"requestedAmount": 1}, "customerIds": [customer_id]})
    assert compared.status_code == 202, compared.text
    backtests.run(store, UUID(compared.json()["data"]["jobId"]), lambda: datetime.now(UTC))
    evaluated = client.post(
        f"/v1/customer/{customer_id}/decision-policies/{policy.rpartition('/')[2]}/evaluate",
        {"inputs": {"requestedAmount": 1}},
    )
    assert evaluated.status_code == 200, evaluated.text
    spending = client.post("/v1/monitoring/rulesets", spending_ruleset(f"ruleset-{uuid4()}", [customer_id]))
    assert spending.status_code == 201, spending.text
    look_at(store, customer_id)
    [match] = client.get(f"/v1/monitoring/matches?customerId={customer_id}").json()["data"]["matches"]
    tried = client.post(f"/v1/monitoring/rulesets/{spending.json()['data']['rulesetId']}/simulate", {})
    assert tried.status_code == 202, tried.text
    simulations.run(store, UUID(tried.json()["data"]["jobId"]), lambda: datetime.now(UTC))
    return {
        "customerId": customer_id,
        "jobId": job_id,
        "transactionId": transaction["transactionId"],
        "statementId": statement["statementId"],
        "correctionId": correction["correctionId"],
        "subscriptionId": subscription,
        **{name: deliveries[0][name] for name in ("deliveryId", "eventId")},
        "slug": policy.rpartition("/")[2],
        "evaluationId": evaluated.json()["data"]["evaluationId"],
        "backtestId": compared.json()["data"]["jobId"],
        "rulesetId": spending.json()["data"]["rulesetId"],
        "matchId": match["matchId"],
        "simulationId": tried.json()["data"]["jobId"],
    }
