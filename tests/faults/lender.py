"""A lender's backend that doesn't give up: it repeats requests without an answer or answered with 503.

Each answer goes into the ledger. Repeating a request may create a second customer or repeat a submission, as real
clients do after a failure; submissions overlap by default. A submission whose job failed is made again, too.

A lender that sends Idempotency-Keys repeats a request under the same key, even while the first one is in progress.
"""

import random
import time
from collections.abc import Callable
from datetime import date
from functools import partial
from itertools import count
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import requests

from api.http.idempotency import KEY_HEADER
from api.webhooks.listen import Receiver
from pipelines.synthetic import plain_rows
from tests.faults.ledger import Entry, Ledger, Subscription
from tests.flows.service import Client

ASK_AGAIN_FOR_S = 90.0
PAUSE_S = 0.2
UNTIL = date(2026, 10, 31)
IN_FLIGHT = "Idempotency.InFlight"

Items = list[dict[str, Any]]

_paths = count(1)


class Lender(Client):
    """A client of the service, drawn from a seed, with unique ABNs and account numbers."""

    def __init__(self, base_url: str, key: str, ledger: Ledger, receiver: Receiver, seed: int) -> None:
        super().__init__(base_url, key)
        self.key = key
        self.ledger = ledger
        self.receiver = receiver
        self.random = random.Random(seed)
        self.secrets_shown: list[str] = [key]  # must not be in any log
        self.account_number = self._digits(9)
        self.sends_keys = False
        self.failed_jobs: list[str] = []  # jobs that should have completed
        self._submissions: dict[str, Callable[[], str]] = {}  # by job, a function that submits again

    def call(self, method: str, path: str, body: object = None, **query: Any) -> requests.Response:
        """Send a request until it is answered."""
        key = uuid4().hex if self.sends_keys and method == "POST" else None
        return self._until_answered(lambda: self.send_once(method, path, body, key, **query))

    def send_once(
        self, method: str, path: str, body: object = None, key: str | None = None, **query: Any
    ) -> requests.Response | None:
        """Send a request once and record it in the ledger. Return None without an answer, or if it says "try again"."""
        self.http.headers.update({KEY_HEADER: key} if key else {})
        try:
            answer = super().call(method, path, body, **query)
        except requests.RequestException:  # no server is listening, or the answer broke off
            self.ledger.write(Entry(method, path, None, key=key))
            return None
        finally:
            self.http.headers.pop(KEY_HEADER, None)
        code = None if answer.ok else answer.json()["code"]
        self.ledger.write(Entry(method, path, answer.status_code, answer.headers.get("location"), code, key))
        return None if answer.status_code == 503 or code == IN_FLIGHT else answer

    def customer(self) -> str:
        abn = self._digits(11)
        self.secrets_shown.append(abn)
        customer_id: str = self.data("POST", "/v1/customer", {"abn": abn})["customerId"]
        return customer_id

    def submit(self, customer_id: str, rows: Items, *, bad: Items | None = None, **account: Any) -> str:
        """Submit good rows followed by bad ones."""
        account = {"bsb": "062000", "accountNumber": self.account_number, **account}
        self.secrets_shown.append(account["accountNumber"])
        self.ledger.add_submission(customer_id, account["accountNumber"], rows)
        job_id = super().submit(customer_id, [*rows, *(bad or [])], **account)
        if rows:
            self._submissions[job_id] = partial(self.submit, customer_id, rows, bad=bad, **account)
        return job_id

    def wait_for_job(self, job_id: str) -> dict[str, Any]:
        """Wait until the job has ended, submit again while it fails, and return the last job."""
        until = time.monotonic() + ASK_AGAIN_FOR_S
        while (job := super().wait_for_job(job_id))["status"] == "Failed" and job_id in self._submissions:
            assert time.monotonic() < until, f"still fails after {ASK_AGAIN_FOR_S:.0f} s: {job}"
            self.failed_jobs.append(f"{job_id} {job['error']}")
            time.sleep(PAUSE_S)
            job_id = self._submissions[job_id]()
        return job

    def refresh(self, customer_id: str) -> str:
        """Refresh a customer. If the answer is lost, that refresh continues, so request another when it has ended."""
        path = f"/v1/customer/{customer_id}/reports/refresh"

        def try_once() -> requests.Response | None:
            answer = self.call("POST", path)
            return None if answer.status_code == 409 else answer

        job_id: str = data_of(self._until_answered(try_once))["jobId"]
        return job_id

    def retract_everything(self, customer_id: str) -> None:
        """Retract all of the customer's submissions, including those whose answer was lost."""
        for job in self.data("GET", "/v1/jobs", customerId=customer_id, flow="Enrichment")["jobs"]:
            if super().wait_for_job(job["jobId"])["status"] != "Failed":
                self._retract(f"/v1/customer/{customer_id}/submissions/{job['jobId']}")
        self.ledger.rows[customer_id].clear()

    def _retract(self, path: str) -> None:
        """Retract a submission, and repeat it until the retraction succeeds."""

        def try_retract() -> requests.Response | None:
            answer = self.call("DELETE", path)
            return (
                answer if super(Lender, self).wait_for_job(data_of(answer)["jobId"])["status"] == "Completed" else None
            )

        self._until_answered(try_retract)

    def subscribe(self, event_type: str) -> str:
        """Subscribe to an event type. Each attempt uses its own path, so that the receiver can distinguish them."""
        before, url = len(self.ledger.job_ids()), ""

        def try_subscribe() -> requests.Response | None:
            nonlocal url
            url = f"{self.receiver.url}{next(_paths)}"
            return self.send_once("POST", "/v1/webhooks/subscriptions", {"eventType": event_type, "webhookUrl": url})

        created = data_of(self._until_answered(try_subscribe))
        subscription = Subscription(
            created["webhookSubscriptionId"], event_type, urlsplit(url).path, created["secret"], before
        )
        self.secrets_shown.append(subscription.secret)
        self.ledger.subscriptions.append(subscription)
        return subscription.subscription_id

    def rows(self, number: int) -> Items:
        """Return items of a busy account, different for every lender."""
        return plain_rows(number, seed=self.random.randrange(1_000), until=UNTIL)

    def _until_answered(self, ask: Callable[[], requests.Response | None]) -> requests.Response:
        until = time.monotonic() + ASK_AGAIN_FOR_S
        while (answer := ask()) is None:
            assert time.monotonic() < until, f"not answered for {ASK_AGAIN_FOR_S:.0f} s: {self.ledger.entries[-1]}"
            time.sleep(PAUSE_S)
        return answer

    def _digits(self, number: int) -> str:
        return "".join(self.random.choices("123456789", k=number))


def data_of(answer: requests.Response) -> Any:
    assert answer.ok, f"{answer.status_code} {answer.text}"
    return answer.json()["data"]
