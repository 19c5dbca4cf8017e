"""Synthetic customers get new transactions day by day in a running service."""

import json
from datetime import date

import pytest

from api.core.commands.console import now
from pipelines.synthetic import portfolio
from storage.access import keys
from tests.flows.service import Client, Service

pytestmark = pytest.mark.timeout(300)


def test_synthetic_customers_get_their_last_days_one_by_one(service: Service) -> None:
    store = service.store()
    with store.db.writing() as w:
        client_id = keys.create_client(w, "clock", decision_policies=True, now=now()).client_id
        _, text = keys.create_key(w, client_id, keys.SCOPES, None, store.settings.key_prefix, now())
    store.close()
    options = ["--customers", "2", "--months", "1", "--seed", "5", "--days", "2", "--until", "2025-06-30", "--json"]
    reported = json.loads(service.run("api.cli", "synthetic", "seed", "--client", str(client_id), *options))

    made = list(portfolio(2, 1, 5, date(2025, 6, 30)))
    rows = [account.transactions for one in made for account in one.accounts]
    assert reported["transactions"] == sum(one.height for one in rows)
    assert reported["through"] == "2025-06-30"
    lender = Client(service.base_url, text)
    customers = lender.data("GET", "/v1/customers")["customers"]
    assert {customer["abn"] for customer in customers} == {one.abn for one in made}
    jobs = lender.data("GET", "/v1/jobs")["jobs"]
    assert len(jobs) > len(rows), "the history and two days more"
