"""The client libraries against a whole service: jobs, pages, failures that pass, webhooks."""

import asyncio
import os
import subprocess
from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from tidemark_client import AsyncClient, Client, ProblemError, WebhookRefusedError, models, operations, verify_webhook

from api.webhooks.listen import Receiver
from tests.flows.service import Client as Lender
from tests.flows.service import Service
from tests.flows.unsteady import unsteady
from tests.root import ROOT
from tests.tools import build_clients

AMOUNTS = [Decimal("-0.10"), Decimal("-184.50"), Decimal("1000.01"), Decimal("-7.35"), Decimal("20.00")]
ROWS: list[models.SubmissionTransactionsItem | dict[str, Any]] = [
    {"date": f"2026-06-0{day}", "description": f"COFFEE {day}", "amount": str(amount)}
    for day, amount in enumerate(AMOUNTS, 1)
]
SUBMISSION: models.Submission = {"bsb": "062000", "accountNumber": "12345678", "transactions": ROWS}


@pytest.fixture
def key(client: Lender) -> str:
    return str(client.http.headers["x-api-key"])


@pytest.fixture
def tidemark(service: Service, key: str) -> Iterator[Client]:
    with Client(key, service.base_url) as opened:
        yield opened


def new_customer() -> models.NewCustomer:
    return {"abn": "51824753556", "reference": str(uuid4())}


def test_a_submission_is_waited_for_and_listed_exactly(tidemark: Client) -> None:
    customer_id = tidemark.send(operations.create_customer(new_customer()))["customerId"]
    accepted = tidemark.send(operations.submit_transactions(customer_id, SUBMISSION))
    assert tidemark.wait(accepted["jobId"])["status"] == "Completed"
    listed = operations.list_customer_transactions(customer_id)
    assert [row["amount"] for row in tidemark.pages(listed, count=2)] == AMOUNTS
    assert {row["amount"] for row in tidemark.pages(operations.list_transactions(), count=2)} >= set(AMOUNTS)
    refreshed = tidemark.send(operations.refresh_reports(customer_id))
    assert tidemark.wait(refreshed["jobId"])["flow"] == "ReportRefresh"
    assert tidemark.send(operations.get_report_page(customer_id)).startswith("<!DOCTYPE html>")


def test_the_asynchronous_client_does_the_same(service: Service, key: str) -> None:
    async def submit() -> list[Decimal | int]:
        async with AsyncClient(key, service.base_url) as tidemark:
            customer = await tidemark.send(operations.create_customer(new_customer()))
            accepted = await tidemark.send(operations.submit_transactions(customer["customerId"], SUBMISSION))
            await tidemark.wait(accepted["jobId"])
            listed = operations.list_customer_transactions(customer["customerId"])
            return [row["amount"] async for row in tidemark.pages(listed, count=3)]

    assert asyncio.run(submit()) == AMOUNTS


def test_a_request_that_is_carried_out_again_makes_one_job(service: Service, key: str, tidemark: Client) -> None:
    customer_id = tidemark.send(operations.create_customer(new_customer()))["customerId"]
    with unsteady(service.base_url) as url, Client(key, url) as shaken:
        accepted = shaken.send(operations.submit_transactions(customer_id, SUBMISSION))
        assert shaken.wait(accepted["jobId"])["status"] == "Completed"
    jobs = list(tidemark.pages(operations.list_jobs(customer_id=customer_id)))
    assert [job["jobId"] for job in jobs] == [accepted["jobId"]]


def test_a_refusal_names_its_faults(tidemark: Client) -> None:
    with pytest.raises(ProblemError) as refused:
        tidemark.send(operations.create_customer({"abn": "1"}))
    assert refused.value.status == 400
    assert [fault["pointer"] for fault in refused.value.errors] == ["/abn"]


def test_a_webhook_is_verified_and_a_forged_one_refused(tidemark: Client, receiver: Receiver) -> None:
    wanted: models.NewSubscription = {"eventType": "job.completed", "webhookUrl": receiver.url}
    secret = tidemark.send(operations.create_subscription(wanted))["secret"]
    receiver.learn(secret)
    customer_id = tidemark.send(operations.create_customer(new_customer()))["customerId"]
    job_id = tidemark.send(operations.submit_transactions(customer_id, SUBMISSION))["jobId"]
    delivery = receiver.wait_for(lambda each: each.json.get("jobId") == job_id and bool(each.verified), timeout_s=60)
    assert delivery is not None
    event = verify_webhook(delivery.body, delivery.headers, secret)
    assert event["eventType"] == "job.completed"
    assert event["totalReceivedTransactions"] == len(ROWS)
    with pytest.raises(WebhookRefusedError):
        verify_webhook(delivery.body.replace(job_id.encode(), customer_id.encode()), delivery.headers, secret)


@pytest.mark.timeout(600)  # includes the build
def test_the_typescript_client(service: Service, key: str) -> None:
    build_clients()
    with unsteady(service.base_url) as url:
        addresses = {"TIDEMARK_BASE_URL": service.base_url, "TIDEMARK_UNSTEADY_URL": url, "TIDEMARK_KEY": key}
        command = ["npm", "--prefix", "clients/typescript", "test"]
        subprocess.run(command, cwd=ROOT, check=True, env=os.environ | addresses)
