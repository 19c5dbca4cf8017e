"""Every answer that is not a success is a problem, whatever went wrong."""

import json
import logging
from collections.abc import Iterator
from uuid import UUID

import pytest

from api.core.schemas.examples import example
from api.webhooks.schemas import NewSubscription
from storage.core import audit, logs
from storage.core.store import Store
from tests.api.conftest import ABN, HTTP, Client, answering, new_client, open_connection
from tests.api.core.operations import list_operations

parametrize = pytest.mark.parametrize
METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"}


def test_a_problem_has_the_shape_of_rfc_9457(client: Client) -> None:
    answer = client.get("/v1/customer/unknown", headers={"X-Request-Id": "lender-7"})
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.json() == {
        "type": "/docs/errors/Customer.NotFound",
        "title": "Not Found",
        "status": 404,
        "detail": "There is no customer with this id.",
        "code": "Customer.NotFound",
        "requestId": "lender-7",
    }


UNKNOWN = [
    "/v1",
    "/v1/",
    "/V1/jobs",
    "/v1/customers/",
    "//v1/customers",
    "/v1//customers",
    "/v1/./customers",
    "/v1/../v1/customers",
    "/v1/%2e%2e/x",
    "/v1/%2E%2E/v1/customers",
    "/%2e%2e/%2e%2e/etc/passwd",
    "/v1/jobs%00",
    "/v1/jobs%0A",
    "/metrics%0A",
    "/health/live%0A",
    "/openapi.json%0A",
    "/v1/jobs;x=1",
    "/v1/jobs%2f",
    "/v1/customers%3fpage=1",
    "/v1/jobs%20",
    "/docs/assets/../../../../etc/passwd",
    "/docs/assets/%2e%2e/%2e%2e/x",
    "/docs/",
    "/openapi.json/",
    "/v1/%F0%9F%92%A9",
    "/v1/%ff",
    "/v1/%zz",
    "*",
]


def test_an_unknown_path_is_not_found_and_not_redirected(
    subtests: pytest.Subtests, client: Client, socket_url: str
) -> None:
    for path in UNKNOWN:
        with subtests.test(path), open_connection(socket_url) as connection:
            connection.request("GET", path, headers={"x-api-key": client.key})
            answer = connection.getresponse()
            assert (answer.status, answer.headers["Location"]) == (404, None)
            assert b"Request.UnknownPath" in answer.read()


@parametrize("most", [1, pytest.param(len(METHODS), marks=pytest.mark.slow)])
def test_a_wrong_method_is_answered_with_the_allowed_ones(subtests: pytest.Subtests, base_url: str, most: int) -> None:
    """Each path gets one wrong method, in turn; in `make test-slow`, all of them."""
    for number, path in enumerate(sorted({operation.path for operation in list_operations()})):
        right = {operation.method for operation in list_operations() if operation.path == path}
        wrong = sorted(METHODS - right)
        for method in (wrong[number % len(wrong) :] + wrong)[:most]:
            with subtests.test(path, method=method):
                answer = HTTP.request(method, base_url + path)
                assert answer.status_code == 405
                assert set(answer.headers["Allow"].split(", ")) == right


@parametrize("given", ["lender-7", "a" * 128, "with space ~!"])
def test_the_callers_request_id_is_returned(client: Client, given: str) -> None:
    assert client.get("/v1/jobs", headers={"X-Request-Id": given}).headers["X-Request-Id"] == given


def test_requests_that_share_an_id_are_distinguished_by_ours(
    client: Client, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.handler.setFormatter(logs.Json("api"))
    with caplog.at_level(logging.INFO, logger="tidemark.api"):
        for number in range(2):
            body = example(NewSubscription) | {"eventType": ("job.completed", "job.failed")[number]}
            client.post("/v1/webhooks/subscriptions", body, headers={"X-Request-Id": "same"})
    lines = [line for line in map(json.loads, caplog.text.splitlines()) if line.get("requestId") == "same"]
    assert len({UUID(line["ownRequestId"]) for line in lines}) == 2
    with store.db.reading() as r:
        written = [(entry.request_id, entry.own_request_id) for entry in audit.find(r, client.client_id)]
    assert written == [("same", line["ownRequestId"]) for line in reversed(lines)]


@parametrize("given", ["", "a" * 129, "tab\there", "é"])
def test_an_unusable_request_id_is_replaced(client: Client, given: str) -> None:
    answer = client.get("/v1/jobs", headers={"X-Request-Id": given.encode()})
    assert UUID(answer.headers["X-Request-Id"])


@parametrize("method", ["GET", "PUT"])
@parametrize(
    "path", ["/v1/jobs", "/v1/nothing", "/health/live", "/v1/transactions", "/openapi.json", "/docs", "/docs/assets"]
)
def test_every_answer_has_an_id_and_may_not_be_cached(client: Client, method: str, path: str) -> None:
    """This includes streamed lists, unknown paths, wrong methods and files."""
    answer = client.call(method, path)
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert UUID(answer.headers["X-Request-Id"])


@pytest.fixture
def fragile(own_store: Store) -> Iterator[Client]:
    with answering(own_store) as url:
        yield new_client(own_store, url)


def test_a_database_that_is_down_is_503_and_the_service_recovers(own_store: Store, fragile: Client) -> None:
    with own_store.db.writing() as w:
        w.exec_driver_sql("ALTER TABLE api_keys RENAME TO gone")
    answer = fragile.get("/v1/jobs")
    assert (answer.status_code, answer.json()["code"]) == (503, "Service.Unavailable")
    assert int(answer.headers["Retry-After"]) >= 1
    with own_store.db.writing() as w:
        w.exec_driver_sql("ALTER TABLE gone RENAME TO api_keys")
    assert fragile.get("/v1/jobs").status_code == 200


def test_a_lake_that_can_not_be_written_is_503_and_leaves_no_job(own_store: Store, fragile: Client) -> None:
    customer_id = fragile.new_customer()
    (own_store.lake.root / "landing").write_text("a file where the folder should be")
    body: object = {"transactions": [{}]}
    assert fragile.post(f"/v1/customer/{customer_id}/transactions", body).status_code == 503
    assert fragile.get("/v1/jobs").json()["data"]["totalCount"] == 0
    assert fragile.get(f"/v1/customer/{customer_id}").status_code == 200


def test_an_unexpected_failure_shows_only_its_request_id(
    own_store: Store, fragile: Client, caplog: pytest.LogCaptureFixture
) -> None:
    with own_store.db.writing() as w:
        w.exec_driver_sql("UPDATE api_keys SET scopes = '7'")
    caplog.handler.setFormatter(logs.Json("api"))
    with caplog.at_level(logging.ERROR):
        answer = fragile.get("/v1/jobs")
    assert (answer.status_code, answer.json()["code"]) == (500, "Service.Failure")
    assert answer.json()["detail"] == "Something failed inside the service."
    assert answer.headers["X-Request-Id"] == answer.json()["requestId"]
    assert answer.json()["requestId"] in caplog.text


def test_the_log_contains_no_key_and_no_path(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        client.get(f"/v1/customers?abn={ABN}")
        client.get("/health/live")  # by now the line of the first has been written
    assert "GET /v1/customers 200" in caplog.text
    assert ABN not in caplog.text
    assert client.key not in caplog.text


def test_an_unknown_http_method_is_refused_before_routing(socket_url: str) -> None:
    assert HTTP.request("BREW", f"{socket_url}/v1/jobs", timeout=10).status_code == 400
