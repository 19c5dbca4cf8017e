"""A simulated lender's backend, for `demo`, `seed` and `synthetic`: its API key and its few HTTP calls."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Final
from uuid import UUID

import requests

from api.access.commands.users import sign_in_link
from api.core.commands.console import complaint, now
from pipelines.decisions import examples
from pipelines.synthetic import Business
from pipelines.synthetic.sandbox import last_activity_statement
from storage.access import keys, users
from storage.access.roles import Role
from storage.core import audit
from storage.core.audit import OPERATOR
from storage.core.database import Writing
from storage.core.settings import Settings
from storage.core.store import Store

NAME: Final = "Harbour Lending"
USER: Final = "demo@example.com"
LINE: Final = "line-of-credit"
REQUESTS: Final[Mapping[str, Mapping[str, Any]]] = {  # inputs of the example policies, without `basDueTo`
    "working-capital-loan": {"requestedAmount": 40_000, "termMonths": 12},
    LINE: {"requestedLimit": 25_000, "existingCustomer": False},
    "merchant-cash-advance": {"requestedAdvance": 20_000, "holdback": "0.12", "channel": "direct"},
}
LINK_HOURS: Final = 24  # how long the link can be used
JOB_WITHIN_S = 60
WAIT_S = 20  # how long the service may delay its response to a poll of a job

Progress = Callable[[], object]


class Lender:
    """A client of one running service.

    Raises:
        typer.Exit: a request was refused, or a job took too long; standard error then says what happened.
    """

    def __init__(self, base_url: str, key: str) -> None:
        self.base_url = base_url
        self._http = requests.Session()
        self._http.trust_env = False
        self._http.headers["x-api-key"] = key

    def post(self, path: str, body: object = None) -> dict[str, Any]:
        return self._data(self._http.post(f"{self.base_url}/v1{path}", json=body, timeout=60))

    def put(self, path: str, body: object) -> dict[str, Any]:
        return self._data(self._http.put(f"{self.base_url}/v1{path}", json=body, timeout=60))

    def get(self, path: str, **query: Any) -> dict[str, Any]:
        return self._data(self._http.get(f"{self.base_url}/v1{path}", params=query, timeout=60))

    def upload(self, customer_id: str, name: str, content: bytes) -> str:
        """Send a PDF statement and return the id of its job."""
        url = f"{self.base_url}/v1/customer/{customer_id}/statements"
        response = self._http.post(url, files={"file": (name, content, "application/pdf")}, timeout=60)
        job_id: str = self._data(response)["jobId"]
        return job_id

    def content(self, path: str, **query: Any) -> bytes:
        """Return a response that is not JSON: a page, a picture."""
        response = self._http.get(f"{self.base_url}/v1{path}", params=query, timeout=60)
        return self._check(response).content

    def create(self, business: Business) -> dict[str, Any]:
        """Create the customer. Return the service's response, with the business's name and trade added."""
        created = self.post("/customer", {"abn": business.abn, "name": business.name, "state": business.state})
        return created | {"name": business.name, "trade": business.trade}

    def submit(self, customer_id: str, bodies: Iterable[dict[str, Any]], each: Progress = lambda: None) -> list[str]:
        """Send submissions and return the ids of their jobs."""
        jobs = []
        for body in bodies:
            jobs.append(self.post(f"/customer/{customer_id}/transactions", body)["jobId"])
            each()
        return jobs

    def create_of_each_profile(self, months: int) -> list[str]:
        """Create a sandbox customer of each profile, with reports, and return their ids."""
        listed = self.get("/sandbox/profiles")["profiles"]
        made = [self.post("/sandbox/customers", {"profile": each["profile"], "months": months}) for each in listed]
        self.wait_for_jobs([job_id for each in made for job_id in each["jobIds"]])
        customer_ids = [each["customerId"] for each in made]
        self.refresh(customer_ids)
        return customer_ids

    def evaluate(self, customer_id: str, slug: str) -> dict[str, Any]:
        """Evaluate one of the example policies for a usual request."""
        due = {"basDueTo": last_activity_statement(today())} if slug == LINE else {}
        return self.post(
            f"/customer/{customer_id}/decision-policies/{slug}/evaluate", {"inputs": {**REQUESTS[slug], **due}}
        )

    def publish_examples(self) -> None:
        """Publish the example policies."""
        for slug, document in examples.load().items():
            self.put(f"/decision-policies/{slug}", document)
            self.post(f"/decision-policies/{slug}/publish", {})

    def refresh(self, customer_ids: Iterable[str]) -> None:
        """Refresh the customers' reports, and wait for them."""
        jobs = [self.post(f"/customer/{customer_id}/reports/refresh")["jobId"] for customer_id in customer_ids]
        self.wait_for_jobs(jobs)

    def wait_for_jobs(self, job_ids: Sequence[str], each: Progress = lambda: None) -> list[dict[str, Any]]:
        """Return the jobs' statuses when all are terminal."""
        ended = []
        for job_id in job_ids:
            ended.append(self._wait_for_job(job_id))
            each()
        return ended

    def _wait_for_job(self, job_id: str) -> dict[str, Any]:
        """Return a job's status when it is terminal. The service delays its response until then, at most WAIT_S."""
        for _ in range(JOB_WITHIN_S // WAIT_S):
            job = self.get(f"/jobs/{job_id}/status", wait=WAIT_S)
            if job["status"] not in ("Queued", "Running"):
                return job
        raise complaint(f"job {job_id} has not ended within {JOB_WITHIN_S} s")

    def _data(self, response: requests.Response) -> dict[str, Any]:
        data: dict[str, Any] = self._check(response).json()["data"]
        return data

    @staticmethod
    def _check(response: requests.Response) -> requests.Response:
        if not response.ok:
            raise complaint(f"{response.request.method} {response.url}: {response.status_code} {response.text}")
        return response


@dataclass(frozen=True)
class Access:
    """How to look at what a client has: a link to the console, a key, and a command."""

    link: str
    key: str
    command: str  # for a shell

    @property
    def lines(self) -> Sequence[str]:
        """The lines to print. The link is on a line of its own, to be copied whole; nothing may break it or the key."""
        return (
            f"The console (this link signs in once, within {LINK_HOURS} hours):",
            self.link,
            f"API key of {NAME}:",
            f"  {self.key}",
            "A first request:",
            *(f"  {line}" for line in self.command.splitlines()),
        )


def grant_access(store: Store, client_id: UUID, base_url: str, key: str) -> Access:
    """Create a user who may do everything, and return how to look at the client's customers."""
    at = now()
    with store.db.writing() as w:
        user = users.create(w, client_id, USER, "Demo", Role.ADMIN, at)
        audit.append(w, OPERATOR, "User.Created", {"userId": user.user_id}, at, client_id=client_id)
        token = users.create_link(w, user, at + timedelta(hours=LINK_HOURS))
    command = f"curl -sS '{base_url}/v1/customers?page=1&count=3' \\\n-H 'x-api-key: {key}'"
    return Access(sign_in_link(base_url, token), key, command)


def today() -> date:
    """Return the day in the time zone of a service with these settings."""
    return now().astimezone(Settings().zone).date()


def last_day() -> date:
    """Return the last day of the statements: yesterday, because a decision needs fresh data."""
    return today() - timedelta(days=1)


def known_attributes() -> dict[str, Any]:
    """Return attributes against which the example policies have nothing."""
    return {
        "loan_purpose": "stock",
        "bureau_score": {"value": 684, "source": "commercial bureau", "evidenceDate": "2026-10-12"},
        "ato_debt": 0,
        "ato_payment_plan": False,
        "time_trading_months": 74,
        "ppsr_registrations": 1,
        "bas_lodged_to": last_activity_statement(today()),
        "overdraft_limit": 0,
        "hardship_flag": False,
    }


def issue_key(store: Store) -> tuple[UUID, str]:
    """Create the client and a key for it, as an operator would. Return the client's id and the key."""
    with store.db.writing() as w:
        client = keys.create_client(w, NAME, decision_policies=True, now=now())
        audit.append(w, OPERATOR, "Client.Created", {}, now(), client_id=client.client_id)
        return client.client_id, _issue_key(store, w, client.client_id)


def issue_key_for(store: Store, client_id: UUID) -> str:
    """Create a key for a client that exists.

    Raises:
        NotFound: no such client.
    """
    with store.db.writing() as w:
        return _issue_key(store, w, client_id)


def _issue_key(store: Store, w: Writing, client_id: UUID) -> str:
    key, text = keys.create_key(w, client_id, keys.SCOPES, None, store.settings.key_prefix, now())
    audit.append(w, OPERATOR, "Key.Created", {"keyId": key.key_id}, now(), client_id=client_id)
    return text
