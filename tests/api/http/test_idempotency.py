"""`Idempotency-Key` on every operation that takes one: the work is done once, and the answer repeated."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from typing import Any
from uuid import uuid4

import pytest
import requests
from sqlalchemy import select
from sqlalchemy.exc import OperationalError

from storage.core import leases
from storage.core.database import Writing
from storage.core.models import idempotency_keys
from storage.core.store import Store
from tests.api.conftest import ABN, ITEM, Belongings, Client, answering, open_connection
from tests.api.core.operations import Operation, Paired, list_operations, paired
from tests.api.places import example_with
from tests.api.worker import fail_deliveries

HEADER = "Idempotency-Key"
NOT_CREATING = {  # they create nothing that a repetition would create again
    "rotateSecret",
    "addCustomers",
    "publishDecisionPolicy",
    "archiveDecisionPolicy",
    "unarchiveDecisionPolicy",
    "varyDecision",
    "pauseSubscription",
    "resumeSubscription",
    "archiveRuleset",
    "unarchiveRuleset",
    "approveRequest",
    "declineRequest",
    "withdrawRequest",
    "checkDecisionPolicy",
    "checkRuleset",
}
FOR_USERS = {  # for signed-in users only; their pages send no key
    "createUser",
    "disableUser",
    "enableUser",
    "makeLink",
    "createKey",
    "rotateKey",
    "revokeKey",
}
parametrize = pytest.mark.parametrize


@cache
def operations_with_header() -> Sequence[Operation]:
    return [
        operation
        for operation in list_operations()
        if any(parameter["name"] == HEADER for parameter in operation.documented.get("parameters", ()))
    ]


def send(client: Client, operation: Operation, key: str, ids: Mapping[str, str], body: Any = None) -> requests.Response:
    path = operation.path_for(ids)
    return client.call(operation.method, path, json=body or example_with(operation, ids), headers={HEADER: key})


def test_every_post_that_creates_takes_a_key() -> None:
    posts = {operation.documented["operationId"] for operation in list_operations() if operation.method == "POST"}
    assert {
        operation.documented["operationId"] for operation in operations_with_header()
    } == posts - NOT_CREATING - FOR_USERS


def test_the_same_request_is_answered_again(subtests: pytest.Subtests, store: Store, client: Client) -> None:
    ids = dict(things(store, client))
    for operation in operations_with_header():
        with subtests.test(str(operation)):
            assert_answered_again(client, operation, ids)


def assert_answered_again(client: Client, operation: Operation, ids: Mapping[str, str]) -> None:
    first, second = (send(client, operation, operation.documented["operationId"], ids) for _ in range(2))
    assert first.ok, first.text
    assert HEADER.replace("Key", "Replayed") not in first.headers
    if "secret" in first.json()["data"]:
        assert (second.status_code, second.json()["code"]) == (409, "Idempotency.SecretNotReplayable")
        assert first.json()["data"]["webhookSubscriptionId"] in second.json()["detail"]
        return
    assert (second.status_code, second.content) == (first.status_code, first.content)
    assert second.headers["Idempotency-Replayed"] == "true"
    for name in ("Content-Type", "Location", "Retry-After"):
        assert second.headers.get(name) == first.headers.get(name)


def test_a_key_belongs_to_one_request_and_one_client(
    subtests: pytest.Subtests, store: Store, client: Client, other_client: Client
) -> None:
    ids, their_ids = (dict(things(store, each)) for each in (client, other_client))
    for operation in operations_with_header():
        with subtests.test(str(operation)):
            key = operation.documented["operationId"]
            assert send(client, operation, key, ids).ok
            assert send(other_client, operation, key, their_ids).ok
            if operation.has_body:
                reused = send(client, operation, key, ids, {**example_with(operation, ids), "more": 1})
            else:
                reused = send(client, operation, key, {name: str(uuid4()) for name in ids})
            assert (reused.status_code, reused.json()["code"]) == (422, "Idempotency.KeyReused")


@paired
def test_an_invalid_key_is_refused_and_nothing_is_done(
    subtests: pytest.Subtests, store: Store, client: Client, paired: Paired
) -> None:
    ids = dict(things(store, client))
    before = count_resources(client)
    for operation, key in paired(operations_with_header(), ("", "x" * 256, "a key", "é", "a\tb")):
        with subtests.test(str(operation), key=key):
            body, headers = example_with(operation, ids), {HEADER: key.encode()}
            refused = client.call(operation.method, operation.path_for(ids), json=body, headers=headers)
            assert (refused.status_code, refused.json()["code"]) == (400, "Idempotency.InvalidKey")
            assert count_resources(client) == before


def test_two_keys_are_refused(client: Client, socket_url: str) -> None:
    with open_connection(socket_url) as connection:
        connection.putrequest("POST", "/v1/customer")
        connection.putheader("x-api-key", client.key)
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", "21")
        connection.putheader(HEADER, "one")
        connection.putheader(HEADER, "two")
        connection.endheaders(b'{"abn":"51824753556"}')
        answer = connection.getresponse()
        assert (answer.status, b"Idempotency.InvalidKey" in answer.read()) == (400, True)
    assert count_resources(client)[0] == 0


def test_two_equal_requests_at_once_make_one_job(client: Client) -> None:
    path = f"/v1/customer/{client.new_customer()}/transactions"

    def submit(_: int) -> requests.Response:
        return client.post(path, {"transactions": [ITEM]}, headers={HEADER: "twin"})

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(submit, range(8)))
    accepted = {answer.content for answer in answers if answer.status_code == 202}
    refused = {answer.json()["code"] for answer in answers if answer.status_code != 202}
    assert len(accepted) == 1
    assert refused <= {"Idempotency.InFlight"}
    assert client.get("/v1/jobs").json()["data"]["totalCount"] == 1


def test_a_key_outlives_the_process(store: Store, client: Client) -> None:
    first = client.post("/v1/customer", {"abn": ABN}, headers={HEADER: "retained"})
    with answering(store) as url:
        again = Client(url, client.client_id, client.key).post(
            "/v1/customer", {"abn": ABN}, headers={HEADER: "retained"}
        )
    assert again.content == first.content


def test_a_key_is_claimed_by_the_databases_clock(
    store: Store, client: Client, monkeypatch: pytest.MonkeyPatch, now: datetime
) -> None:
    """Otherwise, a process whose clock is behind would take over a request in progress, and do it again."""
    monkeypatch.setattr(leases, "clock", lambda _: now)
    assert client.post("/v1/customer", {"abn": ABN}, headers={HEADER: "claimed"}).ok
    with store.db.reading() as r:
        mine = select(idempotency_keys.c.created_at).where(idempotency_keys.c.client_id == client.client_id)
        assert r.execute(mine).scalar_one() == now


def test_a_refusal_is_stored_like_any_answer(client: Client) -> None:
    path = f"/v1/customer/{uuid4()}/transactions"
    first, second = (client.post(path, {"transactions": [ITEM]}, headers={HEADER: "lost"}) for _ in range(2))
    assert (first.status_code, second.status_code) == (404, 404)
    assert second.headers["Idempotency-Replayed"] == "true"
    assert second.headers["Content-Type"] == "application/problem+json"
    assert second.content == first.content


@parametrize("cut", ["before the commit", "after the commit"])
@parametrize("attempt", range(2))
def test_a_failed_request_is_done_once_when_repeated(
    store: Store, client: Client, monkeypatch: pytest.MonkeyPatch, cut: str, attempt: int
) -> None:
    """The database fails during the claim or the work itself; it is unknown whether the commit succeeded."""
    path, headers = f"/v1/customer/{client.new_customer()}/transactions", {HEADER: "again"}
    writing, countdown = store.db.writing, iter([attempt == 0, attempt == 1])

    @contextmanager
    def cut_off() -> Iterator[Writing]:
        fails = next(countdown, False)
        with writing() as w:
            yield w
            if fails and cut == "before the commit":
                raise OperationalError("COMMIT", {}, Exception("terminated"))
        if fails:
            raise OperationalError("COMMIT", {}, Exception("terminated"))

    with monkeypatch.context() as patched:
        patched.setattr(store.db, "writing", cut_off)
        assert client.post(path, {"transactions": [ITEM]}, headers=headers).status_code == 503
    answer = client.post(path, {"transactions": [ITEM]}, headers=headers)
    assert answer.status_code == 202
    assert client.get("/v1/jobs").json()["data"]["totalCount"] == 1


def things(store: Store, client: Client) -> Mapping[str, str]:
    """One resource of each kind, and a delivery that can be resent."""
    ids = Belongings(store, client)
    assert ids["deliveryId"]
    fail_deliveries(store)
    return ids


def count_resources(client: Client) -> list[int]:
    """Return how many customers, jobs and subscriptions the client has."""
    return [
        client.get(path).json()["data"]["totalCount"]
        for path in ("/v1/customers", "/v1/jobs", "/v1/webhooks/subscriptions")
    ]
