"""The HTTP API over a real store: called in this process, or behind its server for tests of the socket."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from http.client import HTTPConnection
from pathlib import Path
from socket import create_server
from threading import Thread
from typing import Any, cast
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import pytest
import requests
from fastapi import FastAPI

from api.core.schemas.examples import example
from api.core.schemas.files import SentAttachment, SentFiles
from api.decisions.schemas.evaluations import SentOverride
from api.decisions.schemas.policies import SentPolicy
from api.service.app import server
from api.work.schemas.records import SentNote
from assets.portfolio import portfolio_jobs
from storage.access import approvals, keys, users
from storage.access.keys import Principal
from storage.access.roles import Role
from storage.core.models import ApprovalKind
from storage.core.settings import Quota, Settings
from storage.core.store import Store
from tests.api.in_process import running
from tests.api.worker import ONE_ROW, Row, end_extractions, end_submissions, evaluate
from tests.conftest import open_store

ABN = "51824753556"
HTTP = requests.Session()  # for URLs of `answering` and of `serving`
HTTP.trust_env = False  # saves the lookup of proxies for each request
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

    def submit_transactions(self, customer_id: str, items: Sequence[object] = (ITEM,), **account: object) -> str:
        """Submit transactions and return the id of the job."""
        body = {"transactions": list(items), "accountNumber": "12345678", "bsb": "062-000"} | account
        accepted = self.post(f"/v1/customer/{customer_id}/transactions", body)
        assert accepted.status_code == 202, accepted.text
        return str(accepted.json()["data"]["jobId"])


@contextmanager
def open_connection(base_url: str) -> Iterator[HTTPConnection]:
    """Open a connection for requests that no HTTP library would send."""
    connection = HTTPConnection(urlsplit(base_url).netloc, timeout=10)
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def answering(store: Store, user: Principal | None = None) -> Iterator[str]:
    """Run the application in this process; yield a URL at which `HTTP` reaches it, as this user if one is given."""
    url = f"http://{uuid4()}.tidemark"
    with running(cast(FastAPI, server(store).config.app), user) as transport:
        HTTP.mount(url, transport)
        yield url
        del HTTP.adapters[url]


@contextmanager
def serving(store: Store, prepare: Callable[[FastAPI], None] = lambda _: None) -> Iterator[str]:
    """Run the application, prepared by this function, behind uvicorn, in a thread; yield its URL."""
    served, listener = server(store), create_server(("127.0.0.1", 0))
    prepare(cast(FastAPI, served.config.app))
    thread = Thread(target=served.run, args=([listener],), daemon=True)
    thread.start()
    while not served.started:
        thread.join(0.01)
        assert thread.is_alive(), "the server did not start"
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    served.should_exit = True
    thread.join(10)
    assert not thread.is_alive(), "the server did not stop"


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """One Tidemark for all tests of the API; each test creates its own clients."""
    settings = Settings(
        home=tmp_path_factory.mktemp("home"),
        max_json_bytes=200_000,
        max_transactions=30,
        wrong_key_limit=Quota(1_000_000, 60),  # hundreds of requests have wrong keys
    )
    opened = open_store(settings)
    yield opened
    opened.close()


@pytest.fixture
def own_store(tmp_path: Path) -> Iterator[Store]:
    """A Tidemark for this test only."""
    opened = open_store(Settings(home=tmp_path / "home"))
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def base_url(store: Store) -> Iterator[str]:
    """URL of the application in this process."""
    with answering(store) as url:
        yield url


@pytest.fixture(scope="session")
def socket_url(store: Store) -> Iterator[str]:
    """URL of the application behind its server, for tests of the socket."""
    with serving(store) as url, HTTP:
        yield url


def new_client(store: Store, base_url: str, scopes: Sequence[str] = keys.SCOPES) -> Client:
    now = datetime.now(UTC)
    with store.db.writing() as w:
        client = keys.create_client(w, "Lender", decision_policies=True, now=now)
        _, text = keys.create_key(w, client.client_id, scopes, None, store.settings.key_prefix, now)
    return Client(base_url, client.client_id, text)


def with_scopes(store: Store, client: Client, scopes: Sequence[str]) -> Client:
    """Return the same client with a key of these scopes."""
    with store.db.writing() as w:
        _, text = keys.create_key(w, client.client_id, scopes, None, store.settings.key_prefix, datetime.now(UTC))
    return replace(client, key=text)


def require_approvals(store: Store, client: Client, *kinds: ApprovalKind) -> None:
    """Set for which actions the client requires an approval."""
    with store.db.writing() as w:
        approvals.set_four_eyes(w, client.client_id, kinds)


@pytest.fixture
def client(store: Store, base_url: str) -> Client:
    """A client with every scope."""
    return new_client(store, base_url)


@pytest.fixture
def other_client(store: Store, base_url: str) -> Client:
    """Another client with every scope."""
    return new_client(store, base_url)


def spending_ruleset(slug: str, customer_ids: Sequence[str]) -> dict[str, Any]:
    """Return a document with a rule that is true for customers that spent anything."""
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
    listed = {"customers": list(customer_ids)}
    return {"slug": slug, "name": "Spending", "appliesTo": listed, "metrics": [spent], "rules": [rule]}


class Belongings(Mapping[str, str]):
    """One resource of each kind of a client, by the name of its id in a path. Each is created on first access."""

    statement = ONE_ROW  # what is read from each PDF
    rows: Sequence[Row] = ({},)  # what a submission becomes

    def __init__(self, store: Store, client: Client) -> None:
        self._store, self._client = store, client
        self._made: dict[str, str] = {}
        self._makers = {
            ("customerId", "subscriptionId", "jobId", "correctionId", "deliveryId", "eventId"): self._customer,
            ("statementId", "transactionId", "accountId"): self._statement,
            ("slug",): self._policy,
            ("backtestId",): self._backtest,
            ("evaluationId",): self._evaluation,
            ("approvalId",): self._approval,
            ("rulesetId", "matchId"): self._ruleset,
            ("simulationId",): self._simulation,
            ("noteId", "attachmentId"): self._records,
            ("userId", "keyId"): self._access,
        }

    def __iter__(self) -> Iterator[str]:
        return (kind for kinds in self._makers for kind in kinds)

    def __len__(self) -> int:
        return sum(map(len, self._makers))

    def __contains__(self, kind: object) -> bool:
        return any(kind in kinds for kinds in self._makers)

    def __getitem__(self, kind: str) -> str:
        if kind not in self._made:
            make = next((make for kinds, make in self._makers.items() if kind in kinds), None)
            if make is None:
                raise KeyError(kind)
            self._made |= make()
        return self._made[kind]

    def _customer(self) -> dict[str, str]:
        """Create a customer with a submission, a correction and a delivery."""
        customer_id = self._post("/v1/customer", {"abn": ABN})["customerId"]
        hook = {"eventType": "job.completed", "webhookUrl": "https://lender.example/hook"}
        subscription = self._post("/v1/webhooks/subscriptions", hook)["webhookSubscriptionId"]
        account = {"transactions": [ITEM], "accountNumber": "12345678", "bsb": "062-000"}
        job_id = self._post(f"/v1/customer/{customer_id}/transactions", account)["jobId"]
        instruction = {"pattern": "coffee", "category": "meals"}
        correction = self._post(f"/v1/customer/{customer_id}/transactions/corrections", instruction)
        end_submissions(self._store, self.rows)
        [delivery] = self._get(f"/v1/webhooks/subscriptions/{subscription}/deliveries")["deliveries"]
        return {
            "customerId": customer_id,
            "subscriptionId": subscription,
            "jobId": job_id,
            "correctionId": correction["correctionId"],
            **{name: delivery[name] for name in ("deliveryId", "eventId")},
        }

    def _statement(self) -> dict[str, str]:
        mine = f"/v1/customer/{self['customerId']}"
        extraction = self._post(f"{mine}/statements", example(SentFiles))["jobId"]
        end_extractions(self._store, self.statement)
        end_submissions(self._store, self.rows)
        [statement] = self._get(f"{mine}/statements")["statements"]
        [transaction] = self._get(f"{mine}/transactions?jobId={extraction}")["transactions"]
        return {
            "statementId": statement["statementId"],
            "transactionId": transaction["transactionId"],
            "accountId": transaction["account"]["accountId"],
        }

    def _policy(self) -> dict[str, str]:
        """Create a policy with a published version and a draft."""
        slug = f"policy-{uuid4()}"
        for notes in ("", "A draft."):
            self._send("PUT", f"/v1/decision-policies/{slug}", example(SentPolicy) | {"notes": notes})
            if not notes:
                self._post(f"/v1/decision-policies/{slug}/publish", {})
        return {"slug": slug}

    def _backtest(self) -> dict[str, str]:
        asked = {"inputs": {"requestedAmount": 1}, "customerIds": [self["customerId"]]}
        job_id = self._post(f"/v1/decision-policies/{self['slug']}/backtest", asked)["jobId"]
        portfolio_jobs.run(self._store, UUID(job_id), lambda: datetime.now(UTC))
        return {"backtestId": job_id}

    def _evaluation(self) -> dict[str, str]:
        path = f"/v1/customer/{self['customerId']}/decision-policies/{self['slug']}/evaluate"
        return {"evaluationId": self._post(path, {"inputs": {"requestedAmount": 1}})["evaluationId"]}

    def _approval(self) -> dict[str, str]:
        """Request an override as a client that needs approvals would, and let the client need none again."""
        path = f"/v1/evaluations/{self['evaluationId']}/override"
        require_approvals(self._store, self._client, ApprovalKind.OVERRIDE)
        approval_id = self._post(path, example(SentOverride))["approvalId"]
        require_approvals(self._store, self._client)
        return {"approvalId": approval_id}

    def _ruleset(self) -> dict[str, str]:
        """Create a ruleset that has fired."""
        customer_id = self["customerId"]
        document = spending_ruleset(f"ruleset-{uuid4()}", [customer_id])
        ruleset_id = self._post("/v1/monitoring/rulesets", document)["rulesetId"]
        evaluate(self._store, customer_id)
        [match] = self._get(f"/v1/monitoring/matches?customerId={customer_id}")["matches"]
        return {"rulesetId": ruleset_id, "matchId": match["matchId"]}

    def _simulation(self) -> dict[str, str]:
        job_id = self._post(f"/v1/monitoring/rulesets/{self['rulesetId']}/simulate", {})["jobId"]
        portfolio_jobs.run(self._store, UUID(job_id), lambda: datetime.now(UTC))
        return {"simulationId": job_id}

    def _records(self) -> dict[str, str]:
        """Create a note and an attachment."""
        mine = f"/v1/customer/{self['customerId']}"
        note = self._post(f"{mine}/notes", example(SentNote))
        attachment = self._post(f"{mine}/attachments", example(SentAttachment))
        return {"noteId": note["noteId"], "attachmentId": attachment["attachmentId"]}

    def _access(self) -> dict[str, str]:
        """Create a user and a key. The API does this only for signed-in users."""
        now, client_id = datetime.now(UTC), self._client.client_id
        with self._store.db.writing() as w:
            user = users.create(w, client_id, f"{uuid4()}@lender.example", "Ada Lovelace", Role.ANALYST, now)
            key, _ = keys.create_key(w, client_id, ["customer:reports"], None, "tm_sandbox_", now)
        return {"userId": str(user.user_id), "keyId": str(key.key_id)}

    def _post(self, path: str, body: Any) -> Any:
        return self._send("POST", path, body)

    def _send(self, method: str, path: str, body: Any) -> Any:
        answer = self._client.call(method, path, json=body)
        assert answer.ok, answer.text
        return answer.json()["data"]

    def _get(self, path: str) -> Any:
        return self._client.get(path).json()["data"]


def belongings(store: Store, client: Client) -> dict[str, str]:
    """Create one resource of each kind and return their ids."""
    return dict(Belongings(store, client))
