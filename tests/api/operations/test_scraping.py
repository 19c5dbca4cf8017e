"""Metrics for the operator's monitoring: counts of all clients together, without a key, at little cost."""

from typing import Any

import pytest
import requests
from prometheus_client.parser import text_string_to_metric_families

from api.operations.scraping import GOOD_FOR_S, Scrape, as_text
from storage.core.models import Flow
from storage.core.store import Store
from storage.webhooks import delivery_figures
from storage.webhooks.delivery_figures import Load
from tests.api.conftest import HTTP, Client, answering
from tests.api.webhooks.test_deliveries import happen, subscribe

IDLE = Load(
    deliveries={"due": 0, "sending": 0, "retrying": 0, "paused": 0},
    oldest_due_s=0.0,
    attempts_last_hour={"delivered": 0, "failed": 0},
    paused_subscriptions=0,
    jobs={("Enrichment", "Queued"): 0},
    oldest_job_s={"Enrichment": 0.0},
)


def samples(text: str) -> dict[tuple[str, ...], float]:
    """Return the values by name and labels."""
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def scrape(base_url: str) -> requests.Response:
    return HTTP.get(f"{base_url}/metrics", timeout=10)


def test_scraping_needs_no_key_and_shows_only_numbers(store: Store, client: Client) -> None:
    customer = client.new_customer()
    subscription = subscribe(client)
    happen(store, client, customer)
    client.submit_transactions(customer)
    answer = scrape(client.base_url)
    assert (answer.status_code, answer.headers["Content-Type"].partition(";")[0]) == (200, "text/plain")
    found = samples(answer.text)
    assert {name for name, *_ in found} == {
        "tidemark_webhook_deliveries",
        "tidemark_webhook_oldest_due_seconds",
        "tidemark_webhook_attempts_last_hour",
        "tidemark_webhook_paused_subscriptions",
        "tidemark_jobs",
        "tidemark_oldest_job_seconds",
    }
    assert {labels[0] for name, *labels in found if name == "tidemark_jobs"} == set(Flow)
    for secret in (customer, subscription, str(client.client_id), "lender.example"):
        assert secret not in answer.text


def test_the_numbers_agree_with_the_database(own_store: Store) -> None:
    with answering(own_store) as url:
        found = samples(scrape(url).text)
    assert found["tidemark_webhook_deliveries", "due"] == 0
    assert found["tidemark_jobs", "Enrichment", "Queued"] == 0
    load = Load(
        deliveries={"due": 3, "sending": 1, "retrying": 2, "paused": 4},
        oldest_due_s=12.5,
        attempts_last_hour={"delivered": 7, "failed": 5},
        paused_subscriptions=1,
        jobs={("Enrichment", "Queued"): 6},
        oldest_job_s={"Enrichment": 90.0},
    )
    assert samples(as_text(load).decode()) == {
        ("tidemark_webhook_deliveries", "due"): 3,
        ("tidemark_webhook_deliveries", "sending"): 1,
        ("tidemark_webhook_deliveries", "retrying"): 2,
        ("tidemark_webhook_deliveries", "paused"): 4,
        ("tidemark_webhook_oldest_due_seconds",): 12.5,
        ("tidemark_webhook_attempts_last_hour", "delivered"): 7,
        ("tidemark_webhook_attempts_last_hour", "failed"): 5,
        ("tidemark_webhook_paused_subscriptions",): 1,
        ("tidemark_jobs", "Enrichment", "Queued"): 6,
        ("tidemark_oldest_job_seconds", "Enrichment"): 90,
    }


def test_a_result_is_reused_for_a_while() -> None:
    reads: list[Load] = []
    times = iter([0.0, 0.5, GOOD_FOR_S - 0.01, GOOD_FOR_S, GOOD_FOR_S + 0.5])

    def load() -> Load:
        reads.append(IDLE)
        return IDLE

    scrape = Scrape(load, clock=lambda: next(times))
    assert len({scrape() for _ in range(5)}) == 1
    assert len(reads) == 2


def test_a_failed_count_is_503(own_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> Load:
        raise RuntimeError("nobody foresaw it")

    monkeypatch.setattr(delivery_figures, "read_load", fails)
    with answering(own_store) as url:
        answer = scrape(url)
    assert (answer.status_code, answer.json()["code"]) == (503, "Service.Unavailable")
    assert int(answer.headers["Retry-After"]) >= 1
    assert "foresaw" not in answer.text


def test_without_its_database_the_service_has_no_metrics(own_store: Store) -> None:
    with answering(own_store) as url:
        with own_store.db.writing() as w:
            w.exec_driver_sql("ALTER TABLE attempts RENAME TO gone")
        assert scrape(url).status_code == 503
