"""401 before 403 before 404 before 400, on every route of the OpenAPI document."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from uuid import UUID

import pytest
from starlette.requests import Request

from api.core.limits import Limits
from api.core.refusals import Refusals
from api.http.dependencies import check_keys
from storage.access import keys
from storage.access.keys import Principal
from storage.core.store import Store
from storage.core.vault import Vault
from tests.api.conftest import HTTP, Client, answering, new_client, open_connection
from tests.api.core.operations import Operation, Paired, list_operations, paired


@cache
def operations_with_key() -> Sequence[Operation]:
    return [operation for operation in list_operations() if operation.needs_key]


@cache
def with_ids() -> Sequence[Operation]:
    return [operation for operation in operations_with_key() if operation.ids]


@cache
def with_body() -> Sequence[Operation]:
    return [operation for operation in operations_with_key() if operation.has_body]


JSON = "application/json"
WRONG_KEYS = (None, "", "wrong", "tm_sandbox_", "x" * 257, "tm_live_" + "a" * 49, "ключ".encode())
UNKNOWN_IDS = (str(UUID(int=7)), "not-an-id", "%00", "'; --", "0" * 32, "{" + str(UUID(int=7)) + "}")


@paired
def test_without_a_valid_key_no_route_answers(subtests: pytest.Subtests, base_url: str, paired: Paired) -> None:
    for operation, key in paired(operations_with_key(), WRONG_KEYS):
        with subtests.test(str(operation), key=key):
            headers = {} if key is None else {"x-api-key": key}
            answer = HTTP.request(operation.method, base_url + operation.path_for(), headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (401, "Authentication.InvalidKey")
            assert answer.headers["WWW-Authenticate"]


def test_health_and_documentation_need_no_key() -> None:
    keyless = {operation.path for operation in list_operations() if not operation.needs_key}
    assert keyless == {"/health/live", "/health/ready", "/metrics"}


def ended_keys(store: Store) -> dict[str, str]:
    """Return keys that are no longer valid, or are valid only in the other environment."""
    now = datetime.now(UTC)
    past = now - timedelta(seconds=1)
    with store.db.writing() as w:
        client_id = keys.create_client(w, "Lender", decision_policies=False, now=now).client_id
        revoked, revoked_text = keys.create_key(w, client_id, keys.SCOPES, None, "tm_sandbox_", now)
        keys.revoke(w, revoked.key_id, now)
        _, expired_text = keys.create_key(w, client_id, keys.SCOPES, past, "tm_sandbox_", now)
        _, foreign_text = keys.create_key(w, client_id, keys.SCOPES, None, "tm_live_", now)
    return {"revoked": revoked_text, "expired": expired_text, "of the other environment": foreign_text}


def test_an_ended_key_is_refused_like_any_wrong_one(subtests: pytest.Subtests, store: Store, base_url: str) -> None:
    ended = ended_keys(store)
    for operation in operations_with_key():
        url = base_url + operation.path_for()

        def answer_to(key: str) -> tuple[int, str, str]:
            headers = {"x-api-key": key, "X-Request-Id": "same"}
            answer = HTTP.request(operation.method, url, headers=headers)  # noqa: B023  # called in this iteration
            return answer.status_code, answer.headers["WWW-Authenticate"], answer.text

        wrong = answer_to("nonsense")
        for kind, key in ended.items():
            with subtests.test(str(operation), kind=kind):
                assert answer_to(key) == wrong
                assert wrong[0] == 401


def test_two_keys_are_refused(client: Client, socket_url: str) -> None:
    with open_connection(socket_url) as connection:
        connection.putrequest("GET", "/v1/jobs")
        for _ in range(2):
            connection.putheader("x-api-key", client.key)
        connection.endheaders()
        assert connection.getresponse().status == 401


def test_a_key_in_the_query_is_ignored(client: Client) -> None:
    assert HTTP.get(f"{client.base_url}/v1/jobs?x-api-key={client.key}").status_code == 401


def test_a_revoked_key_is_refused_on_the_very_next_request_everywhere(store: Store, client: Client) -> None:
    with answering(store) as other_url:
        apis = client, Client(other_url, client.client_id, client.key)
        assert [api.get("/v1/jobs").status_code for api in apis] == [200, 200]
        with store.db.writing() as w:
            [key] = keys.find_keys(w, client.client_id)
            keys.revoke(w, key.key_id, datetime.now(UTC))
        assert [api.get("/v1/jobs").status_code for api in apis] == [401, 401]


def test_a_failure_with_one_key_does_not_fail_others(
    store: Store, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Vault, "pseudonym", lambda *_: 1 / 0)
    refusals = Refusals(store.db)
    wrong, right = check_keys(store, Limits(store.settings), refusals, [_with_key("wrong"), _with_key(client.key)])
    refusals.stop()
    assert isinstance(wrong, ZeroDivisionError)
    assert isinstance(right, Principal)
    assert right.client_id == client.client_id


def _with_key(key: str) -> Request:
    state = {"request_id": "", "own_request_id": ""}
    return Request({"type": "http", "headers": [(b"x-api-key", key.encode())], "state": state})


def test_without_its_scope_every_route_is_forbidden(subtests: pytest.Subtests, store: Store, base_url: str) -> None:
    clients: dict[frozenset[str], Client] = {}
    for operation in operations_with_key():
        with subtests.test(str(operation)):
            others = frozenset(keys.SCOPES) - frozenset(operation.scopes)
            if others not in clients:
                clients[others] = new_client(store, base_url, sorted(others))
            answer = clients[others].call(operation.method, operation.path_for(), data=b"{")
            assert (answer.status_code, answer.json()["code"]) == (403, "Authorization.MissingScope")


def test_decisions_about_customers_have_their_own_scopes() -> None:
    scopes = {operation.path: operation.scopes for operation in operations_with_key() if operation.method == "POST"}
    assert scopes["/v1/decision-policies/{slug}/publish"] == ["decision-policies:publish"]
    assert scopes["/v1/evaluations/{evaluationId}/override"] == ["decision-policies:override"]


def test_each_of_its_scopes_opens_a_route(subtests: pytest.Subtests, store: Store, base_url: str) -> None:
    clients = {scope: new_client(store, base_url, [scope]) for scope in keys.SCOPES}
    for operation in operations_with_key():
        for scope in operation.scopes:
            with subtests.test(str(operation), scope=scope):
                answer = clients[scope].call(operation.method, operation.path_for(), data=b"{")
                assert answer.status_code not in (401, 403)


@paired
def test_an_unknown_id_is_not_found_even_if_everything_else_is_wrong(
    subtests: pytest.Subtests, client: Client, paired: Paired
) -> None:
    for operation, text in paired(with_ids(), UNKNOWN_IDS):
        with subtests.test(str(operation), id=text):
            path = operation.path_for(dict.fromkeys(operation.ids, text)) + "?page=0&wait=x&count=x"
            body, headers = [] if operation.has_body else None, {"Idempotency-Key": "no key"}
            answer = client.call(operation.method, path, json=body, headers=headers)
            assert answer.status_code == 404
            assert answer.json()["code"] == operation.not_found


@paired
def test_only_json_in_utf8_is_read(subtests: pytest.Subtests, client: Client, paired: Paired) -> None:
    others: list[dict[str, str]] = [
        {},
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/json; charset=utf-16"},
    ]
    for operation, headers in paired(with_body(), others):
        with subtests.test(str(operation), headers=headers):
            answer = client.call(operation.method, operation.path_for(), data=b"{}", headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (415, "Request.NotJson")


def test_a_compressed_body_is_refused(subtests: pytest.Subtests, client: Client) -> None:
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    for operation in with_body():
        with subtests.test(str(operation)):
            answer = client.call(operation.method, operation.path_for(), data=b"not gzip at all", headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (415, "Request.EncodedBody")


@paired
def test_faults_of_headers_are_answered_before_the_body_is_sent(
    subtests: pytest.Subtests, client: Client, socket_url: str, paired: Paired
) -> None:
    decided: list[tuple[dict[str, str], int]] = [
        ({}, 401),
        ({"x-api-key": client.key, "Content-Type": "text/plain"}, 415),
        ({"x-api-key": client.key, "Content-Type": JSON}, 413),
    ]
    for operation, (headers, status) in paired(with_body(), decided):
        with subtests.test(str(operation), status=status), open_connection(socket_url) as connection:
            connection.putrequest(operation.method, operation.path_for())
            connection.putheader("Content-Length", "100000000")
            for name, value in headers.items():
                connection.putheader(name, value)
            connection.endheaders()  # and no body
            assert connection.getresponse().status == status


def test_a_body_in_chunks_is_cut_off_at_the_limit(subtests: pytest.Subtests, client: Client, socket_url: str) -> None:
    at_the_server = Client(socket_url, client.client_id, client.key)
    for operation in with_body():
        with subtests.test(str(operation)):
            chunks = (b" " * 50_000 for _ in range(6))
            headers = {"Content-Type": JSON}
            answer = at_the_server.call(operation.method, operation.path_for(), data=chunks, headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (413, "Request.TooLarge")
