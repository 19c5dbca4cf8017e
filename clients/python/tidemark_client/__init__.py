"""The Python client of Tidemark.

    from tidemark_client import Client, operations

    with Client("tm_live_…", "https://tidemark.lender.example") as tidemark:
        customer = tidemark.send(operations.create_customer({"abn": "51824753556"}))
        job = tidemark.send(operations.submit_transactions(customer["customerId"], {"transactions": rows}))
        tidemark.wait(job["jobId"])
        for row in tidemark.pages(operations.list_customer_transactions(customer["customerId"])):
            ...

`operations` has a function for each operation of the API, which returns a request as a value. `Client` and
`AsyncClient` send requests and return `data` of the response, as JSON with exact decimals. `models` has its types.
"""

from tidemark_client import models, operations
from tidemark_client.clients import AsyncClient, Client
from tidemark_client.errors import JobFailedError, ProblemError, TidemarkError, WebhookRefusedError
from tidemark_client.requests import PagedRequest, Request
from tidemark_client.webhooks import verify_webhook

__all__ = [
    "AsyncClient",
    "Client",
    "JobFailedError",
    "PagedRequest",
    "ProblemError",
    "Request",
    "TidemarkError",
    "WebhookRefusedError",
    "models",
    "operations",
    "verify_webhook",
]
