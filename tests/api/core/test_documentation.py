"""The OpenAPI document and its pages describe every operation, answer, refusal and event of the service."""

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from pipelines.webhooks.events import EVENT_TYPES
from storage.core.settings import Environment, Settings, key_text, new_key
from storage.core.store import Store
from tests.api.conftest import HTTP, Client, answering, belongings
from tests.api.core.operations import Operation, document, list_operations
from tests.conftest import open_store

MAX_BYTES = 250_000  # of any page
DOCUMENTATION = ("/openapi.json", "/docs", "/docs/customers", "/docs/errors/Customer.NotFound")
CONTRACT = """
POST /v1/customer
POST /v1/customer/{customerId}/transactions
GET /v1/customer/{customerId}/transactions
GET /v1/transactions
GET /v1/jobs/{jobId}/status
GET /v1/jobs
GET /v1/decision-policies
POST /v1/customer/{customerId}/reports/refresh
GET /v1/customer/{customerId}/reports
POST /v1/webhooks/subscriptions
GET /v1/webhooks/subscriptions
DELETE /v1/webhooks/subscriptions/{subscriptionId}
POST /v1/webhooks/subscriptions/{subscriptionId}/secret/rotate
POST /v1/webhooks/subscriptions/{subscriptionId}/customers
DELETE /v1/webhooks/subscriptions/{subscriptionId}/customers
""".strip().splitlines()


def test_all_operations_of_the_contract_exist() -> None:
    assert set(CONTRACT) <= set(map(str, list_operations()))


def test_the_document_needs_no_key(base_url: str) -> None:
    answer = HTTP.get(f"{base_url}/openapi.json", timeout=10)
    assert answer.status_code == 200
    assert answer.json() == document()
    assert answer.json()["openapi"].startswith("3.1")


def test_every_answer_has_a_schema_and_an_example(subtests: pytest.Subtests) -> None:
    for operation in list_operations():
        with subtests.test(str(operation)):
            for response in operation.documented["responses"].values():
                [(media, content)] = response["content"].items()
                if media in ("image/png", "application/pdf", "application/octet-stream"):
                    continue
                is_text = media in ("text/html", "text/plain") and content["schema"] == {"type": "string"}
                assert "$ref" in content["schema"] or is_text
                assert content.get("example") or content["examples"]


def test_every_refusal_is_documented_at_its_operations(subtests: pytest.Subtests) -> None:
    for operation in list_operations():
        with subtests.test(str(operation)):
            assert_refusals_documented(operation)


def assert_refusals_documented(operation: Operation) -> None:
    expected = {"500", "503"}
    expected |= {"401", "403"} if operation.needs_key else set()
    expected |= {"404"} if operation.ids else set()
    expected |= {"400", "413", "415"} if operation.has_body else set()
    expected |= {"400"} if '"in": "query"' in str(operation.documented).replace("'", '"') else set()
    takes_a_key = "Idempotency-Key" in str(operation.documented.get("parameters"))
    expected |= {"400", "409", "422"} if takes_a_key else set()
    assert expected <= operation.documented["responses"].keys()
    # A draft can contradict the published version, and a PDF needs a browser.
    can_misfit = takes_a_key or operation.path.endswith(("/challenger", ".pdf"))
    assert can_misfit or "422" not in operation.documented["responses"]


def test_text_that_may_not_be_empty_is_documented_so(store: Store, client: Client, subtests: pytest.Subtests) -> None:
    own = belongings(store, client)
    for operation in list_operations():
        for parameter in operation.documented.get("parameters", ()):
            limited = parameter["schema"].keys() & {"enum", "format", "pattern", "minLength"}
            if parameter["in"] == "query" and parameter["schema"].get("type") == "string" and not limited:
                with subtests.test(f"{operation} {parameter['name']}"):
                    answer = client.call(operation.method, operation.path_for(own), params={parameter["name"]: ""})
                    assert answer.status_code != 400, answer.text


def test_sent_events_are_described() -> None:
    events = document()["webhooks"]
    assert set(events) == set(EVENT_TYPES)
    payload = document()["components"]["schemas"]["JobCompletedEvent"]["required"]
    common = {"eventType", "eventId", "clientId", "customerId", "timestamp", "jobId", "abn", "jobType"}
    assert set(payload) == common | {"totalProcessedTransactions", "totalReceivedTransactions"}


def test_the_pages_have_every_operation_and_model_and_load_nothing(base_url: str, subtests: pytest.Subtests) -> None:
    index = HTTP.get(f"{base_url}/docs", timeout=10).text
    pages = {"/docs": index}
    for address in sorted(set(re.findall('href="(/docs/[^"]+)"', index))):
        pages[address] = HTTP.get(base_url + address, timeout=10).text
    for address, page in pages.items():
        with subtests.test(address):
            answer = HTTP.get(base_url + address, timeout=10)
            assert answer.headers["Content-Type"].startswith("text/html")
            assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")
            assert set(re.findall('(?:src|href)="([^"]+)"', page)) <= {"#content", *pages}
            assert "<script" not in page
            assert len(page.encode()) <= MAX_BYTES
    for operation in list_operations():
        with subtests.test(str(operation)):
            assert f">{operation}: " in index
    for name in (*map(str, list_operations()), *document()["components"]["schemas"]):
        with subtests.test(name):
            assert any(f"<summary>{name} " in page for page in pages.values())
    assert HTTP.get(f"{base_url}/docs/nothing", timeout=10).status_code == 404


@pytest.mark.parametrize("docs", [None, True])
def test_production_shows_its_documentation_only_if_configured(tmp_path: Path, docs: bool | None) -> None:
    settings = Settings(
        home=tmp_path, environment=Environment.PRODUCTION, master_key=SecretStr(key_text(new_key()).decode()), docs=docs
    )
    store = open_store(settings)
    with answering(store) as url:
        statuses = {HTTP.get(url + path, timeout=10).status_code for path in DOCUMENTATION}
    store.close()
    assert statuses == {200 if docs else 404}


def test_type_of_a_problem_leads_to_the_page_of_its_code(base_url: str) -> None:
    problem = HTTP.get(f"{base_url}/v1/nothing", timeout=10).json()
    page = HTTP.get(base_url + problem["type"], timeout=10)
    assert page.headers["Content-Type"].startswith("text/html")
    assert "<h1><bdi>Request.UnknownPath</bdi></h1>" in page.text
    assert "There is nothing at this path." in page.text
    unknown = HTTP.get(f"{base_url}/docs/errors/No.Such<b>", timeout=10)
    assert (unknown.status_code, "<b>" in unknown.text) == (404, False)


def test_no_two_models_have_the_same_name() -> None:
    """FastAPI puts the module before a name that several models have."""
    assert [name for name in document()["components"]["schemas"] if "__" in name] == []


def test_every_reference_in_the_document_resolves() -> None:
    schemas: dict[str, Any] = document()["components"]["schemas"]
    assert set(re.findall("#/components/schemas/([A-Za-z_]+)", str(document()))) <= schemas.keys()
