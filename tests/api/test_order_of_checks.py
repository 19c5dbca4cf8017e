"""401 before 403 before 404 before 400, on every route that the OpenAPI document names."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
import requests

from storage import keys
from storage.store import Store
from tests.api.conftest import Client, connected, new_client, serving
from tests.api.operations import Operation, documented
from tests.conftest import postgres_first

OPERATIONS = documented()
KEYED = [operation for operation in OPERATIONS if operation.keyed]
WITH_IDS = [operation for operation in KEYED if operation.ids]
WITH_BODY = [operation for operation in KEYED if operation.has_body]

JSON = "application/json"

named = pytest.mark.parametrize
each = str  # how an operation is named in a test's id


@postgres_first
@named("operation", KEYED, ids=each)
@named("key", [None, "", "wrong", "tm_sandbox_", "x" * 257, "tm_live_" + "a" * 49, "ключ".encode()])
def test_without_a_good_key_nothing_answers(base_url: str, operation: Operation, key: str | bytes | None) -> None:
    headers = {} if key is None else {"x-api-key": key}
    answer = requests.request(operation.method, base_url + operation.path_for(), headers=headers, timeout=10)
    assert (answer.status_code, answer.json()["code"]) == (401, "Authentication.InvalidKey")
    assert answer.headers["WWW-Authenticate"]


def test_health_and_documentation_need_no_key() -> None:
    keyless = {operation.path for operation in OPERATIONS if not operation.keyed}
    assert keyless == {"/health/live", "/health/ready", "/metrics"}


@pytest.fixture(scope="module")
def ended(store: Store) -> dict[str, str]:
    """Keys that were good once, or are somewhere else."""
    now = datetime.now(UTC)
    past = now - timedelta(seconds=1)
    with store.db.writing() as w:
        client_id = keys.create_client(w, "Lender", decision_policies=False, now=now).client_id
        revoked, revoked_text = keys.create_key(w, client_id, keys.SCOPES, None, "tm_sandbox_", now)
        keys.revoke(w, revoked.key_id, now)
        _, expired_text = keys.create_key(w, client_id, keys.SCOPES, past, "tm_sandbox_", now)
        _, foreign_text = keys.create_key(w, client_id, keys.SCOPES, None, "tm_live_", now)
    return {"revoked": revoked_text, "expired": expired_text, "of the other environment": foreign_text}


@postgres_first
@named("operation", KEYED, ids=each)
@named("kind", ["revoked", "expired", "of the other environment"])
def test_a_key_that_ended_reads_like_any_wrong_one(
    base_url: str, ended: dict[str, str], operation: Operation, kind: str
) -> None:
    answers = []
    for key in (ended[kind], "nonsense"):
        headers = {"x-api-key": key, "X-Request-Id": "same"}
        answer = requests.request(operation.method, base_url + operation.path_for(), headers=headers, timeout=10)
        answers.append((answer.status_code, answer.headers["WWW-Authenticate"], answer.text))
    assert answers[0] == answers[1]
    assert answers[0][0] == 401


def test_two_keys_are_no_key(client: Client) -> None:
    with connected(client.base_url) as connection:
        connection.putrequest("GET", "/v1/jobs")
        for _ in range(2):
            connection.putheader("x-api-key", client.key)
        connection.endheaders()
        assert connection.getresponse().status == 401


def test_a_key_in_the_query_is_no_key(client: Client) -> None:
    assert requests.get(f"{client.base_url}/v1/jobs?x-api-key={client.key}", timeout=10).status_code == 401


def test_a_revoked_key_is_refused_on_the_very_next_request_everywhere(store: Store, client: Client) -> None:
    with serving(store) as other_url:
        doors = client, Client(other_url, client.client_id, client.key)
        assert [door.get("/v1/jobs").status_code for door in doors] == [200, 200]
        with store.db.writing() as w:
            [key] = keys.find_keys(w, client.client_id)
            keys.revoke(w, key.key_id, datetime.now(UTC))
        assert [door.get("/v1/jobs").status_code for door in doors] == [401, 401]


@postgres_first
@named("operation", KEYED, ids=each)
def test_without_its_scope_every_route_is_forbidden(store: Store, base_url: str, operation: Operation) -> None:
    others = [scope for scope in keys.SCOPES if scope not in operation.scopes]
    answer = new_client(store, base_url, others).call(operation.method, operation.path_for(), data=b"{")
    assert (answer.status_code, answer.json()["code"]) == (403, "Authorization.MissingScope")


@postgres_first
@named("operation", KEYED, ids=each)
def test_each_of_its_scopes_opens_a_route(store: Store, base_url: str, operation: Operation) -> None:
    for scope in operation.scopes:
        answer = new_client(store, base_url, [scope]).call(operation.method, operation.path_for(), data=b"{")
        assert answer.status_code not in (401, 403)


@postgres_first
@named("operation", WITH_IDS, ids=each)
@named("text", [str(UUID(int=7)), "not-an-id", "%00", "'; --", "0" * 32, "{" + str(UUID(int=7)) + "}"])
def test_an_unknown_id_is_not_found_even_when_all_else_is_wrong(
    client: Client, operation: Operation, text: str
) -> None:
    path = operation.path_for(dict.fromkeys(operation.ids, text)) + "?page=0&wait=x&count=x"
    answer = client.call(operation.method, path, json=[] if operation.has_body else None)
    assert answer.status_code == 404
    assert answer.json()["code"] == operation.not_found


@postgres_first
@named("operation", WITH_BODY, ids=each)
@named("headers", [{}, {"Content-Type": "text/plain"}, {"Content-Type": "application/json; charset=utf-16"}])
def test_only_json_in_utf8_is_read(client: Client, operation: Operation, headers: dict[str, str]) -> None:
    answer = client.call(operation.method, operation.path_for(), data=b"{}", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (415, "Request.NotJson")


@postgres_first
@named("operation", WITH_BODY, ids=each)
def test_a_compressed_body_is_never_inflated(client: Client, operation: Operation) -> None:
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    answer = client.call(operation.method, operation.path_for(), data=b"not gzip at all", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (415, "Request.EncodedBody")


@postgres_first
@named("operation", WITH_BODY, ids=each)
@named(("headers", "status"), [({}, 401), ({"Content-Type": "text/plain"}, 415), ({"Content-Type": JSON}, 413)])
def test_what_headers_decide_is_answered_before_the_body_is_sent(
    client: Client, operation: Operation, headers: dict[str, str], status: int
) -> None:
    with connected(client.base_url) as connection:
        connection.putrequest(operation.method, operation.path_for())
        connection.putheader("Content-Length", "100000000")
        for name, value in (headers | ({"x-api-key": client.key} if headers else {})).items():
            connection.putheader(name, value)
        connection.endheaders()  # and no body
        assert connection.getresponse().status == status


@postgres_first
@named("operation", WITH_BODY, ids=each)
def test_a_body_in_chunks_is_cut_off_at_the_limit(client: Client, operation: Operation) -> None:
    chunks = (b" " * 50_000 for _ in range(6))
    answer = client.call(operation.method, operation.path_for(), data=chunks, headers={"Content-Type": JSON})
    assert (answer.status_code, answer.json()["code"]) == (413, "Request.TooLarge")
